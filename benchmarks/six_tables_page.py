"""Tables of the results of six_tables.py."""

from record import load
from reporting import area, decimals, percent, table

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
FEW = (
    "DPNewton",
    "DPNewton, no public rows",
    "DPNewton, no public rows, rbf",
    "objective perturbation, columns",
    "naive Bayes, no public rows",
)


def six_tables():
    """Every learner on every table: AUC by epsilon, and more at epsilon 1."""
    return "\n\n".join(_of_data(name, title) for name, title in DATA.items())


def _of_data(name, title):
    results = load("six_tables")[name]
    found, learners = _by_learner(results["rows"])
    share, constant = (results["rows"][0][one]["mean"] for one in ("share", "constant"))
    lines = []
    for learner in learners:
        of_learner = [found.get((learner, one)) for one in (*EPSILONS, None)]
        at_one = of_learner[-1] or of_learner[2]
        lines.append(
            [
                learner,
                *(area(row["auc"]) if row else "" for row in of_learner[:4]),
                area(of_learner[4]["auc"]) if of_learner[4] else "",
                percent(at_one["accuracy"]),
                percent(at_one["balanced_accuracy"]),
                *(
                    f"{at_one[one]['mean']:.3f}"
                    for one in ("log_loss", "mean", "predicted")
                ),
            ]
        )
    columns = [f"{title}: AUC", *(f"{one:g}" for one in EPSILONS), "no noise"]
    columns += ["accuracy", "balanced", "log loss", "mean", "predicted"]
    return (
        f"{title}. Share of the last class {share:.3f}; log loss of a constant "
        f"{constant:.3f}.\n\n" + table(results, columns, rows=lines)
    )


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
