"""Tables of docs/threat-model.md."""

from benchmarks.record import load
from benchmarks.reporting import decimals, markdown, percent, source, table


def safety_kills():
    """Outcome of fits that were killed at random instants."""
    results = load("safety")["kills"]
    [row] = results["rows"]
    lines = {
        "killed (`kill -9`) at a random instant": row["kills"],
        "finished, many of them repeats": row["fits finished"],
        "different fits in the ledger": row["fits charged"],
        "refused, as the budget was used up": row["fits refused"],
        "answers drawn": row["queries drawn"],
        "answers charged": row["queries charged"],
        "fits with more answers than charged": row["fits uncharged"],
        "fits with two sets of answers": row["fits answered twice"],
        "share of the budget spent, %": percent(row["share spent"], 2),
    }
    header = [f"fits in {row['processes']} processes that share a ledger", ""]
    cells = [[name, str(value)] for name, value in lines.items()]
    return f"{markdown(header, cells)}\n\n{source(results)}"


def safety_noise():
    """Time and goodness of fit of the noise samplers."""
    results = load("safety")["noise"]
    rows = []
    for name in dict.fromkeys(row["distribution"] for row in results["rows"]):
        tests = [row for row in results["rows"] if row["distribution"] == name]
        rows.append(
            {
                "distribution": name,
                "scales": f"{tests[0]['scale']:g} to {tests[-1]['scale']:g}",
                "seconds": max(row["seconds"] for row in tests),
                "p_value": min(row["p_value"] for row in tests),
                "n_tests": len(tests),
            }
        )
    columns = {
        "a million draws": "distribution",
        "scales": "scales",
        "seconds, slowest": ("seconds", decimals(2)),
        "chi-square p-value, smallest": ("p_value", decimals(2)),
        "tests": "n_tests",
    }
    return table(results, columns, rows=rows)


#: The deltas of the audits, as columns.
_DELTAS = (1e-5, 0.01)


def audits_mechanisms():
    """Audits of the mechanisms, compared with their stated costs."""
    results = load("audits")["mechanisms"]
    names = ("epsilon_lower", "epsilon_exact", "epsilon_claimed")
    lines = _by_delta(results["rows"], lambda row: row["mechanism"], names)
    columns = ["no defect", *_headings("shown, exact and claimed"), "contradicted"]
    return table(results, columns, rows=lines)


def _headings(words):
    return [f"{words} at delta {delta:g}" for delta in _DELTAS]


def _by_delta(rows, name, numbers):
    """Return a line for each name, with the numbers at each delta."""
    found = {}
    for row in rows:
        found.setdefault(name(row), {})[row["delta"]] = row
    lines = []
    for one, by_delta in found.items():
        cells = [
            "; ".join(decimals(2)(by_delta[delta][number]) for number in numbers)
            if delta in by_delta
            else ""
            for delta in _DELTAS
        ]
        counts = [
            f"{row['n_contradicted']} of {row['n_audits']}" for row in by_delta.values()
        ]
        lines.append([one, *cells, "; ".join(counts)])
    return lines


def _defect(row):
    settings = {
        "factor": row.get("factor"),
        "repeats": row.get("n_repeats"),
    }
    settings = ", ".join(f"{key} {value}" for key, value in settings.items() if value)
    defect = f"{row['defect']} ({settings})" if settings else row["defect"]
    return f"{defect}: {row.get('mechanism', 'a whole fit')}"


def audits_defects():
    """Planted defects, and the audits that found them."""
    results = load("audits")["defects"]
    shown = [  # the result file has more
        row
        for row in results["rows"]
        if row.get("factor", 2) in (2, 4) and row.get("n_repeats") not in (5, 40)
    ]
    lines = _by_delta(shown, _defect, ("epsilon_lower", "epsilon_claimed"))
    columns = ["planted defect", *_headings("shown and claimed"), "contradicted"]
    return table(results, columns, rows=lines)


def audits_learners():
    """Audits of the other private learners by many fits."""
    columns = {
        "learner": "learner",
        "planted defect": "defect",
        "fits": "n_runs",
        "delta": ("delta", "{:g}".format),
        "epsilon shown": ("epsilon_lower", decimals(2)),
        "claimed": ("epsilon_claimed", decimals(2)),
        "contradicted": lambda row: f"{row['n_contradicted']} of {row['n_audits']}",
    }
    return table(load("audits")["learners"], columns)


def audits_rounding():
    """Success of an attack on rounding, without and with a planted defect."""
    columns = {
        "representation": "representation",
        "rows": "dtype",
        "right, rows transformed one at a time": lambda row: (
            f"{row['one_at_a_time']} of {row['n_trials']}"
        ),
        "right, planted defect: all rows together": lambda row: (
            f"{row['together']} of {row['n_trials']}"
        ),
    }
    return table(load("audits")["rounding"], columns)


SAFETY_TABLES = (
    safety_kills,
    safety_noise,
    audits_mechanisms,
    audits_defects,
    audits_learners,
    audits_rounding,
)
