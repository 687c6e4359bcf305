"""PrivacyReport: a report in HTML and Markdown."""

import html
import json
import os
import re
from copy import deepcopy
from functools import singledispatch
from html import escape
from pathlib import Path
from typing import Any, Self

from sklearn_pate._inputs._file_content import check_can_write, write_files
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.inspection.report._facts import (
    ReportInputs,
    collect_facts,
    registry_record,
    registry_yaml,
)
from sklearn_pate.inspection.report._sections import (
    MARKED_STYLE,
    PAGE,
    STYLE,
    Bars,
    Bullets,
    Picture,
    Section,
    Sources,
    Table,
    Text,
    banners_of,
    conclusion_of,
    data_flow_lines,
    draw_bars,
    draw_data_flow,
    epsilon_text,
    head_of,
    sections_of,
)
from sklearn_pate.metrics._results import ReleasedMetrics
from sklearn_pate.publication import Deployment

# Numbers and intervals that stay on one line.
_ONE_LINE = re.compile(r"(?:delta=)?\d[\d.]*e-\d+|-?[\d.]+ to -?[\d.]+\d")
_SHORT = 20  # rows of a table that is printed without a page break
# Characters that start markup; underscores inside words do not.
_SPECIAL = re.compile(r"([\\`*\[\]<>|&~#]|(?<!\w)_|_(?!\w))")


def to_html(facts: dict[str, Any]) -> str:
    """Write a report as HTML5 with its style and picture, and without scripts."""
    banners, title, style = banners_of(facts), escape(facts["title"]), STYLE
    if banners:
        mark = " ".join(banners)
        # Browsers show it on the tab and name printed files by it.
        title = f"{mark}: {title}"
        style += MARKED_STYLE.format(mark)
    kind = "plain" if facts["private"] and not facts["promise"]["weak"] else "bad"
    return PAGE.format(
        title=title,
        style=style,
        banners="".join(
            f'<p class="banner"><strong>{escape(text)}</strong></p>\n'
            for text in banners.values()
        ),
        heading=escape(facts["title"]),
        head=escape(head_of(facts)),
        kind=kind,
        conclusion=escape(conclusion_of(facts)),
        sections="\n".join(map(_section, sections_of(facts))),
    )


def _section(section: Section) -> str:
    kind = f' class="{section.printed}"' if section.printed else ""
    blocks = "\n".join(map(_as_html, section.blocks))
    return f"<section{kind}>\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>"


@singledispatch
def _as_html(block: Any) -> str:
    raise TypeError(block)


@_as_html.register
def _(block: Text) -> str:
    kind = ' class="warning"' if block.is_warning else ""
    return f"<p{kind}>{_words(block.text)}</p>"


@_as_html.register
def _(block: Bullets) -> str:
    kind = ' class="checks"' if block.to_tick else ""
    box = '<span class="box" role="img" aria-label="to be confirmed"></span>'
    items = "\n".join(
        f"<li>{box if block.to_tick else ''}<div><strong>{_words(name)}.</strong> "
        f"{_words(text)}</div></li>"
        for name, text in block.items
    )
    return f"<ul{kind}>\n{items}\n</ul>"


def _words(text: str) -> str:
    """Escape a text, and keep 1e-05 or "0.1 to 0.2" on one line."""
    return _ONE_LINE.sub(r'<span class="number">\g<0></span>', escape(text))


@_as_html.register
def _(block: Table) -> str:
    caption = escape(block.caption)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in block.head)
    rows = "\n".join(_row(*row) for row in block.rows)
    kind = ' class="signatures"' if block.to_sign else ""
    if len(block.rows) > _SHORT:
        kind = ' class="long"'
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">\n'
        f"<table{kind}>\n<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(name: str, *values: str) -> str:
    cells = "".join(f"<td>{_words(value)}</td>" for value in values)
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'


@_as_html.register
def _(block: Picture) -> str:
    return (
        f"<figure>\n{draw_data_flow(block.steps)}\n"
        f"<figcaption>{escape(block.caption)}</figcaption>\n</figure>"
    )


@_as_html.register
def _(block: Bars) -> str:
    return (
        f"<figure>\n{draw_bars(block.bars)}\n"
        f"<figcaption>{escape(block.caption)}</figcaption>\n</figure>"
    )


@_as_html.register
def _(block: Sources) -> str:
    items = "\n".join(
        f'<li>{escape(text)} <a href="{escape(link)}" target="_blank" '
        f'rel="noopener noreferrer">{escape(link.removeprefix("https://"))}</a></li>'
        for text, link in block.items
    )
    return f'<ul class="sources">\n{items}\n</ul>'


def to_markdown(facts: dict[str, Any]) -> str:
    """Write a report as CommonMark with the tables and check boxes of GitHub."""
    parts = [
        *(f"> **{_escaped(text)}**" for text in banners_of(facts).values()),
        f"# {_escaped(facts['title'])}",
        _escaped(head_of(facts)),
        f"**{_escaped(conclusion_of(facts))}**",
    ]
    for section in sections_of(facts):
        parts += [f"## {section.title}", *map(_as_markdown, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


@singledispatch
def _as_markdown(block: Any) -> str:
    raise TypeError(block)


@_as_markdown.register
def _(block: Text) -> str:
    text = _escaped(block.text)
    return f"> **{text}**" if block.is_warning else text


@_as_markdown.register
def _(block: Bullets) -> str:
    mark = "- [ ]" if block.to_tick else "-"
    return "\n".join(
        f"{mark} **{_escaped(name)}.** {_escaped(text)}".rstrip()
        for name, text in block.items
    )


@_as_markdown.register
def _(block: Table) -> str:
    lines = [block.head, ["---"] * len(block.head), *block.rows]
    rows = (f"| {' | '.join(map(_escaped, line))} |" for line in lines)
    return "\n".join([f"{_escaped(block.caption)}:", "", *rows])


@_as_markdown.register
def _(block: Picture) -> str:
    lines = [f"1. {_escaped(line)}" for line in data_flow_lines(block.steps)]
    return "\n".join([_escaped(block.caption), "", *lines])


@_as_markdown.register
def _(block: Bars) -> str:
    lines = [f"1. {_escaped(name)}: {value:.3g}" for name, value in block.bars]
    return "\n".join([f"{_escaped(block.caption)}:", "", *lines])


@_as_markdown.register
def _(block: Sources) -> str:
    return "\n".join(f"- {_escaped(text)} <{link}>" for text, link in block.items)


class PrivacyReport:
    """Privacy report of a fit, in plain words, to print and sign.

    The report is for the person responsible for the data. The report states how much an
    attacker can learn about one unit of privacy, limits of the guarantee,
    responsibilities, evidence, and assumptions to confirm. An appendix has the method
    and its privacy cost. Create the report by :meth:`from_estimator`.

    A report with lines to fill in is marked as a draft.

    A report may be published with the model, unless it is *internal*. An internal
    report has numbers computed on private rows, or the history of a ledger. An internal
    report starts with a warning in every format.

    Parameters
    ----------
    facts : dict
        Facts, as collected by :meth:`from_estimator`.

    Notes
    -----
    The report is made from the privacy statement, the classes of the fitted parts,
    `deployment`, and the numbers of classes and features. The statement assumes that
    these numbers are public. For a published model, the report also uses the date on
    the card and `model_file`. The report uses neither the parameters of the estimator
    nor ``privacy_analysis_``.

    The bounds on attackers follow from ``privacy_spent_.profile`` and are rounded up;
    see :class:`~sklearn_pate.accounting.PrivacyProfile`. Bounds for a ledger follow
    from the budget of the ledger.

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
    ...     random_state=0,
    ... )
    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> report = PrivacyReport.from_estimator(clf, title="Which of two blobs")
    >>> report
    PrivacyReport('Which of two blobs', epsilon=1.479, delta=1e-05)
    >>> report.to_dict()["promise"]["guesses"]
    {'right_at_most': 575, 'by_chance': 500, 'of': 1000}
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        *,
        title: str | None = None,
        quality: dict[str, Any] | None = None,
        evaluated_on: str | None = None,
        quality_is_public: bool | None = None,
        metrics: ReleasedMetrics | None = None,
        ledger: PrivacyLedger | None = None,
        model_file: str | os.PathLike[str] | None = None,
        deployment: Deployment | None = None,
        X_public: Any = None,
    ) -> Self:
        """Create the report of a fit.

        Parameters
        ----------
        clf : classifier
            Fitted classifier with ``privacy_spent_``: a private classifier, a
            PrivateSearchCV, a PublishedClassifier, or a Pipeline that ends in such a
            classifier. For a Pipeline, the report lists all leaks by
            :func:`~sklearn_pate.privacy_leaks`, and states no guarantee if there is a
            leak.

        title : str, default=None
            Title of the report. Default: the name and the organisation in `deployment`,
            or "Privacy report".

        quality : dict of str to float or dict, default=None
            Metrics of the model, such as ``{"accuracy": 0.84}``, or metrics by
            subpopulation, such as
            ``{"accuracy by sex": {"women": 0.85, "men": 0.83}}``. **No privacy
            statement covers metrics computed on private rows**: such metrics make the
            report internal.

        evaluated_on : str, default=None
            One sentence about the rows on which `quality` was computed.

        quality_is_public : bool, default=None
            Whether the rows of `quality` are public, labels included. True adds an
            assumption to confirm.

        metrics : PrivateMetrics or OutcomeMetrics, default=None
            Publishable metrics on private rows, by
            :func:`~sklearn_pate.metrics.private_metrics`. The report adds the privacy
            statement of the metrics, and the total cost of fit and metrics. Default:
            the metrics on the card of a PublishedClassifier.

        ledger : PrivacyLedger, default=None
            Ledger whose budget and entries are shown, with user, time and cost. **The
            entries name users, and show which fits used equal data**: entries make the
            report internal.

        model_file : str or path-like, default=None
            File of a saved PublishedClassifier, such as "model.skops". The report
            states name and sha256 of the file. The file is compared with its card, and
            that card with the card of `clf`, but the model is not loaded.

        deployment : Deployment, default=None
            Data, purpose and responsibilities of the model. Default: the description on
            the card of a PublishedClassifier. The report has a line to fill in for each
            missing field.

        X_public : dataframe or array-like of shape (n_public, n_features), default=None
            Public rows. The report draws how much predictions of these rows change if
            one column is shuffled. **Never pass private rows**: no privacy statement
            covers the picture.

        Returns
        -------
        report : PrivacyReport
            Report without a reference to `clf`.

        Raises
        ------
        ValueError
            If `clf` has no privacy statement, or another parameter contradicts the
            statement. For example, `metrics` protect another unit, `model_file` is
            damaged, or `quality` is given without `evaluated_on`.

        FileNotFoundError
            If `model_file` or its card is missing.

        NotFittedError
            If `clf` is not fitted.

        LedgerError
            If the file of the `ledger` cannot be read.
        """
        given = ReportInputs.read(
            clf,
            title=title,
            quality=quality,
            evaluated_on=evaluated_on,
            quality_is_public=quality_is_public,
            metrics=metrics,
            ledger=ledger,
            model_file=model_file,
            deployment=deployment,
            X_public=X_public,
        )
        return cls(collect_facts(given))

    @property
    def internal(self) -> bool:
        """Whether the report must not be published.

        Returns
        -------
        internal : bool
            True for a report with metrics on private rows or the history of a ledger.
        """
        return self._facts["internal"]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts of the report as plain values.

        Returns
        -------
        facts : dict
            Copy of the facts, for strict JSON: an infinite epsilon is None. "private"
            is True if there is a guarantee. "internal" is True if the report must not
            be published. Bounds are rounded up.
        """
        return deepcopy(self._facts)

    def to_json(self) -> str:
        """Write the report as strict JSON.

        Returns
        -------
        text : str
            JSON of :meth:`to_dict`.
        """
        return json.dumps(self._facts, indent=2, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """Write the report as an HTML page.

        Returns
        -------
        page : str
            Self-contained HTML5 page for screens, phones and paper.
        """
        return to_html(self._facts)

    def to_markdown(self) -> str:
        """Write the report as Markdown.

        Returns
        -------
        text : str
            Markdown with the tables and check boxes of GitHub.
        """
        return to_markdown(self._facts)

    def to_registry(self) -> dict[str, Any]:
        """Return the record of the model for a public registry.

        The record is a draft in the schema of the registry of differential privacy
        deployments (https://registry.opendp.org). The privacy fields follow from the
        statement. The other fields follow from `deployment`. A missing required field
        begins with "TO FILL IN". ``save("model.yaml")`` writes the record, with a
        comment that lists the missing fields.

        Returns
        -------
        record : dict
            Plain values, with the status "Draft". The tier of the record depends on the
            fields that are filled in, and is 1 if a required field is missing.

        Raises
        ------
        ValueError
            If there is no guarantee, or the report is internal.
        """
        self._check_for_registry()
        return registry_record(self._facts)

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
            Path of the file. The suffix is the format: ".html", ".md" or ".json", or
            ".yaml" for the record of :meth:`to_registry`.

        internal : bool, default=False
            Save an internal report, **which must not be published**, in a file that
            only this user can read.

        overwrite : bool, default=False
            Replace an existing file.

        Raises
        ------
        ValueError
            If `path` has another suffix, the report is internal and `internal` is
            False, or there is no record for a registry.

        FileNotFoundError
            If the folder does not exist.

        FileExistsError
            If the file exists and `overwrite` is False.
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
            ".yaml": self._to_yaml,
        }
        if path.suffix not in formats:
            raise ValueError(
                f"path={str(path)!r} must end in one of {', '.join(formats)}, the "
                "format of the file."
            )
        if self.internal and not internal:
            raise ValueError(
                "This report is internal, because "
                f"{' and '.join(self._facts['internal_because'])}; pass internal=True "
                "to save it for the data holder, or create a report without this "
                "content."
            )
        check_can_write([path], overwrite=overwrite, name="path=")
        mode = 0o600 if self.internal else 0o666
        write_files({path: formats[path.suffix]().encode()}, mode)

    def _check_for_registry(self) -> None:
        """Raise ValueError unless the model and all facts may be published."""
        if not self._facts["private"]:
            raise ValueError(
                "A registry accepts only models with a privacy guarantee, and this "
                "one has none; see the report for the reason."
            )
        if self.internal:
            raise ValueError(
                "A record for a registry is public, but this report is internal, "
                f"because {' and '.join(self._facts['internal_because'])}; create a "
                "report without this content."
            )

    def _to_yaml(self) -> str:
        self._check_for_registry()
        return registry_yaml(self._facts)

    def __repr__(self) -> str:
        facts = self._facts
        internal = ", internal" if self.internal else ""
        return (
            f"PrivacyReport({facts['title']!r}, epsilon={epsilon_text(facts)}, "
            f"delta={facts['delta']!r}{internal})"
        )

    def _repr_html_(self) -> str:
        # A frame keeps the styles of page and notebook apart.
        page = html.escape(self.to_html())
        return (
            f'<iframe srcdoc="{page}" title="Privacy report" sandbox="allow-popups" '
            'style="width:100%;height:40rem;border:1px solid #b6bec8"></iframe>'
        )
