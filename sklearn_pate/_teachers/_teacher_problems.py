"""Errors and warnings of teachers. Sensitive."""

from dataclasses import dataclass, field
from typing import NoReturn

from sklearn_pate._teachers._task import ON_PUBLIC_ROWS

__all__ = ["TeacherProblems", "raise_for_no_votes"]

_DROPPED = "were dropped for missing or infinite values"


@dataclass
class TeacherProblems:
    """Errors and warnings of teachers, each with the teacher's index. Sensitive.

    Texts may quote private rows, and which teachers failed, and how many, depends on
    them. `repr` shows everything; false if no teacher failed or warned.

    Parameters
    ----------
    failures : list of (int, str)
        Teachers that raised, and the exception's type and text. It begins with "on
        X_public, " if the teacher was trained, and failed when it was asked.

    warnings : list of (int, str)
        Teachers that warned, and the warning's category and text.

    data : list of str
        Which private rows and classes no teacher learned from.
    dropped : list of (int, int)
        Teachers whose shards held rows that they do not take, for missing or infinite
        values, and the number of these rows. They do not make this true.

    Examples
    --------
    >>> from sklearn_pate._teachers import TeacherProblems
    >>> bool(TeacherProblems())
    False
    >>> problems = TeacherProblems(failures=[(3, "ValueError: X holds 1e400")])
    >>> bool(problems)
    True
    """

    failures: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    dropped: list[tuple[int, int]] = field(default_factory=list)

    def texts(self):
        """List warnings and dropped rows as texts.

        Returns
        -------
        texts : list of (int, str)
            Teachers, and what there is to know about each. Sensitive.
        """
        dropped = [
            (teacher, f"{n_rows} of its rows {_DROPPED}")
            for teacher, n_rows in self.dropped
        ]
        return sorted([*self.warnings, *dropped])

    def __bool__(self):
        return bool(self.failures or self.warnings)


def raise_for_no_votes(n_teachers: int, problems: TeacherProblems) -> NoReturn:
    """Say why no teacher voted. The message may quote private rows."""
    failures = problems.failures
    if not failures and problems.dropped:
        raise ValueError(
            f"None of the {n_teachers} teachers had rows to learn from: all of them "
            f"{_DROPPED}, which estimator does not take. Put an imputer inside "
            "estimator= and student=, as in make_pipeline(SimpleImputer(), "
            "LogisticRegression()), or leave out the column."
        )
    if not failures:
        raise ValueError(
            f"None of the {n_teachers} teachers cast a vote: no row of y has a label "
            "in classes, or every prediction was out of range. Compare classes with "
            "the labels in y."
        )
    first = failures[0][1]
    if first.startswith(ON_PUBLIC_ROWS):
        where, remedy = "in predict on X_public", ", and then predict on X_public"
    else:
        where, remedy = "in training", ""
    raise ValueError(
        f"All teachers with data failed, the first one {where}. Try estimator.fit on a "
        f"few hundred rows alone, with y encoded as class indices{remedy}. Its "
        "error (do not publish: it may quote private rows): "
        f"{first.removeprefix(ON_PUBLIC_ROWS)}"
    )
