"""Settings with and without a warning of `fit`. Writes results/release_utility.json.

What became of the student of PATE on Adult and KDDCup99, and whether `fit` warned
before the cost was recorded. Shards, teachers and students are seeded; the noise is
not. The same teachers vote at all epsilons.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import warnings
from itertools import product

import numpy as np
from learner_data import load
from learners import pate
from record import save, summary
from sklearn.metrics import roc_auc_score

from sklearn_pate import PrivacyUtilityWarning

DATA = ("adult", "kddcup99")
N_TEACHERS = (20, 60, 250)
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
SEEDS = range(3)


def main():
    """Fit each setting of answers to queries, with the default number of queries."""
    rows = []
    for name, n_teachers, epsilon in product(DATA, N_TEACHERS, EPSILONS):
        data = load(name)
        classes, counts = np.unique(data.y_test, return_counts=True)
        most = classes[counts.argmax()]
        accuracy, auc = [], []
        for seed in SEEDS:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                classifier = pate(data, epsilon, seed, n_teachers=n_teachers)
            scores = classifier.predict_proba(data.frame_test)[:, 1]
            accuracy.append(classifier.score(data.frame_test, data.y_test))
            auc.append(roc_auc_score(data.y_test, scores))
        rows.append(
            {
                "data": data.name,
                "n_teachers": n_teachers,
                "epsilon": epsilon,
                "n_queries": classifier.privacy_spent_.n_queries,
                "sigma": classifier.mechanism_.sigma,
                "warning": [
                    str(one.message)
                    for one in caught
                    if issubclass(one.category, PrivacyUtilityWarning)
                ],
                "most_frequent": float(np.mean(data.y_test == most)),
                "accuracy": summary(accuracy),
                "auc": summary(auc),
            }
        )
        print(rows[-1], flush=True)
    save("release_utility", {"settings": rows}, seeds=[*SEEDS])


if __name__ == "__main__":
    main()
