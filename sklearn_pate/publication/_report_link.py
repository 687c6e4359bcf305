"""Link to the privacy report in the notebook view of private classifiers."""

import html
from base64 import b64encode
from typing import Any

__all__ = ["ReportLinkMixin", "report_link"]


class ReportLinkMixin:
    """Add the privacy statement and its report to the HTML of a fitted classifier.

    It comes before BaseEstimator in the bases, and needs ``privacy_spent_``.
    """

    def _repr_html_inner(self) -> str:
        page: str = super()._repr_html_inner()  # type: ignore[misc]
        return page + _statement_and_link(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(  # type: ignore[misc]
            **kwargs
        )
        if "text/html" in bundle:
            bundle["text/html"] += _statement_and_link(self)
        return bundle


def report_link(estimator: Any) -> str:
    """Link to the report of a fitted classifier, as HTML that contains the report.

    The report has no figures of quality and no history of a ledger: it may be
    published. Before the fit, the link is empty.
    """
    if "privacy_spent_" not in vars(estimator):
        return ""
    # Imported here: its package imports the classifiers.
    from sklearn_pate.inspection.privacy_report import PrivacyReport

    try:
        page = PrivacyReport.from_estimator(estimator).to_html()
    except Exception:  # a damaged estimator must be shown, too
        return ""
    content = b64encode(page.encode()).decode()
    return (
        '<a download="privacy-report.html" href="data:text/html;charset=utf-8;base64,'
        f'{content}">privacy report</a>'
    )


def _statement_and_link(estimator: Any) -> str:
    link = report_link(estimator)
    if not link:
        return ""
    return f"<p>{html.escape(repr(estimator.privacy_spent_))}: {link}</p>"
