"""Share of the package that the quick tests run: results/coverage_of_tests.json.

fast    the tests of `make test-fast`

``make coverage`` runs it. What only other processes run that a test starts is not
counted.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.record import ROOT, command, save

PYTEST = (sys.executable, "-m", "pytest", "--fast", "--quiet")
WORKERS = ("--numprocesses", "2", "--dist", "worksteal")


def fast():
    """Run the quick tests, and count statements."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        measured = ("--cov", "sklearn_pate", "--cov-report", f"json:{report}")
        subprocess.run(
            [*PYTEST, *WORKERS, *measured],
            cwd=ROOT,
            env=os.environ | {"COVERAGE_FILE": str(Path(folder, "data"))},
            check=True,
        )
        totals = json.loads(report.read_text())["totals"]
    return [{"statements": totals["num_statements"], "run": totals["covered_lines"]}]


TABLES = {"fast": fast}


def main():
    """Measure the named tables, or all."""
    for table in command(__doc__, TABLES).parse_args().tables:
        save("coverage_of_tests", table, TABLES[table](), packages=["coverage"])
