"""A page for the data-protection officer
======================================

A privacy statement is one line of numbers. Whoever answers for the data needs more:
what the numbers mean for one person, what they rest on, and where they end.
:class:`~sklearn_pate.inspection.PrivacyReport` writes that page.
"""

# %%
# A student, and an account
# -------------------------
#
# Digits in three parts: private ones with labels, public ones without, and some to test
# on. These are public too, labels included.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.inspection import PrivacyReport

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=300, random_state=0)
X, X_public, y, _ = train_test_split(X, y, test_size=400, random_state=0)

folder = tempfile.TemporaryDirectory()
ledger = PrivacyLedger(Path(folder.name, "digits.sqlite"), epsilon=6, delta=1e-5)
clf = PATEClassifier(
    KNeighborsClassifier(1),
    student=LogisticRegression(C=0.001, max_iter=3000),
    n_teachers=60,
    n_queries=300,
    epsilon=3.0,
    classes=range(10),
    ledger=ledger,
    random_state=0,
)
clf.fit(X, y, X_public=PublicData(X_public))
print(clf.privacy_spent_)

# %%
# The page to publish
# -------------------
#
# It says no more than the statement does, and stands on its own. Figures of quality may
# be on it if they come from public rows: you say so, and somebody is asked to sign for
# it.

report = PrivacyReport.from_estimator(
    clf,
    title="Which digit is it?",
    quality={"accuracy": round(clf.score(X_test, y_test), 3)},
    evaluated_on="300 digits that nobody was trained on.",
    quality_is_public=True,
)
report.save(Path(folder.name, "report.html"))
report

# %%
# The same in Markdown, for a repository:

print("\n".join(report.to_markdown().splitlines()[:7]))

# %%
# And as a dictionary, for programs. What is promised to somebody with several rows is
# weaker, and the report says how weak:

several = report.to_dict()["promise"]["several"]
n_rows = [str(one["units"]) for one in several]
right = [one["guesses"]["right_at_most"] for one in several]
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.bar_label(axis.bar(n_rows, right, color="#2277cc"))
axis.axhline(500, color="black", linestyle="--", label="blind guessing")
axis.set(
    title="What an attacker can make of it",
    xlabel="rows of one person",
    ylabel="right guesses at most, of 1000",
    ylim=(0, 1200),
)
axis.legend(loc="lower right")
plt.show()

# %%
# The page to keep inside
# -----------------------
#
# What a ledger remembers is for the data holder: who fitted what, and when. With it, or
# with figures from private rows, the page is *internal*. It says so at its top, and is
# not saved by accident.

internal = PrivacyReport.from_estimator(clf, title="Which digit?", ledger=ledger)
try:
    internal.save(Path(folder.name, "internal.html"))
except ValueError as error:
    print(error)

internal.save(Path(folder.name, "internal.html"), internal=True)
print(internal.to_markdown().splitlines()[0])
folder.cleanup()

# %%
# In a notebook, every fitted classifier comes with a link to its report.
