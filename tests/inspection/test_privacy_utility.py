"""Scores against epsilon: numbers, units, and sensitivity."""

import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVR

from sklearn_pate.inspection import PrivacyUtilityDisplay
from sklearn_pate.learners import DPLogisticRegression
from tests.private import SENSITIVE
from tests.seeding import equal_noise

matplotlib.use("agg")

X, Y = make_blobs(600, centers=3, cluster_std=2, random_state=0)
TEST = X[400:], Y[400:]


def fitted(epsilon, **parameters):
    learner = DPLogisticRegression(epsilon=epsilon, data_norm=8, **parameters)
    return learner.fit(X[:400], Y[:400])


@pytest.fixture(scope="module")
def fits():
    return [fitted(epsilon) for epsilon in (0.5, 8.0, 0.5, 2.0)]


def stamps(display):
    texts = [text.get_text() for text in display.figure_.findobj(matplotlib.text.Text)]
    return texts.count(SENSITIVE)


def search_over(learner, epsilons=(0.5, 4.0), name="epsilon", **parameters):
    return GridSearchCV(learner, {name: epsilons}, cv=KFold(3), **parameters)


@pytest.mark.slow
def test_points_are_the_scores_of_the_fits_at_their_epsilons(fits):
    display = PrivacyUtilityDisplay.from_estimators(fits, *TEST, sensitive=False)
    scores = [clf.score(*TEST) for clf in fits]
    assert display.epsilons == [0.5, 8.0, 0.5, 2.0]
    assert display.scores == scores
    expected = [np.mean([scores[0], scores[2]]), scores[3], scores[1]]
    assert display.line_.get_xdata().tolist() == [0.5, 2.0, 8.0]
    assert display.line_.get_ydata() == pytest.approx(expected)
    assert display.ax_.get_xlabel() == (
        "epsilon of each fit (delta=0, unit: row, replace-one)"
    )


def test_bars_are_a_standard_deviation_where_fits_share_an_epsilon():
    display = PrivacyUtilityDisplay(
        epsilons=[1, 2, 1, 1], scores=[0.5, 0.9, 0.7, 0.9], sensitive=False
    ).plot()
    (bars,) = display.errorbar_[2]
    low, high = bars.get_segments()[0][:, 1]
    assert (low + high) / 2 == pytest.approx(0.7)
    assert (high - low) / 2 == pytest.approx(0.2)  # of three scores 0.2 apart
    alone = bars.get_segments()[1]  # the spread of one fit is unknown
    assert not (alone.size and np.isfinite(alone).all())


def test_fits_for_one_target_share_a_point_that_understates_none():
    display = PrivacyUtilityDisplay(
        epsilons=[0.9999, 0.9951, 1.03, 1.0], scores=[0, 0, 1, 0], sensitive=False
    ).plot()
    assert display.line_.get_xdata().tolist() == [1.0, 1.03]
    assert display.line_.get_ydata().tolist() == [0.0, 1.0]


def test_another_score_and_a_pipeline_are_taken(fits):
    pipeline = make_pipeline(FunctionTransformer(), fits[1])
    display = PrivacyUtilityDisplay.from_estimators(
        [pipeline], *TEST, sensitive=True, scoring="balanced_accuracy"
    )
    expected = balanced_accuracy_score(TEST[1], fits[1].predict(TEST[0]))
    assert display.scores == [pytest.approx(expected)]
    assert display.ax_.get_ylabel() == "balanced accuracy"


def test_deltas_that_differ_are_all_covered_by_the_largest():
    fits = [
        fitted(1.0, method="gaussian", delta=1e-6),
        fitted(2.0, method="gaussian", delta=1e-4),
    ]
    display = PrivacyUtilityDisplay.from_estimators(fits, *TEST, sensitive=False)
    assert (display.delta, display.unit) == (1e-4, "row")
    assert display.relation == "add-remove"


def test_predictions_are_scored(fits):
    predictions = [clf.predict(TEST[0]) for clf in fits]
    display = PrivacyUtilityDisplay.from_predictions(
        TEST[1], predictions, [0.5, 8, 0.5, 2], sensitive=False
    )
    assert display.scores == [clf.score(*TEST) for clf in fits]
    assert display.ax_.get_ylabel() == "accuracy"
    assert display.ax_.get_xlabel() == "epsilon of each fit"
    display = PrivacyUtilityDisplay.from_predictions(
        [0, 0, 0, 1], [[0, 0, 0, 0]], [1], sensitive=False, score_func=np.dot
    )
    assert display.scores == [0]


def test_a_search_is_drawn_with_the_spread_over_its_splits():
    pipeline = make_pipeline(FunctionTransformer(), DPLogisticRegression(data_norm=8))
    search = search_over(pipeline, name="dplogisticregression__epsilon").fit(X, Y)
    display = PrivacyUtilityDisplay.from_cv_results(search, sensitive=True)
    results = search.cv_results_
    assert display.line_.get_xdata().tolist() == [0.5, 4.0]
    assert display.line_.get_ydata() == pytest.approx(results["mean_test_score"])
    for candidate, segment in enumerate(display.errorbar_[2][0].get_segments()):
        splits = [results[f"split{split}_test_score"][candidate] for split in range(3)]
        spread = np.ptp(segment[:, 1]) / 2
        assert spread == pytest.approx(np.std(splits, ddof=1))
    assert (display.delta, display.unit) == (0.0, "row")
    alone = PrivacyUtilityDisplay.from_cv_results(results, sensitive=True)
    assert np.array_equal(alone.scores, display.scores)
    assert alone.unit is alone.relation is None


def test_a_metric_is_chosen_where_a_search_has_several():
    learner = DPLogisticRegression(data_norm=8)
    search = search_over(
        learner, scoring=["accuracy", "balanced_accuracy"], refit=False
    ).fit(X, Y)
    display = PrivacyUtilityDisplay.from_cv_results(
        search, sensitive=True, metric="balanced_accuracy"
    )
    expected = search.cv_results_["mean_test_balanced_accuracy"]
    assert display.line_.get_ydata() == pytest.approx(expected)
    assert display.ax_.get_ylabel() == "balanced accuracy"
    with pytest.raises(ValueError, match=r"metric='score' is.*'accuracy', 'balanced_"):
        PrivacyUtilityDisplay.from_cv_results(search, sensitive=True)


def results_of(**columns):
    return {"split0_test_score": [0.5, 0.6], "param_epsilon": [1, 2]} | columns


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (
            GridSearchCV(SVR(), {}),
            "no cv_results_, as GridSearchCV is not a search or is not",
        ),
        (results_of(param_pate__epsilon=[1, 2]), r"\['epsilon', 'pate__epsilon'\]"),
        (
            {"param_C": [1], "split0_test_score": [1]},
            r"over \['C'\], which must include",
        ),
        (results_of(param_C=[1, 2]), "also over C.*over epsilon only"),
        (results_of(param_epsilon=[1, None]), "A candidate has epsilon=None"),
        (results_of(param_epsilon=[1, np.inf]), "A candidate has epsilon=inf"),
        (results_of(split0_test_score=[1, np.nan]), "scores has NaN or infinity"),
    ],
)
def test_what_is_no_search_over_epsilon_is_refused(search, message):
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay.from_cv_results(search, sensitive=True)
    assert not plt.get_fignums()


def test_a_parameter_that_is_the_same_everywhere_is_no_second_one():
    search = results_of(param_C=[1, 1])
    display = PrivacyUtilityDisplay.from_cv_results(search, sensitive=True)
    assert display.line_.get_ydata().tolist() == [0.5, 0.6]


def test_the_epsilon_of_something_else_is_no_privacy():
    search = search_over(SVR()).fit(X, Y)
    with pytest.raises(ValueError, match="SVR has no privacy_spent_"):
        PrivacyUtilityDisplay.from_cv_results(search, sensitive=True)


def test_a_search_whose_fits_have_no_guarantee_is_refused():
    search = search_over(DPLogisticRegression(data_norm=8))
    with equal_noise():
        search.fit(X, Y)
    with pytest.raises(ValueError, match=r"epsilon=inf.*has no guarantee"):
        PrivacyUtilityDisplay.from_cv_results(search, sensitive=True)


def unscored(*_):
    raise AssertionError("it was scored")


def test_units_are_not_mixed_and_nothing_is_scored_before(fits):
    mixed = [fits[0], fitted(1.0, method="gaussian")]
    with pytest.raises(ValueError, match="'row' with relation='replace-one', so"):
        PrivacyUtilityDisplay.from_estimators(
            mixed, *TEST, sensitive=True, scoring=unscored
        )


def test_a_fit_without_a_guarantee_has_no_place(fits):
    with equal_noise():
        void = fitted(1.0)
    with pytest.raises(ValueError, match="cannot be drawn on an axis of epsilon"):
        PrivacyUtilityDisplay.from_estimators(
            [fits[0], void], *TEST, sensitive=True, scoring=unscored
        )
    with pytest.raises(ValueError, match=r"epsilons=\[1.0, inf\] must be positive and"):
        PrivacyUtilityDisplay(
            epsilons=[1, np.inf], scores=[0, 1], sensitive=True
        ).plot()


def test_what_has_no_statement_is_refused():
    plain = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match="LogisticRegression has no privacy_spent_"):
        PrivacyUtilityDisplay.from_estimators([plain], *TEST, sensitive=True)
    with pytest.raises(ValueError, match="nothing to draw; pass at least one fit"):
        PrivacyUtilityDisplay.from_estimators([], *TEST, sensitive=True)


def test_what_is_not_fitted_is_called_so(fits):
    learner = DPLogisticRegression()
    with pytest.raises(NotFittedError, match="DPLogisticRegression instance is not f"):
        PrivacyUtilityDisplay.from_estimators(
            [fits[0], learner], *TEST, sensitive=True, scoring=unscored
        )
    with pytest.raises(NotFittedError, match="no cv_results_"):
        PrivacyUtilityDisplay.from_cv_results(search_over(learner), sensitive=True)


def test_one_estimator_in_place_of_a_list_is_refused(fits):
    for one in (fits[0], make_pipeline(FunctionTransformer(), fits[0])):
        message = f"estimators is a single {type(one).__name__}; pass a list"
        with pytest.raises(ValueError, match=message):
            PrivacyUtilityDisplay.from_estimators(
                one, *TEST, sensitive=True, scoring=unscored
            )


@pytest.mark.parametrize("baseline", ["no", True, np.nan, np.inf, [0.9]])
def test_a_baseline_that_is_no_score_is_refused_before_any_work(fits, baseline):
    wrong = {"sensitive": True, "baseline": baseline}
    numbers = {"epsilons": [1], "scores": [0.5]}
    for draw in (
        lambda: PrivacyUtilityDisplay(**numbers, **wrong).plot(),
        lambda: PrivacyUtilityDisplay.from_estimators(
            fits, *TEST, scoring=unscored, **wrong
        ),
        lambda: PrivacyUtilityDisplay.from_predictions(
            [0], [[0]], [1], score_func=unscored, **wrong
        ),
        lambda: PrivacyUtilityDisplay.from_cv_results(results_of(), **wrong),
    ):
        with pytest.raises(ValueError, match=r"baseline=.* must be a finite number"):
            draw()
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilons": [1]}, r"epsilons has shape \(1,\) and scores has \(2,\)"),
        ({"epsilons": [], "scores": []}, r"shape \(0,\)"),
        ({"epsilons": [0, 1]}, r"epsilons=\[0.0, 1.0\] must be positive"),
        ({"scores": [np.nan, 1]}, "scores has NaN"),
    ],
)
def test_numbers_that_cannot_be_drawn_are_refused(wrong, message):
    numbers = {"epsilons": [1, 2], "scores": [0.5, 0.6], "sensitive": False} | wrong
    display = PrivacyUtilityDisplay(**numbers)
    with pytest.raises(ValueError, match=message):
        display.plot()
    assert not plt.get_fignums()


def test_somebody_has_to_say_whether_it_is_sensitive(fits):
    with pytest.raises(TypeError, match="sensitive"):
        PrivacyUtilityDisplay.from_estimators(fits, *TEST)
    with pytest.raises(TypeError, match="sensitive"):
        PrivacyUtilityDisplay.from_predictions([0], [[0]], [1])
    with pytest.raises(TypeError, match="sensitive"):
        PrivacyUtilityDisplay.from_cv_results(results_of())
    for unclear in (None, 0, "no"):
        with pytest.raises(ValueError, match=r"sensitive=.* must be True or False"):
            PrivacyUtilityDisplay.from_estimators(
                fits, *TEST, sensitive=unclear, scoring=unscored
            )


def test_the_stamp_is_there_when_and_only_when_it_is_sensitive(fits):
    public = PrivacyUtilityDisplay.from_estimators(fits, *TEST, sensitive=False)
    private = PrivacyUtilityDisplay.from_estimators(fits, *TEST, sensitive=True)
    assert (stamps(public), stamps(private)) == (0, 1)
    assert stamps(private.plot()) == 1  # drawn again by hand
    private.plot(public.ax_)
    assert stamps(public) == 1  # one private line makes all of it private


def test_the_stamp_is_across_the_middle(fits):
    display = PrivacyUtilityDisplay.from_estimators(fits, *TEST, sensitive=True)
    display.figure_.canvas.draw()
    (stamp,) = display.ax_.texts
    box, axes = stamp.get_window_extent(), display.ax_.get_window_extent()
    assert axes.containsx(box.x0)
    assert axes.containsx(box.x1)
    assert box.width > axes.width / 2
    assert stamp.get_zorder() > max(line.get_zorder() for line in display.ax_.lines)


def test_lines_of_two_learners_share_axes_and_differ():
    _, ax = plt.subplots()
    numbers = {"epsilons": [1, 2], "scores": [0.5, 0.6], "sensitive": True}
    first = PrivacyUtilityDisplay(**numbers, baseline=0.9).plot(ax, label="one")
    second = PrivacyUtilityDisplay(**numbers).plot(ax, label="other")
    assert first.ax_ is second.ax_ is ax
    assert first.figure_ is ax.figure
    assert first.line_.get_color() != second.line_.get_color()
    assert first.line_.get_marker() != second.line_.get_marker()
    assert first.baseline_.get_linestyle() == "--"
    assert list(first.baseline_.get_ydata()) == [0.9, 0.9]
    assert second.baseline_ is None
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(texts) == ["one", "other", "without privacy"]
    assert stamps(second) == 1
    assert len(plt.get_fignums()) == 1


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, fits):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    message = r"PrivacyUtilityDisplay needs matplotlib; pip install matplotlib"
    with pytest.raises(ImportError, match=message):
        PrivacyUtilityDisplay.from_estimators(
            fits, *TEST, sensitive=True, scoring=unscored
        )
