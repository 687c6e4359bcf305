"""Private linear regression of diffprivlib, on rows from a file.

It runs in the environment of `peer_diffprivlib.py`, and imports nothing of this
project. A file holds ``X_train``, ``y_train``, ``X_test`` and ``y_test``, with columns
between 0 and 1, and ``bounds`` of y. Coefficients of the loss, a polynomial, get
Laplace noise (Zhang, Zhang, Xiao, Yang and Winslett 2012, "Functional mechanism").
Predictions are clipped to the bounds. Noise is seeded, which is acceptable in a
benchmark only.
"""

import argparse
import importlib.metadata
import json
import warnings

import numpy as np
from diffprivlib.models import LinearRegression
from sklearn.metrics import mean_absolute_error, r2_score

PACKAGES = ("diffprivlib", "scikit-learn", "numpy")


def main():
    """Print a line of JSON for each seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--seed", nargs="+", type=int, required=True)
    given = parser.parse_args()
    rows = np.load(given.rows)
    low, high = (float(end) for end in rows["bounds"])
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    warnings.simplefilter("ignore")
    for seed in given.seed:
        model = LinearRegression(
            epsilon=given.epsilon,
            bounds_X=(0.0, 1.0),
            bounds_y=(low, high),
            random_state=seed,
        ).fit(rows["X_train"], rows["y_train"].clip(low, high))
        predicted, y = model.predict(rows["X_test"]).clip(low, high), rows["y_test"]
        line = {
            "r2": r2_score(y, predicted),
            "mae": mean_absolute_error(y, predicted),
            "versions": versions,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
