"""Wrong calls: one clear sentence each, before any noise is drawn or paid for."""

# ruff: noqa: E501 - a table, one wrong call a line

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_pate import PrivacyLedger
from sklearn_pate.learners import DPLinearSVC, DPLogisticRegression
from tests.private import NoiseSource

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.arange(30) % 2


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)


@pytest.fixture
def no_noise(monkeypatch):
    def draw(self, shape):
        pytest.fail("noise was drawn before the input was checked")

    monkeypatch.setattr(NoiseSource, "words", draw)


# Parameters, arguments of fit (changes to the defaults), and the message.
WRONG_FITS = {
    "unknown method": ({"method": "laplace"}, {}, r"method='laplace' is unknown; use one of \['output', 'objective', 'gaussian'\]"),
    "C is zero": ({"C": 0}, {}, r"C=0 must be a positive, finite number"),
    "C is a word": ({"C": "best"}, {}, r"C='best' must be"),
    "C is a list": ({"C": [1.0, 2.0]}, {}, r"C=\[1.0, 2.0\] must be"),
    "C is a bool": ({"C": True}, {}, r"C=True must be"),
    "epsilon is zero": ({"epsilon": 0}, {}, r"epsilon=0 must be a positive, finite number"),
    "epsilon is None": ({"epsilon": None}, {}, r"epsilon=None must be"),
    "epsilon is infinite": ({"epsilon": np.inf}, {}, r"epsilon=inf must be"),
    "delta is zero": ({"delta": 0}, {}, r"delta=0 must be a number strictly between 0 and 0.1"),
    "delta is one": ({"delta": 1.0}, {}, r"delta=1.0 must be"),
    "data_norm is zero": ({"data_norm": 0}, {}, r"data_norm=0 must be a positive, finite number"),
    "data_norm is a word": ({"data_norm": "l2"}, {}, r"data_norm='l2' must be"),
    "data_norm is an array": ({"data_norm": np.ones(3)}, {}, r"data_norm=array.* must be"),
    "feature_bounds is a number": ({"feature_bounds": 1}, {}, r"feature_bounds=1 must be a pair \(low, high\), each a number or 3 numbers"),
    "feature_bounds is a triple": ({"feature_bounds": (0, 1, 2)}, {}, r"feature_bounds=\(0, 1, 2\) must be a pair"),
    "feature_bounds of other features": ({"feature_bounds": ([0, 0], [1, 1])}, {}, r"must be a pair"),
    "feature_bounds are words": ({"feature_bounds": ("low", "high")}, {}, r"must be a pair"),
    "feature_bounds the wrong way round": ({"feature_bounds": (1, 0)}, {}, r"feature_bounds=\(1, 0\) must be finite, with low below high for every feature"),
    "feature_bounds without any width": ({"feature_bounds": ([0, 0, 0], [1, 0, 1])}, {}, r"low below high"),
    "feature_bounds are infinite": ({"feature_bounds": (0, np.inf)}, {}, r"must be finite"),
    "feature_bounds are missing": ({"feature_bounds": (0, np.nan)}, {}, r"must be finite"),
    "fit_intercept is a word": ({"fit_intercept": "yes"}, {}, r"fit_intercept='yes' must be True or False"),
    "intercept_scaling is zero": ({"intercept_scaling": 0}, {}, r"intercept_scaling=0 must be a positive"),
    "one class in classes": ({"classes": [1]}, {}, r"classes=\[1\] must list at least two distinct labels"),
    "ledger is a path": ({"ledger": "patients.sqlite"}, {}, r"ledger='patients.sqlite' is not a PrivacyLedger"),
    "noise beyond what can be drawn": ({"method": "gaussian", "epsilon": 1e-7, "delta": 1e-12}, {}, r"epsilon=1e-07 with delta=1e-12 needs noise of scale above 1048576"),
    "C is too small, as the regularisation": ({"C": 5e-324}, {}, r"C=5e-324 is too small, as the regularisation"),
    "noise that drowns the solver": ({"epsilon": 1e-9}, {}, r"epsilon=1e-09 needs too much noise for 4 weights"),
    "feature_bounds next to nothing": ({"feature_bounds": (0, 5e-324)}, {}, r"feature_bounds=\(0, 5e-324\) and data_norm=.* are so small"),
    "data_norm next to nothing": ({"data_norm": 1e-320, "fit_intercept": False}, {}, r"data_norm=1e-320 are so small that weights overflow"),
    "y is missing": ({}, {"y": None}, r"requires y to be passed"),
    "y is too short": ({}, {"y": Y[:-1]}, r"inconsistent numbers of samples"),
    "y holds numbers": ({}, {"y": X[:, 0]}, r"Unknown label type: continuous"),
    "y holds one class": ({}, {"y": 0 * Y}, r"y holds one class only; pass"),
    "X is flat": ({}, {"X": X[:, 0]}, r"Expected 2D array"),
    "X holds text": ({}, {"X": np.array([["red"]] * 30)}, r"could not convert string to float"),
}  # fmt: skip


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("learner", [DPLogisticRegression, DPLinearSVC])
@pytest.mark.parametrize("call", ["fit", "plan_privacy"])
@pytest.mark.parametrize("case", WRONG_FITS)
def test_a_wrong_fit_is_refused_in_one_sentence(case, call, learner, ledger):
    parameters, arguments, message = WRONG_FITS[case]
    learner = learner(**({"data_norm": 1, "ledger": ledger} | parameters))
    before = learner.get_params()
    with pytest.raises(ValueError, match=message):
        getattr(learner, call)(**({"X": X, "y": Y} | arguments))
    assert learner.get_params() == before
    assert ledger.entries() == []
    assert not hasattr(learner, "coef_")


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("huber", [0, -0.5, "wide", np.nan])
def test_a_hinge_without_width_is_refused(huber):
    with pytest.raises(ValueError, match=r"huber=.* must be a positive, finite number"):
        DPLinearSVC(huber=huber, data_norm=1).fit(X, Y)


def test_a_hinge_that_rounding_makes_a_kink_is_refused():
    with pytest.raises(ValueError, match=r"huber=1e-320 must be at least 1e-09"):
        DPLinearSVC(huber=1e-320, data_norm=1).fit(X, Y)


@pytest.mark.usefixtures("no_noise")
def test_more_features_than_memory_are_refused():
    wide = np.zeros((2, 5_000_000))
    with pytest.raises(ValueError, match=r"X has 5000000 features, .* 186265 GiB of m"):
        DPLogisticRegression(data_norm=1).fit(wide, [0, 1])


@pytest.mark.usefixtures("no_noise")
def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match="dense"):
        DPLogisticRegression(data_norm=1).fit(sp.csr_array(X), Y)


def test_rows_to_predict_are_checked():
    learner = DPLogisticRegression(data_norm=1)
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(learner, method)(X)
    learner.fit(X, Y)
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(ValueError, match="X has 2 features, but"):
            getattr(learner, method)(X[:, :2])


def test_parameters_are_not_checked_before_a_fit():
    learner = DPLogisticRegression(method="best", C="some", feature_bounds=1)
    assert clone(learner).method == "best"
