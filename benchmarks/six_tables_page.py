"""Tables of the results of six_tables.py."""

from record import load
from reporting import area, decimals, markdown, percent, source, table

DATA = {
    "adult": "Adult",
    "kddcup99": "KDDCup99",
    "diabetes": "Diabetes, by patient",
    "stroke": "Stroke",
    "credit_default": "Credit default",
    "obesity": "Obesity, seven classes",
}
EPSILONS = (0.25, 0.5, 1.0, 2.0)
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
#: Learners whose predictions are compared with the share of a class.
PREDICTED = (
    "DPNewton",
    "PATE, mean scores",
    "PATE, votes",
    "objective perturbation, columns",
    "DP-SGD, columns",
    "naive Bayes, no public rows",
)
#: Learners that only the result file has, or another page.
OTHERS = (
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
    names = [name for name in DATA if name != "obesity"]
    learners = {name: _at_one(name) for name in names}
    first = {name: next(iter(rows.values())) for name, rows in learners.items()}
    shares = [["rows of the class", *(_share(first[one]["share"]) for one in names)]]
    shares += [
        [learner, *(_share(learners[name][learner]["predicted"]) for name in names)]
        for learner in PREDICTED
    ]
    predicted = markdown(["share of the last class, %", *map(DATA.get, names)], shares)
    return f"{auc}\n\n{predicted}\n\n{source(load('six_tables')['adult'])}"


def _at_one(name):
    """Return the rows of a table at epsilon 1 or without noise, by learner."""
    found, learners = _by_learner(load("six_tables")[name]["rows"])
    return {one: found.get((one, 1.0)) or found[one, None] for one in learners}


def _share(value):
    return f"{100 * value['mean']:.1f}"


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


def six_tables_time():
    """Seconds of the counts of a large table."""
    columns = {
        "rows": ("n_rows", "{:,}".format),
        "columns": "n_columns",
        "cells": "n_cells",
        "counts, s": ("counts", decimals(2)),
        "noise, s": ("noise", decimals(2)),
    }
    return table(load("six_tables")["time"], columns)


def _by_learner(rows):
    """Return rows by learner and epsilon, and learners in their order."""
    found = {(row["learner"], row["epsilon"]): row for row in rows}
    return found, list(dict.fromkeys(row["learner"] for row in rows))
