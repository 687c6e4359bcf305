"""
============================
Number of teachers and noise
============================

The noise hides the vote of one teacher, for any number of teachers. With more teachers,
the most-voted class can lead by more votes, and noise changes fewer answers. A *plan*
computes the accuracy of answers before a fit. It reads no data, and may be published.
"""

# %%
# A plan
# ------
#
# :func:`~sklearn_pate.inspection.plan` takes the classifier that will be fitted. This
# plan is for 60,000 private rows and 100 queries at epsilon 1. The *lead* is the number
# of votes of the most-voted class minus that of the next class.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_pate import PATEClassifier
from sklearn_pate.inspection import plan

clf = PATEClassifier(n_queries=100, epsilon=1.0)
print(plan(clf, n_rows=60_000))

# %%
# Several numbers of teachers
# ---------------------------
#
# All plans have the same noise. Each line shows, for every lead as a share of the
# teachers, how often an answer is the most-voted class, at least.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
margins = np.linspace(0.02, 1, 50)
for n_teachers in [50, 100, 250, 1000]:
    planned = plan(
        clf.set_params(n_teachers=n_teachers), n_rows=60_000, margins=margins
    )
    right = [one.right for one in planned.at_margins]
    rows = f"{planned.rows_per_teacher:.0f} rows each"
    ax.plot(margins, right, label=f"{n_teachers} teachers, {rows}")
ax.axhline(0.9, color="grey", linewidth=1, linestyle="--")
ax.set(
    xlabel="lead of the most-voted class, as a share of the teachers",
    ylabel="share of right answers",
    title=f"100 queries of two classes, epsilon={planned.epsilon:.2f}",
)
ax.legend()
plt.show()

# %%
# Interpretation
# --------------
#
# An answer is right in nine of ten queries from these leads on:

for n_teachers in [50, 100, 250, 1000]:
    planned = plan(clf.set_params(n_teachers=n_teachers), n_rows=60_000)
    if planned.margin_for_90 is None:
        print(f"{n_teachers} teachers: at no lead. {planned.warnings[0]}")
    else:
        print(f"{n_teachers} teachers: {planned.margin_for_90:.0%} of the teachers")

# %%
# More teachers need a smaller lead, but each teacher learns from fewer rows and is less
# accurate, so that teachers agree less often. The private data decide which number is
# best. Do not choose the number by private votes, as no privacy statement covers such
# a choice. Choose the number on public or made-up rows, and fit the private rows once.
