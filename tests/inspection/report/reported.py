"""Fits to report on, and parsers of the formats."""

import functools
import html
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PrivacySpent, PublicData
from sklearn_pate.accounting import DEFAULT_ORDERS, Assumption, RdpCurve
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.testing import seeded_noise
from tests.private import LABEL_SET

BOUNDS = ([-20.0, -20.0], [20.0, 20.0])
CANARY = "CANARY-31415926"
QUALITY = {
    "quality": {"accuracy": 0.8125, "AUC": 0.9},
    "evaluated_on": "rows that no model was trained on.",
}


def rows():
    return make_blobs(700, centers=3, random_state=0)


@functools.cache
def pate(**parameters):
    X, y = rows()
    parameters = {
        "n_teachers": 20,
        "n_queries": 40,
        "mechanism": GNMax(sigma=12),
        "epsilon": None,
        "random_state": 0,
    } | parameters
    clf = PATEClassifier(GaussianNB(), LogisticRegression(), **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))


def seeded(seed=1):
    """Return a fit with seeded noise, which is not kept."""
    with seeded_noise(seed):
        return pate.__wrapped__()


@functools.cache
def linear(**parameters):
    X, y = rows()
    clf = DPLogisticRegression(feature_bounds=BOUNDS, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, y)


# Of a cost far above those that the tests state.
LOOSE = RdpCurve([2.0, 8.0], [1e3, 1e3])


class Stated(ClassifierMixin, BaseEstimator):
    """Anything that is fitted and has a statement."""

    def __init__(self, **stated):
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = 2
        curve = RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS / 50)
        spent = PrivacySpent(
            epsilon=curve.to_epsilon(1e-5),
            delta=1e-5,
            unit="row",
            relation="replace-one",
            release="model",
            mechanism="noise",
            n_teachers=None,
            n_queries=None,
            assumptions=(LABEL_SET, Assumption("sky", "the sky is <blue>")),
            curve=curve,
        )
        self.privacy_spent_ = replace(spent, **{"profile": None} | stated)


def every_format(report):
    return {
        "html": report.to_html(),
        "markdown": report.to_markdown(),
        "json": report.to_json(),
        "notebook": report._repr_html_(),
    }


def report_on(clf, **options):
    return PrivacyReport.from_estimator(clf, **options)


VOID = {"meta", "link", "img", "br", "hr", "input", "base"}


class Page(HTMLParser):
    """Read a page, and raise where an element is not closed in its turn."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.tables, self.open = [], [], []
        self.text, self.headings = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if set(self.open) & {"th", "td"}:
            self.tables[-1][-1][-1] += data
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            self.headings.append((int(self.open[-1][1]), data))
        if "style" not in self.open:
            self.text.append(data)

    def find(self, tag):
        return [attrs for name, attrs, _ in self.elements if name == tag]


def markdown_tables(text):
    """Read the tables of a Markdown text, without their backslashes."""
    tables, inside = [], False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            tables.append([])
        inside = True
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        if set("".join(cells)) <= set(" -") and "---" in line:
            continue
        tables[-1].append([re.sub(r"\\(.)", r"\1", cell).strip() for cell in cells])
    return tables


def srcdoc(frame):
    """Take the page out of what a notebook shows."""
    return html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1])
