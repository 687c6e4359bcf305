"""Optional packages stay optional, and the public names are there."""

import subprocess
import sys

import pytest

import sklearn_pate

HEAVY = (
    "torch",
    "skorch",
    "pandas",
    "polars",
    "matplotlib",
    "dask",
    "distributed",
    "pyarrow",
    "pyspark",
    "ray",
    "xgboost",
    "lightgbm",
    "opacus",
    "dp_accounting",
    "opendp",
)
IMPORT = """import sklearn_pate
import sklearn_pate.datasets, sklearn_pate.distributed, sklearn_pate.mechanisms
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


BLOCK = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {HEAVY}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.slow
def test_the_package_imports_without_any_optional_package():
    run(BLOCK + IMPORT)


@pytest.mark.slow
def test_importing_the_package_imports_nothing_heavy():
    # scikit-learn itself imports pandas where it is installed.
    report = f"\nimport sys; print(sorted(set({HEAVY}) & set(sys.modules)))"
    assert run(IMPORT + report) == run("import sklearn.base" + report)


@pytest.mark.parametrize("name", sklearn_pate.__all__)
def test_public_names_are_importable_and_documented(name):
    assert getattr(sklearn_pate, name).__doc__
