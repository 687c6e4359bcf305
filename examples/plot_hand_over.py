"""Privacy budget and publication
==============================

Every fit on the same private rows is a release, and privacy costs add. A ledger is a
file with the privacy budget of a sensitive data set. The ledger records the cost of
each fit before noise is drawn, and refuses a fit that would exceed the budget. In the
end, a student is published with a card that states its privacy cost.
"""

# %%
# Budget
# ------
#
# All releases about these digits may cost epsilon 8. The ledger is a temporary file.

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
# Fits within the budget
# ----------------------
#
# A fit at half of the epsilon takes less than half of the budget, as Renyi costs add
# and are about proportional to the square of epsilon. A repeated fit gets the same
# answers, at no further cost.

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
print(f"The same fit again gets the same answers: {ledger.spent:.0%}.")

pate.set_params(n_queries=400).fit(X, y, X_public=PublicData(X_public))
print(f"A fit with more queries: {ledger.spent:.0%}.")

# %%
# A refused fit
# -------------
#
# ``plan_privacy`` computes the cost of a fit. A fit beyond the budget draws no noise.

large = clone(pate).set_params(n_queries=200, epsilon=6.0)
planned = large.plan_privacy(X, y, X_public=PublicData(X_public))
wanted, left = ledger.budget_fractions(planned.curve)
print(f"A fit at epsilon 6 takes {wanted:.0%}, and {left:.0%} is left.")
try:
    large.fit(X, y, X_public=PublicData(X_public))
except BudgetExceededError as error:
    print(error)

# %%
# Entries of the ledger
# ---------------------
#
# ``ledger.report()`` adds details for auditors: user, parameters and time.

entries = ledger.entries()
for entry in entries:
    print(f"{entry.share:.2%}  epsilon {entry.epsilon:.3f}  {entry.description}")
print(f"{ledger.spent:.2%} in {len(entries)} entries")
figure, axis = plt.subplots(figsize=(7, 2), layout="constrained")
shares = [entry.share for entry in entries]
bars = axis.barh(0, shares, left=[0, shares[0]], color="#2277cc", edgecolor="white")
axis.bar_label(bars, ["epsilon 4"] * 2, label_type="center", color="white")
bars = axis.barh(0, wanted, left=ledger.spent, color="white", ec="#d55e00", hatch="//")
axis.bar_label(bars, ["epsilon 6: refused"], label_type="center", backgroundcolor="w")
axis.axvline(1, color="black")
axis.set(xlim=(0, 1.3), yticks=[], title="The budget ends at the black line")
axis.set_xlabel(f"share of the budget, epsilon={ledger.epsilon}, delta={ledger.delta}")
plt.show()

# %%
# Publication
# -----------
#
# ``publish`` returns the student and its statement, and nothing else. ``save`` writes a
# model file, which runs no code when it is loaded, and a card in plain JSON.

path = Path(folder.name, "digits.skops")
pate.publish().save(path)
received = PublishedClassifier.load(path)
card = json.loads(path.with_suffix(".json").read_text())
folder.cleanup()
print(received.privacy_spent_)
print(f"Accuracy on unseen digits: {received.score(X_test, y_test):.0%}.")
print({name: card[name] for name in ("epsilon", "delta", "unit", "relation")})
