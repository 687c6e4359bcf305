"""Thresholds for a wanted sensitivity or specificity."""

import numpy as np
import pytest

from sklearn_pate.metrics import private_metrics
from tests.metrics.scores import FirstColumn


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [0.5, 0.8, 0.95])
def test_a_threshold_has_about_the_wanted_share_on_the_rows(measured, wanted):
    X, y, metrics = measured
    above = X[:, 0] >= metrics.threshold(sensitivity=wanted)
    assert np.mean(above[y == 1]) == pytest.approx(wanted, abs=0.03)
    above = X[:, 0] >= metrics.threshold(specificity=wanted)
    assert np.mean(~above[y == 0]) == pytest.approx(wanted, abs=0.03)


@pytest.mark.slow
def test_a_threshold_falls_with_the_sensitivity_and_rises_with_the_specificity(
    measured,
):
    _, _, metrics = measured
    wanted = np.linspace(0.01, 0.99, 50)
    falling = [metrics.threshold(sensitivity=one) for one in wanted]
    rising = [metrics.threshold(specificity=one) for one in wanted]
    assert np.all(np.diff(falling) <= 0)
    assert np.all(np.diff(rising) >= 0)
    assert 0 < min(falling + rising) < max(falling + rising) < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {},
            r"0 of sensitivity, specificity and coverage were given; pass exactly",
        ),
        (
            {"sensitivity": 0.9, "specificity": 0.9},
            r"2 of .* were given; pass exactly one",
        ),
        ({"sensitivity": 1}, r"sensitivity=1 must be between 0 and 1"),
        ({"specificity": 0.0}, r"specificity=0.0 must be between 0 and 1"),
    ],
)
def test_anything_but_one_share_is_refused(measured, wanted, message):
    with pytest.raises(ValueError, match=message):
        measured[2].threshold(**wanted)


@pytest.mark.slow
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_sets_of_discrete_scores_cover_what_was_wanted(coverage):
    """Scores have two values, as those of a tree with two leaves."""
    rng = np.random.default_rng(0)
    is_rare = rng.random(60_000) < 0.2
    X = np.where(is_rare, 0.95, 0.53)[:, np.newaxis]
    y = (rng.random(60_000) < X[:, 0]).astype(int)
    model, fresh, covered = FirstColumn(), slice(40_000, None), []
    for draw in range(5):
        some = slice(2000 * draw, 2000 + 2000 * draw)
        metrics = private_metrics(model, X[some], y[some], epsilon=2.0)
        sets = model.predict_proba(X[fresh]) >= metrics.threshold(coverage=coverage)
        covered.append(sets[np.arange(20_000), y[fresh]].mean())
    assert np.mean(covered) >= coverage


@pytest.mark.slow
def test_a_threshold_needs_two_classes(of_three_classes):
    with pytest.raises(ValueError, match="of 3 classes, but a threshold needs two"):
        of_three_classes[2].threshold(sensitivity=0.9)


def test_a_threshold_needs_counts_above_the_noise(hidden):
    with pytest.raises(
        ValueError, match=r"noise hides .* measure with more rows, or with"
    ):
        hidden.threshold(sensitivity=0.9)
