"""Readmission within 30 days
==========================

The rows are hospital stays of patients with diabetes, and a patient may have several
stays. With ``privacy_unit="group"`` all stays of a patient go to the same teacher. The
privacy statement then protects a patient with all stays, not a stay.

Encoders and scalers learn from data, so each teacher and the student have their own.
Nothing is fitted in front of PATEClassifier. Run the script by::

    python examples/hospital_readmission.py --picture roc.png  # downloads 3 MB

.. literalinclude:: /outputs/hospital_readmission.txt
   :language: text

.. image:: /pictures/hospital_readmission.png
"""

# sphinx_gallery_thumbnail_path = "pictures/hospital_readmission.png"

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.datasets import fetch_diabetes130
from sklearn_pate.model_selection import GroupHashSplit


def logistic_regression(**parameters):
    """Encode, scale and fit in one estimator, separately for each teacher."""
    encoder = make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", min_frequency=0.2),
            make_column_selector(dtype_include="category"),
        ),
        remainder=StandardScaler(),
    )
    return make_pipeline(encoder, LogisticRegression(max_iter=1000, **parameters))


def split_patients(patient, random_state):
    """Split rows in two parts without a common patient, by a hash of the patient."""
    splitter = GroupHashSplit(test_size=0.2, random_state=random_state)
    return next(splitter.split(patient, groups=patient))


def draw(curves, path):
    """Draw one ROC curve per model."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5, 5), layout="constrained")
    for name, (true, scores) in curves.items():
        area = roc_auc_score(true, scores)
        axis.plot(*roc_curve(true, scores)[:2], label=f"{name}: AUC {area:.3f}")
    axis.plot([0, 1], [0, 1], color="grey", linestyle=":", label="guessing")
    axis.set(xlabel="false positive rate", ylabel="true positive rate")
    axis.set(title="Readmission within 30 days")
    axis.legend(loc="lower right")
    figure.savefig(path, dpi=120)
    print(f"drew {path}")


def main():
    """Protect whole patients, and compare with no protection."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--picture", help="file for the ROC curves (needs matplotlib)")
    picture = parser.parse_args().picture

    data = fetch_diabetes130(as_frame=True)
    X, patient = data.data, data.groups
    y = np.where(data.target == "<30", "readmitted", "not readmitted")
    rest, test = split_patients(patient, 0)
    private, public = (rest[part] for part in split_patients(patient[rest], 1))

    model = logistic_regression(C=0.01, class_weight="balanced")
    pate = PATEClassifier(
        model,
        logistic_regression(C=0.01),
        n_teachers=250,
        n_queries=len(public),
        epsilon=2.0,
        privacy_unit="group",
        # Public labels: the statement needs no assumption about the label set.
        classes=["not readmitted", "readmitted"],
        n_jobs=-1,
        random_state=0,
    )
    pate.fit(
        X.iloc[private],
        y[private],
        X_public=PublicData(X.iloc[public]),
        groups=patient[private],
    )
    model = clone(model).fit(X.iloc[private], y[private])

    true = y[test] == "readmitted"
    curves = {
        "without privacy": (true, model.predict_proba(X.iloc[test])[:, 1]),
        "student, epsilon 2": (true, pate.predict_proba(X.iloc[test])[:, 1]),
    }
    stays = np.unique(patient[private], return_counts=True)[1]
    print(f"{len(private)} stays of {len(stays)} patients, up to {stays.max()} each")
    for name, (_, scores) in curves.items():
        print(f"AUC {roc_auc_score(true, scores):.3f}  {name}")
    print()
    print(pate.privacy_spent_)
    if picture:
        draw(curves, picture)


if __name__ == "__main__":
    main()
