"""What a newcomer does first, with the installed package and nothing optional."""

import importlib
import importlib.metadata
import pkgutil
import re
import sys
from pathlib import Path

from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

import sklearn_pate
from sklearn_pate import PATEClassifier, PublicData


def extras():
    """Name what the extras bring.

    Returns
    -------
    names : set of str
        Packages.
    """
    wanted = importlib.metadata.requires("sklearn-pate") or []
    return {re.split(r"[^\w-]", one)[0] for one in wanted if "extra ==" in one}


def import_all():
    """Import every module; only those that need an extra may fail, and for that.

    Returns
    -------
    n_modules : int
        How many were imported.
    """
    n_modules, optional = 0, extras()
    for module in pkgutil.walk_packages(sklearn_pate.__path__, "sklearn_pate."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name not in optional:
                raise
        else:
            n_modules += 1
    return n_modules


def main():
    """Import, fit, state."""
    package = Path(sklearn_pate.__file__).parent
    assert Path(sys.prefix) in package.parents, f"{package} is not what was installed."
    assert (package / "py.typed").is_file(), "Type checkers look for py.typed."
    version = importlib.metadata.version("sklearn-pate")
    assert version == sklearn_pate.__version__, f"The metadata say {version}."
    print(f"{import_all()} modules of sklearn_pate {version} import without an extra.")

    X, y = make_blobs(6000, centers=3, random_state=0)
    pate = PATEClassifier(LogisticRegression(), n_teachers=200, n_queries=50)
    pate.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    assert pate.score(X[5500:], y[5500:]) > 0.8
    print(pate.privacy_spent_)


if __name__ == "__main__":
    main()
