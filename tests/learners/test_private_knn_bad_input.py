"""Wrong calls: one clear sentence each, before any sample or noise is drawn."""

# ruff: noqa: E501 - a table, one wrong call a line

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_pate import PrivacyLedger, PublicData
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
)
from sklearn_pate.testing import seeded_noise
from tests.private import NoiseSource, SampledMechanism

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.arange(60) % 2
X_PUBLIC = np.random.default_rng(1).normal(size=(30, 4))
TEXT = np.array([["red"], ["blue"]] * 15)
TWO_A_GROUP = np.arange(60) // 2


class Uneven(TransformerMixin, BaseEstimator):
    """Makes more features of some rows than of others, or none that are numbers."""

    def __init__(self, of_private=None):
        self.of_private = of_private

    def fit(self, X, y=None):
        self.n_public_ = len(X)
        return self

    def transform(self, X):
        if len(X) == self.n_public_:
            return X
        return {"fewer": X[:, 1:], "NaN": X * np.nan, "text": X.astype(str)}[
            self.of_private
        ]


@pytest.fixture(autouse=True)
def no_noise(monkeypatch):
    def draw(self, shape):
        pytest.fail("a sample or noise was drawn before the input was checked")

    monkeypatch.setattr(NoiseSource, "words", draw)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=30, delta=1e-6)


DEFAULTS = {"student": GaussianNB(), "n_queries": 5}
DEFAULT_ARGUMENTS = {"X": X, "y": Y, "X_public": PublicData(X_PUBLIC), "groups": None}
OWN = {"epsilon": None}

# Parameters, arguments of fit (changes to the defaults), and message.
WRONG_FITS = {
    # who votes
    "n_neighbors is zero": ({"n_neighbors": 0}, {}, r"n_neighbors=0 must be a whole number of at least 1, or 'auto'"),
    "n_neighbors is a float": ({"n_neighbors": 30.0}, {}, r"n_neighbors=30.0 must be"),
    "n_neighbors is a bool": ({"n_neighbors": True}, {}, r"n_neighbors=True must be"),
    "n_neighbors is a word": ({"n_neighbors": "many"}, {}, r"n_neighbors='many' must be"),
    "sampling_rate is zero": ({"sampling_rate": 0}, {}, r"sampling_rate=0 must be a positive, finite number"),
    "sampling_rate is negative": ({"sampling_rate": -0.1}, {}, r"sampling_rate=-0.1 must be"),
    "sampling_rate is above one": ({"sampling_rate": 1.5}, {}, r"sampling_rate=1.5 must be a probability above 0 and at most 1"),
    "sampling_rate is NaN": ({"sampling_rate": np.nan}, {}, r"sampling_rate=nan must be"),
    "sampling_rate is a word": ({"sampling_rate": "auto"}, {}, r"sampling_rate='auto' must be"),
    "sampling_rate is nothing": ({"sampling_rate": None}, {}, r"sampling_rate=None must be"),
    "sampling_rate that never samples": ({"sampling_rate": 1e-30}, {}, r"sampling_rate=1e-30 is below 2\^-64, so that all samples would be empty"),
    "unknown metric": ({"metric": "manhattan"}, {}, r"metric='manhattan' is unknown; use one of \['euclidean', 'cosine'\]"),
    "metric is a function": ({"metric": np.dot}, {}, r"is unknown; use one of \['euclidean', 'cosine'\]"),
    # how it is answered
    "Laplace noise": ({"mechanism": "lnmax"}, {}, r"mechanism='lnmax' has no known cost on a secret sample; use one of \['gnmax', 'confident', 'histogram'\], which have Gaussian noise"),
    "Gumbel noise": ({"mechanism": GumbelMax()}, {}, r"mechanism=GumbelMax\(\) has no known cost on a secret sample"),
    "Laplace noise that is set": ({"mechanism": LNMax(gamma=0.1), **OWN}, {}, r"mechanism=LNMax\(gamma=0.1\) has no known cost"),
    "interactive": ({"mechanism": "interactive"}, {}, r"mechanism='interactive' has no known cost on a secret sample"),
    "interactive object": ({"mechanism": InteractiveGNMax()}, {}, r"has no known cost on a secret sample"),
    "unknown mechanism": ({"mechanism": "median"}, {}, r"mechanism='median' has no known cost"),
    "a sampled mechanism": ({"mechanism": SampledMechanism(GNMax(), 0.1)}, {}, r"mechanism=.* is unknown"),
    "a cap": ({"mechanism": ConfidentGNMax(max_answers=3)}, {}, r"max_answers=3 does not lower the cost on a secret sample"),
    "a cap of zero": ({"mechanism": ConfidentGNMax(max_answers=0)}, {}, r"max_answers=0 does not lower the cost"),
    "a threshold of zero": ({"mechanism": ConfidentGNMax(0)}, {}, r"threshold=0 must be a positive number"),
    "noise and a target": ({"mechanism": GNMax(sigma=9.0)}, {}, r"epsilon=1.0 and GNMax\(sigma=9.0\) both set the noise"),
    "neither noise nor a target": (OWN, {}, r"GNMax has sigma=None; set sigma"),
    "noise is negative": ({"mechanism": GNMax(sigma=-1.0), **OWN}, {}, r"sigma=-1.0 of GNMax must be a positive, finite number"),
    "a target that no noise reaches": ({"epsilon": 1e-7, "delta": 1e-300}, {}, r"epsilon=1e-07 cannot be reached"),
    "epsilon is zero": ({"epsilon": 0}, {}, r"epsilon=0 must be a positive, finite number"),
    "epsilon is a word": ({"epsilon": "low"}, {}, r"epsilon='low' must be"),
    "delta is zero": ({"delta": 0}, {}, r"delta=0 must be a number strictly between 0 and 0.1"),
    "delta is one": ({"delta": 1.0}, {}, r"delta=1.0 must be"),
    # queries
    "n_queries is zero": ({"n_queries": 0}, {}, r"n_queries=0 must be a whole number of at least 1, or 'auto'"),
    "more queries than public rows": ({"n_queries": 31}, {}, r"n_queries=31 is more than the 30 public rows"),
    "unknown strategy": ({"query_strategy": "all"}, {}, r"query_strategy='all' is unknown"),
    "interactive strategy": ({"query_strategy": "interactive"}, {}, r"query_strategy='interactive' and mechanism='gnmax' cannot be combined"),
    "a strategy without probabilities": ({"query_strategy": "uncertainty", "student": LinearSVC()}, {}, r"needs predict_proba, which LinearSVC\(\) does not have"),
    # who learns
    "student is a regressor": ({"student": LinearRegression()}, {}, r"student=LinearRegression\(\) is not a classifier"),
    "student is a class": ({"student": GaussianNB}, {}, r"student=GaussianNB is a class; pass an instance"),
    # what is compared
    "representation is not a transformer": ({"representation": LogisticRegression()}, {}, r"representation=LogisticRegression\(\) is not a transformer"),
    "representation is a class": ({"representation": StandardScaler}, {}, r"is not a transformer"),
    "X_public has text": ({}, {"X": np.repeat(TEXT, 2, axis=0), "X_public": PublicData(TEXT)}, r"compares rows as dense numbers, but X_public has text, sparse or missing values; pass representation="),
    "a representation makes sparse rows": ({"representation": CountVectorizer(preprocessor="".join)}, {"X": np.repeat(TEXT, 2, axis=0), "X_public": PublicData(TEXT)}, r"X_public has text, sparse"),
    "sparse rows": ({}, {"X": sp.csr_array(X), "X_public": PublicData(sp.csr_array(X_PUBLIC))}, r"Sparse data was passed"),
    "fewer features of a row alone": ({"representation": Uneven("fewer")}, {}, r"features of a public row that depend on other rows"),
    "missing features of a row alone": ({"representation": Uneven("NaN")}, {}, r"cannot transform a single row of float64.*no finite numbers"),
    # whose rows
    "unknown privacy unit": ({"privacy_unit": "patient"}, {}, r"privacy_unit='patient' is unknown"),
    "the unit without groups": ({"privacy_unit": "group"}, {}, r"privacy_unit='group' needs groups in fit"),
    "groups without the unit": ({}, {"groups": TWO_A_GROUP}, r"groups were passed but privacy_unit='row'"),
    "groups of other rows": ({"privacy_unit": "group"}, {"groups": TWO_A_GROUP[:-1]}, r"groups has 59 values and X has 60 rows"),
    "a fraction for a group": ({"privacy_unit": "group"}, {"groups": np.where(X[:, 0] > 0, 0.5, 1)}, r"groups holds a fraction, or a float too large to be exact"),
    "no group": ({"privacy_unit": "group"}, {"groups": np.full(60, np.nan)}, r"groups holds no id at all"),
    "nothing public": ({}, {"X_public": None}, r"PrivateKNNClassifier needs public rows"),
    "public twice": ({"public_size": 0.2}, {}, r"X_public and public_size=0.2 were both given"),
    "public_size is a count": ({"public_size": 20}, {"X_public": None}, r"public_size=20 must be a number strictly between 0 and 1, or None"),
    "public rows of other columns": ({}, {"X_public": PublicData(X_PUBLIC[:, :3])}, r"X_public has shape \(30, 3\) and X has shape \(60, 4\)"),
    "y is missing": ({}, {"y": None}, r"requires y to be passed"),
    "y is too short": ({}, {"y": Y[:-1]}, r"inconsistent numbers of samples"),
    "one class in y": ({}, {"y": np.ones(60)}, r"y holds one class only"),
    "one class in classes": ({"classes": [1]}, {}, r"classes=\[1\] must list at least two distinct labels"),
    "classes of another type": ({"classes": ["0", "1"]}, {}, r"No label of y can be in classes"),
    "ledger is a path": ({"ledger": "patients.sqlite"}, {}, r"ledger='patients.sqlite' is not a PrivacyLedger"),
    "random_state is a word": ({"random_state": "seed"}, {}, r"'seed' cannot be used to seed"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG_FITS)
def test_a_wrong_fit_is_refused_before_any_draw_or_charge(name, ledger):
    parameters, arguments, message = WRONG_FITS[name]
    knn = PrivateKNNClassifier(**(DEFAULTS | {"ledger": ledger} | parameters))
    # TypeError is what scikit-learn raises for sparse data.
    with pytest.raises((ValueError, TypeError), match=message):
        knn.fit(**(DEFAULT_ARGUMENTS | arguments))
    assert not hasattr(knn, "privacy_spent_")
    assert ledger.entries() == []


def test_seeded_noise_is_not_charged(ledger):
    knn = PrivateKNNClassifier(
        GaussianNB(), mechanism="gnmax", n_queries=5, ledger=ledger
    )
    with pytest.raises(Exception, match="no finite cost"), seeded_noise(0):
        knn.fit(**DEFAULT_ARGUMENTS)
    assert ledger.entries() == []


def test_parameters_are_not_looked_at_before_a_fit_nor_changed_by_one():
    knn = PrivateKNNClassifier(LinearSVC, sampling_rate="half", metric=3)
    assert clone(knn).sampling_rate == "half"
    before = knn.get_params(deep=False)
    with pytest.raises(ValueError, match="is a class; pass an instance"):
        knn.fit(**DEFAULT_ARGUMENTS)
    assert knn.get_params(deep=False) == before


def test_it_does_not_predict_before_it_is_fitted():
    with pytest.raises(ValueError, match="is not fitted yet"):
        PrivateKNNClassifier().predict(X)
    with pytest.raises(ValueError, match="is not fitted yet"):
        PrivateKNNClassifier().publish()
