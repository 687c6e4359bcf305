"""Write the tables of the pages from the result files, between their markers.

With ``--check``, only fail if a page says anything else than the result files.
"""

import re
import sys
from pathlib import Path

from image_tables import IMAGE_TABLES
from learner_tables import LEARNER_TABLES, pate_in_short
from petdl_tables import PETDL_TABLES
from record import load
from reporting import area, markdown, number, percent, source
from safety_tables import SAFETY_TABLES

ROOT = Path(__file__).parent.parent


def adult_2017():
    """Compare with the 2017 paper."""
    results = load("tabular")["adult_2017"]
    [row] = results["rows"]
    epsilon, exact = row["epsilon_2017"], row["exact_epsilon"]
    table = markdown(
        ["", "2017 paper", "sklearn_pate"],
        [
            ["accuracy without privacy", "85", percent(row["not_private"])],
            ["accuracy of the student", "83", percent(row["accuracy"])],
            [
                "epsilon by the 2017 bound (depends on the votes: not publishable)",
                "2.66",
                f"{epsilon['mean']:.2f} ± {epsilon['std']:.2f}",
            ],
            [
                "exact epsilon of the same votes (not publishable)",
                "",
                f"{exact['mean']:.2f} ± {exact['std']:.2f}",
            ],
            [
                "publishable epsilon of the same answers",
                f"{row['strong_composition_2017']:.1f} (strong composition)",
                f"{row['publishable_epsilon']:.2f}",
            ],
        ],
    )
    return f"{table}\n\n{source(results)}"


def adult():
    """Show accuracy against the number of queries, and the best of each epsilon."""
    results = load("tabular")["adult"]
    rows = results["rows"]
    plain = [row for row in rows if "n_queries" not in row]
    private = [row for row in rows if "n_queries" in row]
    epsilons = sorted({row["target_epsilon"] for row in private})
    best = {
        epsilon: max(
            (row for row in private if row["target_epsilon"] == epsilon),
            key=lambda row: row["accuracy"]["mean"],
        )
        for epsilon in epsilons
    }
    summary = markdown(
        [
            "Adult, publishable epsilon",
            "accuracy",
            "exact epsilon",
            "2018 bound",
            "teachers",
            "queries",
            "noise sigma",
            "student",
        ],
        [[row["student"], percent(row["accuracy"]), *[""] * 6] for row in plain]
        + [
            [
                f"**epsilon {epsilon:g}**",
                f"**{percent(row['accuracy'])}**",
                f"{row['exact_epsilon']['mean']:.2f}",
                f"{row['epsilon_2018']['mean']:.2f}",
                str(row["n_teachers"]),
                str(row["n_queries"]),
                f"{row['sigma']:.0f}",
                row["student"],
            ]
            for epsilon, row in best.items()
        ],
    )
    accuracy = {
        (row["n_queries"], row["target_epsilon"], row["student"]): row["accuracy"]
        for row in private
    }
    columns = [
        (epsilon, student)
        for epsilon in epsilons
        for student in dict.fromkeys(row["student"] for row in private)
    ]
    sweep = markdown(
        [
            "queries",
            *(f"{student}, epsilon {epsilon:g}" for epsilon, student in columns),
        ],
        [
            [str(n), *(percent(accuracy[(n, *column)]) for column in columns)]
            for n in sorted({row["n_queries"] for row in private})
        ],
    )
    return f"{summary}\n\n{sweep}\n\n{source(results)}"


def diabetes():
    """Show the private student beside models without privacy."""
    results = load("tabular")["diabetes"]
    table = markdown(
        [
            "Diabetes, readmitted within 30 days",
            "AUC",
            "balanced accuracy",
            "accuracy",
            "exact epsilon",
            "2018 bound",
        ],
        [
            [
                f"**private, epsilon {row['publishable_epsilon']:.2f} per patient**"
                if row["model"] == "private"
                else row["model"],
                area(row["auc"]),
                percent(row["balanced_accuracy"]),
                percent(row["accuracy"]),
                *(
                    f"{row[name]['mean']:.2f}" if name in row else ""
                    for name in ("exact_epsilon", "epsilon_2018")
                ),
            ]
            for row in results["rows"]
        ],
    )
    return f"{table}\n\n{source(results)}"


def diabetes_balanced():
    """Show what balancing does to a forest's accuracy."""
    results = load("tabular")["diabetes_balanced"]
    table = markdown(
        ["Diabetes balanced, a forest without privacy", "accuracy"],
        [[row["balancing"], percent(row["accuracy"])] for row in results["rows"]],
    )
    return f"{table}\n\n{source(results)}"


def overhead():
    """Show the poll beside a bare loop, its memory, and what its time grows with."""
    results = load("overhead")
    [race] = results["poll"]["rows"]
    runs = len(race["poll_seconds"]["values"])
    loop, poll = race["median_bare_loop_seconds"], race["median_poll_seconds"]
    against_loop = markdown(
        [
            f"{race['n_teachers']} forests of {race['n_trees']} trees, "
            f"{race['n_jobs']} processes",
            f"seconds, median of {runs}",
            "times the bare loop",
        ],
        [
            ["bare joblib loop", f"{loop:.2f}", ""],
            ["poll", f"{poll:.2f}", f"{race['ratio_of_medians']:.2f}"],
        ],
    )
    [simulated] = results["counts"]["rows"]
    peaks = [
        ("forests", row, row["peak_mebibytes"]["mean"])
        for row in results["memory"]["rows"]
    ]
    peaks.append(("simulated votes", simulated, simulated["peak_mebibytes"]))
    memory = markdown(
        ["", "teachers", "public rows", "classes", "peak memory of all processes, MiB"],
        [
            [
                name,
                *(str(row[size]) for size in ("n_teachers", "n_public", "n_classes")),
                f"{peak:.0f}",
            ]
            for name, row, peak in peaks
        ],
    )
    time = markdown(
        ["varied", "teachers", "rows of each", "public rows", "seconds, median of 3"],
        [
            [
                row["varied"],
                str(row["n_teachers"]),
                str(row["n_rows_a_teacher"]),
                str(row["n_public"]),
                f"{row['median_seconds']:.2f}",
            ]
            for row in results["scaling"]["rows"]
        ],
    )
    return f"{against_loop}\n\n{memory}\n\n{time}\n\n{source(results['poll'])}"


def accounting_votes():
    """Show the papers' queries, on the votes they published, by every account."""
    results = load("accounting")["published_votes"]
    rows = []
    for row in results["rows"]:
        if row["paper"] == 2017:
            mechanism = f"LNMax, gamma {row['gamma']:g}"
        else:
            parameters = (row["threshold"], row["sigma_threshold"], row["sigma"])
            mechanism = f"ConfidentGNMax({', '.join(f'{p:g}' for p in parameters)})"
        queries = str(row["n_queries"])
        capped = row.get("max_answers") is not None
        if capped:
            queries += f", {row['max_answers']} answers"
        released = row["sanitized"]
        rows.append(
            [
                f"{row['data']}, {mechanism}",
                queries,
                f"{row['delta']:.0e}".replace("e-0", "e-"),
                number(row["printed"]),
                number(row["reproduced"]),
                number(row["optimal"]),
                number(row["exact"]),
                f"{released['mean']:.2f} ± {released['std']:.2f}",
                number(row["tight_capped" if capped else "tight"]),
                number(row["classical_capped" if capped else "classical"]),
            ]
        )
    table = markdown(
        [
            "epsilon of",
            "queries",
            "delta",
            "paper",
            "its bound here",
            "tightest given q",
            "exact",
            "released",
            "**worst case**",
            "classical worst case",
        ],
        rows,
    )
    return f"{table}\n\n{source(results)}"


def accounting_mechanisms():
    """Show what each noise costs at the same agreement with the plurality."""
    results = load("accounting")["default_mechanism"]
    rows = results["rows"]
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    cases = dict.fromkeys((row["data"], row["agreement"]) for row in rows)
    cell = {(row["data"], row["agreement"], row["mechanism"]): row for row in rows}
    table = markdown(
        [
            "1000 queries, agreement",
            *(f"{name}, worst case" for name in names),
            *(f"{name}, exact" for name in names),
        ],
        [
            [
                f"{data}, {100 * agreement:.0f} %",
                *_least_in_bold(cell, data, agreement, names, "worst_case"),
                *_least_in_bold(cell, data, agreement, names, "exact"),
            ]
            for data, agreement in cases
        ],
    )
    return f"{table}\n\n{source(results)}"


def _least_in_bold(cell, data, agreement, names, account):
    """Format what every mechanism costs by one account."""
    values = [cell[data, agreement, name].get(account) for name in names]
    least = min((value for value in values if value is not None), default=None)
    return [
        f"**{value:.2f}**" if value is not None and value == least else number(value)
        for value in values
    ]


def accounting_worst_case():
    """Show the tight worst case of GNMax beside the classical one."""
    results = load("accounting")["worst_case"]
    table = markdown(
        [
            "GNMax sigma",
            "answers",
            "worst case",
            "whole histogram",
            "classical worst case",
            "worst case / classical",
        ],
        [
            [
                f"{row['sigma']:g}",
                str(row["n_answers"]),
                number(row["tight"], 3),
                number(row["histogram"], 3),
                number(row["classical"], 3),
                number(row["ratio"], 3),
            ]
            for row in results["rows"]
        ],
    )
    return f"{table}\n\n{source(results)}"


# What of the speed table is shown: what, votes, queries, classes and orders.
SHOWN = (
    ("Theorem 6", "repeated", 100_000, 10, 100),
    ("Theorem 6, plain loop", "repeated", 100_000, 10, 100),
    ("Theorem 6", "repeated", 1_000_000, 10, 100),
    ("exact, Gaussian", "distinct", 10_000, 10, 40),
    ("exact, Gumbel", "distinct", 10_000, 10, 40),
    ("exact, Laplace", "distinct", 10_000, 10, 40),
    ("exact, permute-and-flip", "distinct", 10_000, 10, 40),
    ("exact, Gaussian", "distinct", 1000, 1000, 40),
    ("exact, Gumbel", "distinct", 1000, 1000, 40),
    ("exact, Laplace", "distinct", 1000, 1000, 40),
    ("exact, permute-and-flip", "distinct", 1000, 1000, 40),
    ("exact, Gaussian", "repeated", 1_000_000, 10, 40),
    ("tight worst case", None, 1000, 10, 385),
    ("calibration", None, 1000, 10, 385),
)


def accounting_speed():
    """Show seconds and peak memory of the main computations."""
    results = load("accounting")["speed"]
    names = ("what", "votes", "n_queries", "n_classes", "n_orders")
    measured = {tuple(row[name] for name in names): row for row in results["rows"]}
    rows = []
    for shown in SHOWN:
        row = measured[shown]
        # Without votes there is something to keep for the next call.
        kept = row["votes"] is None
        rows.append(
            [
                row["what"] if kept else f"{row['what']}, {row['votes']} votes",
                *(str(row[size]) for size in names[2:]),
                number(row["seconds"]),
                number(row["seconds_again"], 3) if kept else "",
                number(row["peak_mebibytes"], 0),
            ]
        )
    table = markdown(
        ["", "queries", "classes", "orders", "seconds", "again", "peak memory, MiB"],
        rows,
    )
    return f"{table}\n\n{source(results)}"


BENCHMARK_TABLES = (
    adult_2017,
    adult,
    diabetes,
    diabetes_balanced,
    overhead,
    accounting_votes,
    accounting_mechanisms,
    accounting_worst_case,
    accounting_speed,
    *IMAGE_TABLES,
    *PETDL_TABLES,
    *LEARNER_TABLES,
)
PAGES = {
    "README.md": (pate_in_short,),
    "docs/benchmarks.md": BENCHMARK_TABLES,
    "docs/threat-model.md": SAFETY_TABLES,
}


def write(page, tables):
    """Replace what stands between the markers of each table."""
    before = text = page.read_text()
    for table in tables:
        name = table.__name__
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        text, n_replaced = re.subn(
            f"{begin}.*?{end}",
            lambda _, table=table, begin=begin, end=end: f"{begin}\n{table()}\n{end}",
            text,
            flags=re.DOTALL,
        )
        if n_replaced != 1:
            raise SystemExit(f"{page.name} needs the markers {begin} and {end} once.")
    if "--check" not in sys.argv:
        page.write_text(text)
    elif text != before:
        raise SystemExit(f"{page.name} differs from the result files.")


def main():
    """Write all pages."""
    for page, tables in PAGES.items():
        write(ROOT / page, tables)


if __name__ == "__main__":
    main()
