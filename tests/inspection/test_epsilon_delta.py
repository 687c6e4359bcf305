"""Epsilon at every delta, against an independent conversion."""

import sys
from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting import PrivacyProfile
from sklearn_pate.accounting.composition import dpsgd_cost, dpsgd_profile
from sklearn_pate.inspection import EpsilonDeltaDisplay
from sklearn_pate.learners import Clusters, DPLogisticRegression, PETDLClassifier
from sklearn_pate.students import DistillationClassifier
from tests.private import SENSITIVE

matplotlib.use("agg")

X, Y = make_blobs(900, centers=2, random_state=0)
PUBLIC = PublicData(X[600:])


@pytest.fixture(scope="module")
def pate():
    clf = PATEClassifier(GaussianNB(), n_teachers=20, n_queries=40, mechanism="gumbel")
    return clf.fit(X[:600], Y[:600], X_public=PUBLIC)


@pytest.fixture(scope="module")
def pure():
    return DPLogisticRegression(epsilon=1.5, data_norm=8).plan_privacy(X, Y)


@pytest.fixture(scope="module")
def gaussian():
    learner = DPLogisticRegression(method="gaussian", data_norm=8, delta=1e-6)
    return learner.plan_privacy(X, Y)


@pytest.fixture(scope="module")
def petdl():
    clf = PETDLClassifier(
        LogisticRegression(),
        DistillationClassifier(LogisticRegression()),
        n_teachers=30,
        batches=Clusters(30),
    )
    return clf.plan_privacy(X[:600], Y[:600], X_public=PUBLIC)


def converted(curve, delta):
    """Canonne, Kamath, Steinke (2020), Proposition 12."""
    a = curve.orders
    rounds = np.log1p(-1 / a) - np.log(delta * a) / (a - 1)
    return max(0.0, np.min(curve.values + rounds))


def test_a_line_is_the_profile_and_hardly_above_the_converted_curve(pate):
    display = EpsilonDeltaDisplay.from_estimator(pate)
    line = display.lines_[0]
    deltas, spent = line.get_xdata(), pate.privacy_spent_
    assert line.get_ydata().tolist() == [spent.epsilon_at(delta) for delta in deltas]
    expected = np.array([converted(spent.curve, delta) for delta in deltas])
    assert np.all(line.get_ydata() <= expected * 1.005)
    assert np.all(np.diff(line.get_ydata()) <= 0)
    assert deltas.min() == pytest.approx(1e-9)
    assert line.get_label() == "PATEClassifier"


@pytest.mark.parametrize("name", ["pate", "petdl", "gaussian", "steps"])
def test_the_statement_is_on_its_line(name, request):
    if name == "steps":
        epsilon, curve = dpsgd_cost(1.0, 0.1, 100, delta=1e-5, accountant="pld")
        profile = dpsgd_profile(1.0, 0.1, 100).thinned(epsilon, 1e-5)
        spent = replace(
            request.getfixturevalue("gaussian"),
            **{"epsilon": epsilon, "delta": 1e-5, "curve": curve, "profile": profile},
        )
    else:
        spent = request.getfixturevalue(name)
        spent = getattr(spent, "privacy_spent_", spent)
    display = EpsilonDeltaDisplay.from_statements({name: spent})
    assert display.stated_[0].get_xydata().tolist() == [[spent.delta, spent.epsilon]]
    at = list(display.deltas).index(spent.delta)
    line = display.lines_[0].get_ydata()[at]
    assert line == pytest.approx(spent.epsilon, rel=1e-4)
    assert line <= spent.epsilon


def test_a_line_ends_where_the_statement_does(gaussian):
    coarse = PrivacyProfile([0.0, 0.5, 1.0], [0.2, 1e-3, 1e-6])
    short = replace(gaussian, epsilon=0.5, delta=1e-3, profile=coarse)
    display = EpsilonDeltaDisplay.from_statements({"short": short})
    assert display.deltas.min() == pytest.approx(1e-6)
    both = EpsilonDeltaDisplay.from_statements({"short": short, "long": gaussian})
    assert both.deltas.min() == pytest.approx(1e-10)
    assert np.isinf(both.epsilons["short"][0])
    assert np.isfinite(both.epsilons["long"][0])


def test_a_pure_statement_holds_at_every_delta(pure):
    assert pure.delta == 0
    display = EpsilonDeltaDisplay.from_statements({"pure": pure})
    x, y = display.lines_[0].get_xydata().T
    expected = [min(1.5, converted(pure.curve, delta)) for delta in x]
    assert np.all(y <= np.array(expected) * 1.005)
    assert y[0] == pytest.approx(1.5, rel=1e-6)
    assert y[-1] < 1.5  # its profile promises more there
    marker = display.stated_[0]
    assert marker.get_marker() == "<"
    assert marker.get_xydata().tolist() == [[x[0], 1.5]]


def test_several_statements_share_the_deltas_of_all(pure):
    later = replace(pure, delta=1e-3)
    early = replace(pure, delta=1e-8)
    display = EpsilonDeltaDisplay.from_statements(
        {"later": later, "early": early, "pure": pure}
    )
    assert display.deltas.min() == pytest.approx(1e-12)
    assert display.deltas.max() == pytest.approx(0.1)
    assert {1e-3, 1e-8} <= set(display.deltas)
    markers = [line.get_marker() for line in display.stated_]
    assert markers == ["o", "o", "<"]
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts.count("as stated") == 1
    assert len({line.get_color() for line in display.lines_}) == 3


def test_statements_of_different_units_are_refused(pure, gaussian):
    with pytest.raises(ValueError, match="'row' with relation='replace-one', so"):
        EpsilonDeltaDisplay.from_statements({"a": pure, "b": gaussian})
    assert not plt.get_fignums()


def test_a_fit_without_a_guarantee_has_no_line(pure):
    void = replace(pure, epsilon=np.inf, curve=pure.curve.unbounded())
    with pytest.raises(ValueError, match=r"epsilon=inf.*Leave it out"):
        EpsilonDeltaDisplay.from_statements({"a": pure, "b": void})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "nothing to draw; pass at least one"),
        ([], r"statements=\[\] must be a dict, such as"),
        ({"a": (1.0, 1e-5)}, r"statements\['a'\]=\(1.0, 1e-05\) is not a PrivacySpent"),
    ],
)
def test_what_is_no_statement_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        EpsilonDeltaDisplay.from_statements(wrong)


def test_an_estimator_without_a_statement_is_refused():
    with pytest.raises(ValueError, match="GaussianNB has no privacy_spent_; pass"):
        EpsilonDeltaDisplay.from_estimator(GaussianNB())


def test_a_pipeline_and_axes_that_are_given_are_used(pate):
    _, ax = plt.subplots()
    pipeline = make_pipeline(FunctionTransformer(), pate)
    display = EpsilonDeltaDisplay.from_estimator(pipeline, ax=ax, linewidth=7)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.lines_[0].get_linewidth() == 7
    assert len(plt.get_fignums()) == 1


def test_nothing_of_it_is_stamped_and_the_unit_is_named(pate):
    display = EpsilonDeltaDisplay.from_estimator(pate)
    texts = display.figure_.findobj(matplotlib.text.Text)
    assert SENSITIVE not in [text.get_text() for text in texts]
    assert display.ax_.get_ylabel() == ("publishable epsilon (unit: row, replace-one)")


def test_without_matplotlib_the_error_names_the_package(monkeypatch, pate):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="EpsilonDeltaDisplay needs matplotlib; pip"):
        EpsilonDeltaDisplay.from_estimator(pate)
