"""Accuracy of the Python of README.md, on Adult. Writes results/readme.json.

adult    each fit of the README's code, five times; a minute

The split is that of the code; the noise is not seeded.
"""

import re
from contextlib import chdir
from tempfile import TemporaryDirectory

from benchmarks.record import ROOT, command, save, summary

README = ROOT / "README.md"
N_FITS = 5


def adult():
    """Run all blocks of Python in order, and again; score the classifier of each."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    scores = {}
    for _ in range(N_FITS):
        names = {}
        with TemporaryDirectory() as folder, chdir(folder):
            for block in blocks:
                exec(block, names)
                clf = names["clf"]
                score = clf.score(names["X_test"], names["y_test"])
                scores.setdefault(type(clf).__name__, []).append(score)
    private, public = len(names["X_private"]), len(names["X_public"])
    return [
        {
            "learner": name,
            "n_private": private,
            "n_public": public,
            "accuracy": summary(found),
        }
        for name, found in scores.items()
    ]


TABLES = {"adult": adult}


def main():
    """Measure the named tables, or all."""
    for table in command(__doc__, TABLES).parse_args().tables:
        save("readme", table, TABLES[table]())
