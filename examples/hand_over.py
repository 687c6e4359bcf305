"""One budget for a data set, several fits, and what is handed over in the end.

A ledger is a file with the budget of a sensitive data set. Each fit is charged before
its noise is drawn; the one that would exceed the budget is refused, and told what would
fit. The student is then published: a model file that runs no code when it is loaded,
and its privacy card.

    python examples/hand_over.py
    python examples/hand_over.py --picture budget.png
"""

import argparse
import json
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import (
    BudgetExceededError,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    PublishedClassifier,
)


def draw(ledger, path):
    """Draw what each charge took of the budget."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 1.8), layout="constrained")
    left = 0.0
    for charge in ledger.charges():
        axis.barh(0, charge.share, left=left, edgecolor="white", color="#2277cc")
        middle = left + charge.share / 2
        label = f"{charge.epsilon:.1f}"
        axis.text(middle, 0, label, ha="center", va="center", color="white")
        left += charge.share
    axis.set(
        xlim=(0, 1),
        xlabel=f"share of the budget (epsilon={ledger.epsilon}, delta={ledger.delta})",
        title="What each fit took, with its epsilon",
        yticks=[],
    )
    figure.savefig(path, dpi=150)
    print(f"Saved {path}.")


def main():
    """Spend a budget, and hand over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", help="save a picture of the budget here")
    picture = parser.parse_args().picture

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=300, random_state=0)
    X, X_public, y, _ = train_test_split(X, y, test_size=400, random_state=0)

    with tempfile.TemporaryDirectory() as folder:
        ledger = PrivacyLedger(Path(folder, "digits.sqlite"), epsilon=8, delta=1e-5)
        pate = PATEClassifier(
            KNeighborsClassifier(1),
            student=LogisticRegression(C=0.001, max_iter=3000),
            n_teachers=60,
            n_queries=300,
            epsilon=4.0,
            classes=range(10),
            ledger=ledger,
            random_state=0,
        )
        pate.fit(X, y, X_public=PublicData(X_public))
        print(f"A first fit at epsilon 4: {ledger.spent:.0%} of the budget is spent.")

        pate.fit(X, y, X_public=PublicData(X_public))
        print(f"The very same again gets the same answers: {ledger.spent:.0%}.")

        pate.set_params(n_queries=400)
        pate.fit(X, y, X_public=PublicData(X_public))
        print(f"With more questions it is another: {ledger.spent:.0%}.")

        try:
            pate.set_params(n_queries=200, epsilon=6.0)
            pate.fit(X, y, X_public=PublicData(X_public))
        except BudgetExceededError as error:
            print(f"Too much: {error}")

        print("\n" + ledger.report() + "\n")

        path = Path(folder, "digits.skops")
        pate.publish().save(path)
        received = PublishedClassifier.load(path)
        print(f"Whoever receives it: {received.privacy_spent_}")
        print(f"It is right on {received.score(X_test, y_test):.0%} of unseen digits.")
        card = json.loads(path.with_suffix(".json").read_text())
        print("The card beside it says:")
        for name in ("epsilon", "delta", "unit", "mechanism", "n_teachers", "sha256"):
            print(f"  {name}: {card[name]}")
        if picture:
            draw(ledger, picture)


if __name__ == "__main__":
    main()
