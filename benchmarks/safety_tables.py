"""The tables on the ledger, the noise and the audits."""

import numpy as np
from record import load
from reporting import markdown, number, source


def safety_kills():
    """Say what became of fits that were killed."""
    results = load("safety")["kills"]
    [row] = results["rows"]
    table = markdown(
        [f"fits in {row['processes']} processes that share a ledger", ""],
        [
            ["killed (`kill -9`) at a random instant", str(row["kills"])],
            ["finished, many of them repeats", str(row["fits finished"])],
            ["different fits charged", str(row["fits charged"])],
            ["refused, as the budget was spent", str(row["fits refused"])],
            ["answers drawn", str(row["queries drawn"])],
            ["answers charged", str(row["queries charged"])],
            ["fits with answers beyond their charges", str(row["fits uncharged"])],
            ["fits with two sets of answers", str(row["fits answered twice"])],
            ["of the budget spent, %", number(100 * row["share spent"], 2)],
        ],
    )
    return f"{table}\n\n{source(results)}"


def safety_noise():
    """Show seconds and p-values of the samplers."""
    results = load("safety")["noise"]
    laws = dict.fromkeys(row["law"] for row in results["rows"])
    rows = []
    for law in laws:
        of_law = [row for row in results["rows"] if row["law"] == law]
        rows.append(
            [
                law,
                f"{of_law[0]['scale']:g} to {of_law[-1]['scale']:g}",
                number(max(row["seconds"] for row in of_law), 2),
                number(min(row["p_value"] for row in of_law), 2),
                str(len(of_law)),
            ]
        )
    header = [
        "a million draws",
        "scales",
        "seconds, slowest",
        "chi-square p-value, smallest",
        "of tests",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def audits_mechanisms():
    """Show what audits of the package found, beside the claims."""
    results = load("audits")["mechanisms"]
    rows = [
        [
            row["mechanism"],
            str(row["n_queries"]),
            f"{row['delta']:g}",
            number(row["epsilon_lower"]["mean"]),
            number(row.get("epsilon_exact")),
            number(row["epsilon_claimed"]),
            f"{row['n_contradicted']} of {row['n_audits']}",
        ]
        for row in results["rows"]
    ]
    header = [
        "no defect",
        "queries",
        "delta",
        "epsilon shown",
        "exact, at these votes",
        "claimed",
        "audits that contradict",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def audits_defects():
    """Show which planted defects audits found."""
    results = load("audits")["defects"]
    rows = []
    for row in results["rows"]:
        if row.get("factor", 2) not in (2, 4) or row.get("n_repeats") in (5, 40):
            continue  # the result file has all of them
        settings = {
            "factor": row.get("factor"),
            "each asked": row.get("n_repeats"),
            "release": row.get("release"),
            "seen by": row.get("seen_by"),
        }
        named = ", ".join(f"{key} {one}" for key, one in settings.items() if one)
        rows.append(
            [
                f"{row['defect']} ({named})",
                row.get("mechanism", "a whole fit"),
                f"{row['delta']:g}",
                number(row["epsilon_lower"]["mean"]),
                number(row["epsilon_claimed"]),
                f"{row['n_contradicted']} of {row['n_audits']}",
            ]
        )
    header = [
        "planted defect",
        "mechanism",
        "delta",
        "epsilon shown",
        "claimed",
        "audits that contradict",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def _of_learners(table, name, size):
    """Show audits of learners, sound and not, with what says how much was tried."""
    results = load("audits")[table]
    rows = [
        [
            row["learner"],
            row["defect"] or "",
            size(row),
            f"{row['delta']:g}",
            number(row["epsilon_lower"]["mean"]),
            number(row["epsilon_claimed"]),
            f"{row['n_contradicted']} of {row['n_audits']}",
        ]
        for row in results["rows"]
    ]
    header = ["learner", "planted defect", name, "delta", "epsilon shown", "claimed"]
    header.append("audits that contradict")
    return f"{markdown(header, rows)}\n\n{source(results)}"


def audits_learners():
    """Show what audits say of the other private learners, sound and not."""
    return _of_learners(
        "learners", "fits on each data set", lambda row: str(row["n_runs"])
    )


def audits_learner_canaries():
    """Show how many coins are guessed from one fit of the other private learners."""

    def right(row):
        return f"{number(np.mean(row['n_correct']), 0)} of {row['n_guesses']}"

    return _of_learners("learner_canaries", "guesses that are right", right)


def audits_rounding():
    """Show how often an attack on last bits is right, and how often with a defect."""
    results = load("audits")["rounding"]
    rows = [
        [
            row["representation"],
            row["dtype"],
            f"{row['one_at_a_time']} of {row['n_trials']}",
            f"{row['together']} of {row['n_trials']}",
        ]
        for row in results["rows"]
    ]
    header = [
        "representation",
        "rows",
        "right, rows transformed one at a time",
        "right, planted defect: all rows together",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def audits_membership():
    """Show how well membership in the training data is guessed."""
    results = load("audits")["membership"]
    rows = [
        [
            row["model"],
            number(row["epsilon"]),
            number(100 * row["accuracy"], 1),
            f"{row['auc']:.3f} ± {row['auc_std']:.3f}",
            number(100 * row["true_positive_rate"], 1),
        ]
        for row in results["rows"]
    ]
    header = [
        "Adult",
        "publishable epsilon",
        "accuracy, %",
        "AUC of the attack",
        "members found at 1 % false alarms, %",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


SAFETY_TABLES = (
    safety_kills,
    safety_noise,
    audits_membership,
    audits_mechanisms,
    audits_defects,
    audits_learners,
    audits_learner_canaries,
    audits_rounding,
)
