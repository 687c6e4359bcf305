"""One budget, several fits, and what is handed over
=================================================

Every fit on the same private rows is a release, and releases add up. A ledger is a file
with the budget of a sensitive data set: each fit is charged before its noise is drawn,
and one that would exceed the budget is refused. In the end a student is handed over,
with a card that says what it cost.
"""

# %%
# A budget
# --------
#
# Epsilon 8 for all that is ever made of these digits. This ledger goes with its folder.

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.base import clone
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

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=300, random_state=0)
X, X_public, y, _ = train_test_split(X, y, test_size=400, random_state=0)

folder = tempfile.TemporaryDirectory()
ledger = PrivacyLedger(Path(folder.name, "digits.sqlite"), epsilon=8, delta=1e-5)

# %%
# Spend it
# --------
#
# Half of epsilon is less than half of the budget: what adds up is Renyi cost, about the
# square of epsilon. The very same fit gets the answers it had, for nothing.

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

pate.set_params(n_queries=400).fit(X, y, X_public=PublicData(X_public))
print(f"With more queries it is another: {ledger.spent:.0%}.")

# %%
# Be refused
# ----------
#
# What a fit would take can be asked beforehand. One that costs too much draws no noise.

dearer = clone(pate).set_params(n_queries=200, epsilon=6.0)
planned = dearer.plan_privacy(X, y, X_public=PublicData(X_public))
wanted, left = ledger.budget_fractions(planned.curve)
print(f"It would take {wanted:.0%}, and {left:.0%} is left.")
try:
    dearer.fit(X, y, X_public=PublicData(X_public))
except BudgetExceededError as error:
    print(error)

# %%
# What was spent
# --------------
#
# ``ledger.report()`` has it in full, for auditors: who, what, when.

charges = ledger.entries()
for charge in charges:
    print(f"{charge.share:.2%}  epsilon {charge.epsilon:.3f}  {charge.description}")
print(f"{ledger.spent:.2%} in {len(charges)} charges")

figure, axis = plt.subplots(figsize=(7, 2), layout="constrained")
shares = [charge.share for charge in charges]
bars = axis.barh(0, shares, left=[0, shares[0]], color="#2277cc", edgecolor="white")
axis.bar_label(bars, ["epsilon 4"] * 2, label_type="center", color="white")
bars = axis.barh(0, wanted, left=ledger.spent, color="white", ec="#d55e00", hatch="//")
axis.bar_label(bars, ["epsilon 6: refused"], label_type="center", backgroundcolor="w")
axis.axvline(1, color="black")
axis.set(xlim=(0, 1.3), yticks=[], title="The budget ends at the black line")
axis.set_xlabel(f"share of the budget, epsilon={ledger.epsilon}, delta={ledger.delta}")
plt.show()

# %%
# Hand over
# ---------
#
# ``publish`` keeps the student and its statement, and nothing else. It is saved as a
# model, which runs no code when it is loaded, and a card beside it in plain JSON.

path = Path(folder.name, "digits.skops")
pate.publish().save(path)
received = PublishedClassifier.load(path)
card = json.loads(path.with_suffix(".json").read_text())
folder.cleanup()
print(received.privacy_spent_)
print(f"It is right on {received.score(X_test, y_test):.0%} of unseen digits.")
shown = ("epsilon", "delta", "unit", "relation", "sha256")
print({name: card[name] for name in shown})
