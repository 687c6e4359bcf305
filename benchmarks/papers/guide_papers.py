"""Time of the blocks of docs/guide/papers.md. Writes results/guide_papers.json.

install  clone, virtual environment and installation of what the page needs
blocks   each section of the page, its blocks run in order in one process, one thread

Takes two minutes. Data sets are read from SKLEARN_PATE_DATA, so that no download is
timed.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import contextlib
import io
import re
import subprocess
import time
from tempfile import TemporaryDirectory

from benchmarks.record import ROOT, command, save

PAGE = ROOT / "docs" / "guide" / "papers.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def sections(text):
    """Yield the heading and the code of each section that has code."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        if blocks := BLOCK.findall(rest):
            yield heading, "".join(blocks)


def blocks():
    """Time the sections of the page."""
    rows, namespace = [], {"__name__": "papers"}
    for heading, code in sections(PAGE.read_text()):
        printed, start = io.StringIO(), time.perf_counter()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, heading, "exec"), namespace)
        rows.append({"section": heading, "seconds": time.perf_counter() - start})
        print(f"{heading}: {rows[-1]['seconds']:.0f} s\n{printed.getvalue()}")
    return rows


def install():
    """Time the commands before the first line of Python."""
    rows = []
    with TemporaryDirectory() as folder:
        for what, line in (
            ("clone", ["git", "clone", "--quiet", str(ROOT), "clone"]),
            ("environment", ["python3", "-m", "venv", "venv"]),
            (
                "installation",
                [
                    *("venv/bin/pip", "install", "--quiet", "--constraint"),
                    *("clone/constraints.txt", "torch", "./clone[data,deep]"),
                ],
            ),
        ):
            start = time.perf_counter()
            subprocess.run(line, cwd=folder, check=True)
            rows.append({"section": what, "seconds": time.perf_counter() - start})
    return rows


TABLES = {"install": install, "blocks": blocks}


def main():
    """Measure the named tables, or both."""
    for table in command(__doc__, TABLES).parse_args().tables:
        save("guide_papers", table, TABLES[table](), packages=("torch", "skorch"))
