"""Tables of docs/benchmarks/speed.md."""

from benchmarks.record import load
from benchmarks.reporting import (
    decimals,
    markdown,
    source,
    table,
)


def overhead_fits():
    """Time of fits with known noise, and of a loop of clone, fit, predict and count."""
    columns = {
        "teachers": lambda row: f"{row['n_teachers']} {row['teachers']}",
        "private rows": ("n_rows", "{:,}".format),
        "first fit, s": ("first_fit_seconds", decimals(2)),
        "fit, s": ("median_fit_seconds", decimals(2)),
        "loop, s": ("median_loop_seconds", decimals(2)),
        "times the loop": ("ratio_of_medians", decimals(2)),
    }
    return table(load("overhead")["fits"], columns)


def overhead():
    """Time of the poll and of a plain loop, and memory."""
    results = load("overhead")
    [race] = results["poll"]["rows"]
    loop, poll = race["median_loop_seconds"], race["median_poll_seconds"]
    title = (
        f"{race['n_teachers']} forests of {race['n_trees']} trees, "
        f"{race['n_jobs']} processes"
    )
    n_runs = len(race["poll_seconds"]["values"])
    against_loop = markdown(
        [title, f"seconds, median of {n_runs}", "times the plain loop"],
        [
            ["plain joblib loop", f"{loop:.2f}", ""],
            ["poll", f"{poll:.2f}", f"{race['ratio_of_medians']:.2f}"],
        ],
    )
    sizes = {"teachers": "n_teachers", "public rows": "n_public"}
    peaks = [("forests", row) for row in results["memory"]["rows"]]
    peaks += [("simulated votes", row) for row in results["counts"]["rows"]]
    memory = markdown(
        ["", *sizes, "classes", "peak memory of all processes, MiB"],
        [
            [
                name,
                *(str(row[size]) for size in (*sizes.values(), "n_classes")),
                decimals(0)(row["peak_mebibytes"]),
            ]
            for name, row in peaks
        ],
    )
    return f"{against_loop}\n\n{memory}\n\n{source(results['poll'])}"


def cluster():
    """Time, traffic and memory of fits of files on two workers of dask."""
    results = load("cluster")
    parts, rows = ("read", "shuffle"), []
    for row in results["logistic"]["rows"]:
        fit, seconds = row["fit"], row["fit"]["seconds"]
        rows.append(
            [
                f"{row['n_rows']:.0e}".replace("e+0", "e"),
                *(f"{row[part]['seconds']:.0f}" for part in parts),
                f"{seconds:.0f}",
                f"{row['by hand']['seconds']:.0f}",
                f"{seconds / row['by hand']['seconds']:.2f}",
                f"{fit['bytes_received'] / 1e3:,.0f}",
            ]
        )
    logistic = table(
        results["logistic"],
        [
            "rows",
            "read, s",
            "read, hash and shuffle, s",
            "whole fit, s",
            "by hand, s",
            "fit / by hand",
            "sent to the client, kB",
        ],
        rows=rows,
    )
    [row] = results["boosting"]["rows"]
    fit, alone = row["fit"]["seconds"], row["alone"]["seconds"]
    boosting = markdown(
        ["2,000 boosting teachers on 1e7 rows", "seconds", "times training alone"],
        [
            ["training alone, rows in memory", f"{alone:.0f}", ""],
            ["whole fit of files", f"{fit:.0f}", f"{fit / alone:.2f}"],
        ],
    )
    return f"{boosting}\n\n{logistic}"


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
        "votes of the fit": lambda row: "equal" if row["votes_equal"] else "different",
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
    return table(load("newton_speed")["rows"], columns)


SPEED_TABLES = (
    overhead,
    overhead_fits,
    newton_speed,
    cluster,
    engines,
)
