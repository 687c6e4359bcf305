"""Tables of docs/benchmarks/tables.md and docs/guide/data.md."""

from benchmarks.record import load
from benchmarks.reporting import (
    area,
    cross_table,
    decimals,
    markdown,
    percent,
    source,
    table,
)

DATA = {
    "adult": "Adult",
    "kddcup99": "KDDCup99",
    "diabetes": "Diabetes, by patient",
    "stroke": "Stroke",
    "credit_default": "Credit default",
    "obesity": "Obesity, seven classes",
}
#: Data of PATE by its defaults, from the fewest private rows on.
PATE_DATA = {
    **{name: DATA[name] for name in ("obesity", "stroke", "credit_default")},
    **{name: DATA[name] for name in ("adult", "kddcup99")},
    "svhn": "SVHN, 9,419 images",
    "cifar10": "CIFAR-10, 50,000 images",
    "mnist": "MNIST, 60,000 images",
}
#: Tables with columns of codes.
CODED = {
    "even": "300 codes",
    "rare class": "rare class",
    "no effect": "no effect",
    "diabetes": "Diabetes, by patient",
}
#: Outcomes that are numbers, of which R squared is shown, or times.
OUTCOMES = {
    "days": "days in hospital",
    "limit": "credit limit",
    "bill": "last bill",
    "flchain": "flchain, concordance",
    "made up": "made up, concordance",
}
LEARNED = {
    "DPNewton": "DPNewton",
    "DPNewton, a range": "DPNewton, bins of a range",
    "PATE, mean scores": "PATE, mean scores",
    "PATE, votes": "PATE, votes",
    "diffprivlib, linear, numbers alone": "diffprivlib, linear",
    "not private, ridge": "not private, ridge",
    "not private, Cox": "not private, Cox",
    "not private, boosting": "not private, boosting",
}
MEASURED = 10_000  # rows on which coverage is measured; the result file has fewer, too
COVERED = {
    "adult": "Adult, labels",
    "adult, narrow bins": "Adult, labels, bins of 0.02",
    "kddcup99": "KDDCup99, labels",
    "days": "days in hospital",
}
EPSILONS = (0.25, 0.5, 1.0, 2.0)
SHOWN = 1.0  # the epsilon of tables with one epsilon; the result files have more
#: Learners of the guide, with their names in its table.
SOURCES = {
    "DPNewton": "DPNewton, public rows",
    "DPNewton, public_size": "DPNewton, public_size",
    "DPNewton, no public rows": "DPNewton, synthetic",
    "naive Bayes, no public rows": "naive Bayes",
}
TURNS = {
    "adult 1000": "Adult, 1,000 rows",
    "adult 3000": "Adult, 3,000 rows",
    "adult 6000": "Adult, 6,000 rows",
    "adult missing": "Adult, a fifth of all values missing",
    "nonlinear": "500,000 nonlinear rows",
}
#: Made-up tables by the component that the class depends on.
COMPONENTS = (1, 5, 12, 20)
#: Learners that only the result file has, or another page.
OTHERS = (
    "PATE, mean scores",
    "PATE, votes",
    "DPNewton, linear",
    "DPNewton, public_size",
    "PATE, mean scores, no public rows",
    "PATE, mean scores, forests",
    "PATE, votes, forests",
)
FEW = (
    "DPNewton",
    "DPNewton, no public rows",
    "DPNewton, no public rows, rbf",
    "objective perturbation, columns",
    "naive Bayes, no public rows",
)


def six_tables():
    """AUC of every learner on every table, at one epsilon or without noise."""
    lines = {}
    for name in DATA:
        for learner, row in _at_one(name).items():
            if learner in OTHERS:
                continue
            lines.setdefault(learner, {})[name] = decimals(3)(row["auc"])
    auc = markdown(
        ["AUC at epsilon 1", *DATA.values()],
        [[one, *(row[name] for name in DATA)] for one, row in lines.items()],
    )
    return f"{auc}\n\n{source(load('six_tables')['adult'])}"


def _at_one(name):
    """Return the rows of a table at epsilon 1 or without noise, by learner."""
    found, learners = _by_learner(load("six_tables")[name]["rows"])
    return {one: found.get((one, 1.0)) or found[one, None] for one in learners}


def six_tables_sources():
    """Public rows, a part of the private ones, and none."""
    lines = []
    for name, title in DATA.items():
        found, _ = _by_learner(load("six_tables")[name]["rows"])
        for epsilon in EPSILONS:
            rows = [found[learner, epsilon] for learner in SOURCES]
            losses = [rows[0]["constant"]] + [row["log_loss"] for row in rows[2:]]
            lines.append(
                [
                    title,
                    f"{epsilon:g}",
                    *(area(row["auc"]) for row in rows),
                    *(f"{one['mean']:.3f}" for one in losses),
                ]
            )
    columns = ["AUC", "epsilon", *SOURCES.values()]
    columns += [
        f"log loss: {one}" for one in ("constant", "DPNewton, synthetic", "naive Bayes")
    ]
    return table(load("six_tables")["adult"], columns, rows=lines)


def six_tables_turns():
    """Few rows, missing values, and strong interactions."""
    lines = []
    for name, title in TURNS.items():
        found, _ = _by_learner(load("six_tables")[name]["rows"])
        for epsilon in sorted({one for _, one in found}):
            rows = [found.get((learner, epsilon)) for learner in FEW]
            lines.append(
                [title, f"{epsilon:g}"]
                + [
                    f"{area(row['auc'])}; {percent(row['accuracy'])}" if row else ""
                    for row in rows
                ]
            )
    columns = ["AUC; accuracy in %", "epsilon", *FEW]
    return table(load("six_tables")["adult 1000"], columns, rows=lines)


def components():
    """AUC where the class depends on one component."""
    lines = {}
    for place in COMPONENTS:
        for row in load("six_tables")[f"component {place}"]["rows"]:
            if row["epsilon"] == SHOWN:
                auc = decimals(3)(row["auc"])
                lines.setdefault(row["learner"], []).append(auc)
    columns = ["AUC at epsilon 1", *(f"component {place}" for place in COMPONENTS)]
    rows = [[learner, *cells] for learner, cells in lines.items()]
    return table(load("six_tables")["component 1"], columns, rows=rows)


def pate_defaults():
    """Votes and mean scores of PATE by its defaults."""
    results, lines = load("pate_defaults"), {}
    for name, title in PATE_DATA.items():
        for row in results[name]["rows"]:
            case = row["data"], row["teacher"], row["epsilon"]
            if case == (name, "default", SHOWN):
                lines.setdefault(title, {})[row["mechanism"]] = row
    cells = []
    for title, of_mechanisms in lines.items():
        both = [of_mechanisms[one] for one in ("votes", "mean scores")]
        cells.append([title, *(area(one["auc"]) for one in both)])
    columns = ["AUC at epsilon 1", "votes", "mean scores"]
    return table(results["stroke"], columns, rows=cells)


def codes():
    """AUC with and without noisy counts of codes."""
    results = load("codes")
    found = {name: _by_learner(results[name]["rows"])[0] for name in CODED}
    lines = []
    for key in found["even"]:
        learner, epsilon = key
        if epsilon in (None, SHOWN) and "votes" not in learner:
            areas = [decimals(3)(found[name][key]["auc"]) for name in CODED]
            lines.append([learner, *areas])
    return table(results["even"], ["AUC at epsilon 1", *CODED.values()], rows=lines)


def outcomes():
    """R squared of numbers, and concordance of times."""
    results = load("outcomes")
    found = {
        name: {
            row["learner"]: row
            for row in results[name]["rows"]
            if row["epsilon"] in (None, SHOWN)
        }
        for name in OUTCOMES
    }
    lines = []
    for learner, title in LEARNED.items():
        cells = []
        for rows in found.values():
            row = rows.get(learner, {})
            score = row.get("r2", row.get("concordance"))
            cells.append("" if score is None else area(score))
        lines.append([title, *cells])
    return table(results["days"], ["at epsilon 1", *OUTCOMES.values()], rows=lines)


def coverage_of_sets():
    """Coverage of prediction sets and of intervals."""
    results = load("outcomes")["coverage"]
    columns = {
        "data": ("data", COVERED.get),
        "covered": ("covered", area),
        "labels or days": ("size", lambda one: f"{one['mean']:.2f}"),
    }
    rows = [row for row in results["rows"] if row["n_rows"] == MEASURED]
    return table(results, columns, rows=rows)


def _by_learner(rows):
    """Return rows by learner and epsilon, and learners in their order."""
    found = {(row["learner"], row["epsilon"]): row for row in rows}
    return found, list(dict.fromkeys(row["learner"] for row in rows))


#: Numbers of queries of a table; the result file has more.
_QUERIES = (250, 500, 1000, 2000, 4999)


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
        "student": "student",
    }
    plain = [
        [row["student"], percent(row["accuracy"]), *[""] * 3]
        for row in results["rows"]
        if "n_queries" not in row
    ]
    by_queries = cross_table(
        [
            row
            for row in private
            if row["target_epsilon"] == 1.0 and row["n_queries"] in _QUERIES
        ],
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
    adult,
    adult_methods,
    diabetes,
    six_tables,
    components,
    pate_defaults,
    codes,
    outcomes,
    coverage_of_sets,
    release_utility,
)
