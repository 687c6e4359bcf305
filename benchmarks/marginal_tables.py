"""Tables of the results of marginals.py."""

from record import load
from reporting import area, decimals, percent, table

LEARNERS = (
    "DPNewton, public rows",
    "DPNewton, synthetic rows",
    "DPNewton, public_size",
    "PATE, votes, public rows",
    "PATE, votes, synthetic rows",
    "Gaussian objective perturbation",
    "naive Bayes",
    "boosting on drawn rows",
)
DATA = {"adult": "Adult", "kddcup99": "KDDCup99", "diabetes": "Diabetes, patients"}
OF_COUNTS = {
    "stroke": "stroke, 3,066 rows",
    "obesity": "obesity, 7 classes, 1,266 rows",
    "credit_default": "credit default, 18,000 rows",
} | DATA
TURNS = {
    "adult 1000": "Adult, 1,000 rows",
    "adult 3000": "Adult, 3,000 rows",
    "adult 6000": "Adult, 6,000 rows",
    "adult missing": "Adult, a fifth of all values missing",
    "nonlinear": "500,000 nonlinear rows",
}
FEW = (
    "DPNewton, public rows",
    "DPNewton, synthetic rows",
    "Gaussian objective perturbation",
    "naive Bayes",
)


def marginals():
    """Learners with public rows, with synthetic rows, and with neither."""
    results = load("marginals")
    lines = [
        line
        for name, title in DATA.items()
        for line in _lines(results[name]["rows"], title, LEARNERS, name)
    ]
    columns = ["AUC; accuracy in %", "epsilon", "seeds", *LEARNERS]
    return table(results["adult"], columns, rows=lines)


def marginals_turns():
    """Comparison with few rows, missing values, and strong interactions."""
    results = load("marginals")
    lines = [
        line
        for name, title in TURNS.items()
        for line in _lines(results[name]["rows"], title, FEW, name)
    ]
    columns = ["AUC; accuracy in %", "epsilon", "seeds", *FEW]
    return table(results["adult"], columns, rows=lines)


def marginals_counts():
    """Naive Bayes of the counts alone, and steps on rows drawn from counts."""
    results = load("marginals")["naive_bayes"]
    found = {
        (row["data"], row["epsilon"], row["learner"]): row for row in results["rows"]
    }
    lines = []
    for name, title in OF_COUNTS.items():
        for epsilon in sorted({one for data, one, _ in found if data == name}):
            bayes, newton = (
                found[name, epsilon, learner]
                for learner in ("naive Bayes", "DPNewton, synthetic rows")
            )
            losses = (bayes["constant"], bayes["log_loss"], newton["log_loss"])
            lines.append(
                [
                    title,
                    f"{epsilon:g}",
                    str(bayes["n_seeds"]),
                    area(bayes["auc"]),
                    area(newton["auc"]),
                    *(f"{one['mean']:.3f}" for one in losses),
                ]
            )
    columns = [
        "data",
        "epsilon",
        "seeds",
        "naive Bayes, AUC",
        "DPNewton, synthetic rows, AUC",
    ]
    columns += [
        f"log loss of {one}" for one in ("a constant", "naive Bayes", "DPNewton")
    ]
    return table(results, columns, rows=lines)


def marginals_time():
    """Seconds of the counts of a large table."""
    columns = {
        "rows": ("n_rows", "{:,}".format),
        "columns": "n_columns",
        "cells": "n_cells",
        "counts, s": ("counts", decimals(2)),
        "noise, s": ("noise", decimals(2)),
    }
    return table(load("marginals")["time"], columns)


def _lines(rows, title, learners, name):
    found = {(row["epsilon"], row["learner"]): row for row in rows}
    for epsilon in sorted({epsilon for epsilon, _ in found}):
        of_epsilon = [found.get((epsilon, one)) for one in learners]
        n_seeds = min(row["n_seeds"] for row in of_epsilon if row)
        yield [
            title,
            f"{epsilon:g}",
            str(n_seeds),
            *(_written(row, name) if row else "" for row in of_epsilon),
        ]


def _written(row, name):
    # With a rare class, accuracy says nothing.
    auc = area(row["auc"])
    return auc if name == "diabetes" else f"{auc}; {percent(row['accuracy'])}"
