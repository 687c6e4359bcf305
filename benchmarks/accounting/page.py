"""Tables of docs/benchmarks/accounting.md."""

from benchmarks.record import load
from benchmarks.reporting import (
    decimals,
    table,
)


def _mechanism(row):
    if row["paper"] == 2017:
        return f"{row['data']}, LNMax, gamma {row['gamma']:g}"
    parameters = (row["threshold"], row["sigma_threshold"], row["sigma"])
    return f"{row['data']}, ConfidentGNMax({', '.join(f'{p:g}' for p in parameters)})"


def accounting_votes():
    """Epsilons for the queries of the papers, on the published votes."""

    def worst_case(row):
        capped = row.get("max_answers") is not None
        return decimals(2)(row["tight_capped" if capped else "tight"])

    def queries(row):
        answers = row.get("max_answers")
        return f"{row['n_queries']}" + (f", {answers} answers" if answers else "")

    columns = {
        "epsilon of": _mechanism,
        "queries": queries,
        "paper": ("printed", decimals(2)),
        "its bound, recomputed": ("reproduced", decimals(2)),
        "exact": ("exact", decimals(2)),
        "released": lambda row: "{mean:.2f} ± {std:.2f}".format(**row["sanitized"]),
        "**worst case**": worst_case,
    }
    results = load("accounting")["published_votes"]
    rows = [row for row in results["rows"] if row.get("printed") is not None]
    return table(results, columns, rows=rows)


def accounting_mechanisms():
    """Privacy cost of each mechanism at equal agreement with the plurality."""
    results = load("accounting")["default_mechanism"]
    rows = [row for row in results["rows"] if row["agreement"] == 0.95]
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    cases = {}
    for row in rows:
        cases.setdefault(row["data"], {})[row["mechanism"]] = row
    lines = [
        [
            case,
            *_lowest_in_bold([row[name]["worst_case"] for name in names]),
        ]
        for case, row in cases.items()
    ]
    columns = ["1000 queries, 95 % agreement", *names]
    return table(results, columns, rows=lines)


def _lowest_in_bold(values):
    lowest = min(values)
    return [f"**{one:.2f}**" if one == lowest else f"{one:.2f}" for one in values]


def accounting_worst_case():
    """Tight worst case of GNMax compared with the classical one."""
    columns = {
        "GNMax sigma": ("sigma", "{:g}".format),
        "answers": "n_answers",
        "worst case": ("tight", decimals(3)),
        "whole histogram": ("histogram", decimals(3)),
        "classical worst case": ("classical", decimals(3)),
    }
    results = load("accounting")["worst_case"]
    rows = [row for row in results["rows"] if row["n_answers"] in (100, 1000)]
    return table(results, columns, rows=rows)


def adaptive_classes():
    """Exact cost of adaptive answers of GNMax, between bounds."""
    columns = {
        "GNMax sigma": ("sigma", "{:g}".format),
        "answers": "n_answers",
        "lower bound": ("lower", decimals(3)),
        "exact, 2 classes": ("two_classes", decimals(3)),
        "exact, 3 to 100 classes": ("exact", decimals(3)),
        "Renyi": ("renyi", decimals(3)),
    }
    results = load("adaptive_cost")["classes"]
    rows = [row for row in results["rows"] if row["n_answers"] in (100, 1000)]
    return table(results, columns, rows=rows)


ACCOUNTING_TABLES = (
    accounting_votes,
    accounting_mechanisms,
    accounting_worst_case,
    adaptive_classes,
)
