"""Errors and warnings of teachers. Sensitive."""

from dataclasses import dataclass, field
from typing import NoReturn

from sklearn_pate._teachers._task import ON_PUBLIC_ROWS, TeacherResult
from sklearn_pate.accounting._counted import counted

__all__ = ["TeacherProblems", "raise_for_no_votes"]

_DROPPED = "dropped for missing or infinite values"


@dataclass
class TeacherProblems:
    """Errors and warnings of teachers, each with the teacher's index. Sensitive.

    Texts may quote private rows, and which teachers failed, and how many, depends on
    them; `repr` shows everything. A failure starts with "on X_public, " if the teacher
    was trained. `data` lists private rows and classes that no teacher used; `dropped`
    the number of rows a teacher dropped for missing or infinite values. True if a
    teacher failed or warned.
    """

    failures: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    dropped: list[tuple[int, int]] = field(default_factory=list)

    def add(self, result: TeacherResult) -> None:
        """Add the problems of a teacher."""
        if result.failure is not None:
            self.failures.append((result.teacher, result.failure))
        self.warnings.extend((result.teacher, text) for text in result.warnings)
        if result.n_dropped:
            self.dropped.append((result.teacher, result.n_dropped))

    def sort(self) -> None:
        """Sort all problems by teacher."""
        for problems in (self.failures, self.warnings, self.dropped):
            problems.sort()

    def texts(self) -> list[tuple[int, str]]:
        """List warnings and dropped rows as texts, with the teacher's index."""
        dropped = [
            (teacher, f"{counted(n_rows, 'row')} {_DROPPED}")
            for teacher, n_rows in self.dropped
        ]
        return sorted([*self.warnings, *dropped])

    def __bool__(self) -> bool:
        return bool(self.failures or self.warnings)


def raise_for_no_votes(problems: TeacherProblems) -> NoReturn:
    """Raise an error that explains why no teacher voted. It may quote private rows."""
    failures = problems.failures
    if not failures and problems.dropped:
        raise ValueError(
            "No teacher had rows to train on: all of them "
            f"were {_DROPPED}, which estimator does not accept. Put an imputer inside "
            "estimator= and student=, as in make_pipeline(SimpleImputer(), "
            "LogisticRegression()), or leave out the column."
        )
    if not failures:
        raise ValueError(
            "No teacher cast a vote: no row of y has a label "
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
