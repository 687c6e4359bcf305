"""Teachers trained on Spark, on Ray, and in memory. Writes results/engines.json.

A table of patients is read from Parquet files by each of them, on two cores: by a fit
with two processes, which holds all rows, and by the code of docs/guide/hospitals.md, in
which rows stay on the workers. Needs pyspark with Java, and ray[data].
"""

import json
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from benchmarks.record import ROOT, command, save, summary
from sklearn_pate import PATEClassifier, PublicData

PAGE = ROOT / "docs" / "guide" / "hospitals.md"
N_FEATURES = 10
N_FILES = 8
N_CORES = 2
N_RUNS = 4
SEED = 0


def run_blocks(section, language, namespace, blocks):
    """Run some code blocks of a section of the page."""
    text = PAGE.read_text().partition(f"# {section}\n")[2].partition("\n##")[0]
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for code in found[blocks]:
        exec(code, namespace)


def make_study(n_rows, n_public, n_teachers, folder):
    """Write a table of patients to files; return the names that the page defines."""
    names = {"__name__": "clusters"}
    run_blocks("A table on a cluster", "python", names, slice(2))
    X, y = make_classification(
        n_rows + n_public, N_FEATURES, n_informative=6, random_state=SEED
    )
    features = [f"x{column}" for column in range(N_FEATURES)]
    patients = np.random.default_rng(SEED).integers(n_rows // 3, size=n_rows)
    rows = pd.DataFrame(X[:n_rows], columns=features).assign(
        label=y[:n_rows],
        patient=[f"P-{one}" for one in patients],
        position=np.arange(n_rows),
    )
    for part, positions in enumerate(np.array_split(np.arange(n_rows), N_FILES)):
        rows.iloc[positions].to_parquet(folder / f"{part}.parquet", index=False)
    teacher = LogisticRegression()
    clf = PATEClassifier(
        teacher,
        n_teachers=n_teachers,
        n_queries=n_public,
        query_strategy="random",
        representation=None,
        mechanism="gnmax",
        vote="plain",
        delta=1e-7,
        classes=[0, 1],
        privacy_unit="group",
        n_jobs=N_CORES,
        random_state=SEED,
    )
    names |= {
        "X_public": pd.DataFrame(X[n_rows:], columns=features),
        "FEATURES": features,
        "CLASSES": [0, 1],
        "N_TEACHERS": n_teachers,
        "KEY": SEED,
        "teacher": teacher,
        "clf": clf,
    }
    return names


class InMemory:
    """A fit on all rows, with two processes."""

    name = "fit in memory"

    def start(self, names):
        """Start the processes, and compute the noise, which is kept for all fits."""
        rng = np.random.default_rng(SEED)
        n_public = len(names["X_public"])
        names["clf"].fit(
            rng.normal(size=(10_000, N_FEATURES)),
            rng.integers(2, size=10_000),
            X_public=PublicData(rng.normal(size=(n_public, N_FEATURES))),
            groups=np.arange(10_000),
        )

    def run(self, names, folder):
        """Read all rows, and fit."""
        rows = pd.read_parquet(folder)
        names["clf"].fit(
            rows[names["FEATURES"]],
            rows["label"],
            X_public=PublicData(names["X_public"]),
            groups=rows["patient"],
        )
        names["bytes_received"] = sum(path.stat().st_size for path in folder.iterdir())

    def stop(self):
        """Stop nothing."""


class Spark:
    """The recipe for Spark, on local processes."""

    name = "Spark"

    def start(self, names):
        """Start a session; workers run this Python."""
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        self.session = (
            SparkSession.builder.master(f"local[{N_CORES}]")
            .config("spark.driver.memory", "2g")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )

    def run(self, names, folder):
        """Run the recipe on the files."""
        from pyspark.sql.functions import pandas_udf

        names["pandas_udf"] = pandas_udf
        names["table"] = self.session.read.parquet(str(folder))
        run_blocks("Spark", "py", names, slice(1, None))
        names["bytes_received"] = bytes_of(names["collected"])

    def stop(self):
        """Stop the session."""
        self.session.stop()


class Ray:
    """The recipe for Ray, on local processes."""

    name = "Ray"

    def start(self, names):
        """Start Ray."""
        import ray

        self.ray = ray
        ray.init(
            "local",
            num_cpus=N_CORES,
            include_dashboard=False,
            object_store_memory=2**30,
            log_to_driver=False,
        )

    def run(self, names, folder):
        """Run the recipe on the files."""
        names["table"] = self.ray.data.read_parquet(str(folder))
        run_blocks("Ray", "py", names, slice(1, None))
        names["bytes_received"] = bytes_of(names["collected"])

    def stop(self):
        """Stop Ray."""
        self.ray.shutdown()


def bytes_of(collected):
    """Count the bytes of votes that the driver received."""
    return sum(map(len, collected["votes"]))


def seconds(function, *arguments):
    """Time one call."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def compare(options, folder):
    """Time each engine, and compare the votes with those of the fit in memory."""
    names = make_study(options.rows, options.public, options.teachers, folder)
    rows, expected = [], None
    for engine in (InMemory(), Spark(), Ray()):
        started = seconds(engine.start, names)
        times = [seconds(engine.run, names, folder) for _ in range(options.runs)]
        engine.stop()
        counts = names["clf"].privacy_analysis_.counts
        expected = counts if expected is None else expected
        rows.append(
            {
                "engine": engine.name,
                "n_rows": options.rows,
                "n_features": N_FEATURES,
                "n_teachers": options.teachers,
                "n_public": options.public,
                "n_cores": N_CORES,
                "start_seconds": started,
                "first_seconds": times[0],
                "fastest_seconds": min(times),
                "seconds": summary(times),
                "bytes_received": names["bytes_received"],
                "votes_equal": bool(np.array_equal(counts, expected)),
            }
        )
        print(json.dumps(rows[-1], indent=1), flush=True)
    return rows


def main():
    """Measure and save."""
    parser = command(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--public", type=int, default=1000)
    parser.add_argument("--teachers", type=int, default=200)
    parser.add_argument("--runs", type=int, default=N_RUNS)
    parser.add_argument("--no-save", action="store_true", help="print results only")
    options = parser.parse_args()
    if shutil.which("java") is None:
        parser.error("Spark needs Java")
    warnings.filterwarnings("ignore", category=FutureWarning)  # pandas in pyspark
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(options, Path(folder))
    if not options.no_save:
        packages = ("pyspark", "ray", "pyarrow")
        save("engines", "engines", rows, packages=packages, seeds=[SEED])
