"""Known defects, planted one at a time, that the configurations must catch."""

import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple


class Defect(NamedTuple):
    """A defect: changes of the code, and configurations that should catch it.

    Each change is a list of pairs (pattern, replacement), of which the first that is
    found is used, wherever it is found: add a pair where code is rewritten.
    """

    name: str
    only: str
    changes: list[list[tuple[str, str]]]


DEFECTS = [
    Defect(
        "the cost of answers is recorded after their noise",
        "ledger repeated votes,ledger killed noise votes",
        [
            [
                (
                    r"n_given = (\S+)\.open\((.+)\)\n([\s\S]*?)(\n +)drawn = (.+)\n",
                    r"n_given = 0\n\3\4drawn = \5\4\1.open(\2)\n",
                ),
            ]
        ],
    ),
    Defect(
        "the cost of a training is recorded after its noise",
        "linear ledger,dpsgd ledger",
        [
            [
                (
                    r"( +)(record_release\(.*\(rows\.(?:X|given).*\))\n"
                    r"([\s\S]*?_train\(.*\)\n)",
                    r"\3\1\2\n",
                ),
            ]
        ],
    ),
    Defect(
        "half of the noise is drawn on votes",
        "votes gnmax *,votes epsilon *,group gnmax",
        [[(r"(discrete_gaussian\()sigma(, counts\.shape)", r"\1sigma / 2\2")]],
    ),
    Defect(
        "half of the noise is drawn on sums",
        "scores 2,newton linear row 2,petdl random",
        [[(r"(discrete_gaussian\(self\._sigma)(, sums\.shape)", r"\1 / 2\2")]],
    ),
    Defect(
        "a vector of a Newton step is not clipped",
        "newton linear *,newton far *,newton much noise*",
        [
            [(r"np\.minimum\(1, self\.radius / (lengths)\)", r"np.ones_like(\1)")],
            [(r"whole\[~within\] = 0", "pass")],
            [(r"whole\[np\.einsum\(.*\) > .*\] = 0", "pass")],
        ],
    ),
    Defect(
        "groups go to shards by their position",
        "group *",
        [
            [
                (
                    r"return \w+\((ids, n_teachers), key\)",
                    "return np.arange(len(ids)) % n_teachers",
                )
            ]
        ],
    ),
    Defect(
        "the first teacher is counted twice",
        "votes gnmax *,parties gnmax",
        [
            [
                (
                    r"( +)(self\._add\(teacher_votes\))",
                    r"\1for _ in range(1 + (self._n_teachers == 1)):\n\1    \2",
                )
            ]
        ],
    ),
    Defect(
        "a row counts twice in the count of the classes",
        "votes gnmax *,votes epsilon *",
        [[(r"\(longest (\* counts // of_unit)", r"(2 * longest \1")]],
    ),
    Defect(
        "a direction keeps its length",
        "scores 2,scores group",
        [[(r"coefficients / length (\* scale\) if scale)", r"coefficients \1")]],
    ),
    Defect(
        "the score of a row is not clipped",
        "scores 2,scores group",
        [[(r"np\.clip\((scores - means), -1, 1\)", r"\1")]],
    ),
    Defect(
        "a label outside classes counts as the first class",
        "labels unknown *",
        [[(r"(np\.where\(classes\[found\] == labels, found, )-1", r"\g<1>0")]],
    ),
    Defect(
        "a resumed fit draws anew",
        "ledger repeated *",
        [[(r"(_stored = \{\}) if entry is None else entry\.stored\(\)\n", r"\1\n")]],
    ),
    Defect(
        "positions of held-out rows stay in a pickle",
        "public held out *",
        [[(r'(_sensitive = \(.*), "public_indices_"', r"\1,")]],
    ),
    Defect(
        "the assignment of rows to shards reads y",
        "votes gnmax *",
        [[(r"(shard_rows\(self\.n_rows, n_teachers, key)", r"\1 + self.codes.sum()")]],
    ),
    Defect(
        "the noise is calibrated for ten times the stated delta",
        "votes gnmax *,votes lnmax *,plan of votes",
        [
            [
                (
                    r"(n_classes,\n +epsilon=epsilon,\n +delta=)(self\.delta)",
                    r"\g<1>10 * \2",
                ),
                (
                    r"(mechanism\.prepared\(\s+epsilon=epsilon, delta=)(delta)",
                    r"\g<1>10 * \2",
                ),
                (
                    r"(partial\(design\.mechanism\.prepared, delta=)(delta)",
                    r"\g<1>10 * \2",
                ),
            ]
        ],
    ),
    Defect(
        "exact noise is calibrated for ten times the stated delta",
        "votes epsilon *,plan from numbers *,plan of *",
        [
            [
                (
                    r"(np\.inf if exact is None else exact\.epsilon\()delta",
                    r"\g<1>10 * delta",
                )
            ]
        ],
    ),
]


def planted(tree, defect):
    """Change the files of a copy."""
    changed = []
    for alternatives in defect.changes:
        for pattern, replacement in alternatives:
            found = []
            for path in sorted(tree.rglob("*.py")):
                text, count = re.subn(pattern, replacement, path.read_text())
                if count:
                    path.write_text(text)
                    found.append(path.name)
            if found:
                changed += found
                break
        else:
            raise LookupError("no pattern is found; add one")
    return changed


def plant(new, only, records_of, compare):
    """Plant each defect, and return how many were not caught."""
    chosen = [one for one in DEFECTS if only == "*" or re.search(only, one.name)]
    [whole] = records_of([new], ",".join(one.only for one in chosen), 1)
    n_missed = 0
    for defect in chosen:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "sklearn_pate"
            shutil.copytree(Path(new) / "sklearn_pate", copy)
            try:
                files = planted(copy, defect)
            except LookupError as error:
                n_missed += 1
                print(f"NOT PLANTED: {defect.name}: {error.args[0]}")
                continue
            [records] = records_of([folder], defect.only, 1)
        old = {name: whole[name] for name in records}
        lines = compare(old, records)
        caught = [line for line in lines if not line[1].startswith("failed")]
        n_missed += not caught
        print(f"{'caught' if caught else 'MISSED'}: {defect.name} ({', '.join(files)})")
        print(
            f"    {len({line[0] for line in caught})} of {len(records)} configurations"
        )
        for line in caught[:4]:
            print("   ", " | ".join(line))
    print(f"{len(chosen) - n_missed} of {len(chosen)} defects were caught.")
    return n_missed
