"""Warnings and errors that a user may want to catch."""

import warnings

__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "PrivacyLeakWarning",
    "PublicDataWarning",
    "StudentWarning",
    "TeacherWarning",
]


class PrivacyLeakWarning(UserWarning):
    """The privacy statement is void, or weaker than it looks."""


class PublicDataWarning(UserWarning):
    """Something about the public data deserves a second look."""


class TeacherWarning(UserWarning):
    """Some teachers may have failed; details are sensitive and stay private."""


class StudentWarning(UserWarning):
    """The answers were too few or too uniform to train the student as asked."""


class BudgetExceededError(RuntimeError):
    """The questions cost more than what is left; nothing was asked or charged."""


class LedgerError(OSError):
    """The file of a ledger cannot be read or written; nothing more was asked."""


# Python shows a repeated warning once per location. A leak repeats its warning at
# every fit; appended, so that a user's own filter still comes first.
warnings.simplefilter("always", PrivacyLeakWarning, append=True)
