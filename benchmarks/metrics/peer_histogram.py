"""Noisy histograms of diffprivlib, of scores and labels from a file.

It runs in the environment of `peer_diffprivlib.py`, and imports nothing of this
project. Its noise is for a row that is added or removed, and no count is negative.
Noise is seeded, which is acceptable in a benchmark only.
"""

import argparse
import json

import numpy as np
from diffprivlib.accountant import BudgetAccountant
from diffprivlib.tools import histogram2d


def main():
    """Print the histograms as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--draws", type=int, required=True)
    parser.add_argument("--bins", type=int, required=True)
    options = parser.parse_args()
    rows = np.load(options.rows)
    drawn = [
        histogram2d(
            rows["scores"],
            rows["y"],
            epsilon=options.epsilon,
            bins=(options.bins, 2),
            range=[(0, 1), (0, 1)],
            accountant=BudgetAccountant(),
            random_state=seed,
        )[0]
        for seed in range(options.draws)
    ]
    print(json.dumps(np.array(drawn).tolist()))


if __name__ == "__main__":
    main()
