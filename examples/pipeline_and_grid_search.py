"""What a pipeline leaks, what a search costs, and how to search for free.

The statement of PATEClassifier covers PATEClassifier. What is fitted in front of it, or
chosen around it, looks at private rows for nothing. ``privacy_leaks`` finds it before
any data is touched. Then three searches over the same teacher:

1. around PATEClassifier: every fit is a release, and the scores have no guarantee;
2. inside each teacher: a teacher may do with its shard what it likes, for free;
3. of the student: it sees noisy answers only, so its search is free too.

    python examples/pipeline_and_grid_search.py
    python examples/pipeline_and_grid_search.py --picture price.png
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import PATEClassifier, PublicData, privacy_leaks

N_FOLDS = 3


def pate(estimator, student):
    """Ask 300 questions at epsilon 4: digits are few."""
    return PATEClassifier(
        estimator,
        student,
        n_teachers=60,
        n_queries=300,
        epsilon=4.0,
        classes=range(10),
        n_jobs=-1,
        random_state=0,
    )


def price_of_fits(spent, n_fits):
    """Compose: n fits on the same rows cost less than n times epsilon."""
    return (spent.curve * n_fits).to_epsilon(spent.delta)


def draw(spent, n_fits, path):
    """Draw the price of a search against its number of fits."""
    import matplotlib.pyplot as plt

    fits = np.arange(1, n_fits + 1)
    figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axis.plot(fits, spent.epsilon * fits, ":", color="grey", label="fits times epsilon")
    composed = [price_of_fits(spent, n) for n in fits]
    axis.plot(fits, composed, color="#2277cc", label="composed")
    axis.set(
        xlabel="fits on the same private rows",
        ylabel=f"epsilon at delta={spent.delta}",
        title="What a search around PATEClassifier costs",
        xlim=(1, n_fits),
        ylim=(0, None),
    )
    axis.legend()
    figure.savefig(path, dpi=120)
    print(f"\ndrew {path}")


def main():
    """List leaks, then search in three places."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--picture", help="file for a price curve (needs matplotlib)")
    picture = parser.parse_args().picture
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    leaky = make_pipeline(StandardScaler(), pate(classifier[-1], None))
    for name, model in {"in front": leaky, "inside": pate(classifier, None)}.items():
        print(f"scaler {name}:", *privacy_leaks(model) or ["no leak"], sep="\n  ")
    print()
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    X, X_public, y, _ = train_test_split(X, y, test_size=0.3, random_state=0)
    public = PublicData(X_public)
    forest = RandomForestClassifier(50)
    C = {"logisticregression__C": [0.01, 0.1, 1.0]}
    around = GridSearchCV(
        pate(classifier, forest),
        {f"estimator__{name}": values for name, values in C.items()},
        cv=N_FOLDS,
    )
    inside = pate(GridSearchCV(classifier, C, cv=KFold(2)), forest)
    leaves = {"min_samples_leaf": [1, 3, 10]}
    student = pate(classifier, GridSearchCV(forest, leaves, cv=N_FOLDS))
    n_fits = 3 * N_FOLDS + 1  # the last one fits the winner on all rows
    print("accuracy  epsilon  search")
    for name, search in {
        "around PATEClassifier": around,
        "inside each teacher": inside,
        "of the student": student,
    }.items():
        search.fit(X, y, X_public=public)
        accuracy = search.score(X_test, y_test)
        if search is around:
            spent = search.best_estimator_.privacy_spent_
            price = f"{price_of_fits(spent, n_fits):7.2f}"
            name += f": {n_fits} fits, each of epsilon {spent.epsilon:.2f}"
        else:
            price = f"{search.privacy_spent_.epsilon:7.2f}"
        print(f"{accuracy:8.3f}  {price}  {name}")
    print(
        "\nThe first price covers the students of all fits, but not the choice between "
        "them:\nthe scores that made it were computed on private labels, without noise."
    )
    if picture:
        draw(spent, n_fits, picture)


if __name__ == "__main__":
    main()
