"""Which public rows to ask about: five strategies, at one price per question.

A strategy sees public rows and earlier answers, never a vote. So its choices cost
nothing, and at equal noise the statement is the same for all of them.

"representative" asks about one typical row of each cluster of public rows; with
"cluster" the rows of a cluster vote, and learn, together. Both gain most where
questions are few. "uncertainty" and "experts" ask in rounds, each time where a student
of the answers so far is least sure. Teachers tend to disagree about the same rows, so
that more of the answers are wrong: here, they end about where random rows do.

    python examples/active_queries.py
    python examples/active_queries.py --picture curves.png
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax, InteractiveGNMax

STRATEGIES = ["random", "representative", "cluster", "uncertainty", "experts"]
N_QUERIES = [20, 40, 80, 160]
N_SPLITS = 3
NOISE = GNMax(sigma=10)


def ask(n_queries, query_strategy, mechanism=NOISE, split=0):
    """Fit; return the student's accuracy, the share of right answers, and the fit."""
    X, y = load_digits(return_X_y=True)
    X = X / 16  # the range of a pixel is public
    X, X_test, y, y_test = train_test_split(X, y, test_size=300, random_state=split)
    X, X_public, y, y_public = train_test_split(X, y, test_size=500, random_state=split)
    pate = PATEClassifier(
        KNeighborsClassifier(1),
        LogisticRegression(C=10, max_iter=3000),
        n_teachers=100,
        mechanism=mechanism,
        n_queries=n_queries,
        query_strategy=query_strategy,
        epsilon=None,  # the noise is given, and so is the price of a question
        classes=range(10),
        random_state=split,
    )
    pate.fit(X, y, X_public=PublicData(X_public))
    # Known here because this data set is public; elsewhere nobody can tell.
    right = np.mean(pate.answers_ == y_public[pate.queried_indices_])
    return pate.score(X_test, y_test), right, pate


def draw(curves, prices, path):
    """Draw a learning curve a strategy, and how many of its answers are right."""
    import matplotlib.pyplot as plt

    colours = ["#777777", "#0072b2", "#56b4e9", "#d55e00", "#e69f00"]
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    titles = ["accuracy of the student", "share of right answers"]
    for axis, title, column in zip(axes, titles, (0, 1), strict=True):
        for (strategy, curve), colour, marker in zip(
            curves.items(), colours, "osD^v", strict=True
        ):
            axis.plot(curve[:, column], color=colour, marker=marker, label=strategy)
        axis.set_xticks(
            range(len(prices)), [f"{n}\n{price:.2f}" for n, price in prices.items()]
        )
        axis.set(xlabel="questions, and the epsilon they cost", title=title)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=120)
    print(f"\ndrew {path}")


def main():
    """Ask about more and more rows, chosen in five ways."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--picture", help="file for the curves (needs matplotlib)")
    picture = parser.parse_args().picture

    print("accuracy of the student (share of right answers)")
    print(f"{'questions':15}", *(f"{n:12}" for n in N_QUERIES))
    curves, fits = {}, {n: [] for n in N_QUERIES}
    for strategy in STRATEGIES:
        curve = curves[strategy] = np.zeros((len(N_QUERIES), 2))
        for i, n in enumerate(N_QUERIES):
            for split in range(N_SPLITS):
                *scores, pate = ask(n, strategy, split=split)
                curve[i] += np.array(scores) / N_SPLITS
                fits[n].append(pate)
        print(f"{strategy:15}", *(f"{a:.3f} ({right:.2f})" for a, right in curve))
    prices = {n: fits[n][0].privacy_spent_.epsilon for n in N_QUERIES}
    print(f"{'epsilon':15}", *(f"{price:12.3f}" for price in prices.values()))

    statements = {n: {str(one.privacy_spent_) for one in fits[n]} for n in N_QUERIES}
    alike = all(len(some) == 1 for some in statements.values())
    print(f"\nThe statement is the same for all strategies: {alike}.")
    adaptive = {
        one.query_strategy: None
        for one in fits[n]
        if one.privacy_analysis_.along_transcript
    }
    print(
        "Questions followed answers, so that what the votes say about the price, which"
    )
    print(f"is sensitive, holds along these questions only: {', '.join(adaptive)}.")

    # A student that is sure answers itself, unless the teachers contradict it.
    interactive = InteractiveGNMax(0.3, 20, 10, confidence=0.8, max_answers=40)
    score, _, pate = ask(80, "interactive", interactive)
    print(f"\n{score:.3f} after 80 interactive questions, {pate.privacy_spent_!r}")
    if picture:
        draw(curves, prices, picture)


if __name__ == "__main__":
    main()
