"""A private search on Adult, beside a plain one. Writes results/private_search.json.

costs    what the best of ten expected trials costs, over what one fit costs
adult     the winner among candidates, and what a plain search would leak

Run one of them with ``python benchmarks/private_search.py costs``, both without a
name: some minutes. Noise and the number of trials are drawn from the operating system.
"""

import sys
import warnings

import numpy as np
from learner_data import load
from record import save, summary
from sklearn.model_selection import GridSearchCV, KFold

from sklearn_pate.baselines import DPLogisticRegression
from sklearn_pate.inspection import privacy_leaks
from sklearn_pate.model_selection import PrivateSearchCV

SEEDS = range(5)
DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0)
CANDIDATES = {"C": np.geomspace(1e-3, 10, 9).tolist()}
N_TRIALS = 10
N_FOLDS = 5


def learner(epsilon):
    """Return what is searched over."""
    return DPLogisticRegression(
        epsilon=epsilon, delta=DELTA, data_norm=1.0, fit_intercept=False
    )


def costs():
    """Return what each way to search costs, at the delta of the statement."""
    data = load("adult")
    rows = []
    for epsilon in EPSILONS:
        one = learner(epsilon).plan_privacy(data.X_train, data.y_train)
        for trials in ("logarithmic", "geometric", "poisson", "disjoint"):
            spent = PrivateSearchCV(
                learner(epsilon),
                CANDIDATES,
                n_trials_distribution=trials,
                mean_n_trials=N_TRIALS,
                delta=DELTA,
            ).plan_privacy(data.X_train, data.y_train)
            alike = one.curve.quiet_epsilon(DELTA) if spent.delta else one.epsilon
            rows.append(
                {
                    "trials": trials,
                    "epsilon_of_one": epsilon,
                    "one_at_delta": one.curve.quiet_epsilon(DELTA),
                    "total": spent.epsilon,
                    "delta": spent.delta,
                    "ratio": spent.epsilon / epsilon,
                    "ratio_at_delta": spent.epsilon / alike,
                }
            )
            print(rows[-1], flush=True)
    return rows


def adult():
    """Return accuracies of the winner, of all candidates, and of a plain search."""
    data = load("adult")
    rows = []
    for epsilon in (0.1, 0.5, 1.0):
        by_candidate = {
            C: [
                learner(epsilon)
                .set_params(C=C)
                .fit(data.X_train, data.y_train)
                .score(data.X_test, data.y_test)
                for _ in SEEDS
            ]
            for C in CANDIDATES["C"]
        }
        means = [np.mean(scores) for scores in by_candidate.values()]
        searches = {
            trials: [
                PrivateSearchCV(
                    learner(epsilon),
                    CANDIDATES,
                    n_trials_distribution=trials,
                    mean_n_trials=N_TRIALS,
                    delta=DELTA,
                    random_state=seed,
                ).fit(data.X_train, data.y_train)
                for seed in SEEDS
            ]
            for trials in ("logarithmic", "disjoint")
        }
        plain = [_plain(epsilon, data, seed) for seed in SEEDS]
        one = learner(epsilon).plan_privacy(data.X_train, data.y_train)
        n_fits = len(CANDIDATES["C"]) * N_FOLDS + 1
        rows.append(
            {
                "epsilon_of_one": epsilon,
                "candidates": {
                    "median": float(np.median(means)),
                    "best": float(np.max(means)),
                    "worst": float(np.min(means)),
                },
                **{
                    trials: {
                        "total": fits[0].privacy_spent_.epsilon,
                        "delta": fits[0].privacy_spent_.delta,
                        "accuracy": summary(
                            fit.score(data.X_test, data.y_test) for fit in fits
                        ),
                        "chosen": [float(fit.best_params_["C"]) for fit in fits],
                    }
                    for trials, fits in searches.items()
                },
                "plain": {
                    "accuracy": summary(
                        fit.score(data.X_test, data.y_test) for fit in plain
                    ),
                    "n_fits": n_fits,
                    "epsilon_of_fits": (one.curve * n_fits).quiet_epsilon(DELTA),
                    "leaks": [leak.reason for leak in privacy_leaks(plain[0])],
                },
            }
        )
        print(rows[-1], flush=True)
    return rows


def _plain(epsilon, data, seed):
    folds = KFold(N_FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(learner(epsilon), CANDIDATES, cv=folds)
    return search.fit(data.X_train, data.y_train)


TABLES = {"costs": costs, "adult": adult}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for table in sys.argv[1:] or TABLES:
        facts = {"seeds": list(SEEDS)} if table == "adult" else {}
        save("private_search", {table: TABLES[table]()}, **facts)
