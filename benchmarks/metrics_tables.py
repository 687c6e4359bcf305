"""Tables of the results of private_metrics.py."""

from record import load
from reporting import cross_table, decimals, source, table

DATA = {"diabetes": "Diabetes, patients", "adult": "Adult", "kddcup99": "KDDCup99"}
NAMES = {
    "roc_auc": "AUC",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "precision": "precision",
    "prevalence": "prevalence",
    "brier_score": "Brier score",
    "calibration_error": "calibration error",
}
SHOWN = ("roc_auc", "accuracy", "sensitivity", "brier_score", "calibration_error")
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


def metrics_data():
    """Metrics of three data sets, one release each, beside the true ones."""
    results = load("private_metrics")
    lines = []
    for name, title in DATA.items():
        for row in results[name]["rows"]:
            for metric in SHOWN:
                one = row["metrics"][metric]
                lines.append(
                    [
                        f"{title}, {row['n_rows']:,} rows",
                        f"{row['epsilon']:g}",
                        NAMES[metric],
                        _number(one["true"]),
                        _interval(one["first"]),
                        _number(one["rmse"]),
                        _number(one["sampling"]),
                    ]
                )
    columns = [
        "",
        "epsilon",
        "metric",
        "true",
        "one release",
        "RMSE",
        "sampling error",
    ]
    return table(results["diabetes"], columns, rows=lines)


def metrics_subgroups():
    """AUC and prevalence of subgroups, one release, beside the true ones."""
    results = load("private_metrics")
    lines = []
    for name, title in DATA.items():
        [row] = [one for one in results[name]["rows"] if one["epsilon"] == 0.5]
        for value, of_subgroup in row["subgroups"].items():
            metrics = of_subgroup["metrics"]
            cells = []
            for metric in ("roc_auc", "accuracy", "prevalence"):
                one = metrics[metric]
                cells += [_number(one["true"]), _interval(one["first"])]
            lines.append([f"{title}: {value}", f"{of_subgroup['n_rows']:,}", *cells])
    columns = ["epsilon 0.5", "rows"]
    for metric in ("AUC", "accuracy", "prevalence"):
        columns += [f"true {metric}", "released"]
    return table(results["diabetes"], columns, rows=lines)


def metrics_coverage():
    """Share of intervals that hold the truth: the lowest of nine metrics, and AUC."""
    results = load("private_metrics")["coverage"]
    rows = results["rows"]
    cross = cross_table(
        rows,
        "lowest share of nine metrics; share and width of AUC",
        line=lambda row: (
            f"{row['scores']}, {100 * row['share']:g} % positive, "
            f"{row['n_rows']:,} rows"
        ),
        column=lambda row: row["epsilon"],
        cell=_coverage,
        heading=lambda epsilon: f"epsilon {epsilon:g}",
    )
    found = [one for row in rows for one in row["metrics"].values()]
    low = sum(one["covered"] < LEAST for one in found)
    two_sided = [one for one in found if one["width"] < NARROW and one["cut"] < 0.5]
    high = sum(one["covered"] > MOST for one in two_sided)
    n_draws = sorted({row["n_draws"] for row in rows})
    text = (
        f"Of {len(found)} metrics, each released {n_draws[0]:,} to {n_draws[-1]:,} "
        f"times, {low} have intervals that hold in fewer than {100 * LEAST:g} %. Of "
        f"the {len(two_sided)} whose intervals are narrower than {NARROW:g} and mostly "
        f"end neither at 0 nor at 1, {high} hold in more than {100 * MOST:g} %."
    )
    return f"{cross}\n\n{text}\n\n{source(results)}"


def _coverage(row):
    name, worst = min(row["metrics"].items(), key=lambda one: one[1]["covered"])
    auc = row["metrics"]["roc_auc"]
    return (
        f"{100 * worst['covered']:.1f} % ({NAMES[name]}); "
        f"{100 * auc['covered']:.1f} %, {auc['width']:.2f}"
    )


def metrics_others():
    """Errors of other releases of the same rows."""
    results = load("private_metrics")["others"]
    columns = {
        "RMSE on 10,000 rows": "release",
        "epsilon": ("epsilon", "{:g}".format),
        "AUC": ("roc_auc", decimals(4)),
        "accuracy": ("accuracy", decimals(4)),
        "calibration error": ("calibration_error", decimals(4)),
    }
    order = {row["release"]: place for place, row in enumerate(results["rows"])}
    rows = sorted(
        results["rows"], key=lambda row: (row["epsilon"], order[row["release"]])
    )
    return table(results, columns, rows=rows)


def metrics_time():
    """Seconds of a measurement."""
    columns = {
        "rows": ("n_rows", "{:,}".format),
        "prediction alone, s": ("prediction", decimals(1)),
        "private_metrics, s": ("release", decimals(1)),
        "intervals, s": ("intervals", decimals(2)),
    }
    return table(load("private_metrics")["time"], columns)


def _number(value):
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}"


def _interval(estimate):
    value, low, high = estimate
    return f"{_number(value)} ({_number(low)} to {_number(high)})"


METRICS_TABLES = (
    metrics_target,
    metrics_data,
    metrics_subgroups,
    metrics_coverage,
    metrics_others,
    metrics_time,
)
