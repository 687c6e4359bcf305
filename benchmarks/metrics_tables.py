"""Tables of the results of private_metrics.py."""

from record import load
from reporting import decimals, table

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
    metrics_others,
    metrics_time,
)
