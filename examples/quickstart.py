"""PATE in one minute
==================

A student that may be published, and its privacy statement. The tables are fitted by the
defaults, without teachers. On the digits, which are few, teachers learn from private
rows, and a student from their noisy answers about public rows without labels::

    python examples/quickstart.py
    python examples/quickstart.py --dataset adult        # downloads 6 MB
    python examples/quickstart.py --dataset diabetes130  # downloads 3 MB
    python examples/quickstart.py --picture accuracy.png
"""

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelSpreading

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.datasets import fetch_adult, fetch_diabetes130
from sklearn_pate.students import TableRepresentation


def digits():
    """Few private rows: a large epsilon, and a student that needs few answers."""
    X, y = load_digits(return_X_y=True)
    pate = PATEClassifier(
        KNeighborsClassifier(1),
        LabelSpreading(kernel="knn"),
        n_teachers=100,
        n_queries=60,
        epsilon=4.0,
    )
    return X, y, pate, KNeighborsClassifier(1)


def adult():
    """Tens of thousands of private rows, numbers and text: the default fit."""
    X, y = fetch_adult(return_X_y=True, as_frame=True)
    return X, y, PATEClassifier(epsilon=1.0), boosting()


def diabetes130():
    """Protect single stays; hospital_readmission.py protects whole patients."""
    X, y = fetch_diabetes130(return_X_y=True, as_frame=True)
    y = np.where(y == "NO", "stays away", "comes back")
    return X, y, PATEClassifier(epsilon=1.0), boosting()


def boosting():
    """Return a model without privacy, for comparison."""
    return make_pipeline(
        TableRepresentation(n_components=None), HistGradientBoostingClassifier()
    )


def draw(accuracies, statement, path):
    """Draw one bar per model."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 1.8), layout="constrained")
    colours = ["#999999", "#2277cc"]
    bars = axis.barh(list(accuracies), list(accuracies.values()), color=colours)
    axis.bar_label(bars, fmt="%.3f", padding=3)
    axis.set(xlim=(0, 1.2), xlabel="accuracy", title=repr(statement))
    axis.invert_yaxis()
    figure.savefig(path, dpi=120)
    print(f"\ndrew {path}")


def main():
    """Fit, compare, and print the statement."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    datasets = {"digits": digits, "adult": adult, "diabetes130": diabetes130}
    parser.add_argument("--dataset", choices=datasets, default="digits")
    parser.add_argument("--picture", help="file for a bar chart (needs matplotlib)")
    arguments = parser.parse_args()
    X, y, pate, model = datasets[arguments.dataset]()

    X, X_test, y, y_test = train_test_split(X, y, test_size=0.15, random_state=0)
    X_private, X_public, y_private, _ = train_test_split(
        X, y, test_size=min(5000, len(X) // 4), random_state=0
    )

    start = time.perf_counter()
    pate.set_params(n_jobs=-1, random_state=0)
    pate.fit(X_private, y_private, X_public=PublicData(X_public))
    seconds = time.perf_counter() - start

    model.fit(X_private, y_private)

    print(f"{len(X_private)} private rows, {len(X_public)} public rows without labels")
    print(f"fitted in {seconds:.0f} s, by {pate.mechanism_}")
    print()
    accuracies = {
        "a model without privacy": model.score(X_test, y_test),
        "the student, which may be published": pate.score(X_test, y_test),
    }
    print("accuracy")
    for name, accuracy in accuracies.items():
        print(f"  {accuracy:.3f}  {name}")
    print()
    print(pate.privacy_spent_)
    if arguments.picture:
        draw(accuracies, pate.privacy_spent_, arguments.picture)


if __name__ == "__main__":
    main()
