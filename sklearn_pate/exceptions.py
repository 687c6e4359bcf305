"""Warnings and errors that a user may want to catch."""

import contextlib
import functools
import os
import sys
import warnings
from types import FrameType

import joblib
import sklearn

__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "PrivacyLeakWarning",
    "PublicDataWarning",
    "StudentWarning",
    "TeacherWarning",
]

_PACKAGES = (__file__, sklearn.__file__, joblib.__file__)
#: Folders and files whose code may run between the user's line and a warning.
_BETWEEN = (
    *(os.path.dirname(file) + os.sep for file in _PACKAGES),
    contextlib.__file__,
    functools.__file__,
)


class PrivacyLeakWarning(UserWarning):
    """The privacy statement is void, or weaker than it looks.

    It warns of noise that is seeded (whoever knows the seed can subtract it), of a
    `delta` that is not below one over the number of rows, and of bounds that a baseline
    reads from private rows. Publish nothing of such a fit: mend what the message names,
    and fit again.

    It is shown every time, not once a location as Python's other warnings are. Where
    nobody reads warnings, turn it into an error.

    Examples
    --------
    >>> import warnings
    >>> from sklearn_pate import PrivacyLeakWarning
    >>> from sklearn_pate.mechanisms import GNMax
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrivacyLeakWarning)
    ...     try:
    ...         GNMax(sigma=40, noise_seed=0).answer([[200, 50]])
    ...     except PrivacyLeakWarning as leak:
    ...         print(leak)
    noise_seed=0 makes the noise reproducible: whoever knows the seed can subtract it...
    """


class PublicDataWarning(UserWarning):
    """Something about the public data deserves a second look.

    Either ``public_size`` takes private rows for public ones, and the people in them
    get no protection: pass other rows as `X_public` to protect everybody. Or `X_public`
    has as many rows as X, so that a search would cut both alike: wrap it in
    :class:`~sklearn_pate.PublicData`. It comes before any teacher is trained. The
    message counts rows: it is for the data holder.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PublicDataWarning
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> pate = PATEClassifier(LogisticRegression(), n_teachers=20, public_size=0.2)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PublicDataWarning)
    ...     try:
    ...         pate.fit(X, y)
    ...     except PublicDataWarning as warning:
    ...         print(warning)
    public_size=0.2: 100 of the rows are used as public data, and the people in them...
    """


class TeacherWarning(UserWarning):
    """Some teachers may have failed; details are sensitive and stay private.

    A teacher that fails abstains, and the fit goes on; labels of a party that are not
    in `classes` count as abstentions. Which, how many and why depends on private data.
    So the message does not say, and neither it nor its absence may be published. After
    a fit, the data holder finds all of it in ``privacy_analysis_.teacher_failures`` and
    ``privacy_analysis_.teacher_warnings``.

    Examples
    --------
    >>> import warnings
    >>> from sklearn_pate import TeacherWarning, Votes
    >>> by_party = [["ill", "well"], ["i11", "well"]]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", TeacherWarning)
    ...     votes = Votes.from_labels(by_party, classes=["ill", "well"])
    >>> print(caught[0].message)
    Some labels may not be in classes, and count as abstentions; compare the parti...
    """


class StudentWarning(UserWarning):
    """The answers were too few or too uniform to train the student as asked.

    All answers name one class, which the student then always predicts, or there is no
    answer, and it predicts all classes alike. The privacy was spent all the same. It is
    computed from answers that are paid for, and tells nothing that ``answers_`` does
    not. Ask more queries, lower the threshold, or take more teachers or a larger
    epsilon.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, StudentWarning
    >>> from sklearn_pate.mechanisms import GNMax
    >>> pate = PATEClassifier(
    ...     LogisticRegression(), mechanism=GNMax(sigma=1), epsilon=None, classes=[0, 1]
    ... )
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", StudentWarning)
    ...     pate = pate.fit_from_votes([[0.0], [1.0], [2.0]], [[1, 1, 1]] * 100)
    >>> print(caught[0].message)
    All 3 answers name one class; the student always predicts it...
    """


class BudgetExceededError(RuntimeError):
    """The queries cost more than what is left; nothing was asked or charged.

    Raised by a fit or a charge that does not fit the budget of its
    :class:`~sklearn_pate.PrivacyLedger`, and by an
    :class:`~sklearn_pate.mechanisms.Oracle` that is asked more than was paid for. No
    noise was drawn. The message has costs only, no private value. Ask fewer queries
    or with more noise; the ledger's `shares` says how much would fit. A larger budget
    in a new ledger would forget what was released.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_pate import BudgetExceededError, PrivacyLedger
    >>> from sklearn_pate.mechanisms import GNMax
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=1, delta=1e-6)
    >>> curve = GNMax(sigma=40).account_curve(n_queries=500, n_classes=2)
    >>> try:
    ...     ledger.charge(
    ...         curve,
    ...         delta=1e-6,
    ...         unit="row",
    ...         relation="replace-one",
    ...         description="500 queries",
    ...     )
    ... except BudgetExceededError:
    ...     share, left = ledger.budget_fractions(curve)
    ...     print(f"{left / share:.0%} of these queries would fit")
    12% of these queries would fit
    >>> ledger.spent
    0.0
    >>> folder.cleanup()
    """


class LedgerError(OSError):
    """The file of a ledger cannot be read or written; nothing more was asked.

    It is missing, in use for too long, damaged, of another version, or another file by
    now; or its key is. The message says which, and what to do. What was charged before
    stays charged. Do not catch it to go on without a ledger, and make no new ledger for
    data that had one, as it would know of no release: put the file back.

    Examples
    --------
    >>> from sklearn_pate import LedgerError, PrivacyLedger
    >>> try:
    ...     PrivacyLedger("no_such_folder/patients.sqlite")
    ... except LedgerError as error:
    ...     print(error)
    There is no folder ...no_such_folder; create it first.
    """


# Python shows a repeated warning once per location. A leak repeats its warning at
# every fit; appended, so that a user's own filter still comes first.
warnings.simplefilter("always", PrivacyLeakWarning, append=True)


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package, scikit-learn and joblib."""
    # From Python 3.12 on, skip_file_prefixes of warnings.warn does the same.
    frame: FrameType | None = sys._getframe()
    stacklevel = 1
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
        stacklevel += 1
    warnings.warn(message, category, stacklevel=stacklevel)
