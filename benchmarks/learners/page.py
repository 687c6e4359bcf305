"""Tables of docs/benchmarks/learners.md."""

from benchmarks.record import load
from benchmarks.reporting import (
    area,
    markdown,
    percent,
    source,
    table,
)

#: Learners of the tables of README.md and of the landing page.
_IN_SHORT = (
    "DPNewton",
    "PATE, votes",
    "PATE, mean scores",
    "Gaussian objective perturbation",
    "DP-SGD, linear",
    "not private, logistic",
    "not private, boosting",
)
#: Learners of the table of docs/benchmarks.md.
_HEADLINES = (*_IN_SHORT[:3], "Private-kNN", "PETDL", *_IN_SHORT[3:])
_SHOWN = 1.0  # the epsilon of tables with one epsilon
_ADULT = (0.5, 1.0)  # the epsilons of the table of Adult; the result file has more


def by_learner(name):
    """Return the rows of each learner, by target epsilon."""
    learners = {}
    for row in load("private_learners")[name]["rows"]:
        learners.setdefault(row["learner"], {})[row["target"]] = row
    return learners


def replace_one_adult():
    """Accuracy of all learners on Adult, by the epsilon of replacing a row."""
    learners = by_learner("replace-one-adult")
    lines = [
        [learner] + [percent(rows.get(one, rows.get(None))["score"]) for one in _ADULT]
        for learner, rows in learners.items()
    ]
    columns = ["accuracy, %", *(f"epsilon {one:g}" for one in _ADULT)]
    results = load("private_learners")["replace-one-adult"]
    versions = {}
    for row in results["rows"]:
        versions |= row.get("versions", {})
    names = ("diffprivlib", "interpret-core", "dpmm")
    note = f" Peers: {', '.join(f'{one} {versions[one]}' for one in names)}."
    return table(results, columns, rows=lines, note=note)


def sizes_adult():
    """Accuracy of learners by the number of private rows of Adult."""
    results = load("sizes")["adult"]
    learners, numbers = {}, set()
    for row in results["rows"]:
        learners.setdefault(row["learner"], {})[row["n_rows"]] = row["accuracy"]
        numbers.add(row["n_rows"])
    lines = [
        [learner, *(percent(found[n]) if n in found else "" for n in sorted(numbers))]
        for learner, found in learners.items()
    ]
    columns = ["accuracy in %, private rows", *(f"{n:,}" for n in sorted(numbers))]
    return table(results, columns, rows=lines)


def in_short():
    """Learners at epsilon 1 for replacing one row, on all data."""
    return _all_data(_at_one_epsilon(), _IN_SHORT)


def headlines():
    """More learners at epsilon 1 for replacing one row, on all data and MNIST."""
    tables = _at_one_epsilon() | {"MNIST, 60,000 images": _images("mnist")}
    for name in ("Adult, 1,000 rows", "nonlinear, 5,000 rows"):
        del tables[name]  # README.md has them
    return _all_data(tables, _HEADLINES)


def _at_one_epsilon():
    return {
        "Adult, 1,000 rows": _sizes("adult", 1_000),
        "Adult, 32,561 rows": _at_one("adult"),
        "KDDCup99, 60,000 rows": _at_one("kddcup99"),
        "nonlinear, 5,000 rows": _sizes("nonlinear", 5_000),
        "nonlinear, 500,000 rows": _sizes("nonlinear", 500_000),
        "SVHN, 9,419 images": _images("svhn"),
        "CIFAR-10, 50,000 images": _images("cifar10"),
        "Diabetes, 65,994 rows, AUC": _at_one("diabetes"),
    }


def _all_data(tables, learners):
    lines = []
    for title, scores in tables.items():
        write = area if "AUC" in title else percent
        found = [scores.get(name) for name in learners]
        lines.append([title, *("" if one is None else write(one) for one in found)])
    return markdown(["", *learners], lines)


def _sizes(name, n_rows):
    rows = load("sizes")[name]["rows"]
    return {one["learner"]: one["accuracy"] for one in rows if one["n_rows"] == n_rows}


def _at_one(name):
    """Return scores at one epsilon for replacing a row, or a patient of Diabetes."""
    targets = (None, _SHOWN)
    scores = {
        learner: rows[target]["score"]
        for learner, rows in by_learner(f"replace-one-{name}").items()
        for target in targets
        if target in rows
    }
    if name != "diabetes":
        return scores | _pate(name)
    # Learners of patients are measured with the six tables, and by their defaults.
    for row in load("six_tables")[name]["rows"]:
        if row["epsilon"] == _SHOWN and row["learner"] == "DPNewton":
            scores["DPNewton"] = row["auc_of_rows"]
    return scores | _pate(name, "auc_of_rows")


def _pate(name, score="accuracy"):
    """Return a score of PATE by its defaults, on all rows."""
    return {
        f"PATE, {row['mechanism']}": row[score]
        for row in load("pate_defaults")[name]["rows"]
        if (row["data"], row["teacher"]) == (name, "default")
        and row["epsilon"] == _SHOWN
    }


def _images(name):
    return {
        one["learner"]: one["accuracy"]
        for one in load("image_recipe")[name]["rows"]
        if one["target"] in (None, _SHOWN)
    } | _pate(name)


def sites():
    """Scores over five sites, and of all rows in one place."""
    found = {name: load("sites")[name] for name in ("adult", "diabetes")}
    epsilon = found["adult"]["epsilon_of_noise"]
    lines = []
    for title, score, write in (
        ("Adult", "auc", area),
        ("Diabetes", "auc", area),
    ):
        learners = {}
        for row in found[title.lower()]["rows"]:
            learners.setdefault(row["learner"], []).append(write(row[score]))
        lines += [[f"{title}: {name}", *cells] for name, cells in learners.items()]
    columns = ["AUC", "all rows", f"all rows, epsilon {epsilon:.2f}", "five sites"]
    sources = "\n".join(source(results) for results in found.values())
    return f"{markdown(columns, lines)}\n\n{sources}"


def site_costs():
    """Bytes, time and memory of a fit over several sites, all rounds together."""
    results, fits = load("sites")["costs"], {}
    for row in results["rows"]:
        fits.setdefault((row["learner"], row["n_sites"]), []).append(row)
    lines = []
    for (learner, n_sites), rows in fits.items():
        rounds = [row for row in rows if row["round"]]
        lines.append(
            [
                learner,
                str(n_sites),
                str(len(rounds)),
                f"{sum(row['reply_bytes'] for row in rounds) / 1e3:.1f}",
                f"{sum(row['slowest_site'] for row in rounds):.1f}",
                f"{sum(row.get('collector', 0) for row in rows):.1f}",
                f"{max(row.get('memory', 0) for row in rows):.0f}",
            ]
        )
    columns = ["", "sites", "rounds", "sent by a site, kB", "slowest site, s"]
    columns += ["collector, s", "memory of a site, MiB"]
    return table(results, columns, rows=lines)


#: Total epsilons of searches; the result file has more.
_TOTALS = (0.2, 1.0)
#: Ways to choose C, in words.
WAYS = {
    "one fit": 'one fit, `C="auto"`, no search',
    "disjoint": "disjoint parts (2011)",
    "geometric": "geometric number of trials (2019)",
    "logarithmic": "logarithmic (2022)",
    "poisson": "Poisson (2022), delta 1e-5",
    "naive composition": "naive composition, all candidates on all rows",
    "best C": "one fit, best C by the test rows (not private)",
}


def search_tuning():
    """Accuracy of ways to choose C, at equal total epsilon."""
    results = load("private_search")["tuning"]
    names = list(dict.fromkeys(row["data"] for row in results["rows"]))
    found = {
        (row["way"], row["data"], row["target"]): row["accuracy"]
        for row in results["rows"]
    }
    cases = [(name, total) for name in names for total in _TOTALS]
    lines = [
        [words, *(percent(found[way, name, total]) for name, total in cases)]
        for way, words in WAYS.items()
    ]
    columns = [f"{name}, epsilon {total:g}" for name, total in cases]
    return table(results, ["choice of C", *columns], rows=lines)


LEARNER_TABLES = (
    replace_one_adult,
    sizes_adult,
    sites,
    site_costs,
    search_tuning,
)
