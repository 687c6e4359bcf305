"""PATE in one minute
==================

This example compares two private classifiers at epsilon 1 with one without privacy.
PATE has 250 teachers that vote. DPNewton is a logistic regression by noisy Newton
steps, which has no teachers and is not PATE. Each private classifier is released five
times, as its noise is random. The rows are made up, and stand for 20,000 patients::

    python examples/quickstart.py --folder results  # needs matplotlib

.. literalinclude:: /outputs/quickstart.txt
   :language: text

.. image:: /pictures/quickstart.png
"""

# sphinx_gallery_thumbnail_path = "pictures/quickstart.png"

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData
from sklearn_pate.inspection import PrivacyReport

N_PRIVATE, N_PUBLIC, N_TEST = 20_000, 5000, 5000
N_TEACHERS, N_QUERIES = 250, 500
N_RELEASES = 5
COLOURS = ["0.35", "tab:blue", "tab:orange", "0.6"]


def make_rows():
    """Return private, public and test rows with their labels."""
    recipe = {"n_features": 12, "n_informative": 8, "n_clusters_per_class": 4}
    recipe |= {"class_sep": 2, "flip_y": 0.02, "random_state": 7}
    X, y = make_classification(N_PRIVATE + N_PUBLIC + N_TEST, **recipe)
    cuts = [N_PRIVATE, N_PRIVATE + N_PUBLIC]
    return *np.split(X, cuts), *np.split(y, cuts)


def private_classifiers(folder):
    """Return both classifiers; PATE keeps its votes, and so trains teachers once."""
    teacher = make_pipeline(StandardScaler(), KNeighborsClassifier())
    sizes = {"n_teachers": N_TEACHERS, "n_queries": N_QUERIES}
    voting = PATEClassifier(teacher, **sizes, memory=folder, random_state=0)
    return {
        f"PATE, {N_TEACHERS} teachers vote": voting,
        "DPNewton": DPNewtonClassifier(random_state=0),
    }


def draw(scores, path):
    """Draw a dot for each release."""
    figure = Figure(figsize=(7, 2.4), layout="constrained")
    axis = figure.subplots()
    for (name, values), colour in zip(scores.items(), COLOURS, strict=True):
        axis.scatter(values, len(values) * [name], color=colour, alpha=0.6)
    axis.set(xlabel="accuracy on new rows", title="epsilon 1, each release")
    axis.grid(axis="x", alpha=0.3)
    axis.margins(y=0.25)
    axis.invert_yaxis()
    figure.savefig(path, dpi=120)


def main():
    """Fit, compare, and write the picture and the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default="demo", help="for the results")
    folder = parser.parse_args().folder
    start = time.perf_counter()
    X, X_public, X_test, y, _, y_test = make_rows()
    print(f"{len(X)} private rows, {len(X_public)} public rows without labels.")

    boosting = HistGradientBoostingClassifier().fit(X, y)
    scores, fitted = {"no privacy, boosting": [boosting.score(X_test, y_test)]}, []
    with tempfile.TemporaryDirectory() as votes:
        for name, clf in private_classifiers(votes).items():
            print(f"\n{name}: {N_RELEASES} releases, phases of the first", flush=True)
            scores[name] = []
            for release in range(N_RELEASES):
                clf.set_params(verbose=release == 0)
                clf.fit(X, y, X_public=PublicData(X_public))
                scores[name].append(clf.score(X_test, y_test))
            fitted.append(clf)
    scores["always one class"] = [np.bincount(y_test).max() / len(y_test)]

    print(f"\n{f'accuracy on {len(y_test)} new rows':30} mean    lowest to highest")
    for name, values in scores.items():
        several = f"{min(values):.1%} to {max(values):.1%}" if len(values) > 1 else ""
        print(f"  {name:28} {np.mean(values):5.1%}   {several}".rstrip())
    spent = fitted[0].privacy_spent_
    print(f"\nCost of each release: epsilon={spent.epsilon:.3f}, delta={spent.delta}.")
    print(f"Unit of privacy: {spent.unit}; neighbouring data sets: {spent.relation}.")
    print("With data of people, publish one release: the costs of several add up.")

    folder.mkdir(parents=True, exist_ok=True)
    draw(scores, folder / "accuracy.png")
    PrivacyReport.from_estimator(fitted[0]).save(folder / "report.html", overwrite=True)
    print(f"\nAfter {time.perf_counter() - start:.0f} s, in {folder}:")
    print("  accuracy.png   a dot for each release")
    print("  report.html    for the person who signs; on the first classifier")
    print("\nNext, plan a fit for the number of rows that you have:")
    python = os.path.relpath(sys.executable)
    print(f"  {python} -m sklearn_pate plan --rows 20000 --epsilon 1")


if __name__ == "__main__":
    main()
