"""Privacy report
==============

A privacy statement is short. The person who is responsible for the data needs more: the
meaning of the numbers for one person, the assumptions, and the limits.
:class:`~sklearn_pate.inspection.PrivacyReport` writes a page with all these facts.
"""

# %%
# A student and a ledger
# ----------------------
#
# The digits are split into private rows with labels, public rows without labels, and
# test rows. Test rows and their labels are public.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.publication import Deployment

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
# Report for publication
# ----------------------
#
# A report for publication contains no more information about private rows than the
# statement. It may have figures of quality from public rows. You declare such figures
# public, and the page has a line to sign this declaration. A ``Deployment`` holds facts
# that only people know. The page has lines to fill in missing facts.

about = Deployment(unit_name="drawing", intended_use="reading of postcodes")
report = PrivacyReport.from_estimator(
    clf,
    title="Which digit is it?",
    quality={"accuracy": round(clf.score(X_test, y_test), 3)},
    evaluated_on="300 digits that were not used for training.",
    quality_is_public=True,
    deployment=about,
)
report.save(Path(folder.name, "report.html"))
report

# %%
# The report is also available as Markdown, for a repository:

print("\n".join(report.to_markdown().splitlines()[:7]))

# %%
# ``to_dict`` returns the report as a dictionary, for programs. The guarantee for a
# person with several rows is weaker, and part of the report:

several = report.to_dict()["promise"]["several"]
n_rows = [str(one["units"]) for one in several]
right = [one["guesses"]["right_at_most"] for one in several]
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.bar_label(axis.bar(n_rows, right, color="#2277cc"))
axis.axhline(500, color="black", linestyle="--", label="random guessing")
axis.set(
    title="Bound on the guesses of an attacker",
    xlabel="rows of one person",
    ylabel="right guesses at most, of 1000",
    ylim=(0, 1200),
)
axis.legend(loc="lower right")
plt.show()

# %%
# Internal report
# ---------------
#
# The entries of a ledger are for the data holder. With ledger entries, or with figures
# from private rows, a report is *internal*. An internal report is marked at its top,
# and ``save`` needs ``internal=True``.

internal = PrivacyReport.from_estimator(clf, title="Which digit?", ledger=ledger)
try:
    internal.save(Path(folder.name, "internal.html"))
except ValueError as error:
    print(error)

internal.save(Path(folder.name, "internal.html"), internal=True)
print(internal.to_markdown().splitlines()[0])
folder.cleanup()

# %%
# In a notebook, every fitted classifier shows a link to its report.
