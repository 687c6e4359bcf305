"""List the benchmarks: ``python benchmarks``.

Each is a script with ``--help``, which names its tables.
"""

import ast
from pathlib import Path


def main():
    """Print the first line of each script that is a command."""
    print(__doc__)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source = path.read_text()
        if "\nfrom command import command\n" in source:
            summary, _, _ = ast.get_docstring(ast.parse(source)).partition("\n")
            print(f"{path.stem:18} {summary}")


if __name__ == "__main__":
    main()
