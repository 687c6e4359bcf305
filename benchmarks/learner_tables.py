"""The tables on other private learners, and on searches."""

import numpy as np
from record import load
from reporting import area, markdown, number, percent, source

#: The units of result files, in words.
UNITS = {
    "row": "one row replaced",
    "party": "one teacher's votes",
    "group": "one patient added, removed or changed",
    "row-add-remove": "one row added or removed",
    "group-add-remove": "one patient added or removed",
}
_SHOWN = 1.0  # the epsilon at which the second column compares


def by_learner(table):
    """Return the rows of each learner, by its target epsilon."""
    learners = {}
    for row in load("private_learners")[table]["rows"]:
        learners.setdefault(row["learner"], {})[row["target"]] = row
    return learners


def _comparison(table, write):
    results = load("private_learners")[table]
    learners = by_learner(table)
    targets = sorted({one for rows in learners.values() for one in rows if one})
    lines = []
    for learner, rows in learners.items():
        if None in rows:
            lines.append([learner, "", "", write(rows[None]["score"])])
            lines[-1] += [""] * (len(targets) - 1)
            continue
        shown = rows[_SHOWN]
        lines.append(
            [
                learner,
                UNITS[shown["unit"]],
                number(shown["replace_one_epsilon"]),
                *(write(rows[one]["score"]) for one in targets),
            ]
        )
    header = ["", "neighbours", f"replace-one epsilon at {_SHOWN:g}"]
    header += [f"epsilon {one:g}" for one in targets]
    versions = learners.get("diffprivlib, logistic", {}).get(_SHOWN, {}).get("versions")
    peer = ""
    if versions:
        names = ("diffprivlib", "scikit-learn")
        peer = f" Peer: {', '.join(f'{one} {versions[one]}' for one in names)}."
    return f"{markdown(header, lines)}\n\n{source(results)}{peer}"


def learners_adult():
    """Compare all learners on Adult."""
    return _comparison("adult", percent)


def learners_kddcup99():
    """Compare all learners on KDDCup99."""
    return _comparison("kddcup99", percent)


def learners_diabetes():
    """Compare all learners on Diabetes."""
    return _comparison("diabetes", area)


def learners_mnist():
    """Compare all learners on MNIST."""
    return _comparison("mnist", percent)


def pate_in_short():
    """Show what PATE reaches on each data set of the comparison."""
    epsilons = (0.5, 1.0, 2.0)
    lines = []
    for table, (name, write) in {
        "adult": ("Adult, accuracy in %", percent),
        "kddcup99": ("KDDCup99, accuracy in %", percent),
        "diabetes": ("Diabetes, AUC", area),
        "mnist": ("MNIST, accuracy in %", percent),
    }.items():
        learners = by_learner(table)
        without = [rows[None]["score"] for rows in learners.values() if None in rows]
        pate = learners["PATE"]
        lines.append(
            [
                name,
                UNITS[pate[1.0]["unit"]],
                write(max(without, key=lambda score: score["mean"])),
                *(write(pate[epsilon]["score"]) for epsilon in epsilons),
            ]
        )
    header = ["", "hidden change", "not private"]
    header += [f"epsilon {epsilon:g}" for epsilon in epsilons]
    return f"{markdown(header, lines)}\n\n{source(load('private_learners')['adult'])}"


def dpsgd_mnist():
    """Show DP-SGD with a network, beside the paper that named it."""
    results = load("dpsgd")["mnist"]
    claims = {2.0: "95", 8.0: "97"}
    rows = [
        [
            number(row["target"], 1),
            percent(row["accuracy"]),
            claims.get(row["target"], ""),
            number(row["epsilon"]["mean"]),
            number(row["rdp_epsilon"]["mean"]),
            number(row["replace_one_epsilon"]),
            number(row["noise_multiplier"]["mean"]),
        ]
        for row in results["rows"]
    ]
    header = [
        "target epsilon",
        "accuracy, %",
        "2016 paper, %",
        "stated: add or remove a row",
        "the same by moments",
        "replace a row, by moments",
        "noise multiplier",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def _errors(table, against, write):
    """Show test errors of private empirical risk minimisation."""
    results = load("erm")[table]
    values = sorted({row[against] for row in results["rows"] if row[against]})
    lines = {}
    for row in results["rows"]:
        name = (row["data"], row["loss"], row["method"] or "not private")
        if against != "epsilon" and row["epsilon"]:
            name += (f"epsilon {row['epsilon']:g}",)
        lines.setdefault(name, {})[row[against]] = percent(row["error"])
    shown = markdown(
        ["data, loss, method", *(write(one) for one in values)],
        [
            [", ".join(name), *(found.get(one, found.get(None, "")) for one in values)]
            for name, found in lines.items()
        ],
    )
    return f"{shown}\n\nTest errors, %. {source(results)}"


def erm_epsilon():
    """Show test errors against epsilon."""
    return _errors("epsilon", "epsilon", "epsilon {:g}".format)


def erm_size():
    """Show test errors against the number of rows."""
    return _errors("size", "n_rows", "{:,} rows".format)


def search_prices():
    """Show what a private search costs."""
    results = load("private_search")["costs"]
    rows = [
        [
            row["trials"],
            number(row["epsilon_of_one"]),
            number(row["one_at_delta"], 3),
            number(row["total"], 3),
            f"{row['delta']:g}",
            number(row["ratio"]),
        ]
        for row in results["rows"]
    ]
    header = [
        "number of trials",
        "epsilon of one fit (delta 0)",
        "the same at delta 1e-5",
        "total epsilon",
        "its delta",
        "total / one fit",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def search_adult():
    """Show what private searches find, and what a plain one gives away."""
    results = load("private_search")["adult"]
    lines = []
    for row in results["rows"]:
        found, plain = row["candidates"], row["plain"]
        spread = ", ".join(
            f"{name} {100 * found[name]:.1f}" for name in ("worst", "median", "best")
        )
        lines.append([number(row["epsilon_of_one"]), "candidates", "", spread])
        for trials in ("logarithmic", "disjoint"):
            one = row[trials]
            lines.append(
                [
                    "",
                    f"PrivateSearchCV, {trials}",
                    f"{one['total']:.2f}",
                    percent(one["accuracy"]),
                ]
            )
        lines.append(
            [
                "",
                f"GridSearchCV, {plain['n_fits']} fits",
                f"{plain['epsilon_of_fits']:.2f} for the fits, none for its scores",
                percent(plain["accuracy"]),
            ]
        )
    header = ["epsilon of one fit", "", "total epsilon", "accuracy, %"]
    return f"{markdown(header, lines)}\n\n{source(results)}"


def curves(table):
    """Return epsilons, means and deviations of each private learner, for a picture."""
    for learner, rows in by_learner(table).items():
        if None in rows:
            continue
        targets = sorted(rows)
        scores = [rows[one]["score"] for one in targets]
        yield (
            learner,
            np.array(targets),
            np.array([one["mean"] for one in scores]),
            np.array([one["std"] for one in scores]),
        )


LEARNER_TABLES = (
    learners_adult,
    learners_kddcup99,
    learners_diabetes,
    learners_mnist,
    dpsgd_mnist,
    erm_epsilon,
    erm_size,
    search_prices,
    search_adult,
)
