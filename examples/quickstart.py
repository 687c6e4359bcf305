"""PATE in one minute
==================

A student that may be published, and its privacy statement. Teachers learn from private
rows. A student learns from their noisy answers about public rows without labels::

    python examples/quickstart.py
    python examples/quickstart.py --dataset adult        # downloads 6 MB
    python examples/quickstart.py --dataset diabetes130  # downloads 3 MB
    python examples/quickstart.py --picture accuracy.png
"""

import argparse
import time

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.datasets import fetch_adult, fetch_diabetes130


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
    return X, y, pate


def adult():
    """Tens of thousands of private rows: little loss of accuracy at epsilon 1."""
    X, y = fetch_adult(return_X_y=True)
    return X, y, forests(n_teachers=250, epsilon=1.0)


def diabetes130():
    """Protect single stays; hospital_readmission.py protects whole patients."""
    X, y = fetch_diabetes130(return_X_y=True)
    y = np.where(y == "NO", "stays away", "comes back")
    return X, y, forests(n_teachers=250, epsilon=1.0)


def forests(**parameters):
    """Forests as teachers, and a student with leaves of many noisy answers."""
    return PATEClassifier(
        RandomForestClassifier(20),
        RandomForestClassifier(100, min_samples_leaf=20),
        **parameters,
    )


def draw(accuracies, statement, path):
    """Draw one bar per model."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 2.2), layout="constrained")
    colours = ["#999999", "#999999", "#2277cc"]
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
    X, y, pate = datasets[arguments.dataset]()

    X, X_test, y, y_test = train_test_split(X, y, test_size=0.15, random_state=0)
    X_private, X_public, y_private, y_public = train_test_split(
        X, y, test_size=min(5000, len(X) // 4), random_state=0
    )

    start = time.perf_counter()
    pate.set_params(n_jobs=-1, random_state=0)
    pate.fit(X_private, y_private, X_public=PublicData(X_public))
    seconds = time.perf_counter() - start

    model = clone(pate.estimator).fit(X_private, y_private)
    # The plurality is sensitive; it is printed because this data set is public.
    truth = y_public[pate.queried_indices_]
    plurality = pate.classes_[pate.privacy_analysis_.plurality]

    print(f"{len(X_private)} private rows, {len(X_public)} public rows without labels")
    print(f"{pate.privacy_spent_.n_teachers} teachers and a student in {seconds:.0f} s")
    print()
    accuracies = {
        "a model without privacy": np.mean(model.predict(X_test) == y_test),
        "the teachers' plurality, without noise": np.mean(plurality == truth),
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
