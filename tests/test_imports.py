"""Optional packages stay optional, and the public names are there."""

import subprocess
import sys

import pytest

import sklearn_pate

OPTIONAL = (
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
# Parts of scikit-learn that take a while to import, and that few fits need.
SLOW = ("sklearn.ensemble", "sklearn.neighbors", "sklearn.decomposition")
CODE = f"""
import sys

class Absent:
    tried = []

    def find_spec(self, name, path=None, target=None):
        if name in {OPTIONAL}:
            self.tried.append(name)
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import sklearn.linear_model
Absent.tried.clear()  # scikit-learn itself imports pandas where it is installed

import sklearn_pate
import sklearn_pate.learners, sklearn_pate.datasets, sklearn_pate.distributed
import sklearn_pate.inspection, sklearn_pate.model_selection
print(Absent.tried, [name for name in {SLOW} if name in sys.modules])
"""


@pytest.mark.thorough
def test_importing_the_package_imports_nothing_optional_or_slow():
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[] []\n"


@pytest.mark.parametrize("name", sklearn_pate.__all__)
def test_public_names_are_importable_and_documented(name):
    assert getattr(sklearn_pate, name).__doc__
