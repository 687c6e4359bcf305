"""Tables of docs/threat-model.md."""

from benchmarks.record import load
from benchmarks.reporting import decimals, markdown, source, table


def safety_kills():
    """Outcome of fits that were killed at random instants."""
    results = load("safety")["kills"]
    [row] = results["rows"]
    lines = {
        "killed (`kill -9`) at a random instant": row["kills"],
        "different fits in the ledger": row["fits charged"],
        "answers drawn": row["queries drawn"],
        "answers charged": row["queries charged"],
        "fits with more answers than charged": row["fits uncharged"],
        "fits with two sets of answers": row["fits answered twice"],
    }
    header = [f"fits in {row['processes']} processes that share a ledger", ""]
    cells = [[name, str(value)] for name, value in lines.items()]
    return f"{markdown(header, cells)}\n\n{source(results)}"


def safety_noise():
    """Goodness of fit of the noise samplers."""
    rows = load("safety")["noise"]["rows"]
    names = " and ".join(dict.fromkeys(row["distribution"] for row in rows))
    scales = [row["scale"] for row in rows]
    p_value = min(row["p_value"] for row in rows)
    return (
        f"A million draws of {names} noise, at scales from {min(scales):g} to "
        f"{max(scales):g}, were tested against the exact distribution. "
        f"The smallest p-value of the {len(rows)} tests is {p_value:.2f}."
    )


_DELTA = 0.01  # of the audits that are shown; the result file has 1e-5, too
_PARTS = {2: "half"}  # names of shares of the noise, by factor


def audits_mechanisms():
    """Audits of the mechanisms, compared with their stated costs."""
    results = load("audits")["mechanisms"]
    names = ("epsilon_lower", "epsilon_exact", "epsilon_claimed")
    rows = [row for row in results["rows"] if row["delta"] == _DELTA]
    lines = [
        [
            row["mechanism"],
            *(decimals(2)(row[name]) for name in names),
            f"{row['n_contradicted']} of {row['n_audits']}",
        ]
        for row in rows
    ]
    columns = ["no defect, delta 0.01", "shown", "exact", "claimed", "contradicted"]
    return table(results, columns, rows=lines)


def _defect(row):
    if "factor" in row:
        return f"{_PARTS[row['factor']]} of the noise: {row['mechanism']}"
    return f"{row['defect']}: {row.get('mechanism', 'a whole fit')}"


def audits_defects():
    """Planted defects, and the audits that found them."""
    results = load("audits")["defects"]
    shown = [  # the result file has more
        row
        for row in results["rows"]
        if row.get("factor", 2) in _PARTS
        and row.get("n_repeats", 10) == 10
        and row["delta"] == (_DELTA if "factor" in row else 1e-5)
    ]
    columns = {
        "planted defect": _defect,
        "delta": ("delta", "{:g}".format),
        "shown": ("epsilon_lower", decimals(2)),
        "claimed": ("epsilon_claimed", decimals(2)),
        "contradicted": lambda row: f"{row['n_contradicted']} of {row['n_audits']}",
    }
    return table(results, columns, rows=shown)


def audits_learners():
    """Audits of the other private learners by many fits."""
    results, lines = load("audits")["learners"], {}
    for row in results["rows"]:
        found = lines.setdefault(row["learner"], {})
        found["defect" if row["defect"] else "none"] = row
    cells = [
        [
            name,
            decimals(2)(found["none"]["epsilon_claimed"]),
            decimals(2)(found["none"]["epsilon_lower"]),
            *(_with_defect(found["defect"]) if "defect" in found else ["", ""]),
        ]
        for name, found in lines.items()
    ]
    columns = ["learner", "claimed", "shown", "planted defect", "shown with it"]
    return table(results, columns, rows=cells)


def _with_defect(row):
    return [row["defect"], decimals(2)(row["epsilon_lower"])]


def audits_rounding():
    """Success of an attack on rounding, without and with a planted defect."""
    columns = {
        "representation": "representation",
        "right, rows transformed one at a time": lambda row: (
            f"{row['one_at_a_time']} of {row['n_trials']}"
        ),
        "right, planted defect: all rows together": lambda row: (
            f"{row['together']} of {row['n_trials']}"
        ),
    }
    results = load("audits")["rounding"]
    rows = [row for row in results["rows"] if row["dtype"] == "float32"]
    return table(results, columns, rows=rows)


SAFETY_TABLES = (
    safety_kills,
    safety_noise,
    audits_mechanisms,
    audits_defects,
    audits_learners,
    audits_rounding,
)
