"""Estimates in the limit of much budget, parameters, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate.exceptions import PrivacyLeakWarning, PrivacyUtilityWarning
from sklearn_pate.metrics import PrivateMetrics, private_metrics
from tests.metrics.exact_counts import Touchy, columns, without_noise
from tests.metrics.scores import (
    FirstColumn,
    scored_rows,
    scored_rows_of_three_classes,
)
from tests.private import (
    CHOSEN_BLINDLY,
    COLUMNS,
    MODEL_IS_PUBLIC,
    SCORES_OF_ROW,
    SUBGROUPS_DECLARED,
)

pytestmark = pytest.mark.filterwarnings("ignore:epsilon=.* is above 20")
MUCH = 1e5
N_ROWS = 8000


@pytest.fixture(scope="module")
def two():
    return scored_rows(N_ROWS)


@pytest.fixture(scope="module")
def three():
    return scored_rows_of_three_classes(N_ROWS)


def true_metrics(scores, y):
    """Compute metrics of two classes by scikit-learn."""
    predicted = scores > 0.5
    return {
        "roc_auc": roc_auc_score(y, scores),
        "accuracy": accuracy_score(y, predicted),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
        "sensitivity": recall_score(y, predicted),
        "specificity": recall_score(1 - y, ~predicted),
        "precision": precision_score(y, predicted),
        "prevalence": y.mean(),
        "brier_score": brier_score_loss(y, scores),
    }


def is_close(metrics, true, shapes=("roc_auc", "brier_score")):
    """Compare with true metrics: exactly those of counts, others within their bins."""
    for name, value in true.items():
        name_alone = name if isinstance(name, str) else name[0]
        error = 3e-3 if name_alone in shapes else 2e-3
        assert abs(metrics[name].value - value) < error, name
        assert metrics[name].low <= metrics[name].value <= metrics[name].high


@pytest.mark.slow
def test_with_much_budget_metrics_are_those_of_scikit_learn(two):
    X, y = two
    metrics = private_metrics(FirstColumn(), X, y, epsilon=MUCH)
    is_close(metrics, true_metrics(X[:, 0], y))
    assert metrics["calibration_error"].low == 0


@pytest.mark.slow
def test_calibration_error_is_that_of_the_bins():
    X, y = scored_rows(N_ROWS, slope=0.5)
    metrics = private_metrics(FirstColumn(), X, y, epsilon=MUCH)
    places = np.digitize(X[:, 0], metrics.edges_[0])
    gaps = [y[places == one].mean() - X[places == one].mean() for one in range(24)]
    shares = np.bincount(places) / N_ROWS
    expected = np.sqrt(np.sum(shares * np.square(gaps)))
    found = metrics["calibration_error"]
    assert found.value == pytest.approx(expected, abs=0.01)
    assert 0 < found.low < expected < found.high


@pytest.mark.slow
def test_subgroups_are_measured_apart(two):
    X, y = two
    subgroups = np.where(np.arange(N_ROWS) % 3, "high", "low")
    by_height = {"subgroups": subgroups, "subgroup_values": ["high", "low"]}
    metrics = private_metrics(FirstColumn(), X, y, epsilon=MUCH, **by_height)
    is_close(metrics, true_metrics(X[:, 0], y))
    assert metrics.subgroups_ == ["high", "low", "other or missing"]
    for value in ("high", "low"):
        of_subgroup = metrics.by_subgroup[value]
        part = subgroups == value
        true = true_metrics(X[part, 0], y[part])
        # Scores within bins are guessed for all rows.
        counted = ("accuracy", "specificity", "prevalence")
        is_close(of_subgroup, {name: true[name] for name in counted})


@pytest.mark.slow
def test_metrics_of_more_classes(three):
    X, y = three
    metrics = private_metrics(FirstColumn(3), X, y, epsilon=MUCH)
    predicted = X.argmax(axis=1)
    true = {
        "accuracy": accuracy_score(y, predicted),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
    }
    for one in range(3):
        own = y == one
        true |= {
            ("roc_auc", one): roc_auc_score(own, X[:, one]),
            ("sensitivity", one): recall_score(own, predicted == one),
            ("specificity", one): recall_score(~own, predicted != one),
            ("precision", one): precision_score(own, predicted == one),
            ("prevalence", one): own.mean(),
            ("brier_score", one): np.mean((own - X[:, one]) ** 2),
        }
    is_close(metrics, true)
    assert set(metrics) == {*true, *(("calibration_error", one) for one in range(3))}
    with pytest.raises(KeyError, match="'roc_auc' is not a metric"):
        metrics["roc_auc"]


@pytest.mark.slow
def test_given_bins(two):
    X, y = two
    bins = np.arange(1, 20) / 20
    metrics = private_metrics(FirstColumn(), X, y, epsilon=MUCH, bins=bins)
    is_close(metrics, true_metrics(X[:, 0], y))
    np.testing.assert_array_equal(metrics.edges_[0], bins)


def test_a_bin_of_most_scores_is_divided():
    y = np.arange(4000) % 2
    X = np.where(y, 0.999, 0.001)[:, np.newaxis]
    metrics = private_metrics(FirstColumn(), X, y, epsilon=1.0)
    assert 0.5 in metrics.edges_[0]
    assert metrics["brier_score"].low < 1e-6 < metrics["brier_score"].high < 0.02


@pytest.mark.slow
def test_bins_have_about_equal_numbers_of_rows(two):
    X, y = two
    edges = private_metrics(FirstColumn(), X, y, epsilon=2.0).edges_[0]
    shares = np.bincount(np.digitize(X[:, 0], edges)) / N_ROWS
    assert len(shares) > 8
    assert shares.max() < 2 / len(shares)


@pytest.mark.slow
def test_there_are_fewer_bins_under_more_noise(two):
    X, y = two
    n_bins = [
        len(private_metrics(FirstColumn(), X, y, epsilon=epsilon).middles_[0])
        for epsilon in (0.12, 0.4, 2.0)
    ]
    assert n_bins == sorted(n_bins)
    assert n_bins[0] < n_bins[-1]


def test_rows_that_cannot_be_scored_or_are_of_no_class_are_counted(monkeypatch):
    X, y = columns()
    X[0, 0], y[1], y[2] = np.nan, "unknown", None
    with without_noise(monkeypatch) as drawn, pytest.warns(PrivacyUtilityWarning):
        metrics = private_metrics(Touchy(), X, y, epsilon=1.0)
    (_, first), (_, second) = drawn
    assert metrics.confusion_[0, -1] == 3
    assert first[:5].sum() == 12
    assert first[5:].sum() == 11  # all that have a score
    assert second.sum() == 9


def test_a_model_that_fails_on_all_rows_is_measured(capfd):
    X, y = columns()
    X[:, 0] = np.inf
    with pytest.warns(PrivacyUtilityWarning):
        metrics = private_metrics(Touchy(), X, y, epsilon=1.0)
    assert metrics["roc_auc"][1:] == (0.0, 1.0)
    assert tuple(capfd.readouterr()) == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("container", ["array", "pandas", "polars", "coo"])
def test_any_container_and_estimator(container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.where(X[:, 0] + rng.normal(size=500) > 0, "ill", "well")
    held = {
        "array": X,
        "pandas": pd.DataFrame(X, columns=list("abc")),
        "polars": pl.DataFrame(X, schema=list("abc")),
        "coo": sp.coo_array(X),
    }[container]
    estimator = LogisticRegression() if container == "coo" else StandardScaler()
    if container != "coo":
        estimator = make_pipeline(estimator, RandomForestClassifier(2, random_state=0))
    model = estimator.fit(held, y)
    metrics = private_metrics(model, held, y, epsilon=500.0)
    expected = accuracy_score(y, model.predict(held))
    assert metrics["accuracy"].value == pytest.approx(expected, abs=0.03)
    assert metrics.classes_.tolist() == ["ill", "well"]


def test_one_row_of_each_group_counts(monkeypatch, two):
    X, y = two[0][:90], two[1][:90]
    groups = np.arange(90) // 3
    with without_noise(monkeypatch) as drawn:
        metrics = private_metrics(FirstColumn(), X, y, epsilon=1.0, groups=groups)
    assert [counts.sum() for _, counts in drawn] == [60, 30]
    assert metrics.n_rows_ is None
    assert metrics.privacy_spent_.unit == "group"
    assert metrics.privacy_spent_.relation == "add-remove-or-change"


@pytest.mark.slow
def test_the_statement_names_what_is_assumed(two):
    X, y = two
    plain = private_metrics(FirstColumn(), X, y, epsilon=1.0).privacy_spent_
    assert plain.assumptions == (
        *(MODEL_IS_PUBLIC, SCORES_OF_ROW, COLUMNS, CHOSEN_BLINDLY),
    )
    assert (plain.unit, plain.relation) == ("row", "replace-one")
    assert plain.facts.post_processing == "metrics"
    assert "number of rows" in plain.facts.unprotected
    subgroups = np.arange(N_ROWS) % 2
    by_subgroup = private_metrics(
        FirstColumn(), X, y, epsilon=1.0, subgroups=subgroups, subgroup_values=[0]
    ).privacy_spent_
    assert SUBGROUPS_DECLARED in by_subgroup.assumptions
    assert "declared values of subgroups" in by_subgroup.facts.unprotected
    assert by_subgroup.epsilon == plain.epsilon


@pytest.mark.slow
def test_intervals_of_all_rows_hold_the_noise_of_all_subgroups():
    """Of 60 draws of noise that is much larger than the sampling error."""
    X, y = scored_rows(N_ROWS)
    given = {"subgroups": np.arange(N_ROWS) % 16, "subgroup_values": range(16)}
    given["bins"] = [0.5]  # a matter of other metrics
    truth = private_metrics(FirstColumn(), X, y, epsilon=1e4)["accuracy"].value
    held = 0
    for _ in range(60):
        metrics = private_metrics(FirstColumn(), X, y, epsilon=0.1, **given)
        held += metrics["accuracy"].low <= truth <= metrics["accuracy"].high
    assert held >= 46  # of 95 %: fewer once in a million runs


X, Y = scored_rows(2000)
WRONG = {
    "epsilon": ({"epsilon": 0}, "epsilon=0 must be a positive, finite number"),
    "delta": ({"delta": 1.0}, "delta=1.0 must"),
    "text as bins": (
        {"bins": "ten"},
        "bins='ten' must be 'auto', or increasing scores",
    ),
    "no bins": ({"bins": []}, r"bins=\[\] must be 'auto'"),
    "falling bins": ({"bins": [0.5, 0.2]}, r"bins=\[0.5, 0.2\] must be 'auto'"),
    "bins beyond 1": ({"bins": [0.5, 1.0]}, r"bins=\[0.5, 1.0\] must be 'auto'"),
    "class_prior": ({"class_prior": 0.7}, "class_prior=0.7 must be the share of the"),
    "short groups": ({"groups": [1, 2]}, "groups has 2 values and X has"),
    "short subgroups": (
        {"subgroups": [1, 2], "subgroup_values": [1]},
        r"subgroups has shape \(2,\) and X has 2000 rows; pass one value for each row",
    ),
    "a name for subgroups": (
        {"subgroups": "sex", "subgroup_values": ["F", "M"]},
        r"subgroups has shape \(\) and X has 2000 rows; pass one value for each row",
    ),
    "values without subgroups": (
        {"subgroup_values": [1]},
        r"subgroup_values=\[1\] needs subgroups",
    ),
    "no ids": ({"groups": [None] * 2000}, "groups holds no id at all"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_parameter_is_refused_before_any_work(name, monkeypatch):
    def fails(*args):
        raise AssertionError("not called")

    parameters, message = WRONG[name]
    monkeypatch.setattr(FirstColumn, "predict_proba", fails)
    with pytest.raises(ValueError, match=message):
        private_metrics(FirstColumn(), X, Y, **{"epsilon": 1.0} | parameters)


def test_data_of_another_shape_are_refused():
    model = FirstColumn()
    with pytest.raises(ValueError, match="X has 2 features, but FirstColumn is expec"):
        private_metrics(model, np.hstack([X, X]), Y, epsilon=1.0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        private_metrics(model, X, Y[1:], epsilon=1.0)
    frame = pd.DataFrame(np.hstack([X, X]), columns=["a", "b"])
    fitted = LogisticRegression().fit(frame, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        private_metrics(fitted, frame[["b", "a"]], Y, epsilon=1.0)


class NoProbabilities:
    """A model that predicts labels alone."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return np.zeros(len(X))


MODELS = {
    "without probabilities": (NoProbabilities(), "NoProbabilities and has no predict_"),
    "unfitted": (LogisticRegression(), "is not fitted yet"),
    "of one class": (Touchy(1), r"model has classes_=\[0\]; pass a classifier of two"),
    "of several outputs": (
        RandomForestClassifier(2).fit(X, np.column_stack([Y, Y])),
        "pass a classifier of two or more classes and one output",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_model_is_refused(name):
    model, message = MODELS[name]
    with pytest.raises(Exception, match=message):
        private_metrics(model, X, Y, epsilon=1.0)


def test_a_warning_says_beforehand_that_noise_hides_the_metrics():
    with pytest.warns(PrivacyUtilityWarning, match=r"\+-0.\d\d wide. Use more rows"):
        private_metrics(FirstColumn(), X[:200], Y[:200], epsilon=0.2)
    with pytest.warns(PrivacyUtilityWarning, match="share=0.01"):
        private_metrics(FirstColumn(), X, Y, epsilon=1.0, class_prior=0.01)


def test_a_delta_that_publishes_a_row_is_warned_of():
    with pytest.warns(PrivacyLeakWarning, match=r"delta=0.001 is not below"):
        private_metrics(FirstColumn(), X, Y, epsilon=1.0, delta=1e-3)


def test_metrics_are_a_mapping_with_a_readable_form():
    metrics = private_metrics(FirstColumn(), X, Y, epsilon=1.0)
    assert isinstance(metrics, PrivateMetrics)
    assert dict(metrics)["accuracy"] is metrics["accuracy"]
    assert "roc auc" in str(metrics)
    assert "epsilon=1.000" in repr(metrics)


@pytest.mark.parametrize("as_type", [list, pl.Series, pd.Series, pd.Categorical])
def test_labels_that_no_row_has_are_told_of_by_released_counts(as_type):
    X, y = scored_rows(4000)
    labels = as_type(np.where(y == 1, "Yes", "No").astype(object))
    model = FirstColumn()
    model.classes_ = np.array(["no", "yes"])
    with pytest.warns(PrivacyUtilityWarning, match="100 % of the rows have a label"):
        private_metrics(model, X, labels, epsilon=1.0)


def test_subgroups_that_no_row_has_are_told_of_by_released_counts():
    X, y = scored_rows(4000)
    subgroups = np.where(X[:, 0] > 0, "F", "M")
    others = {"subgroups": subgroups, "subgroup_values": ["female", "male"]}
    with pytest.warns(PrivacyUtilityWarning, match="% of the rows have a subgroup"):
        private_metrics(FirstColumn(), X, y, epsilon=1.0, **others)
