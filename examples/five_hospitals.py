"""Five hospitals, no shared row: votes are collected in files, one student comes out.

Each hospital trains teachers on disjoint shards of its own patients, lets them label
the same public stays, and hands over a file of labels: no row and no model leaves it.
Whoever collects the files asks noisy questions and publishes a student.

Noise that protects anybody drowns five votes: each hospital sends fifty. The statement
protects one array of labels, and every patient of that shard, not a whole hospital.

    python examples/five_hospitals.py              # downloads 3 MB
    python examples/five_hospitals.py --picture hospitals.png
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.datasets import fetch_diabetes130

N_HOSPITALS = 5
N_TEACHERS_EACH = 50
CLASSES = ["not readmitted", "readmitted"]


def logistic_regression(**parameters):
    """Encode, scale, and fit: nothing is learnt outside a hospital."""
    encoder = make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", min_frequency=0.2),
            make_column_selector(dtype_include="category"),
        ),
        remainder=StandardScaler(),
    )
    return make_pipeline(
        encoder, LogisticRegression(C=0.01, max_iter=1000, **parameters)
    )


def label_public_stays(X, y, patient, X_public, n_teachers):
    """Do a hospital's part: teachers on shards of patients, and their labels."""
    ballots = []
    patients = np.random.default_rng(0).permutation(np.unique(patient))
    for shard in np.array_split(patients, n_teachers):
        rows = np.isin(patient, shard)
        teacher = logistic_regression(class_weight="balanced")
        ballots.append(teacher.fit(X[rows], y[rows]).predict(X_public))
    return np.array(ballots)


def learn_from(files, X_public):
    """Do the collector's part: read one file after the other, and publish a student."""
    ballots = (labels for file in files for labels in np.load(file))
    pate = PATEClassifier(
        student=logistic_regression(),
        classes=CLASSES,
        n_queries=len(X_public),
        epsilon=2.0,
        random_state=0,
    )
    return pate.fit_votes(ballots, PublicData(X_public))


def draw(areas, path):
    """Draw a bar a student."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 2), layout="constrained")
    bars = axis.barh(list(areas), list(areas.values()), color=["#777777", "#2277cc"])
    axis.bar_label(bars, fmt="%.3f", label_type="center", color="white")
    axis.axvline(0.5, color="black", linestyle=":", linewidth=1)
    axis.set(xlim=(0, 1), xlabel="AUC on other patients (0.5 is guessing)")
    figure.savefig(path, dpi=120)
    print(f"\ndrew {path}")


def main():
    """Let hospitals vote once each, then fifty times each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--picture", help="file for a bar chart (needs matplotlib)")
    picture = parser.parse_args().picture
    data = fetch_diabetes130(as_frame=True)
    X, patient = data.data, data.groups
    y = np.where(data.target == "<30", "readmitted", "not readmitted")
    split = GroupShuffleSplit(1, test_size=0.3, random_state=0)
    private, rest = next(split.split(X, groups=patient))
    public, test = np.array_split(rest, 2)
    hospital = patient % N_HOSPITALS  # a patient is with one hospital only

    areas = {}
    for n_teachers in (1, N_TEACHERS_EACH):
        with tempfile.TemporaryDirectory() as folder:
            for h in range(N_HOSPITALS):
                own = private[hospital[private] == h]
                labels = label_public_stays(
                    X.iloc[own], y[own], patient[own], X.iloc[public], n_teachers
                )
                np.save(Path(folder, f"hospital_{h}.npy"), labels)
            pate = learn_from(sorted(Path(folder).iterdir()), X.iloc[public])
        scores = pate.predict_proba(X.iloc[test])[:, 1]
        name = f"votes of each hospital: {n_teachers}"
        areas[name] = roc_auc_score(y[test] == "readmitted", scores)
        print(
            f"AUC {areas[name]:.3f}  {name}, noise of sigma {pate.mechanism_.sigma:.0f}"
        )
    print()
    print(pate.privacy_spent_)
    if picture:
        draw(areas, picture)


if __name__ == "__main__":
    main()
