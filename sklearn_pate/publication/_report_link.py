"""How fitted private classifiers show in notebooks: with a link to their report."""

import html
from base64 import b64encode
from typing import Any

__all__ = ["ReportLinkMixin", "report_link"]


class ReportLinkMixin:
    """Add the privacy statement and its report to the HTML representation.

    For estimators that set ``privacy_spent_``; it goes before BaseEstimator, whose
    diagram stays as it is. Before a fit there is nothing to add.
    """

    def _repr_html_inner(self):
        return super()._repr_html_inner() + _statement_and_link(self)

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += _statement_and_link(self)
        return bundle


def report_link(estimator: Any) -> str:
    """Link to the privacy report of a fitted classifier, as a file that is in the link.

    Parameters
    ----------
    estimator : classifier
        With ``privacy_spent_``, or not yet.

    Returns
    -------
    link : str
        An element of HTML; empty if it is not fitted. The report may be published: it
        has neither figures of quality nor the history of a ledger.
    """
    if "privacy_spent_" not in vars(estimator):
        return ""
    # It imports the classifiers in its turn.
    from sklearn_pate.inspection.privacy_report import PrivacyReport

    try:
        page = PrivacyReport.from_estimator(estimator).to_html()
    except Exception:  # of a damaged estimator: showing it must not fail
        return ""
    content = b64encode(page.encode()).decode()
    return (
        '<a download="privacy-report.html" href="data:text/html;charset=utf-8;base64,'
        f'{content}">privacy report</a>'
    )


def _statement_and_link(estimator):
    link = report_link(estimator)
    if not link:
        return ""
    return f"<p>{html.escape(repr(estimator.privacy_spent_))}: {link}</p>"
