"""Warnings and errors."""

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
    "PrivacyUtilityWarning",
    "PublicDataWarning",
    "StudentWarning",
    "TeacherWarning",
]

_PACKAGES = (__file__, sklearn.__file__, joblib.__file__)
#: Folders and files of code between the user's line and a warning.
_BETWEEN = (
    *(os.path.dirname(file) + os.sep for file in _PACKAGES),
    contextlib.__file__,
    functools.__file__,
)


class PrivacyLeakWarning(UserWarning):
    """Warning that the privacy statement is void, or weaker than it seems.

    Reasons are seeded noise, an `epsilon` above 20, a `delta` of at least one over the
    number of rows, and bounds of values read from private rows. Do not publish results
    of such a fit. Correct the cause that the message names, and fit again.

    Another reason is a second fit of the same rows without a ledger, which is named
    once in a process. The costs of both fits add up.

    Unlike other warnings, this warning is shown every time. In programs whose warnings
    nobody reads, turn the warning into an error.

    Examples
    --------
    >>> import warnings
    >>> from sklearn_pate import PrivacyLeakWarning
    >>> from sklearn_pate.mechanisms import GNMax
    >>> from sklearn_pate.testing import seeded_noise
    >>> with warnings.catch_warnings(), seeded_noise(0):
    ...     warnings.simplefilter("error", PrivacyLeakWarning)
    ...     try:
    ...         GNMax(sigma=40).answer([[200, 50]])
    ...     except PrivacyLeakWarning as leak:
    ...         print(leak)
    The noise is seeded: an attacker who knows the seed can subtract...
    """


class PrivacyUtilityWarning(UserWarning):
    """Warning that a private model will be, or is, of little use.

    The warning depends on public and released numbers alone. If noise is too large for
    the votes to train a student, the warning is raised before any teacher is trained
    and any cost is recorded. The message names sufficient settings. Turn the warning
    into an error to stop a fit that would waste its privacy budget. What only released
    numbers show, such as a domain that misses the data, is reported after the release.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PrivacyUtilityWarning, PublicData
    >>> X, y = make_blobs(3000, centers=2, random_state=0)
    >>> pate = PATEClassifier(LogisticRegression(), n_teachers=10)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrivacyUtilityWarning)
    ...     try:
    ...         pate.fit(X[:1000], y[:1000], X_public=PublicData(X[1000:]))
    ...     except PrivacyUtilityWarning as warning:
    ...         print(warning)
    The noise of MeanScores(noise_scale=7.46127) is too large for 10 teachers: it...
    """


class PublicDataWarning(UserWarning):
    """Warning that the public data may not be what the user intended.

    The warning has several possible reasons. ``public_size`` makes private rows public:
    pass other rows as `X_public` to protect everybody. An `X_public` with as many rows
    as X may be a copy of X. A search may also split these rows, unless they are in a
    :class:`~sklearn_pate.PublicData`. A text column may hold numbers, dates or ids. The
    axis of the channels of images may be unclear. The message is for the data holder,
    as it has numbers of rows.

    The warning is raised before any privacy cost is spent, except where released
    numbers show that public rows are unlike the private rows.

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
    public_size=0.2 uses 100 private rows as public rows. The people in these rows...
    """


class TeacherWarning(UserWarning):
    """Warning that some teachers may have failed. Sensitive.

    A teacher that fails abstains, and the fit continues. Labels of a party that are not
    in `classes` count as abstentions. Neither the warning nor its absence may be
    published, as they depend on private data. For the data holder,
    ``privacy_analysis_.teacher_failures`` and ``privacy_analysis_.teacher_warnings``
    have details after a fit.

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
    """Warning that the answers are too few or too uniform to train the student.

    If all answers are one class, the student always predicts this class. Without
    answers, the student predicts all classes with equal probability. The privacy cost
    is spent in any case. The warning depends on the released answers alone. Use more
    queries, a lower threshold, more teachers or a larger epsilon.

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
    All answers (3) name one class; the student always predicts it...
    """


class BudgetExceededError(RuntimeError):
    """Error that a release costs more than the remaining budget. Nothing was charged.

    Raised by a fit or a charge that exceeds the budget of its
    :class:`~sklearn_pate.PrivacyLedger`. Also raised by an
    :class:`~sklearn_pate.mechanisms.Oracle` for more queries than its cost covers. No
    noise was drawn. The message has no private value. Use fewer queries or more noise.
    `budget_fractions` of the ledger returns the fraction of the budget that a cost
    takes, and the fraction left. Do not create a new ledger, as a new ledger would not
    include earlier releases.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_pate import BudgetExceededError, PrivacyLedger
    >>> from sklearn_pate.mechanisms import GNMax
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=1, delta=1e-6)
    >>> curve = GNMax(sigma=40).cost(n_queries=500, n_classes=2).curve
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
    """Error that the file of a ledger cannot be read or written. No query was answered.

    The message has the reason and the remedy. For example, the file or its key is
    missing, damaged, in use for too long, or from another version. Earlier charges stay
    recorded. Restore the file. Do not continue without a ledger or with a new ledger,
    as earlier releases would not be counted.

    Examples
    --------
    >>> from sklearn_pate import LedgerError, PrivacyLedger
    >>> try:
    ...     PrivacyLedger("no_such_folder/patients.sqlite")
    ... except LedgerError as error:
    ...     print(error)
    There is no folder ...no_such_folder; create it first.
    """


# Shown at every fit, not once per location; appended, so that filters of users come
# first.
warnings.simplefilter("always", PrivacyLeakWarning, append=True)


def warn_user(
    message: str | Warning | None, category: type[Warning] = UserWarning
) -> None:
    """Warn at the innermost line outside this package, scikit-learn and joblib.

    A message of None is no warning.
    """
    if message is None:
        return
    # Python 3.12 has skip_file_prefixes in warnings.warn for this.
    frame: FrameType | None = sys._getframe()
    stacklevel = 1
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
        stacklevel += 1
    warnings.warn(message, category, stacklevel=stacklevel)
