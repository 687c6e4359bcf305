"""Write the tables of the pages from the result files, between their markers.

With ``--check``, fail if a page differs from the result files, and write nothing.
"""

from pathlib import Path

from command import command
from image_tables import IMAGE_TABLES
from learner_tables import LEARNER_TABLES, headlines, in_short, one_result
from metrics_tables import METRICS_TABLES
from paper_tables import PAPER_TABLES, guide_papers
from petdl_tables import PETDL_TABLES
from record import MissingTableError, load, names
from reporting import (
    area,
    cross_table,
    decimals,
    markdown,
    percent,
    source,
    spread,
    table,
)
from safety_tables import SAFETY_TABLES
from six_tables_page import (
    six_tables,
    six_tables_sources,
    six_tables_time,
    six_tables_turns,
)

ROOT = Path(__file__).parent.parent


def readme():
    """Accuracy of the code of README.md."""
    columns = {
        "code of README.md": "learner",
        "private rows": ("n_private", "{:,}".format),
        "public rows": ("n_public", "{:,}".format),
        "accuracy": ("accuracy", percent),
    }
    return table(load("readme")["adult"], columns)


def adult_2017():
    """Comparison with the 2017 paper."""
    results = load("tabular")["adult_2017"]
    [row] = results["rows"]
    composed = f"{row['strong_composition_2017']:.1f} (strong composition)"
    lines = [
        ["accuracy without privacy", "85", percent(row["not_private"])],
        ["accuracy of the student", "83", percent(row["accuracy"])],
        [
            "epsilon by the 2017 bound (depends on the votes: not publishable)",
            "2.66",
            spread(row["epsilon_2017"]),
        ],
        [
            "exact epsilon of the same votes (not publishable)",
            "",
            spread(row["exact_epsilon"]),
        ],
        [
            "publishable epsilon of the same answers",
            composed,
            f"{row['publishable_epsilon']:.2f}",
        ],
    ]
    return table(results, ["", "2017 paper", "sklearn_pate"], rows=lines)


def adult():
    """Accuracy by the number of queries, and the best number for each epsilon."""
    results = load("tabular")["adult"]
    private = [row for row in results["rows"] if "n_queries" in row]
    best = {}
    for row in sorted(private, key=lambda row: row["accuracy"]["mean"]):
        best[row["target_epsilon"]] = row
    columns = {
        "Adult, publishable epsilon": lambda row: (
            f"**epsilon {row['target_epsilon']:g}**"
        ),
        "accuracy": lambda row: f"**{percent(row['accuracy'])}**",
        "teachers": "n_teachers",
        "queries": "n_queries",
        "noise sigma": ("sigma", decimals(0)),
        "student": "student",
    }
    plain = [
        [row["student"], percent(row["accuracy"]), *[""] * 4]
        for row in results["rows"]
        if "n_queries" not in row
    ]
    by_queries = cross_table(
        [row for row in private if row["target_epsilon"] == 1.0],
        "student at epsilon 1, by the number of queries",
        line=lambda row: row["student"],
        column=lambda row: row["n_queries"],
        cell=lambda row: percent(row["accuracy"]),
        heading=str,
    )
    rows = [*plain, *(best[epsilon] for epsilon in sorted(best))]
    [summary, note] = table(results, columns, rows=rows).split("\n\n")
    return f"{summary}\n\n{by_queries}\n\n{note}"


def adult_methods():
    """Votes of parties that use one method, or several."""
    columns = {
        "Adult, 250 parties": "methods",
        "one party": ("party", percent),
        "vote": ("plurality", percent),
        "student": ("student", percent),
    }
    return table(load("tabular")["adult_methods"], columns)


def diabetes():
    """Private student compared with models without privacy."""
    columns = {
        "Diabetes, readmitted within 30 days": lambda row: (
            f"**private, epsilon {row['publishable_epsilon']:.2f} per patient**"
            if row["model"] == "private"
            else row["model"]
        ),
        "AUC": ("auc", area),
        "balanced accuracy": ("balanced_accuracy", percent),
        "accuracy": ("accuracy", percent),
    }
    return table(load("tabular")["diabetes"], columns)


def diabetes_balanced():
    """Effect of balancing on the 2017 paper's experiment, and on its bound."""
    columns = {
        "Diabetes, settings of the 2017 paper": "balancing",
        "most frequent class": ("most_frequent", percent),
        "forest without privacy": ("not_private", percent),
        "right plurality": ("plurality", percent),
        "right noisy labels": ("answers", percent),
        "student": ("accuracy", percent),
        "epsilon by the 2017 bound (not publishable)": ("epsilon_2017", decimals(2)),
        "publishable epsilon": ("publishable_epsilon", decimals(2)),
    }
    return table(load("tabular")["diabetes_balanced"], columns)


def adult_2017_noise():
    """Accuracy of the 2017 paper's experiment on Adult, by noise and queries."""
    results = load("tabular")["adult_2017_noise"]
    by_scale = {}
    for row in results["rows"]:
        by_scale.setdefault(round(1 / row["gamma"]), {})[row["n_queries"]] = row
    numbers = sorted(by_scale[20])
    head = [
        "Adult, scale of the noise",
        "right noisy labels",
        *(f"student, {n:,} queries" for n in numbers),
        "500 queries: epsilon by the 2017 bound (not publishable)",
        "publishable epsilon",
    ]
    cells = [
        [
            str(scale),
            percent(rows[500]["all_labels"]),
            *(percent(rows[n]["accuracy"]) for n in numbers),
            decimals(2)(rows[500]["epsilon_2017"]),
            decimals(2)(rows[500]["publishable_epsilon"]),
        ]
        for scale, rows in by_scale.items()
    ]
    return f"{markdown(head, cells)}\n\n{source(results)}"


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


def _mechanism(row):
    if row["paper"] == 2017:
        return f"{row['data']}, LNMax, gamma {row['gamma']:g}"
    parameters = (row["threshold"], row["sigma_threshold"], row["sigma"])
    return f"{row['data']}, ConfidentGNMax({', '.join(f'{p:g}' for p in parameters)})"


def accounting_votes():
    """Epsilons for the queries of the papers, on the published votes."""

    def worst_case(row):
        capped = row.get("max_answers") is not None
        return decimals(2)(row["tight_capped" if capped else "tight"])

    def queries(row):
        answers = row.get("max_answers")
        return f"{row['n_queries']}" + (f", {answers} answers" if answers else "")

    columns = {
        "epsilon of": _mechanism,
        "queries": queries,
        "delta": lambda row: f"{row['delta']:.0e}".replace("e-0", "e-"),
        "paper": ("printed", decimals(2)),
        "its bound, recomputed": ("reproduced", decimals(2)),
        "exact": ("exact", decimals(2)),
        "released": lambda row: "{mean:.2f} ± {std:.2f}".format(**row["sanitized"]),
        "**worst case**": worst_case,
    }
    results = load("accounting")["published_votes"]
    rows = [row for row in results["rows"] if row.get("printed") is not None]
    return table(results, columns, rows=rows)


def accounting_mechanisms():
    """Privacy cost of each mechanism at equal agreement with the plurality."""
    results = load("accounting")["default_mechanism"]
    rows = [row for row in results["rows"] if row["agreement"] == 0.95]
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    cases = {}
    for row in rows:
        cases.setdefault(row["data"], {})[row["mechanism"]] = row
    lines = [
        [
            case,
            *_lowest_in_bold([row[name]["worst_case"] for name in names]),
        ]
        for case, row in cases.items()
    ]
    columns = ["1000 queries, 95 % agreement", *names]
    return table(results, columns, rows=lines)


def _lowest_in_bold(values):
    lowest = min(values)
    return [f"**{one:.2f}**" if one == lowest else f"{one:.2f}" for one in values]


def accounting_worst_case():
    """Tight worst case of GNMax compared with the classical one."""
    columns = {
        "GNMax sigma": ("sigma", "{:g}".format),
        "answers": "n_answers",
        "worst case": ("tight", decimals(3)),
        "whole histogram": ("histogram", decimals(3)),
        "classical worst case": ("classical", decimals(3)),
    }
    results = load("accounting")["worst_case"]
    rows = [row for row in results["rows"] if row["n_answers"] in (100, 1000)]
    return table(results, columns, rows=rows)


def adaptive_classes():
    """Exact cost of adaptive answers of GNMax, between bounds."""
    columns = {
        "GNMax sigma": ("sigma", "{:g}".format),
        "answers": "n_answers",
        "lower bound": ("lower", decimals(3)),
        "exact, 2 classes": ("two_classes", decimals(3)),
        "exact, 3 to 100 classes": ("exact", decimals(3)),
        "Renyi": ("renyi", decimals(3)),
    }
    return table(load("adaptive_cost")["classes"], columns)


def adaptive_mechanisms():
    """Exact cost of other mechanisms, with what one adversary reaches."""
    columns = {
        "mechanism": "mechanism",
        "queries": "n_queries",
        "classes": "n_classes",
        "reached": ("reached", decimals(3)),
        "exact": ("exact", decimals(3)),
        "Renyi": ("renyi", decimals(3)),
    }
    results = load("adaptive_cost")["mechanisms"]
    # The first setting of each mechanism; the result file has more.
    firsts = {}
    for row in results["rows"]:
        firsts.setdefault(row["mechanism"].partition("(")[0], row)
    return table(results, columns, rows=firsts.values())


def release_utility():
    """Count settings with and without a warning, with the accuracy of students."""
    results = load("release_utility")
    lines = []
    for part, title in (("settings", "votes of GNMax"), ("small", "DPNewton")):
        rows = results[part]["rows"]
        for data in dict.fromkeys(row["data"] for row in rows):
            of_data = [row for row in rows if row["data"] == data]
            below = [
                row for row in of_data if row["accuracy"]["mean"] < row["most_frequent"]
            ]
            lines.append(
                [
                    f"{title}, {data}",
                    str(len(of_data)),
                    percent(of_data[0]["most_frequent"]),
                    str(len(below)),
                    str(sum(bool(row["warning"]) for row in below)),
                    _range(row for row in of_data if row["warning"]),
                    _range(row for row in of_data if not row["warning"]),
                ]
            )
    columns = [
        "",
        "settings",
        "accuracy of a constant, %",
        "settings below it",
        "of these with a warning",
        "accuracy with a warning, %",
        "without, %",
    ]
    return f"{markdown(columns, lines)}\n\n{source(results['settings'])}"


def _range(rows):
    means = [100 * row["accuracy"]["mean"] for row in rows]
    return f"{min(means):.1f} to {max(means):.1f}"


TABULAR_TABLES = (
    readme,
    adult_2017,
    adult_2017_noise,
    adult,
    adult_methods,
    diabetes,
    diabetes_balanced,
    six_tables,
    release_utility,
)
ACCOUNTING_TABLES = (
    accounting_votes,
    accounting_mechanisms,
    accounting_worst_case,
    adaptive_classes,
    adaptive_mechanisms,
)
SPEED_TABLES = (
    overhead,
    overhead_fits,
    cluster,
    engines,
)


def versions():
    """Machines and versions of all measurements."""
    measured = [results for name in names() for results in load(name).values()]
    machines = sorted({results["machine"] for results in measured})
    found = {}
    for results in measured:
        for package, version in [
            ("Python", results["python"]),
            *results["versions"].items(),
        ]:
            found.setdefault(package, set()).add(version)
    packages = ", ".join(
        f"{package} {' or '.join(sorted(used))}" for package, used in found.items()
    )
    return f"All were measured on {' or '.join(machines)}, with {packages}."


def coverage_of_tests():
    """Share of the package's statements that the quick tests run."""
    results = load("coverage_of_tests")["fast"]
    [row] = results["rows"]
    return (
        f"On {results['date']}, the quick tests ran "
        f"{percent(row['run'] / row['statements'])} % of the {row['statements']:,} "
        "statements of the package. What needs torch is left to the slow tests."
    )


PAGES = {
    "README.md": (in_short,),
    "CONTRIBUTING.md": (coverage_of_tests,),
    "docs/index.md": (one_result,),
    "docs/benchmarks.md": (versions, headlines),
    "docs/benchmarks/tables.md": TABULAR_TABLES,
    "docs/benchmarks/images.md": IMAGE_TABLES,
    "docs/benchmarks/petdl.md": PETDL_TABLES,
    "docs/benchmarks/learners.md": LEARNER_TABLES,
    "docs/benchmarks/metrics.md": METRICS_TABLES,
    "docs/benchmarks/accounting.md": ACCOUNTING_TABLES,
    "docs/benchmarks/speed.md": SPEED_TABLES,
    "docs/papers.md": PAPER_TABLES,
    "docs/guide/papers.md": (guide_papers,),
    "docs/guide/data.md": (
        six_tables_sources,
        six_tables_turns,
        six_tables_time,
    ),
    "docs/threat-model.md": SAFETY_TABLES,
}


def renewed(text, make, page):
    """Return a page with new text between the markers of a table."""
    begin, end = f"<!-- {make.__name__} -->", f"<!-- end of {make.__name__} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{page} needs the markers {begin} and {end} once.")
    head, rest = text.split(begin)
    try:
        return f"{head}{begin}\n{make()}\n{end}{rest.split(end)[1]}"
    except MissingTableError as missing:
        raise SystemExit(f"{page}, {make.__name__}: {missing}") from missing


def main():
    """Write all pages, or check them."""
    parser = command(__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    faults = []
    for page, tables in PAGES.items():
        text = (ROOT / page).read_text()
        for make in tables:
            before, text = text, renewed(text, make, page)
            if text != before:
                faults.append(f"{page}: {make.__name__}")
        if not check and text != (ROOT / page).read_text():
            (ROOT / page).write_text(text)
            print(f"renewed {page}")
    if check and faults:
        found = "\n".join(faults)
        raise SystemExit(
            f"{found}\ndiffer from the result files; python benchmarks/tables.py "
            "writes them anew."
        )


if __name__ == "__main__":
    main()
