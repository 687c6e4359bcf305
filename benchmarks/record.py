"""Result files: figures with date, machine and versions."""

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
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
    kept = json.loads(path.read_text()) if path.exists() else {}
    for table, rows in tables.items():
        kept[table] = {**environment(packages), **facts, "rows": rows}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"wrote {', '.join(tables)} to {path}")


def load(name):
    """Read a result file."""
    return json.loads((RESULTS / f"{name}.json").read_text())
