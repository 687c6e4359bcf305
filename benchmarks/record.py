"""Result files: figures with date, machine and versions."""

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
#: Tables that another script than the one of the result file's name writes.
OTHER_SCRIPTS = {
    "learners": "learner_audits",
    "learner_canaries": "learner_audits",
    "rounding": "rounding_attack",
    "noise_on_loss": "petdl_paper",
}
PACKAGES = ("sklearn-pate", "scikit-learn", "numpy", "scipy", "joblib", "pandas")


def environment(packages=()):
    """Describe date, machine and versions."""
    return {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {
            name: importlib.metadata.version(name) for name in (*PACKAGES, *packages)
        },
    }


def summary(values):
    """Mean, standard deviation (n - 1) and the values themselves."""
    values = [float(value) for value in values]
    return {
        "mean": float(np.mean(values)),
        "std": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "values": values,
    }


def save(name, tables, *, packages=(), **facts):
    """Write tables to results/<name>.json, and keep its other tables.

    `packages` are added to the versions, `facts` (such as seeds) to each table.
    """
    path = RESULTS / f"{name}.json"
    kept = load(name)
    for table, rows in tables.items():
        kept[table] = {**environment(packages), **facts, "rows": rows}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"wrote {', '.join(tables)} to {path}")


class MissingTableError(LookupError):
    """A table that was not measured."""


class Tables(dict):
    """Tables of a result file; a missing one names the command that measures it."""

    def __init__(self, name):
        path = RESULTS / f"{name}.json"
        super().__init__(json.loads(path.read_text()) if path.exists() else {})
        self.name = name

    def __missing__(self, table):
        script = OTHER_SCRIPTS.get(table, self.name)
        raise MissingTableError(
            f"results/{self.name}.json has no table {table!r}, which "
            f"python benchmarks/{script}.py writes (--help lists its tables)."
        )


def load(name):
    """Read a result file."""
    return Tables(name)
