"""Tables of docs/benchmarks/metrics.md."""

from benchmarks.record import load
from benchmarks.reporting import decimals, source, table

NAMES = {
    "roc_auc": "AUC",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "sensitivity": "sensitivity",
    "precision": "precision",
    "brier_score": "Brier score",
    "calibration_error": "calibration error",
}
# The epsilon of the comparison; the result file has more.
EPSILON = 0.5
# What an interval of 95 % has to hold in, and where it is narrow, at most.
LEAST, MOST, NARROW = 0.93, 0.97, 0.2


def metrics_target():
    """Metrics of 10,000 rows beside the true ones of the same rows."""
    results = load("private_metrics")["target"]
    [row] = results["rows"]
    lines = [
        [
            NAMES[name],
            _number(one["true"]),
            _interval(one["first"]),
            _number(one["rmse"]),
            _number(one["sampling"]),
        ]
        for name, one in row["metrics"].items()
        if name in NAMES
    ]
    columns = [
        f"{row['n_rows']:,} rows, {100 * row['share']:.1f} % positive, epsilon "
        f"{row['epsilon']:g}",
        "true",
        "one release",
        "RMSE of 100 releases",
        "sampling error",
    ]
    return table(results, columns, rows=lines)


def metrics_coverage():
    """Numbers of metrics whose intervals contain the truth too rarely or too often."""
    results = load("private_metrics")["coverage"]
    rows = results["rows"]
    found = [one for row in rows for one in row["metrics"].values()]
    low = sum(one["covered"] < LEAST for one in found)
    two_sided = [one for one in found if one["width"] < NARROW and one["cut"] < 0.5]
    high = sum(one["covered"] > MOST for one in two_sided)
    n_draws = sorted({row["n_draws"] for row in rows})
    text = (
        f"Each of {len(found)} metrics was released {n_draws[0]:,} to "
        f"{n_draws[-1]:,} times. For {low} of these metrics, fewer than "
        f"{100 * LEAST:g} % of the intervals contained the metric of the population. "
        f"Of {len(two_sided)} metrics with intervals narrower than {NARROW:g} that "
        f"mostly end neither at 0 nor at 1, {high} had a coverage above "
        f"{100 * MOST:g} %."
    )
    return f"{text}\n\n{source(results)}"


def metrics_others():
    """Errors of other releases of the same rows."""
    results = load("private_metrics")["others"]
    columns = {
        f"RMSE on 10,000 rows, epsilon {EPSILON:g}": "release",
        "AUC": ("roc_auc", decimals(4)),
        "accuracy": ("accuracy", decimals(4)),
        "calibration error": ("calibration_error", decimals(4)),
    }
    rows = [row for row in results["rows"] if row["epsilon"] == EPSILON]
    return table(results, columns, rows=rows)


def _number(value):
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}"


def _interval(estimate):
    value, low, high = estimate
    return f"{_number(value)} ({_number(low)} to {_number(high)})"


METRICS_TABLES = (
    metrics_target,
    metrics_coverage,
    metrics_others,
)
