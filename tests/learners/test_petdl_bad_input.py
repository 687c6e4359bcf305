"""Wrong calls: one clear sentence each, before any teacher is fitted or noise drawn."""

# ruff: noqa: E501 - two tables, one wrong call a line

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PrivacyLedger, PublicData
from sklearn_pate.learners import Clusters, Hint, PETDLClassifier, RandomBatches
from sklearn_pate.students import DistillationClassifier, FixMatchClassifier
from tests.private import NoiseSource

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.arange(60) % 2
X_PUBLIC = np.random.default_rng(1).normal(size=(30, 4))
TEXT = np.array([["red"], ["blue"]] * 15)


class MustNotBeFitted(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        pytest.fail("a teacher was fitted before the input was checked")

    def predict_proba(self, X):
        pytest.fail("a teacher predicted before the input was checked")


@pytest.fixture(autouse=True)
def no_noise(monkeypatch):
    def draw(self, shape):
        pytest.fail("noise was drawn before the input was checked")

    monkeypatch.setattr(NoiseSource, "words", draw)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)


DEFAULTS = {
    "estimator": MustNotBeFitted(),
    "student": GaussianNB(),
    "batches": Clusters(5),
}
DEFAULT_ARGUMENTS = {"X": X, "y": Y, "X_public": PublicData(X_PUBLIC), "groups": None}
NETWORK = {"student": None}
GROUPED = {"privacy_unit": "group", "n_teachers": 5}
TWO_A_GROUP = np.arange(60) // 2


# Parameters, arguments of fit (changes to the defaults), and message.
WRONG_FITS = {
    # the ensemble
    "estimator is a class": ({"estimator": DecisionTreeClassifier}, {}, r"DecisionTreeClassifier is a class; pass an instance"),
    "estimator is a regressor": ({"estimator": LinearRegression()}, {}, r"estimator=LinearRegression\(\) is not a classifier"),
    "estimator without probabilities": ({"estimator": LinearSVC()}, {}, r"estimator=LinearSVC\(\) has no predict_proba, but teachers vote with class probabilities"),
    "student is a regressor": ({"student": LinearRegression()}, {}, r"student=LinearRegression\(\) is not a classifier"),
    "student is a class": ({"student": GaussianNB}, {}, r"student=GaussianNB is a class"),
    "n_teachers is zero": ({"n_teachers": 0}, {}, r"n_teachers=0 must be a whole number of at least 1, or 'auto'"),
    "n_teachers is a float": ({"n_teachers": 10.0}, {}, r"n_teachers=10.0 must be"),
    "more teachers than rows": ({"n_teachers": 61}, {}, r"n_teachers=61 is more than the number of private rows"),
    "representation is no transformer": ({"representation": LogisticRegression()}, {}, r"representation=LogisticRegression\(\) is not a transformer"),
    "unknown privacy unit": ({"privacy_unit": "patient"}, {}, r"privacy_unit='patient' is unknown"),
    "public_size is a count": ({"public_size": 20}, {"X_public": None}, r"public_size=20 must be a number strictly between 0 and 1, or None"),
    "one class in classes": ({"classes": [1]}, {}, r"classes=\[1\] must list at least two distinct labels"),
    "classes of another type": ({"classes": ["0", "1"]}, {}, r"No label of y can be in classes=\['0', '1'\]"),
    "n_jobs is zero": ({"n_jobs": 0}, {}, r"n_jobs=0 must be None, a positive integer, or -1"),
    "memory is a number": ({"memory": 5, "random_state": 0}, {}, r"memory=5 must be None, a folder, or a joblib.Memory"),
    "memory without a fixed random_state": ({"memory": "kept"}, {}, r"memory='kept' needs an integer random_state, got None"),
    "ledger is a path": ({"ledger": "patients.sqlite"}, {}, r"ledger='patients.sqlite' is not a PrivacyLedger"),
    "random_state is a word": ({"random_state": "seed"}, {}, r"'seed' cannot be used to seed"),
    # public batches
    "batches of no row": ({"batches": Clusters(0)}, {}, r"size=0 must be a whole number of at least 1"),
    "the size of a batch is a float": ({"batches": RandomBatches(8.0)}, {}, r"size=8.0 must be"),
    "the size of a batch is a bool": ({"batches": Clusters(True)}, {}, r"size=True must be"),
    "one batch": ({"batches": Clusters(16)}, {}, r"batches=Clusters\(size=16\) makes fewer than two public batches of 30 rows; lower its size"),
    "a batch above the public rows": ({"batches": RandomBatches(31)}, {}, r"batches=RandomBatches\(size=31\) makes fewer than two public batches"),
    "unknown batches": ({"batches": "random"}, {}, r"batches='random' must be Clusters\(\) or RandomBatches\(\)"),
    "core is zero": ({"batches": Clusters(core=0)}, {}, r"core=0 must be a number above 0 and at most 1"),
    "core is above one": ({"batches": Clusters(core=1.5)}, {}, r"core=1.5 must be a number above 0 and at most 1"),
    "core is a word": ({"batches": Clusters(core="half")}, {}, r"core='half' must be a number"),
    # what teachers send
    "temperature is zero": ({"temperature": 0.0}, {}, r"temperature=0.0 must be a positive, finite number"),
    "temperature is negative": ({"temperature": -1}, {}, r"temperature=-1 must be a positive, finite number"),
    "temperature is infinite": ({"temperature": np.inf}, {}, r"temperature=inf must be a positive, finite number"),
    "temperature is NaN": ({"temperature": np.nan}, {}, r"temperature=nan must be a positive, finite number"),
    "clipping_bound is zero": ({"clipping_bound": 0}, {}, r"clipping_bound=0 must be a positive, finite number"),
    "clipping_bound is negative": ({"clipping_bound": -0.5}, {}, r"clipping_bound=-0.5 must be a positive, finite number"),
    "clipping_bound is infinite": ({"clipping_bound": np.inf}, {}, r"clipping_bound=inf must be a positive, finite number"),
    "clipping_bound clips nothing": ({"clipping_bound": 1.5}, {}, r"clipping_bound=1.5 adds noise"),
    "clipping_bound is a bool": ({"clipping_bound": True}, {}, r"clipping_bound=True must be a positive, finite number"),
    "weighted is a word": ({"weighted": "no"}, {}, r"weighted='no' must be True or False"),
    "a hint of no epoch": ({"hint": Hint(0)}, {}, r"max_epochs=0 must be a whole number of at least 1"),
    "epochs of a hint are a float": ({"hint": Hint(1.5), **NETWORK}, {}, r"max_epochs=1.5 must be"),
    "a hint is a number": ({"hint": 2, **NETWORK}, {}, r"hint=2 must be Hint\(\), or None"),
    "a hint for a student that takes none": ({"hint": Hint(), "student": DistillationClassifier()}, {}, r"hint=Hint\(\) releases a hint, which DistillationClassifier\(\) cannot use; set hint=None"),
    "a hint of no share": ({"hint": Hint(share=0)}, {}, r"share=0 must be a number strictly between 0 and 1"),
    "a hint of everything": ({"hint": Hint(share=1.0)}, {}, r"share=1.0 must be a number strictly between 0 and 1"),
    "a hint of more than that": ({"hint": Hint(share=1.2)}, {}, r"share=1.2 must be a number strictly between 0 and 1"),
    # the default student
    "text for the default student": ({"batches": RandomBatches(5), **NETWORK}, {"X": np.repeat(TEXT, 2, axis=0), "X_public": PublicData(TEXT)}, r"could not convert string to float|dtype='numeric' is not compatible"),
    # the noise
    "epsilon is zero": ({"epsilon": 0}, {}, r"epsilon=0 must be a positive, finite number"),
    "epsilon is infinite": ({"epsilon": np.inf}, {}, r"epsilon=inf must be"),
    "delta is one": ({"delta": 1.0}, {}, r"delta=1.0 must be a number strictly between 0 and 0.1"),
    "epsilon and noise together": ({"noise_scale": 2.0}, {}, r"epsilon=1.0 and NoisySum\(noise_scale=2.0\) both set the noise"),
    "neither epsilon nor noise": ({"epsilon": None}, {}, r"NoisySum has noise_scale=None; set noise_scale"),
    "noise_scale is negative": ({"epsilon": None, "noise_scale": -1}, {}, r"noise_scale=-1 of NoisySum must be a positive"),
    "noise_scale is a word": ({"epsilon": None, "noise_scale": "much"}, {}, r"noise_scale='much' of NoisySum must be"),
    "more noise than can be drawn": ({"epsilon": 1e-9}, {}, r"epsilon=1e-09 needs noise of .* clipping bounds"),
    # data
    "no public rows": ({}, {"X_public": None}, r"PETDLClassifier needs public rows"),
    "public rows twice": ({"public_size": 0.2}, {}, r"X_public and public_size=0.2 were both given"),
    "public rows lack a column": ({}, {"X_public": PublicData(X_PUBLIC[:, :2])}, r"X_public has shape \(30, 2\) and X has shape \(60, 4\)"),
    "X_public has text to be compared": ({}, {"X": np.repeat(TEXT, 2, axis=0), "X_public": PublicData(TEXT)}, r"batches=Clusters\(\) compares public rows, but X_public has text.*pass representation=.*or use batches=RandomBatches\(\)"),
    "public rows are sparse and to be compared": ({"estimator": LogisticRegression(), "student": LogisticRegression()}, {"X": sp.csr_array(X), "X_public": PublicData(sp.csr_array(X_PUBLIC))}, r"batches=Clusters\(\) compares public rows, but X_public has text, sparse"),
    "sparse rows for a dense teacher": ({}, {"X": sp.csr_array(X)}, r"Sparse data was passed"),
    "y is missing": ({}, {"y": None}, r"requires y to be passed"),
    "one class in y": ({}, {"y": np.ones(60)}, r"y holds one class only"),
    "the unit without groups": (GROUPED, {}, r"privacy_unit='group' needs groups in fit"),
    "automatic teachers with groups": ({"privacy_unit": "group"}, {"groups": TWO_A_GROUP}, r"n_teachers='auto' depends on the number of rows"),
    "groups without the unit": ({}, {"groups": TWO_A_GROUP}, r"groups were passed but privacy_unit='row'"),
    "more teachers than groups": ({**GROUPED, "n_teachers": 31}, {"groups": TWO_A_GROUP}, r"n_teachers=31 is more than the 30 groups"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_FITS)
def test_a_wrong_fit_is_refused_before_any_work_or_charge(name, ledger):
    parameters, arguments, message = WRONG_FITS[name]
    petdl = PETDLClassifier(**(DEFAULTS | {"ledger": ledger} | parameters))
    # TypeError is what scikit-learn raises for sparse data.
    with pytest.raises((ValueError, TypeError), match=message):
        petdl.fit(**(DEFAULT_ARGUMENTS | arguments))
    assert not hasattr(petdl, "privacy_spent_")
    assert ledger.entries() == []


OUTPUTS = np.full((30, 2), 0.5)
HINTED = {"hint": Hint(1), "student": FixMatchClassifier()}


# Parameters, what parties sent, and message.
WRONG_OUTPUTS = {
    "classes are missing": ({"classes": None}, [OUTPUTS, OUTPUTS], r"fit_from_outputs needs the label set: .* classes="),
    "rows are held out": ({"public_size": 0.2}, [OUTPUTS], r"public_size=0.2 holds out private rows, but fit_from_outputs gets none"),
    "another number of teachers": ({"n_teachers": 3}, [OUTPUTS, OUTPUTS], r"n_teachers=3, but 2 parties sent outputs; set n_teachers='auto'"),
    "no party": ({}, [], r"No party sent outputs; pass one array per party"),
    "nothing": ({}, None, r"outputs=None must hold an array of class probabilities per party"),
    "a party with too few rows": ({}, [OUTPUTS, OUTPUTS[:-1]], r"outputs of party 1 have shape \(29, 2\); pass class probabilities of shape \(30, 2\)"),
    "a party with a column too many": ({}, [np.full((30, 3), 0.3), OUTPUTS], r"outputs of party 0 have shape \(30, 3\)"),
    "one array instead of several": ({}, OUTPUTS, r"outputs of party 0 have shape \(2,\)"),
    "labels": ({}, [OUTPUTS, ["a"] * 30], r"outputs of party 1 are neither an array of numbers"),
    "rows of several lengths": ({}, [OUTPUTS, [[0.5], [0.5, 0.5]]], r"outputs of party 1 are neither an array of numbers"),
    "negative ones": ({}, [OUTPUTS, -OUTPUTS], r"outputs of party 1 are not probabilities; pass the result of predict_proba"),
    "ones with NaN": ({}, [np.where(OUTPUTS, np.nan, 0), OUTPUTS], r"outputs of party 0 are not probabilities"),
    "infinite ones": ({}, [OUTPUTS, OUTPUTS * 1e300], r"outputs of party 1 are not probabilities"),
    "three arrays": (HINTED, [(OUTPUTS, OUTPUTS, OUTPUTS)], r"outputs of party 0 are neither an array of numbers nor a pair"),
    "a representation of other rows": (HINTED, [OUTPUTS, (OUTPUTS, OUTPUTS[:-1])], r"representation of party 1 has shape \(29, 2\); pass one row for each of the 30 public rows"),
    "a representation without columns": (HINTED, [(OUTPUTS, OUTPUTS[:, 0])], r"representation of party 0 has shape \(30,\)"),
    "a representation with NaN": (HINTED, [(OUTPUTS, OUTPUTS * np.nan)], r"representation of party 0 holds NaN or infinity"),
    "image_shape of other rows": ({"student": FixMatchClassifier(image_shape=(3, 3))}, [OUTPUTS], r"image_shape=\(3, 3\) must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_OUTPUTS)
def test_wrong_outputs_are_refused_before_any_noise_or_charge(
    name, ledger, monkeypatch
):
    parameters, outputs, message = WRONG_OUTPUTS[name]
    parameters = DEFAULTS | {"classes": ["a", "b"], "ledger": ledger} | parameters
    monkeypatch.setattr(torch.Tensor, "backward", no_training)
    petdl = PETDLClassifier(**parameters)
    with pytest.raises(ValueError, match=message):
        petdl.fit_from_outputs(PublicData(X_PUBLIC), outputs)
    assert not hasattr(petdl, "privacy_spent_")
    assert ledger.entries() == []


def no_training(self, *args, **kwargs):
    pytest.fail("a student was trained before the input was checked")


def test_outputs_need_their_public_rows():
    petdl = PETDLClassifier(**DEFAULTS, classes=["a", "b"])
    with pytest.raises(ValueError, match="fit_from_outputs needs the public rows"):
        petdl.fit_from_outputs(None, [OUTPUTS])
    with pytest.raises(
        ValueError, match=r"batches=Clusters\(size=5\) makes fewer than two"
    ):
        petdl.fit_from_outputs(X_PUBLIC[:9], [OUTPUTS[:9]])


def test_parameters_are_not_checked_before_a_fit_nor_changed_by_one():
    petdl = PETDLClassifier(LinearSVC(), batches=Clusters("many"))
    assert clone(petdl).batches.size == "many"
    before = petdl.get_params()
    with pytest.raises(ValueError, match="size='many' must be"):
        petdl.fit(X, Y, X_public=PublicData(X_PUBLIC))
    assert petdl.get_params() == before


def test_frames_of_text_are_refused_before_a_charge(ledger):
    words = pd.DataFrame({"colour": ["red", "blue"] * 15})
    petdl = PETDLClassifier(MustNotBeFitted(), batches=RandomBatches(5), ledger=ledger)
    with pytest.raises(ValueError, match="could not convert string to float"):
        petdl.fit(words, Y[:30], X_public=PublicData(words.copy()))
    assert ledger.entries() == []
