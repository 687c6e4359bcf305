"""Pictures of private metrics."""

import sys

import numpy as np
import pytest

from sklearn_pate.metrics import private_metrics
from tests.metrics.scores import FirstColumn, scored_rows

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("agg")
pytestmark = pytest.mark.slow


def true_roc(X, y, false_positives):
    """Compute the sensitivity of the rows at shares of false positives."""
    at = np.quantile(X[y == 0, 0], 1 - false_positives)
    return np.array([np.mean(X[y == 1, 0] >= one) for one in at])


def band_of(ax):
    """Read lower and upper ends of the band of the first curve, by their x."""
    (shape,) = ax.collections[:1]
    points = shape.get_paths()[0].vertices
    xs = np.unique(points[:, 0])
    ends = [points[points[:, 0] == x, 1] for x in xs]
    return xs, np.array([one.min() for one in ends]), np.array([e.max() for e in ends])


def test_the_roc_curve_and_its_band_are_near_the_true_curve(measured):
    X, y, metrics = measured
    ax, _ = metrics.plot()
    line = ax.lines[0]
    inside = (line.get_xdata() > 0.02) & (line.get_xdata() < 0.98)
    xs, ys = line.get_xdata()[inside], line.get_ydata()[inside]
    np.testing.assert_allclose(ys, true_roc(X, y, xs), atol=0.05)
    x_band, low, high = band_of(ax)
    assert np.all(np.interp(xs, x_band, low) <= ys + 1e-9)
    assert np.all(ys <= np.interp(xs, x_band, high) + 1e-9)
    assert np.median(high - low) < 0.1
    assert line.get_label() == f"AUC {metrics['roc_auc']!r}"


def test_the_calibration_shows_scores_that_are_too_sure(measured):
    _, ax = measured[2].plot()
    xs, ys = ax.lines[0].get_data()
    assert np.mean(ys[xs < 0.05] - xs[xs < 0.05]) > 0.02
    assert ys[-1] < xs[-1]
    assert np.all((ys >= 0) & (ys <= 1))
    _, low, high = band_of(ax)
    assert np.all((low >= 0) & (high <= 1))


def test_each_of_several_classes_has_a_curve(of_three_classes):
    roc, calibration = of_three_classes[2].plot()
    names = [text.get_text().split(":")[0] for text in roc.get_legend().get_texts()]
    assert names == ["0", "1", "2"]
    assert len(calibration.lines) == 4  # and the diagonal


def test_given_axes_are_drawn_on(measured):
    _, axes = plt.subplots(1, 2)
    assert measured[2].plot(axes)[0] is axes[0]
    _, ax = plt.subplots()
    assert measured[2].plot_subgroups(ax=ax) is ax


def test_equal_subgroups_do_not_differ_and_others_do():
    X, y = scored_rows(4000)
    flipped = np.where(np.arange(4000) < 2000, y, 1 - y)  # scores are wrong in half
    for labels, differ in ((y, False), (flipped, True)):
        metrics = private_metrics(
            FirstColumn(),
            X,
            labels,
            epsilon=2.0,
            subgroups=np.arange(4000) >= 2000,
            subgroup_values=[False, True],
        )
        ax = metrics.plot_subgroups("accuracy")
        for bar, sign in zip(ax.containers, (1, -1), strict=True):
            ((left, _), (right, _)) = bar.lines[2][0].get_segments()[0]
            assert (left > 0 if sign > 0 else right < 0) == differ
        assert ax.get_xlabel() == "accuracy minus that of all rows"


@pytest.mark.parametrize("metric", ["roc_auc", "calibration_error", "prevalence"])
def test_a_subgroup_that_the_noise_hides_has_no_interval(metric):
    X, y = scored_rows(3000)
    subgroups = np.where(np.arange(3000) < 5, "few", "many")
    by_size = {"subgroups": subgroups, "subgroup_values": ["few", "many"]}
    metrics = private_metrics(FirstColumn(), X, y, epsilon=1.0, **by_size)
    ax = metrics.plot_subgroups(metric)
    ticks = [text.get_text() for text in ax.get_yticklabels()]
    hidden = [f"{one}\n(hidden by noise)" for one in ("few", "other or missing")]
    assert ticks == [hidden[0], "many", hidden[1]]
    assert len(ax.containers) == 1


def test_a_metric_of_a_class_is_drawn_by_its_name(of_three_classes, measured):
    X, y, _ = of_three_classes
    metrics = private_metrics(
        FirstColumn(3),
        X,
        y,
        epsilon=2.0,
        subgroups=np.arange(2000) % 2,
        subgroup_values=[0, 1],
    )
    ax = metrics.plot_subgroups(("roc_auc", 1))
    assert ax.get_xlabel() == "AUC of 1 minus that of all rows"
    with pytest.raises(ValueError, match="metric='auc' is unknown; use one of"):
        metrics.plot_subgroups("auc")
    with pytest.raises(ValueError, match="These metrics have no subgroups; pass"):
        of_three_classes[2].plot_subgroups()


def test_pictures_need_matplotlib(measured, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (measured[2].plot, measured[2].plot_subgroups):
        with pytest.raises(ImportError, match=r"PrivateMetrics needs matplotlib; pip"):
            draw()


def test_counts_below_the_noise_are_not_drawn(hidden):
    with pytest.raises(ValueError, match="The noise hides the number of rows"):
        hidden.plot()
