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
from reporting import area, cross_table, decimals, markdown, percent, spread, table
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
        "exact epsilon": ("exact_epsilon", decimals(2)),
        "2018 bound": ("epsilon_2018", decimals(2)),
        "teachers": "n_teachers",
        "queries": "n_queries",
        "noise sigma": ("sigma", decimals(0)),
        "student": "student",
    }
    plain = [
        [row["student"], percent(row["accuracy"]), *[""] * 6]
        for row in results["rows"]
        if "n_queries" not in row
    ]
    students = list(dict.fromkeys(row["student"] for row in private))
    all_private = cross_table(
        private,
        "queries",
        line=lambda row: str(row["n_queries"]),
        column=lambda row: (row["target_epsilon"], students.index(row["student"])),
        cell=lambda row: percent(row["accuracy"]),
        heading=lambda one: f"{students[one[1]]}, epsilon {one[0]:g}",
    )
    rows = [*plain, *(best[epsilon] for epsilon in sorted(best))]
    [summary, note] = table(results, columns, rows=rows).split("\n\n")
    return f"{summary}\n\n{all_private}\n\n{note}"


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
        "exact epsilon": ("exact_epsilon", decimals(2)),
        "2018 bound": ("epsilon_2018", decimals(2)),
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
    columns = {
        "Adult, scale of the noise": lambda row: f"{1 / row['gamma']:.0f}",
        "queries": "n_queries",
        "right noisy labels": ("all_labels", percent),
        "student": ("accuracy", percent),
        "epsilon by the 2017 bound (not publishable)": ("epsilon_2017", decimals(2)),
        "publishable epsilon": ("publishable_epsilon", decimals(2)),
    }
    return table(load("tabular")["adult_2017_noise"], columns)


def release_time():
    """Time and memory of the release of mean scores, and of the poll before it."""
    columns = {
        "coordinates": "n_coordinates",
        "public rows": "n_public",
        "teachers": "n_teachers",
        "poll, s": ("poll", decimals(2)),
        "basis, s": ("basis", decimals(2)),
        "release, s": ("release", decimals(2)),
        "scores of all teachers, KiB": ("kibibytes", decimals(0)),
    }
    return table(load("mean_scores")["time"], columns)


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
    """Time of the poll and of a plain loop, memory, and growth of the time."""
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
    columns = {
        "varied": "varied",
        "teachers": "n_teachers",
        "rows per teacher": "n_rows_per_teacher",
        "public rows": "n_public",
        "seconds, median of 3": ("median_seconds", decimals(2)),
    }
    time = table(results["poll"], columns, rows=results["scaling"]["rows"])
    return f"{against_loop}\n\n{memory}\n\n{time}"


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
                f"{row['n_rows'] / seconds / 2:,.0f}",
                f"{fit['peak_mebibytes']:.0f}",
                f"{fit['bytes_received'] / 1e3:,.0f}",
                f"{row['by hand']['bytes_received'] / 1e3:,.0f}",
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
            "rows a second a core",
            "client, MiB",
            "to the client, kB",
            "by hand, kB",
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
    """Every epsilon for the queries of the papers, on the published votes."""

    def worst_case(name):
        def write(row):
            capped = row.get("max_answers") is not None
            return decimals(2)(row[f"{name}_capped" if capped else name])

        return write

    def queries(row):
        answers = row.get("max_answers")
        return f"{row['n_queries']}" + (f", {answers} answers" if answers else "")

    columns = {
        "epsilon of": _mechanism,
        "queries": queries,
        "delta": lambda row: f"{row['delta']:.0e}".replace("e-0", "e-"),
        "paper": ("printed", decimals(2)),
        "its bound, recomputed": ("reproduced", decimals(2)),
        "tightest given q": ("optimal", decimals(2)),
        "exact": ("exact", decimals(2)),
        "released": lambda row: "{mean:.2f} ± {std:.2f}".format(**row["sanitized"]),
        "**worst case**": worst_case("tight"),
        "classical worst case": worst_case("classical"),
    }
    return table(load("accounting")["published_votes"], columns)


def accounting_mechanisms():
    """Privacy cost of each mechanism at equal agreement with the plurality."""
    results = load("accounting")["default_mechanism"]
    names = list(dict.fromkeys(row["mechanism"] for row in results["rows"]))
    cases = {}
    for row in results["rows"]:
        case = f"{row['data']}, {100 * row['agreement']:.0f} %"
        cases.setdefault(case, {})[row["mechanism"]] = row
    lines = [
        [
            case,
            *_lowest_in_bold([row[name].get("worst_case") for name in names]),
            *_lowest_in_bold([row[name].get("exact") for name in names]),
        ]
        for case, row in cases.items()
    ]
    columns = ["1000 queries, agreement"]
    columns += [f"{name}, worst case" for name in names]
    columns += [f"{name}, exact" for name in names]
    return table(results, columns, rows=lines)


def _lowest_in_bold(values):
    lowest = min(value for value in values if value is not None)
    shown = ["" if value is None else f"{value:.2f}" for value in values]
    return [
        f"**{text}**" if value == lowest else text
        for value, text in zip(values, shown, strict=True)
    ]


def accounting_worst_case():
    """Tight worst case of GNMax compared with the classical one."""
    columns = {
        "GNMax sigma": ("sigma", "{:g}".format),
        "answers": "n_answers",
        "worst case": ("tight", decimals(3)),
        "whole histogram": ("histogram", decimals(3)),
        "classical worst case": ("classical", decimals(3)),
        "worst case / classical": ("ratio", decimals(3)),
    }
    return table(load("accounting")["worst_case"], columns)


def adaptive_cost():
    """Exact cost of adaptive answers, between bounds."""
    columns = {
        "GNMax sigma": ("sigma", "{:g}".format),
        "answers": "n_answers",
        "exact": ("exact", decimals(3)),
        "lower bound": ("lower", decimals(3)),
        "Renyi": ("renyi", decimals(3)),
        "whole histogram": ("histogram", decimals(3)),
        "exact / Renyi": lambda row: decimals(3)(row["exact"] / row["renyi"]),
        "best guess, %": ("best_guess", percent),
        "seconds": ("seconds", decimals(2)),
    }
    return table(load("adaptive_cost")["cost"], columns)


def adaptive_classes():
    """Exact cost of adaptive answers on three and more classes."""
    columns = {
        "GNMax sigma": ("sigma", "{:g}".format),
        "answers": "n_answers",
        "exact, 3, 10 and 100 classes": ("exact", decimals(4)),
        "exact, 2 classes": ("two_classes", decimals(4)),
        "lower bound": ("lower", decimals(4)),
        "Renyi": ("renyi", decimals(4)),
        "above the lower bound, %": lambda row: percent(
            row["exact"] / row["lower"] - 1
        ),
        "exact / Renyi": lambda row: decimals(3)(row["exact"] / row["renyi"]),
        "seconds": ("seconds", decimals(2)),
    }
    return table(load("adaptive_cost")["classes"], columns)


def adaptive_mechanisms():
    """Exact cost of other mechanisms, with what one adversary reaches."""
    columns = {
        "mechanism": "mechanism",
        "queries": "n_queries",
        "classes": "n_classes",
        "exact": ("exact", decimals(3)),
        "reached": ("reached", decimals(3)),
        "Renyi": ("renyi", decimals(3)),
        "exact / Renyi": lambda row: decimals(3)(row["exact"] / row["renyi"]),
        "seconds": ("seconds", decimals(2)),
    }
    return table(load("adaptive_cost")["mechanisms"], columns)


def adaptive_noise():
    """Time of the search for noise."""
    columns = {
        "mechanism": "mechanism",
        "queries": "n_queries",
        "classes": "n_classes",
        "noise": ("noise", "{:g}".format),
        "seconds": ("seconds", decimals(2)),
        "again, s": ("again", decimals(2)),
    }
    results = load("adaptive_cost")["noise"]
    rows = [
        row
        for row in results["rows"]
        if row["n_classes"] in (2, 10) and row["n_queries"] in (100, 2000)
    ]
    return table(results, columns, rows=rows)


def adaptive_accuracy():
    """Accuracy of PATE with noise by the Renyi cost and by the exact cost."""
    results = load("adaptive_cost")["accuracy"]
    rows = results["rows"]
    lines = [
        [
            before["data"],
            f"{before['epsilon']:g}",
            f"{before['sigma']:.1f}",
            percent(before["accuracy"]),
            f"{after['sigma']:.1f}",
            percent(after["accuracy"]),
        ]
        for before, after in zip(rows[::2], rows[1::2], strict=True)
    ]
    headings = (
        "data",
        "epsilon",
        "sigma by the Renyi cost",
        "accuracy with it",
        "sigma by the exact cost",
        "accuracy with that",
    )
    return table(results, dict.fromkeys(headings), rows=lines)


def release_utility():
    """Students of fits with and without a warning."""
    columns = {
        "data": "data",
        "teachers": "n_teachers",
        "epsilon": ("epsilon", "{:g}".format),
        "noise sigma": ("sigma", decimals(0)),
        "warning": lambda row: "yes" if row["warning"] else "",
        "most frequent class": ("most_frequent", percent),
        "accuracy": ("accuracy", percent),
        "AUC": ("auc", decimals(3)),
    }
    return table(load("release_utility")["settings"], columns)


def release_utility_small():
    """DPNewton on few private rows, with and without a warning."""
    columns = {
        "data": "data",
        "private rows": "n_rows",
        "epsilon": ("epsilon", "{:g}".format),
        "warning": lambda row: "yes" if row["warning"] else "",
        "most frequent class": ("most_frequent", percent),
        "accuracy": ("accuracy", percent),
        "AUC": ("auc", decimals(3)),
    }
    return table(load("release_utility")["small"], columns)


# Rows of the speed table: computation, votes, queries, classes and orders.
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
    """Time and peak memory of the main computations."""
    results = load("accounting")["speed"]
    names = ("computation", "votes", "n_queries", "n_classes", "n_orders")
    measured = {tuple(row[name] for name in names): row for row in results["rows"]}
    columns = {
        "": lambda row: ", ".join(
            filter(None, (row["computation"], row["votes"] and f"{row['votes']} votes"))
        ),
        "queries": "n_queries",
        "classes": "n_classes",
        "orders": "n_orders",
        "seconds": ("seconds", decimals(2)),
        # Results that do not depend on votes are cached.
        "second call": lambda row: (
            "" if row["votes"] else decimals(3)(row["seconds_again"])
        ),
        "peak memory, MiB": ("peak_mebibytes", decimals(0)),
    }
    return table(results, columns, rows=[measured[one] for one in SHOWN])


TABULAR_TABLES = (
    readme,
    adult_2017,
    adult_2017_noise,
    adult,
    diabetes,
    diabetes_balanced,
    six_tables,
    release_utility,
    release_utility_small,
)
ACCOUNTING_TABLES = (
    accounting_votes,
    accounting_mechanisms,
    accounting_worst_case,
    adaptive_cost,
    adaptive_classes,
    adaptive_mechanisms,
    adaptive_noise,
    adaptive_accuracy,
)
SPEED_TABLES = (
    overhead,
    overhead_fits,
    release_time,
    cluster,
    engines,
    accounting_speed,
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


PAGES = {
    "README.md": (in_short,),
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
    "docs/guide/no-public-rows.md": (
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
