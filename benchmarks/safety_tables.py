"""The tables of README.md on the ledger, the noise and the audits."""

from record import load
from reporting import markdown, number, percent, source


def safety_kills():
    """Say what became of fits that were killed."""
    results = load("safety")["kills"]
    [row] = results["rows"]
    table = markdown(
        [f"fits in {row['processes']} processes that share a ledger", ""],
        [
            ["killed (`kill -9`) at a random instant", str(row["kills"])],
            ["finished", str(row["fits finished"])],
            ["refused, as the budget was spent", str(row["fits refused"])],
            ["answers drawn", str(row["questions drawn"])],
            ["answers charged", str(row["questions charged"])],
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


SAFETY_TABLES = (safety_kills, safety_noise)
