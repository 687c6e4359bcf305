"""PrivacyReport: a page that says what a fit promises, for those who have to answer."""

import html
import json
import os
import secrets
from copy import deepcopy
from pathlib import Path
from typing import Any, Self

from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.inspection.privacy_report._facts import collect_facts
from sklearn_pate.inspection.privacy_report._guarantee import epsilon_text
from sklearn_pate.inspection.privacy_report._html import to_html
from sklearn_pate.inspection.privacy_report._markdown import to_markdown

__all__ = ["PrivacyReport"]


class PrivacyReport:
    """What a private fit promises, in plain words, on a page that stands on its own.

    For the person who has to answer for the data: what an attacker can learn about one
    row at most, what the promise rests on, with lines to sign, what it does not say,
    how it works and what it cost. Make one with :meth:`from_estimator`.

    A report says no more than the privacy statement does, and may be published with the
    model. One with figures computed on private rows, or with a ledger's history, is
    *internal*: every format says so at its top, and :meth:`save` has to be told that
    you know.

    Parameters
    ----------
    facts : dict
        As :meth:`from_estimator` collects them.

    Notes
    -----
    Nothing is read from the parameters of the estimator, which may name files or hold
    rows, and may have been changed since the fit. What is shown is the statement, the
    classes of the fitted parts, and the numbers of classes and features, which the
    statement assumes to be public; of a published model, the date on its card, and its
    file if you name it. ``privacy_analysis_`` is never shown.

    The bounds on attackers are functions of epsilon and delta alone, as in Wasserman
    and Zhou (2010), "A statistical framework for differential privacy", and Kairouz,
    Oh, Viswanath (2015), "The composition theorem for differential privacy". All are
    rounded up.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.inspection import PrivacyReport
    >>> from sklearn_pate.mechanisms import GNMax
    >>> X, y = make_blobs(600, centers=2, random_state=0)
    >>> clf = PATEClassifier(
    ...     LogisticRegression(),
    ...     n_teachers=40,
    ...     mechanism=GNMax(sigma=10),
    ...     n_queries=10,
    ...     epsilon=None,
    ... )
    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> report = PrivacyReport.from_estimator(clf, title="Which of two blobs")
    >>> report
    PrivacyReport('Which of two blobs', epsilon=1.538, delta=1e-05)
    >>> report.to_dict()["promise"]["guesses"]
    {'right_at_most': 824, 'by_chance': 500, 'of': 1000}
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        *,
        title: str | None = None,
        quality: dict[str, float] | None = None,
        evaluated_on: str | None = None,
        quality_is_public: bool | None = None,
        ledger: PrivacyLedger | None = None,
        model_file: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Make the report of a fit.

        Parameters
        ----------
        clf : classifier
            Fitted, with ``privacy_spent_``: a PATEClassifier, another private learner,
            a PrivateSearchCV, a PublishedClassifier, or a Pipeline that ends in one. Of
            a Pipeline, the page lists what :func:`~sklearn_pate.privacy_leaks` finds,
            and says that nothing is promised if it finds anything.

        title : str, default=None
            Heading of the page. It is published with it. None means "Privacy report".

        quality : dict of str to float, default=None
            Figures such as ``{"accuracy": 0.84}``, as you computed them. **Computed on
            private rows, no privacy statement covers them**, and the report is
            internal.

        evaluated_on : str, default=None
            With `quality`: one sentence that says which rows it was computed on.

        quality_is_public : bool, default=None
            With `quality`: whether these rows are public, labels included. If so, that
            is one more assumption to sign.

        ledger : PrivacyLedger, default=None
            Show its history: budget, and who was charged what and when. **It names
            users, and tells which fits saw equal data**: the report is internal.

        model_file : str or path-like, default=None
            Where a PublishedClassifier was saved: "model.skops", say. The page then
            tells which model it is about, by the file's name and its sha256, and is
            published with both. The file is compared with its card, and the card with
            that of `clf`; it is not loaded.

        Returns
        -------
        report : PrivacyReport
            It keeps nothing of `clf`.

        Raises
        ------
        ValueError
            If `clf` has no privacy statement, `quality` comes without `evaluated_on` or
            `quality_is_public`, `ledger` protects another unit or relation, or
            `model_file` is damaged or comes with another card than `clf`.

        FileNotFoundError
            If `model_file` or its card is missing.

        NotFittedError
            If `clf` is not fitted.

        LedgerError
            If the file of the `ledger` cannot be read.
        """
        return cls(
            collect_facts(
                clf,
                title=title,
                quality=quality,
                evaluated_on=evaluated_on,
                quality_is_public=quality_is_public,
                ledger=ledger,
                model_file=model_file,
            )
        )

    @property
    def internal(self) -> bool:
        """Whether the report must not be published.

        Returns
        -------
        internal : bool
            True if it shows more than a privacy statement covers.
        """
        return self._facts["internal"]

    def to_dict(self) -> dict[str, Any]:
        """Return what the report says as plain values.

        Returns
        -------
        facts : dict
            A copy, which strict JSON can hold: an epsilon that is infinite is None.
            "private" is whether anything is promised, "internal" whether the report
            must not be published. Numbers that stand for a promise are rounded up.
        """
        return deepcopy(self._facts)

    def to_json(self) -> str:
        """Write the report as strict JSON.

        Returns
        -------
        text : str
            That of :meth:`to_dict`.
        """
        return json.dumps(self._facts, indent=2, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """Write the report as a page.

        Returns
        -------
        page : str
            HTML5 that loads nothing, for screens, phones and paper.
        """
        return to_html(self._facts)

    def to_markdown(self) -> str:
        """Write the report as Markdown.

        Returns
        -------
        text : str
            With the tables and check boxes of GitHub.
        """
        return to_markdown(self._facts)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        internal: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write the report to a file.

        Parameters
        ----------
        path : str or path-like
            Ends in ".html", ".md" or ".json", which is what is written.

        internal : bool, default=False
            Write a report that is internal, too: **it must not be published**. This
            user alone can read the file.

        overwrite : bool, default=False
            Replace a file of this name.

        Raises
        ------
        ValueError
            If `path` has another ending, or the report is internal and `internal` is
            False.

        FileNotFoundError
            If there is no such folder.

        FileExistsError
            If the file is there and not to be overwritten.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise ValueError(
                f"path={path!r} must be a str or a path, such as 'report.html'."
            )
        path = Path(path)
        formats = {
            ".html": self.to_html,
            ".md": self.to_markdown,
            ".json": self.to_json,
        }
        if path.suffix not in formats:
            raise ValueError(
                f"path={str(path)!r} must end in one of {', '.join(formats)}, which is "
                "what is written."
            )
        if self.internal and not internal:
            raise ValueError(
                "This report is internal, because "
                f"{' and '.join(self._facts['internal_because'])}; pass internal=True "
                "to save it for the data holder, or make one without."
            )
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"There is no folder {path.parent} for path={str(path)!r}; create it "
                "first."
            )
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} is there already; choose another path, or pass overwrite=True "
                "to replace it."
            )
        mode = 0o600 if self.internal else 0o666
        _write(path, formats[path.suffix]().encode(), mode)

    def __repr__(self):
        facts = self._facts
        internal = ", internal" if self.internal else ""
        return (
            f"PrivacyReport({facts['title']!r}, epsilon={epsilon_text(facts)}, "
            f"delta={facts['delta']!r}{internal})"
        )

    def _repr_html_(self):
        # A page of its own: its style and that of the notebook stay apart.
        page = html.escape(self.to_html())
        return (
            f'<iframe srcdoc="{page}" title="Privacy report" sandbox="allow-popups" '
            'style="width:100%;height:40rem;border:1px solid #b6bec8"></iframe>'
        )


def _write(path, content, mode):
    """Write a file under another name, then rename it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")

    def opener(name, flags):
        return os.open(name, flags, mode)

    try:
        with open(temporary, "xb", opener=opener) as file:
            file.write(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
