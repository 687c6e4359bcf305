"""Tables of docs/benchmarks/speed.md."""

from benchmarks.record import load
from benchmarks.reporting import (
    decimals,
    table,
)


def overhead_fits():
    """Time of fits with known noise, and of a loop of clone, fit, predict and count."""
    columns = {
        "teachers": lambda row: f"{row['n_teachers']} {row['teachers']}",
        "fit, s": ("median_fit_seconds", decimals(2)),
        "loop, s": ("median_loop_seconds", decimals(2)),
        "times the loop": ("ratio_of_medians", decimals(2)),
    }
    return table(load("overhead")["fits"], columns)


def cluster():
    """Time and traffic of fits of files on two workers of dask."""
    results = load("cluster")
    rows = []
    for row in results["logistic"]["rows"]:
        fit, seconds = row["fit"], row["fit"]["seconds"]
        rows.append(
            [
                f"{row['n_rows']:.0e}".replace("e+0", "e"),
                f"{seconds:.0f}",
                f"{row['by hand']['seconds']:.0f}",
                f"{seconds / row['by hand']['seconds']:.2f}",
                f"{fit['bytes_received'] / 1e3:,.0f}",
            ]
        )
    return table(
        results["logistic"],
        [
            "rows",
            "whole fit, s",
            "by hand, s",
            "fit / by hand",
            "sent to the client, kB",
        ],
        rows=rows,
    )


def engines():
    """Time of Spark and Ray, and of a fit of the same rows in memory."""
    results = load("engines")["engines"]
    columns = {
        "": "engine",
        "start, s": ("start_seconds", decimals(1)),
        "first run, s": ("first_seconds", decimals(1)),
        "fastest of 4 runs, s": ("fastest_seconds", decimals(1)),
        "kB that the driver receives": lambda row: (
            f"{row['bytes_received'] / 1e3:,.0f}"
        ),
    }
    return table(results, columns)


def newton_speed():
    """Processor time and memory of DPNewton, beside boosting without privacy."""
    columns = {
        "": "learner",
        "private rows": ("n_rows", "{:,}".format),
        "processor time, s": ("seconds", decimals(1)),
        "memory, MiB": ("memory", "{:.0f}".format),
    }
    results = load("newton_speed")["rows"]
    rows = [row for row in results["rows"] if row["n_rows"] in (30_000, 2_000_000)]
    return table(results, columns, rows=rows)


SPEED_TABLES = (
    overhead_fits,
    newton_speed,
    cluster,
    engines,
)
