"""Command lines, result files, and runs that are stored until all are done."""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
WORK = ROOT / "benchmarks" / "work"  # finished runs: git ignores them
#: Tables that another script than the one of the result file's name writes.
OTHER_SCRIPTS = {
    "learners": "learner_audits",
    "rounding": "rounding_attack",
    "noise_on_loss": "petdl_paper",
    "components": "petdl_components",
}
#: Names on the command line, where they are not those in the result file.
OTHER_ARGUMENTS = {
    "adult 1000": "few",
    "adult 3000": "few",
    "adult 6000": "few",
    "adult missing": "missing",
    "component 1": "components",
    "component 5": "components",
    "component 12": "components",
    "component 20": "components",
}
#: Scripts that take no names of tables.
WITHOUT_NAMES = (
    "engines",
    "mean_scores",
    "petdl_components",
    "petdl_paper",
    "rounding_attack",
)
#: Rules that results follow, where these may have changed.
RULES_OF = {
    "codes": ("newton", "votes"),
    "image_recipe": ("images",),
    "images": ("images",),
    "outcomes": ("newton",),
    "pate_defaults": ("votes", "scores", "images"),
    "private_learners": ("newton", "votes", "scores"),
    "private_metrics": ("metrics",),
    "readme": ("newton", "votes", "scores"),
    "release_utility": ("newton", "votes", "scores"),
    "sites": ("newton", "votes", "scores"),
    "six_tables": ("newton", "votes", "scores"),
    "sizes": ("newton", "votes", "scores"),
    "tabular": ("votes", "scores"),
}
PACKAGES = ("sklearn-pate", "scikit-learn", "numpy", "scipy", "joblib", "pandas")


# Of the table that is written: its name, the time before it, the time now. Of all
# tables of a process: whether some of their runs were stored already.
_measuring = {"table": None, "since": 0.0, "now": time.monotonic(), "resumed": False}


def command(doc, tables=()):
    """Return a parser with the docstring of a script as its help.

    It takes names of `tables` if there are any, and means all of them without a name.
    """
    parser = argparse.ArgumentParser(
        sys.argv[0],
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if tables:

        def table(name):
            if name not in tables:
                raise argparse.ArgumentTypeError(
                    f"{name!r} is none of the tables {', '.join(tables)}"
                )
            return name

        parser.add_argument(
            "tables",
            nargs="*",
            type=table,
            default=[*tables],
            metavar="table",
            help=f"all by default; one or more of {', '.join(tables)}",
        )
    return parser


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


def save(name, table, rows, *, packages=(), **facts):
    """Write a table to results/<name>.json, and keep its other tables.

    `packages` are added to the versions, `facts` (such as seeds) to the table. Its
    duration is counted from the start of the process, or from the table before it, and
    left out if the process found some of the runs stored.
    """
    if table != _measuring["table"]:
        _measuring.update(table=table, since=_measuring["now"])
    _measuring["now"] = time.monotonic()
    minutes = (_measuring["now"] - _measuring["since"]) / 60
    path = RESULTS / f"{name}.json"
    measured = environment(packages)
    if not _measuring["resumed"]:
        measured["minutes"] = minutes
    kept = _stored(name) | {table: {**measured, **facts, "rows": rows}}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"wrote {table} to {path}; python -m benchmarks pages renews the pages")


class MissingTableError(LookupError):
    """A table that was not measured."""


class Tables(dict):
    """Tables of a result file, each with the command that measures it."""

    def __init__(self, name):
        self.name = name
        for table, results in _stored(name).items():
            self[table] = results | {"command": self.command(table)}

    def command(self, table):
        """Return the command that measures a table."""
        script = OTHER_SCRIPTS.get(table, self.name)
        name = "" if script in WITHOUT_NAMES else OTHER_ARGUMENTS.get(table, table)
        return f"python -m benchmarks {script} {name}".rstrip()

    def __missing__(self, table):
        raise MissingTableError(
            f"results/{self.name}.json has no table {table!r}, which "
            f"{self.command(table)} writes."
        )


def load(name):
    """Read a result file."""
    return Tables(name)


def stored_rules():
    """Return the stored fingerprint of each rule, and the date of its last change."""
    try:
        return load("rules")["fingerprints"]["rows"]
    except MissingTableError:
        return {}


def older():
    """List the tables of each script that were measured with older rules."""
    since = {rule: one["since"] for rule, one in stored_rules().items()}
    found = {}
    for name, rules in RULES_OF.items():
        for table, results in load(name).items():
            if results["date"] < max(since[rule] for rule in rules):
                found.setdefault(name, []).append(table)
    return found


def names():
    """List the result files."""
    return sorted(path.stem for path in RESULTS.glob("*.json"))


def _stored(name):
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


class Runs:
    """Finished runs, stored as lines of JSON.

    `run` takes the name of the images, a setting, a seed and a key, and returns the key
    and a dict of results. `prepare`, if given, takes images, a setting and a seed, and
    computes common inputs of the runs in this process. `n_jobs` new runs are done at a
    time.
    """

    def __init__(self, path, run, prepare=None, n_jobs=2):
        self.path = path
        self.run = run
        self.prepare = prepare
        self.n_jobs = n_jobs
        self.kept = {}
        if path.exists():
            for line in path.read_text().splitlines():
                run = json.loads(line)
                self.kept[run.pop("key")] = run

    def __call__(self, images, settings, seeds):
        """Return the runs of each setting, one per seed."""
        wanted = [(one, seed) for one in settings for seed in seeds]
        keys = [json.dumps([images.name, one, seed]) for one, seed in wanted]
        missing = [i for i, key in enumerate(keys) if key not in self.kept]
        _measuring["resumed"] |= len(missing) < len(keys)
        for i in missing if self.prepare else ():
            self.prepare(images, *wanted[i])
        results = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")(
            delayed(self.run)(images.name, *wanted[i], keys[i]) for i in missing
        )
        for key, run in results:
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, **run}) + "\n")
            self.kept[key] = run
            print(key, run, flush=True)
        by_setting = iter([self.kept[key] for key in keys])
        return [[next(by_setting) for _ in seeds] for _ in settings]


def kept_results(name, keys, run):
    """Return the result of each key. Finished ones are kept in a file of lines.

    `run` takes the parts of a key, and returns a dict.
    """
    path, kept = WORK / f"{name}.jsonl", {}
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        for line in path.read_text().splitlines():
            one = json.loads(line)
            kept[tuple(one["key"])] = one["result"]
    for key in keys:
        if key in kept:
            _measuring["resumed"] = True
            continue
        kept[key] = run(*key)
        with path.open("a") as file:
            file.write(json.dumps({"key": key, "result": kept[key]}) + "\n")
        print(*key, kept[key], flush=True)
    return [kept[key] for key in keys]


def summaries(results):
    """Summarise the runs of one setting, over its seeds."""
    return {
        name: summary(one[name] for one in results)
        for name in results[0]
        if results[0][name] is not None
    }
