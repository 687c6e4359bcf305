"""Private search and grid search. Writes results/private_search.json.

costs    privacy cost of the best of ten trials on average, relative to one fit
adult    accuracy of the best candidate, and cost and leaks of a grid search
tuning   searches of the papers, naive composition and one fit, at equal total epsilon

Takes half an hour. Noise and the number of trials come from the operating system.
"""

import warnings

import numpy as np
from scipy.optimize import brentq
from sklearn.model_selection import GridSearchCV, KFold

from benchmarks.learners.data import load
from benchmarks.record import command, save, summary
from sklearn_pate.inspection import privacy_leaks
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.mechanisms import GumbelMax
from sklearn_pate.model_selection import PrivateSearchCV

SEEDS = range(5)
DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0)
CANDIDATES = {"C": np.geomspace(1e-3, 10, 9).tolist()}
N_TRIALS = 10
N_FOLDS = 5
LAWS = ("logarithmic", "geometric", "poisson", "disjoint")
# Tuning: private rows, a twentieth of them for scores, and total epsilons.
N_TUNED = 20_000
TEST_SIZE = 0.05
TOTALS = (0.2, 0.5, 1.0, 2.0)
TUNING_SEEDS = range(10)


def learner(epsilon):
    """Return the learner of the search."""
    return DPLogisticRegression(
        epsilon=epsilon, delta=DELTA, data_norm=1.0, fit_intercept=False
    )


def search(trials, epsilon, **parameters):
    """Return a search among the candidates, by the law of its number of trials."""
    return PrivateSearchCV(
        learner(epsilon),
        CANDIDATES,
        n_trials_distribution=trials,
        mean_n_trials=N_TRIALS,
        delta=DELTA,
        **parameters,
    )


def costs():
    """Return the cost of each kind of search, at the delta of the statement."""
    data = load("adult")
    rows = []
    for epsilon in EPSILONS:
        one = learner(epsilon).plan_privacy(data.X_train, data.y_train)
        for trials in LAWS:
            spent = search(trials, epsilon).plan_privacy(data.X_train, data.y_train)
            comparable = one.curve.quiet_epsilon(DELTA) if spent.delta else one.epsilon
            rows.append(
                {
                    "trials": trials,
                    "epsilon_of_one": epsilon,
                    "one_at_delta": one.curve.quiet_epsilon(DELTA),
                    "total": spent.epsilon,
                    "delta": spent.delta,
                    "ratio": spent.epsilon / epsilon,
                    "ratio_at_delta": spent.epsilon / comparable,
                }
            )
            print(rows[-1], flush=True)
    return rows


def adult():
    """Return accuracies of private searches, all candidates, and a grid search."""
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
                search(trials, epsilon, random_state=seed).fit(
                    data.X_train, data.y_train
                )
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


def tuning():
    """Return accuracies of ways to choose C, at equal total epsilon."""
    rows = []
    for name in ("adult", "kddcup99"):
        data = load(name)
        X, y = data.X_train[:N_TUNED], data.y_train[:N_TUNED]
        for total in TOTALS:
            rows.append(_one_fit(data, X, y, total))
            rows += [_searches(data, X, y, total, trials) for trials in LAWS]
            rows.append(_naive(data, X, y, total))
            rows.append(_best_in_hindsight(data, X, y, total))
            print(*rows[-len(LAWS) - 3 :], sep="\n", flush=True)
    return rows


def _one_fit(data, X, y, total):
    fits = [learner(total).set_params(C="auto").fit(X, y) for _ in TUNING_SEEDS]
    return _tuned(data, "one fit", total, total, fits[0].privacy_spent_, fits)


def _searches(data, X, y, total, trials):
    epsilon = epsilon_of_fit(trials, total, X, y)
    fits = [
        search(trials, epsilon, test_size=TEST_SIZE, random_state=seed).fit(X, y)
        for seed in TUNING_SEEDS
    ]
    return _tuned(data, trials, total, epsilon, fits[0].privacy_spent_, fits)


def epsilon_of_fit(trials, total, X, y):
    """Return the epsilon of one fit of a search with this total, by its plan."""

    def excess(epsilon):
        one = search(trials, epsilon, test_size=TEST_SIZE)
        return one.plan_privacy(X, y).epsilon - total

    return brentq(excess, total / 20, 1.01 * total, xtol=1e-9)


def _naive(data, X, y, total):
    """Fit all candidates on all rows, and choose one by the exponential mechanism.

    By basic composition, the total is the sum over the fits and the choice, of equal
    epsilon. A row changes the number of rows that a given model predicts right by 1.
    """
    epsilon = total / (len(CANDIDATES["C"]) + 1)
    chosen = []
    for _ in TUNING_SEEDS:
        fits = [learner(epsilon).set_params(C=C).fit(X, y) for C in CANDIDATES["C"]]
        n_right = [int(np.sum(fit.predict(X) == y)) for fit in fits]
        chosen.append(fits[GumbelMax(c=epsilon / 2).answer([n_right])[0]])
    spent = sum(fit.privacy_spent_.epsilon for fit in fits) + epsilon, 0.0
    return _tuned(data, "naive composition", total, epsilon, spent, chosen)


def _best_in_hindsight(data, X, y, total):
    """Fit each candidate with the total epsilon; keep the best by the test rows."""
    fits = [
        [learner(total).set_params(C=C).fit(X, y) for _ in TUNING_SEEDS]
        for C in CANDIDATES["C"]
    ]
    rows = [_tuned(data, "best C", total, total, (None, None), one) for one in fits]
    return max(rows, key=lambda row: row["accuracy"]["mean"])


def _tuned(data, way, target, epsilon_of_one, spent, fits):
    epsilon, delta = spent
    return {
        "data": data.name,
        "way": way,
        "target": target,
        "epsilon_of_one": epsilon_of_one,
        "total": epsilon,
        "delta": delta,
        "accuracy": summary(fit.score(data.X_test, data.y_test) for fit in fits),
    }


TABLES = {"costs": costs, "adult": adult, "tuning": tuning}
TABLE_SEEDS = {"adult": SEEDS, "tuning": TUNING_SEEDS}


def main():
    """Measure the named tables, or all."""
    warnings.simplefilter("ignore")
    for table in command(__doc__, TABLES).parse_args().tables:
        facts = {"seeds": list(TABLE_SEEDS[table])} if table in TABLE_SEEDS else {}
        save("private_search", table, TABLES[table](), **facts)
