"""Wrong calls: one clear sentence each, before any teacher is fitted or noise drawn."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import (
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    PublishedClassifier,
    Votes,
    privacy_leaks,
)
from sklearn_pate.accounting import RdpCurve, calibrate_n_queries, calibrate_noise
from sklearn_pate.accounting.bounds import gaussian_worst_case
from sklearn_pate.inspection import plan
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, LNMax
from sklearn_pate.students import ExpertQueries, RandomQueries, UncertaintyQueries
from tests.private import NoiseSource

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.arange(60) % 2
X_PUBLIC = np.random.default_rng(1).normal(size=(30, 3))


class NoTags:
    """Written for no scikit-learn."""

    def fit(self, X, y=None):
        pytest.fail("it was fitted before the input was checked")

    def transform(self, X):
        pytest.fail("it was asked before the input was checked")


class MustNotBeFitted(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        pytest.fail("a teacher was fitted before the input was checked")

    def predict(self, X):
        pytest.fail("a teacher was asked before the input was checked")


@pytest.fixture(autouse=True)
def no_noise(monkeypatch):
    def draw(self, shape):
        pytest.fail("noise was drawn before the input was checked")

    monkeypatch.setattr(NoiseSource, "words", draw)


class WrongOrder(BaseEstimator, ClassifierMixin):
    """A classifier whose tags are those of BaseEstimator."""

    def fit(self, X, y):
        return self


DEFAULT_ARGUMENTS = {"X": X, "y": Y, "X_public": PublicData(X_PUBLIC), "groups": None}
GROUPED = {"privacy_unit": "group", "n_teachers": 5}
TWO_A_GROUP = np.arange(60) // 2


# Parameters, arguments of fit (changes to the defaults), and what the message says.
WRONG_FITS = {
    # parameters
    "estimator is a class": ({"estimator": DecisionTreeClassifier}, {}, r"DecisionTreeClassifier is a class; pass an instance"),
    "estimator is a regressor": ({"estimator": LinearRegression()}, {}, r"estimator=LinearRegression\(\) is not a classifier"),
    "estimator is a clusterer": ({"estimator": KMeans()}, {}, r"estimator=KMeans\(\) is not a classifier"),
    "the budget in the place of the estimator": ({"estimator": 1.0}, {}, r"estimator=1.0 is not a classifier; .* For the privacy budget, write epsilon=1.0"),
    "bases in the wrong order": ({"estimator": WrongOrder()}, {}, r"estimator=WrongOrder\(\) is not a classifier to scikit-learn, as WrongOrder has its bases in the wrong order; write class WrongOrder\(ClassifierMixin, BaseEstimator\)"),
    "bases in the wrong order, in a pipeline": ({"student": make_pipeline(WrongOrder())}, {}, r"as WrongOrder has its bases in the wrong order"),
    "estimator is a string": ({"estimator": "forest"}, {}, r"estimator='forest' is not a classifier"),
    "student is a regressor": ({"student": LinearRegression()}, {}, r"student=LinearRegression\(\) is not a classifier"),
    "classes become floats": ({"classes": [0, 2**63 + 1]}, {}, r"classes=\[0, 9223372036854775809\] must list .* numbers that one numpy array holds exactly"),
    "classes are bytes": ({"classes": [b"a", b"b"]}, {}, r"classes=\[b'a', b'b'\] must list .* without bytes or missing"),
    "classes lose their end": ({"classes": ["a\0", "b"]}, {}, r"must list at least two distinct labels"),
    "y is bytes": ({}, {"y": np.where(Y, b"a", b"b")}, r"y holds bytes, which cannot be labels; convert them to strings"),
    "y is bytes and classes text": ({"classes": ["a", "b"]}, {"y": np.where(Y, b"a", b"b")}, r"No label of y can be in classes=\['a', 'b'\], as y is declared to be of type bytes_"),
    "y is text and classes numbers": ({"classes": [0, 1]}, {"y": Y.astype(str)}, r"No label of y can be in classes=\[0, 1\], as y is declared to be text"),
    "y is large in floats": ({}, {"y": [0, 2**63 + 1] * 30}, r"y holds labels of 2\^53 or more as floats"),
    "n_teachers is zero": ({"n_teachers": 0}, {}, r"n_teachers=0 must be a whole number of at least 1, or 'auto'"),
    "n_teachers is a float": ({"n_teachers": 10.0}, {}, r"n_teachers=10.0 must be"),
    "n_teachers is a bool": ({"n_teachers": True}, {}, r"n_teachers=True must be"),
    "n_teachers is a wrong word": ({"n_teachers": "many"}, {}, r"n_teachers='many' must be"),
    "more teachers than rows": ({"n_teachers": 61}, {}, r"n_teachers=61 is more than the number of private rows, n_samples=60; lower"),
    "n_queries is negative": ({"n_queries": -1}, {}, r"n_queries=-1 must be"),
    "n_queries above the public rows": ({"n_queries": 31}, {}, r"n_queries=31 is more than the 30 public rows"),
    "unknown mechanism": ({"mechanism": "gaussian"}, {}, r"mechanism='gaussian' is unknown; use one of \['auto', 'confident', 'gnmax', 'gumbel', 'histogram', 'interactive', 'lnmax', 'permute-and-flip', 'scores'\]"),
    "mechanism is a class": ({"mechanism": GNMax}, {}, r"mechanism=<class .* is unknown"),
    "unknown query strategy": ({"query_strategy": "best"}, {}, r"query_strategy='best' is unknown; use 'auto', one of"),
    "query strategy is a class": ({"query_strategy": RandomQueries}, {}, r"query_strategy=<class .* is unknown; use"),
    "random queries to an interactive mechanism": ({"mechanism": "interactive", "query_strategy": "random"}, {}, r"query_strategy='random' and mechanism='interactive' cannot be combined: .*use query_strategy='interactive'"),
    "interactive queries to another mechanism": ({"query_strategy": "interactive"}, {}, r"query_strategy='interactive' and mechanism='auto' cannot be combined: .*use mechanism='interactive'"),
    "uncertainty of a student without probabilities": ({"query_strategy": "uncertainty", "student": LinearSVC()}, {}, r"query_strategy='uncertainty' needs predict_proba, which LinearSVC\(\) does not have"),
    "no round": ({"query_strategy": UncertaintyQueries(n_rounds=0)}, {}, r"n_rounds=0 must be a whole number of at least 1"),
    "a first round that follows answers": ({"query_strategy": UncertaintyQueries(first=UncertaintyQueries())}, {}, r"first=UncertaintyQueries\(\) is not a FixedQueries; use RandomQueries\(\) or RepresentativeQueries\(\), which choose rows before"),
    "experts with no probability": ({"query_strategy": ExpertQueries(confident=9)}, {}, r"confident=9 must be a number from 0 to 1"),
    "representation is no transformer": ({"representation": LogisticRegression()}, {}, r"representation=LogisticRegression\(\) is not a transformer; pass one"),
    "epsilon is zero": ({"epsilon": 0}, {}, r"epsilon=0 must be a positive, finite number"),
    "epsilon is negative": ({"epsilon": -1.0}, {}, r"epsilon=-1.0 must be"),
    "epsilon is infinite": ({"epsilon": np.inf}, {}, r"epsilon=inf must be"),
    "epsilon is NaN": ({"epsilon": np.nan}, {}, r"epsilon=nan must be"),
    "epsilon is a string": ({"epsilon": "1"}, {}, r"epsilon='1' must be"),
    "epsilon is a bool": ({"epsilon": True}, {}, r"epsilon=True must be"),
    "delta is zero": ({"delta": 0}, {}, r"delta=0 must be a number strictly between 0 and 0.1"),
    "delta is one": ({"delta": 1.0}, {}, r"delta=1.0 must be"),
    "delta is missing": ({"delta": None}, {}, r"delta=None must be"),
    "epsilon and noise together": ({"mechanism": GNMax(sigma=40)}, {}, r"epsilon=1.0 and GNMax\(sigma=40\) both set the noise"),
    "neither epsilon nor noise": ({"epsilon": None}, {}, r"GNMax has sigma=None; set sigma, or give the classifier an epsilon"),
    "epsilon and half of the noise": ({"mechanism": ConfidentGNMax(sigma=4)}, {}, r"epsilon=1.0 and ConfidentGNMax\(sigma=4\)"),
    "sigma is negative": ({"mechanism": GNMax(sigma=-1), "epsilon": None}, {}, r"sigma=-1 of GNMax must be a positive"),
    "gamma is zero": ({"mechanism": LNMax(gamma=0), "epsilon": None}, {}, r"gamma=0 of LNMax must be a positive"),
    "threshold is negative": ({"mechanism": ConfidentGNMax(threshold=-5)}, {}, r"threshold=-5 must be a positive number: a share"),
    "max_answers is zero": ({"mechanism": ConfidentGNMax(max_answers=0)}, {}, r"max_answers=0 must be a whole number of at least 1, or None"),
    "unknown privacy unit": ({"privacy_unit": "patient"}, {}, r"privacy_unit='patient' is unknown; use 'row'"),
    "public_size is one": ({"public_size": 1}, {"X_public": None}, r"public_size=1 must be a number strictly between 0 and 1, or None"),
    "public_size is a count": ({"public_size": 20}, {"X_public": None}, r"public_size=20 must be a number strictly between 0 and 1, or None"),
    "one class in classes": ({"classes": [1]}, {}, r"classes=\[1\] must list at least two distinct labels"),
    "a class twice in classes": ({"classes": [0, 1, 1]}, {}, r"classes=\[0, 1, 1\] must list"),
    "text beside numbers in classes": ({"classes": [1, "other"]}, {}, r"classes=\[1, 'other'\] must list.*text only"),
    "a missing class": ({"classes": [0, 1, np.nan]}, {}, r"classes=\[0, 1, nan\] must list.*missing"),
    "None as a class": ({"classes": [None, "a"]}, {}, r"classes=\[None, 'a'\] must list"),
    "classes are a word": ({"classes": "ab"}, {}, r"classes='ab' must list"),
    "classes of another type": ({"classes": ["0", "1"]}, {}, r"No label of y can be in classes=\['0', '1'\]"),
    "n_jobs is zero": ({"n_jobs": 0}, {}, r"n_jobs=0 must be None, a positive integer, or -1"),
    "n_jobs is a word": ({"n_jobs": "all"}, {}, r"n_jobs='all' must be None, a positive integer"),
    "memory is a number": ({"memory": 5}, {}, r"memory=5 must be None, a folder, or a joblib.Memory"),
    "memory without a fixed random_state": ({"memory": "votes"}, {}, r"memory='votes' needs an integer random_state, got None"),
    "memory with a generator": ({"memory": "votes", "random_state": np.random.RandomState(0)}, {}, r"needs an integer random_state, got RandomState"),
    "ledger is a path": ({"ledger": "patients.sqlite"}, {}, r"ledger='patients.sqlite' is not a PrivacyLedger; pass PrivacyLedger\(path, epsilon=3"),
    "ledger is a class": ({"ledger": PrivacyLedger}, {}, r"is not a PrivacyLedger; pass PrivacyLedger"),
    "ledger is a number": ({"ledger": 3.0}, {}, r"ledger=3.0 is not a PrivacyLedger"),
    "random_state is a word": ({"random_state": "seed"}, {}, r"'seed' cannot be used to seed"),
    # data
    "no public rows": ({}, {"X_public": None}, r"needs public rows.*X_public=PublicData\(X_public\).*public_size=0.2"),
    "public rows twice": ({"public_size": 0.2}, {}, r"X_public and public_size=0.2 were both given"),
    "y is missing": ({}, {"y": None}, r"requires y to be passed, but the target y is None"),
    "one class in y": ({}, {"y": np.ones(60)}, r"y holds one class only.*classes="),
    "y is continuous": ({}, {"y": X[:, 0]}, r"Unknown label type: continuous"),
    "y is too short": ({}, {"y": Y[:-1]}, r"inconsistent numbers of samples: \[60, 59\]"),
    "y holds NaN": ({}, {"y": np.where(Y, np.nan, 1.0)}, r"Input y contains NaN"),
    "y holds None": ({}, {"y": np.where(Y, None, "a")}, r"y holds missing labels"),
    "X is a file name": ({}, {"X": "rows.csv"}, r"X has shape \(\).* Read a file first, such as by pandas.read_csv"),
    "y is a column name": ({}, {"y": "label"}, r"y is one text; pass the label of each row, such as frame\['label'\]"),
    "two columns of one name": ({}, {"X": pd.DataFrame(X, columns=["a", "b", "a"]), "X_public": PublicData(pd.DataFrame(X_PUBLIC, columns=["a", "b", "a"]))}, r"X has several columns named 'a'; give each its own name"),
    "X is a vector": ({}, {"X": X[:, 0]}, r"Expected 2D array, got 1D array"),
    "X is empty": ({}, {"X": X[:0], "y": Y[:0]}, r"Found array with 0 sample"),
    "public rows lack a column": ({}, {"X_public": PublicData(X_PUBLIC[:, :2])}, r"X_public has shape \(30, 2\) and X has shape \(60, 3\); pass rows with the same features"),
    "a public frame lacks a nameless column": ({}, {"X": pd.DataFrame(X), "X_public": PublicData(pd.DataFrame(X_PUBLIC[:, :2]))}, r"X_public has shape \(30, 2\) and X has shape \(60, 3\); pass rows"),
    "public images of another width": ({}, {"X": X.reshape(60, 3, 1), "X_public": PublicData(X_PUBLIC.reshape(15, 3, 2))}, r"X_public has shape \(15, 3, 2\) and X has shape \(60, 3, 1\); pass rows"),
    "public rows hold NaN": ({}, {"X_public": PublicData(np.where(X_PUBLIC > 1, np.nan, X_PUBLIC))}, r"X_public has shape \(30, 3\) and cannot be used: Input X_public contains NaN.*Put an imputer inside estimator="),
    "public rows hold infinity": ({}, {"X_public": PublicData(np.where(X_PUBLIC > 1, np.inf, X_PUBLIC))}, r"Input X_public contains infinity.*Give X_public the same columns and types"),
    "public rows are a file name": ({}, {"X_public": PublicData("public.csv")}, r"X_public is of type str and shape \(\); pass the public rows themselves"),
    "public rows are a raw path": ({}, {"X_public": Path("public.csv")}, r"X_public is of type PosixPath and shape \(\); pass the public rows"),
    "as many plain public rows as private ones": ({}, {"X_public": X + 1}, r"X_public has as many rows as X \(60\): a search or cross-validation may have split it.*X_public=PublicData\(X_public\)"),
    "as many public rows in a list as private ones": ({}, {"X_public": (X + 1).tolist()}, r"X_public has as many rows as X \(60\): a search or cross-validation may have split it"),
    "public rows are a number in an array": ({}, {"X_public": np.array(3.0)}, r"X_public is a single value; pass an array"),
    "public rows differ in length": ({}, {"X_public": PublicData([[1, 2, 3], [1, 2]])}, r"X_public is a list of rows of different lengths; pass rows of one length"),
    "public rows are empty": ({}, {"X_public": PublicData(X_PUBLIC[:0])}, r"X_public is of type ndarray and shape \(0, 3\); pass the public rows"),
    "public rows are an empty frame": ({}, {"X": pd.DataFrame(X), "X_public": PublicData(pd.DataFrame(X_PUBLIC[:0]))}, r"X_public is of type DataFrame and shape \(0, 3\); pass the public rows"),
    "public rows of words": ({}, {"X_public": PublicData(np.full((30, 3), "much"))}, r"Column 0 is numeric in X, but in X_public it is text.*give it the same type in both"),
    "public rows are a frame": ({}, {"X_public": PublicData(pd.DataFrame(X_PUBLIC))}, r"X is of type ndarray and X_public of type DataFrame"),
    "public columns in another order": ({}, {"X": pd.DataFrame(X, columns=list("abc")), "X_public": PublicData(pd.DataFrame(X_PUBLIC, columns=list("cba")))}, r"X_public has shape \(30, 3\) and cannot be used: The feature names should match.*\n.*must be in the same order[^X]*Give X_public the same columns"),
    "sparse rows for a dense teacher": ({}, {"X": sp.csr_array(X)}, r"Sparse data was passed"),
    # groups
    "groups without the unit": ({}, {"groups": TWO_A_GROUP}, r"groups were passed but privacy_unit='row' protects single rows"),
    "the unit without groups": (GROUPED, {}, r"needs groups in fit.*A search or a pipeline passes groups on after .*set_config\(enable_metadata_routing=True\)"),
    "automatic teachers with groups": ({"privacy_unit": "group"}, {"groups": TWO_A_GROUP}, r"n_teachers='auto' depends on the number of rows, which is private"),
    "one group holds every row": (GROUPED, {"groups": np.zeros(60, int)}, r"groups has only one group, so that one teacher"),
    "more teachers than groups": ({**GROUPED, "n_teachers": 31}, {"groups": TWO_A_GROUP}, r"n_teachers=31 is more than the 30 groups"),
    "groups are too short": (GROUPED, {"groups": TWO_A_GROUP[:-1]}, r"groups has 59 values and X has 60 rows; pass one group id for each row"),
    "groups hold fractions": (GROUPED, {"groups": np.where(Y, 0.5, 1.0)}, r"groups holds a fraction, or a float too large to be exact"),
    "groups hold no id": (GROUPED, {"groups": np.full(60, np.nan)}, r"groups holds no id at all"),
    "groups are dates": (GROUPED, {"groups": np.datetime64("2000-01-01") + TWO_A_GROUP}, r"groups holds an id of type datetime64\[D\], which numpy may change"),
    "one id as number and text": (GROUPED, {"groups": np.array([1, "1"] * 30, dtype=object)}, r"groups has only one group"),
    "groups are a table": (GROUPED, {"groups": X}, r"groups has shape \(60, 3\); pass one group id for each row"),
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)


@pytest.mark.parametrize("name", WRONG_FITS)
def test_a_wrong_fit_is_refused_before_any_work_or_charge(name, ledger):
    parameters, arguments, message = WRONG_FITS[name]
    arguments = DEFAULT_ARGUMENTS | arguments
    defaults = {"estimator": MustNotBeFitted(), "ledger": ledger}
    pate = PATEClassifier(**(defaults | parameters))
    # TypeError is what scikit-learn raises for sparse data.
    with pytest.raises((ValueError, TypeError), match=message):
        pate.fit(**arguments)
    assert not hasattr(pate, "privacy_spent_")
    assert ledger.entries() == []


@pytest.mark.skipif(
    [int(part) for part in sklearn.__version__.split(".")[:2]] < [1, 7],
    reason="scikit-learn 1.6 reads older conventions where a class has no tags",
)
@pytest.mark.parametrize(
    ("parameter", "value", "mixin"),
    [
        ("estimator", NoTags(), "ClassifierMixin"),
        ("student", NoTags(), "ClassifierMixin"),
        ("student", CalibratedClassifierCV(NoTags()), "ClassifierMixin"),
        ("representation", NoTags(), "TransformerMixin"),
    ],
)
def test_an_estimator_without_tags_is_refused(parameter, value, mixin):
    pate = PATEClassifier(**({"estimator": MustNotBeFitted()} | {parameter: value}))
    message = (
        f"{parameter}=.* has no __sklearn_tags__, or contains an estimator without it; "
        f"derive its class from {mixin} and BaseEstimator of sklearn.base"
    )
    with pytest.raises(ValueError, match=message):
        pate.fit(**DEFAULT_ARGUMENTS)


VOTES = [["a", "b", "a"], ["a", "a", "b"]]
ABC = np.zeros((3, 2))

# Parameters, votes, public rows, and what the message says.
WRONG_VOTES = {
    "classes are missing": ({"classes": None}, VOTES, ABC, r"fit_from_votes needs the label set: .* classes="),
    "rows are held out": ({"public_size": 0.2}, VOTES, ABC, r"public_size=0.2 holds out private rows, but fit_from_votes gets none"),
    "another number of teachers": ({"n_teachers": 3}, VOTES, ABC, r"n_teachers=3, but 2 parties voted; set n_teachers='auto'"),
    "more public rows than labels": ({}, VOTES, np.zeros((4, 2)), r"The votes are on 3 public rows and X_public has 4"),
    "counted with other classes": ({}, Votes.from_labels(VOTES, ["a", "b", "c"]), ABC, r"counted with the classes \['a', 'b', 'c'\], not with classes=\['a', 'b'\]"),
    "no party": ({}, [], ABC, r"labels_by_party is empty"),
    "a party labelled too few": ({}, [["a", "b", "a"], ["a", "b"]], ABC, r"The labels of party 1 have shape \(2,\); pass one label for each public row"),
    "one array of labels": ({}, ["a", "b", "a"], ABC, r"The labels of party 0 have shape \(\)"),
    "a frame with a column a party": ({}, pd.DataFrame(VOTES), ABC, r"party 0 have shape \(\).*frame.to_numpy\(\).T"),
    "labels of another type": ({"classes": [0, 1]}, VOTES, ABC, r"No label of any party is in classes=\[0, 1\]"),
    "public rows are a vector": ({}, VOTES, ABC[:, 0], r"X_public is of type ndarray and shape \(3,\); pass the public rows"),
    "public rows hold NaN": ({}, VOTES, np.full((3, 2), np.nan), r"Input X_public contains NaN"),
    "more queries than rows": ({"n_queries": 4}, VOTES, ABC, r"n_queries=4 is more than the 3 public rows"),
    "votes in the place of the rows": ({}, ABC, Votes.from_labels(VOTES, ["a", "b"]), r"takes the public rows first; call fit_from_votes\(X_public, "),
    "rows in the place of the votes": ({}, PublicData(ABC), VOTES, r"takes the public rows first"),
    "no public rows": ({}, VOTES, None, r"fit_from_votes needs the public rows that were labelled"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_VOTES)
def test_wrong_votes_are_refused_before_any_noise_or_charge(name, ledger):
    parameters, votes, X_public, message = WRONG_VOTES[name]
    defaults = {"classes": ["a", "b"], "ledger": ledger}
    pate = PATEClassifier(MustNotBeFitted(), **(defaults | parameters))
    with pytest.raises(ValueError, match=message):
        pate.fit_from_votes(X_public, votes)
    assert not hasattr(pate, "privacy_spent_")
    assert ledger.entries() == []


def charge(**changes):
    """Charge a ledger that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = PrivacyLedger(f"{folder}/patients.sqlite", epsilon=3, delta=1e-6)
        what = {"delta": 1e-6, "unit": "row", "relation": "replace-one"}
        what |= {"description": "a test"} | changes
        try:
            ledger.charge(gaussian_worst_case(100), **what)
        finally:
            assert ledger.entries() == []


WRONG_CALLS = {
    "PublicData of nothing": (lambda: PublicData(None), r"PublicData\(None\) holds no rows"),
    "answering without noise": (lambda: GNMax().answer([[1, 2]]), r"GNMax has sigma=None"),
    "a cost without noise": (lambda: LNMax().cost(1, 2).curve, r"LNMax has gamma=None"),
    "a share without teachers": (lambda: ConfidentGNMax(0.8, 1, 1).answer([[1, 2]]), r"threshold=0.8 is a share of an unknown number of teachers; pass a number of votes"),
    "counts of one class": (lambda: GNMax(1).answer([[1], [2]]), r"counts has shape \(2, 1\)"),
    "counts of one query as a vector": (lambda: GNMax(1).answer([1, 2]), r"counts has shape \(2,\)"),
    "negative counts": (lambda: GNMax(1).answer([[1, -2]]), r"counts holds a negative or fractional number"),
    "fractional counts": (lambda: GNMax(1).answer([[1, 0.5]]), r"counts holds a negative or fractional number"),
    "counts with NaN": (lambda: GNMax(1).answer([[1, np.nan]]), r"counts holds NaN"),
    "counts of words": (lambda: GNMax(1).answer([["1", "2"]]), r"counts has dtype <U1"),
    "orders of one and below": (lambda: gaussian_worst_case(1, [0.5, 1, 2]), r"must all be finite and greater than 1"),
    "orders out of order": (lambda: gaussian_worst_case(1, [3, 2]), r"must be strictly increasing"),
    "negative divergence": (lambda: RdpCurve([2, 3], [1, -1]), r"values must be non-negative"),
    "orders without values": (lambda: RdpCurve([2, 3], [1]), r"orders has shape \(2,\) and values \(1,\)"),
    "a curve minus once": (lambda: gaussian_worst_case(1) * -1, r"cannot be composed -1 times"),
    "an unknown conversion": (lambda: gaussian_worst_case(1).to_epsilon(1e-5, "best"), r"conversion='best' is unknown"),
    "a delta of two": (lambda: gaussian_worst_case(1).to_epsilon(2), r"delta=2 must be"),
    "calibrating to nothing": (lambda: calibrate_noise(gaussian_worst_case, epsilon=0, delta=1e-5), r"epsilon=0 must be"),
    "queries for nothing": (lambda: calibrate_n_queries(lambda n: gaussian_worst_case(1) * n, epsilon=1, delta=0), r"delta=0 must be"),
    "votes of another length": (lambda: Votes([np.zeros(2, int)], n_public=3, n_classes=2), r"The votes of a teacher have shape \(2,\).*of shape \(3,\)"),
    "votes of floats": (lambda: Votes([np.zeros(3)], n_public=3, n_classes=2), r"dtype float64; pass signed integers"),
    "masked votes": (lambda: Votes([np.ma.masked_array([0, 1], [0, 1])], n_public=2, n_classes=2), r"is a masked array"),
    "votes on half a row": (lambda: Votes([np.zeros(3, int)], n_public=1.5, n_classes=2), r"n_public=1.5 must be a whole number"),
    "votes for one of one": (lambda: Votes([np.zeros(3, int)], n_public=3, n_classes=True), r"n_classes=True must be a whole number of at least 2"),
    "labels of no row": (lambda: Votes.from_labels([[], []], ["a", "b"]), r"labels_by_party has no public row"),
    "a set of classes": (lambda: Votes.from_labels(VOTES, {"a", "b"}), r"is a set, which has no order; pass a list"),
    "a vote for no class": (lambda: Votes([np.array([2])], n_public=1, n_classes=2), r"between -1 and n_classes - 1 = 1"),
    "votes for one class": (lambda: Votes.from_labels(VOTES, ["a"]), r"classes=\['a'\] must list at least two"),
    "publishing before a fit": (lambda: PATEClassifier().publish(), r"not fitted yet"),
    "a charge for an unknown unit": (lambda: charge(unit="person"), r"unit='person' with relation='replace-one' is unknown; \(unit, relation\) must be one of \[\('row', 'replace-one'\), "),
    "a charge for a unit alone": (lambda: charge(relation=None), r"unit='row' needs a relation, got None"),
    "a charge at no delta": (lambda: charge(delta=0), r"delta=0 must be a number strictly between 0 and 1"),
    "loading another kind of file": (lambda: PublishedClassifier.load("model.pkl"), r"path='model.pkl' must end in '.skops'"),
    "loading a number": (lambda: PublishedClassifier.load(3), r"path=3 must be a str or a path"),
    "trusting a type without a list": (lambda: PublishedClassifier.load("model.skops", trusted="Tree"), r"trusted='Tree' must be a list of types"),
    "the plan of another classifier": (lambda: plan(LogisticRegression(), X, Y), r"estimator is of type LogisticRegression; pass a PATEClassifier"),
    "the cost of a search without a ledger": (lambda: plan(GridSearchCV(PATEClassifier(), {}), X, Y), r"has no ledger; set ledger="),
    "leaks of rows": (lambda: privacy_leaks(np.array([[46.0, 58.0]])), r"estimator=<ndarray> holds no private classifier"),
    "leaks of something else": (lambda: privacy_leaks(DecisionTreeClassifier()), r"holds no private classifier"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_is_refused_before_any_noise(name):
    call, message = WRONG_CALLS[name]
    with pytest.raises(ValueError, match=message):
        call()
