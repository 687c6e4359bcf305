"""Write the tables of the pages from the result files, between their markers.

With ``--check``, fail if a page differs from the result files, and write nothing.
"""

from benchmarks.accounting.page import ACCOUNTING_TABLES
from benchmarks.images.page import IMAGE_TABLES
from benchmarks.learners.page import LEARNER_TABLES, headlines, in_short
from benchmarks.metrics.page import METRICS_TABLES
from benchmarks.papers.page import PAPER_TABLES, guide_papers
from benchmarks.petdl.page import PETDL_TABLES
from benchmarks.record import ROOT, MissingTableError, command, load, names, older
from benchmarks.reporting import (
    percent,
)
from benchmarks.speed.page import SPEED_TABLES
from benchmarks.tables.page import (
    TABULAR_TABLES,
    six_tables_sources,
    six_tables_turns,
)
from benchmarks.threat_model.page import SAFETY_TABLES


def versions():
    """Machines and versions of all measurements."""
    measured = [results for name in names() for results in load(name).values()]
    machines = sorted({results["machine"] for results in measured})
    found = {}
    for results in measured:
        for package, version in [
            ("Python", results["python"]),
            *results["versions"].items(),
        ]:
            found.setdefault(package, set()).add(version)
    packages = ", ".join(
        f"{package} {' or '.join(sorted(used))}" for package, used in found.items()
    )
    sentence = f"All results were measured on {' or '.join(machines)}, with {packages}."
    if not (found := older()):
        return sentence
    tables = "; ".join(f"{name}: {', '.join(some)}" for name, some in found.items())
    return (
        f"{sentence}\n\nRules that decide accuracy changed after these tables were "
        f"measured: {tables}."
    )


def coverage_of_tests():
    """Share of the package's statements that the quick tests run."""
    results = load("coverage_of_tests")["fast"]
    [row] = results["rows"]
    return (
        f"On {results['date']}, the quick tests ran "
        f"{percent(row['run'] / row['statements'])} % of the {row['statements']:,} "
        "statements of the package. What needs torch is left to the slow tests."
    )


PAGES = {
    "README.md": (in_short,),
    "CONTRIBUTING.md": (coverage_of_tests,),
    "docs/benchmarks.md": (versions, headlines),
    "docs/benchmarks/tables.md": TABULAR_TABLES,
    "docs/benchmarks/images.md": IMAGE_TABLES,
    "docs/benchmarks/petdl.md": PETDL_TABLES,
    "docs/benchmarks/learners.md": LEARNER_TABLES,
    "docs/benchmarks/metrics.md": METRICS_TABLES,
    "docs/benchmarks/accounting.md": ACCOUNTING_TABLES,
    "docs/benchmarks/speed.md": SPEED_TABLES,
    "docs/papers.md": PAPER_TABLES,
    "docs/guide/papers.md": (guide_papers,),
    "docs/guide/data.md": (
        six_tables_sources,
        six_tables_turns,
    ),
    "docs/threat-model.md": SAFETY_TABLES,
}


def renewed(text, make, page):
    """Return a page with new text between the markers of a table."""
    begin, end = f"<!-- {make.__name__} -->", f"<!-- end of {make.__name__} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{page} needs the markers {begin} and {end} once.")
    head, rest = text.split(begin)
    try:
        return f"{head}{begin}\n{make()}\n{end}{rest.split(end)[1]}"
    except MissingTableError as missing:
        raise SystemExit(f"{page}, {make.__name__}: {missing}") from missing


def main():
    """Write all pages, or check them."""
    parser = command(__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    faults = []
    for page, tables in PAGES.items():
        text = (ROOT / page).read_text()
        for make in tables:
            before, text = text, renewed(text, make, page)
            if text != before:
                faults.append(f"{page}: {make.__name__}")
        if not check and text != (ROOT / page).read_text():
            (ROOT / page).write_text(text)
            print(f"renewed {page}")
    if check and faults:
        found = "\n".join(faults)
        raise SystemExit(
            f"{found}\ndiffer from the result files; python -m benchmarks pages "
            "writes them anew."
        )
