"""Fingerprints of the rules that decide accuracy. Writes results/rules.json.

A fingerprint is of predictions by fits on small data, with seeded noise. A fingerprint
that differs from the stored one means that the rules changed today. docs/benchmarks.md
lists the tables that were measured with older rules.
"""

import datetime
import hashlib
import shutil
import warnings

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks.record import WORK, command, save, stored_rules
from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData
from sklearn_pate.metrics import private_metrics
from sklearn_pate.testing import seeded_noise

FOREST = RandomForestClassifier(10, random_state=0)
LINEAR = LogisticRegression()


def table():
    """Draw 5,000 private and 1,000 public rows of two classes, one of them rare."""
    X, y = make_classification(
        6000, 10, n_informative=6, weights=[0.9], class_sep=2.0, random_state=0
    )
    return X[:5000], y[:5000], X[5000:]


def images():
    """Return digits of 8 x 8 pixels."""
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 1, 8, 8) / 16
    return X[:1400], y[:1400], X[1400:]


def predicted(estimator, rows):
    """Fit an estimator, and predict the public rows."""
    X, y, X_public = rows
    estimator.set_params(random_state=0, classes=np.unique(y))
    estimator.fit(X, y, X_public=PublicData(X_public))
    return estimator.predict_proba(X_public)


def measured():
    """Return the numbers of private metrics."""
    X, y, _ = table()
    released = private_metrics(
        LINEAR.fit(X[:500], y[:500]), X[500:], y[500:], epsilon=2
    )
    return [one.value for one in released.values()]


RULES = {
    "newton": lambda: predicted(DPNewtonClassifier(epsilon=2), table()),
    "votes": lambda: predicted(
        PATEClassifier(FOREST, mechanism="gnmax", epsilon=2), table()
    ),
    "scores": lambda: predicted(PATEClassifier(LINEAR, epsilon=2), table()),
    "images": lambda: predicted(PATEClassifier(LINEAR, epsilon=8), images()),
    "metrics": measured,
}


def fingerprint(rule):
    """Return a hash of numbers that fits of a rule give, to three digits."""
    with seeded_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = np.round(RULES[rule](), 3) + 0.0
    return hashlib.sha256(numbers.tobytes()).hexdigest()[:16]


def main():
    """Compare with the stored fingerprints, and store those of today."""
    command(__doc__).parse_args()
    rows = stored_rules()
    for rule in RULES:
        found = fingerprint(rule)
        if rows.get(rule, {}).get("fingerprint") != found:
            today = datetime.date.today().isoformat()
            rows[rule] = {"fingerprint": found, "since": today}
            print(f"{rule}: new rules; finished runs are dropped")
            shutil.rmtree(WORK, ignore_errors=True)
            WORK.mkdir()
    save("rules", "fingerprints", rows)
