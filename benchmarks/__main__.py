"""Measure some tables of a benchmark: ``python -m benchmarks tabular adult``.

Without names of tables, all are measured. ``python -m benchmarks tabular --help`` lists
the tables of a benchmark. The benchmarks are:
"""

import ast
import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def scripts():
    """Find the modules with a command line, by name."""
    return {
        path.stem: path
        for path in sorted(FOLDER.glob("*.py")) + sorted(FOLDER.glob("*/*.py"))
        if "command(__doc__" in path.read_text() and path != Path(__file__)
    }


def main():
    """Run the named benchmark, or print the first line of each."""
    found, name = scripts(), next(iter(sys.argv[1:]), None)
    if name in found:
        sys.argv[:2] = [f"python -m benchmarks {name}"]
        path = found[name].relative_to(FOLDER.parent).with_suffix("")
        importlib.import_module(".".join(path.parts)).main()
        return
    if name not in (None, "-h", "--help"):
        raise SystemExit(f"{name!r} is none of the benchmarks {', '.join(found)}.")
    print(__doc__)
    for stem, path in found.items():
        summary, _, _ = ast.get_docstring(ast.parse(path.read_text())).partition("\n")
        print(f"{stem:18} {summary}")


if __name__ == "__main__":
    main()
