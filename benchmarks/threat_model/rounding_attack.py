"""Attack on the last bits of Private-kNN's features. Adds to results/audits.json.

Thousands of private rows are copies of one row, so that their distances to a
public row are equal except for rounding. One more row, far away, changes the rounding
of a matrix product of all rows: hundreds of copies come nearer, and the attacker has
given these a separate label. A coin decides whether that row is present; the attacker
gets noisy vote counts at a claimed epsilon of 1, and guesses by a fixed rule.

Takes ten minutes on one core. Coins and noise come from the operating system.
"""

import os
import warnings
from contextlib import contextmanager
from secrets import randbelow

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from sklearn.decomposition import PCA
from sklearn.naive_bayes import GaussianNB
from sklearn.random_projection import GaussianRandomProjection
from sklearn.utils import _safe_indexing

from benchmarks.record import command, save
from sklearn_pate import PublicData
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.learners._noisy_learner import RowFeatures
from sklearn_pate.mechanisms import NoisyHistogram

N_TRIALS, N_REFERENCES, N_COPIES, N_FEATURES = 24, 10, 2999, 64
REPRESENTATIONS = {
    "none": None,
    "PCA": PCA(16, random_state=0),
    "random projection": GaussianRandomProjection(16, random_state=0),
}


@contextmanager
def transformed_together():
    """Plant the defect: transform all private rows in one call."""
    original = RowFeatures.of_rows

    def of_rows(self, X, rows, default):
        part = _safe_indexing(X, rows)
        if self._representation is not None:
            part = self._representation.transform(part)
        return np.asarray(part, dtype=np.float64)

    RowFeatures.of_rows = of_rows
    try:
        yield
    finally:
        RowFeatures.of_rows = original


class Attack:
    """Two data sets, and the attacker's rule of guessing."""

    def __init__(self, representation, dtype):
        rng = np.random.RandomState(0)
        self.representation = representation
        self.X_public = rng.normal(size=(50, N_FEATURES)).astype(dtype)
        row = rng.normal(size=(1, N_FEATURES)).astype(dtype)
        self.X = np.vstack([row + dtype(50), np.repeat(row, N_COPIES, axis=0)])
        self.y = np.append(0, self._nearer_copies())
        with transformed_together():
            present, absent = (
                np.mean([self._votes(one, 0.01) for _ in range(N_REFERENCES)], axis=0)
                for one in (True, False)
            )
        self.weights = present - absent
        self.threshold = (self.weights * (present + absent) / 2).sum()

    def n_right(self):
        """Return the number of right guesses."""
        right = 0
        for _ in range(N_TRIALS):
            coin = bool(randbelow(2))
            guess = (self.weights * self._votes(coin)).sum() > self.threshold
            right += int(guess == coin)
        return right

    def _nearer_copies(self):
        """Return 1 for copies that come nearer to most public rows."""
        if self.representation is None:
            return np.arange(N_COPIES) % 6 == 0
        fitted = self.representation.fit(self.X_public)
        middles = fitted.transform(self.X_public).astype(np.float64)
        without, with_row = (
            (of_rows**2).sum(axis=1) - 2 * middles @ of_rows.T
            for of_rows in (
                fitted.transform(self.X[1:]).astype(np.float64),
                fitted.transform(self.X).astype(np.float64)[1:],
            )
        )
        nearer, farther = with_row < without, with_row > without
        return (nearer.sum(axis=0) > farther.sum(axis=0)).astype(int)

    def _votes(self, is_present, sigma=None):
        """Return the noisy vote counts of one fit."""
        first = 0 if is_present else 1
        knn = PrivateKNNClassifier(
            GaussianNB(),
            mechanism="histogram" if sigma is None else NoisyHistogram(sigma=sigma),
            epsilon=1.0 if sigma is None else None,
            n_neighbors=27,
            n_queries=20,
            representation=self.representation,
            classes=[0, 1],
            random_state=0,
        )
        public = PublicData(self.X_public)
        return knn.fit(self.X[first:], self.y[first:], X_public=public).histograms_


def main():
    """Attack every representation in both precisions, with and without the defect."""
    command(__doc__).parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, representation in REPRESENTATIONS.items():
        for dtype in (np.float32, np.float64):
            attack = Attack(representation, dtype)
            with transformed_together():
                together = attack.n_right()
            rows.append(
                {
                    "representation": name,
                    "dtype": np.dtype(dtype).name,
                    "n_trials": N_TRIALS,
                    "one_at_a_time": attack.n_right(),
                    "together": together,
                }
            )
            print(rows[-1], flush=True)
    save("audits", "rounding", rows)
