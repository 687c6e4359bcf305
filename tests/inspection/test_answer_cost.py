"""Privacy cost of answers, against formulas, and mechanisms without one."""

import pickle
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting import compose_profiles
from sklearn_pate.inspection import AnswerCostDisplay
from sklearn_pate.learners import (
    Clusters,
    DPLogisticRegression,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, GumbelMax, NoisyHistogram
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import DistillationClassifier
from tests._aggregation.synthetic_fits import fit as synthetic_fit
from tests.private import (
    SENSITIVE,
    SampledMechanism,
    adaptive_profile,
    check_mu,
    gaussian_tests,
)
from tests.seeding import equal_noise

matplotlib.use("agg")

X, Y = make_blobs(900, centers=3, random_state=0)
PUBLIC = PublicData(X[600:])


def fitted(clf):
    return clf.fit(X[:600], Y[:600], X_public=PUBLIC)


@pytest.fixture(scope="module")
def pate():
    learner = PATEClassifier(
        GaussianNB(), n_teachers=20, n_queries=40, mechanism="gumbel"
    )
    return fitted(learner)


def gaussian_epsilon(n_queries, sigma, delta):
    """Solve for epsilon of N(0, 1) against N(mu, 1) (Balle, Wang 2018, Theorem 8)."""
    mu = np.sqrt(2 * n_queries / (sigma**2 - 2.25))

    def excess(epsilon):
        first, second = norm.cdf([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
        return first - np.exp(epsilon) * second - delta

    return brentq(excess, 0.0, 50.0, xtol=1e-12)


def test_a_line_has_the_cost_of_each_number_of_queries():
    display = AnswerCostDisplay.from_mechanisms(
        {"narrow": NoisyHistogram(40), "wide": NoisyHistogram(80)},
        n_classes=10,
        delta=1e-6,
        n_queries=250,
    )
    counts = display.n_queries
    assert counts[0] == 1
    assert counts[-1] == 250
    for line, sigma in zip(display.lines_, [40, 80], strict=True):
        expected = [gaussian_epsilon(count, sigma, 1e-6) for count in counts]
        assert np.array_equal(line.get_xdata(), counts)
        assert np.all(line.get_ydata() >= np.array(expected) - 1e-9)
        assert line.get_ydata() == pytest.approx(expected, rel=1e-6)
    assert [line.get_label() for line in display.lines_] == ["narrow", "wide"]


@pytest.mark.slow
def test_beyond_the_cap_a_query_costs_its_check_alone():
    mechanism = ConfidentGNMax(20, sigma_threshold=15, sigma=4, max_answers=33)
    display = AnswerCostDisplay.from_mechanisms(
        {"capped": mechanism}, n_classes=2, delta=1e-5, n_queries=900
    )
    assert 33 in display.n_queries
    checks = adaptive_profile(gaussian_tests(check_mu(15)), 900)
    both = compose_profiles([checks, GNMax(4).cost(33, 2).exact.profile])
    expected = both.epsilon_at(1e-5)
    assert display.lines_[0].get_ydata()[-1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    [
        PrivateKNNClassifier(GaussianNB(), n_queries=30),
        PETDLClassifier(
            LogisticRegression(),
            DistillationClassifier(LogisticRegression()),
            n_teachers=30,
            batches=Clusters(30),
        ),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_what_was_paid_for_is_the_statement_and_on_the_line(learner):
    check_paid(fitted(learner))


def check_paid(clf):
    spent = clf.privacy_spent_
    display = AnswerCostDisplay.from_estimator(clf)
    assert display.paid == (spent.n_queries, spent.epsilon)
    assert display.paid_.get_xydata().tolist() == [[spent.n_queries, spent.epsilon]]
    line = display.lines_[0]
    at = list(line.get_xdata()).index(spent.n_queries)
    assert line.get_ydata()[at] == pytest.approx(spent.epsilon, rel=1e-12)
    assert line.get_xdata()[-1] == 2 * spent.n_queries
    assert np.all(np.diff(line.get_ydata()) > 0)


@pytest.mark.slow
def test_what_was_paid_for_by_pate_is_on_the_line_before_and_after_pickling(pate):
    check_paid(pate)
    check_paid(pickle.loads(pickle.dumps(pate)))


@pytest.mark.slow
def test_a_query_of_petdl_is_a_public_batch():
    learner = PETDLClassifier(
        LogisticRegression(),
        DistillationClassifier(LogisticRegression()),
        n_teachers=30,
        batches=Clusters(100),
    )
    clf = fitted(learner)
    display = AnswerCostDisplay.from_estimator(clf, n_queries=50)
    for n_groups, epsilon in zip(
        display.n_queries, display.lines_[0].get_ydata(), strict=True
    ):
        # Balle and Wang (2018), Theorem 8.
        mu = np.sqrt(2 * n_groups) / clf.mechanism_.noise_scale
        delta = norm.cdf(mu / 2 - epsilon / mu)
        delta -= np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert delta == pytest.approx(1e-5, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["votes", "sum", "neighbours"])
def test_noisy_counts_before_the_queries_are_in_all_costs(kind):
    fitted = synthetic_fit(kind)
    display = AnswerCostDisplay.from_estimator(fitted, n_queries=100)
    assert display.paid[1] == fitted.privacy_spent_.epsilon
    (epsilons,) = display.epsilons.values()
    paid = epsilons[display.n_queries == display.paid[0]]
    assert paid == pytest.approx(display.paid[1], rel=1e-9)
    counts = fitted.mechanism_.counts.cost(1, 2).epsilon(display.delta)
    assert np.all(epsilons > counts)


def test_a_pipeline_is_seen_through(pate):
    pipeline = make_pipeline(FunctionTransformer(), pate)
    display = AnswerCostDisplay.from_estimator(pipeline, n_queries=10)
    assert display.paid == (40, pate.privacy_spent_.epsilon)
    assert display.n_queries.max() == 10


def test_axes_that_are_given_are_drawn_on_and_a_style_is_kept(pate):
    _, ax = plt.subplots()
    display = AnswerCostDisplay.from_estimator(pate, ax=ax, linewidth=7)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.lines_[0].get_linewidth() == 7
    assert len(plt.get_fignums()) == 1


def test_nothing_of_it_is_stamped(pate):
    display = AnswerCostDisplay.from_estimator(pate)
    texts = display.figure_.findobj(matplotlib.text.Text)
    assert SENSITIVE not in [text.get_text() for text in texts]


def test_a_display_by_hand_draws_what_it_is_given():
    display = AnswerCostDisplay(
        n_queries=[1, 5], epsilons={"a": [0.1, 0.2]}, delta=1e-5, paid=(5, 0.2)
    )
    assert display.plot() is display
    assert display.lines_[0].get_ydata().tolist() == [0.1, 0.2]
    assert display.paid_.get_xydata().tolist() == [[5, 0.2]]


def test_a_learner_without_queries_is_refused():
    clf = DPLogisticRegression(data_norm=8).fit(X[:600], Y[:600])
    with pytest.raises(ValueError, match="DPLogisticRegression has no mechanism_ that"):
        AnswerCostDisplay.from_estimator(clf)


@pytest.mark.slow
def test_an_estimator_without_a_statement_is_refused(pate):
    with pytest.raises(ValueError, match="GaussianNB has no privacy_spent_; pass"):
        AnswerCostDisplay.from_estimator(GaussianNB())
    with pytest.raises(NotFittedError, match="PATEClassifier instance is not fitted"):
        AnswerCostDisplay.from_estimator(PATEClassifier())
    with pytest.raises(ValueError, match="PublishedClassifier has no mechanism_"):
        AnswerCostDisplay.from_estimator(pate.publish())


@pytest.mark.slow
def test_a_seeded_fit_has_no_cost():
    with equal_noise():
        clf = fitted(
            PATEClassifier(
                GaussianNB(), n_teachers=20, n_queries=40, mechanism="gumbel"
            )
        )
    with pytest.raises(ValueError, match=r"epsilon=inf.*seeded"):
        AnswerCostDisplay.from_estimator(clf)


@pytest.mark.slow
def test_the_winner_of_a_search_states_more_than_its_queries(pate):
    search = PrivateSearchCV(
        PATEClassifier(GaussianNB(), n_teachers=20, mechanism="gumbel"),
        {"n_queries": [40]},
        mean_n_trials=2,
        classes=[0, 1, 2],
    )
    winner = fitted(search).best_estimator_
    with pytest.raises(ValueError, match=r"covers more than its queries.*search"):
        AnswerCostDisplay.from_estimator(winner)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mechanisms": {}}, "mechanisms={} must be a dict with at least one"),
        ({"mechanisms": GNMax(4)}, "must be a dict"),
        (
            {"mechanisms": {"a": "gnmax"}},
            r"mechanisms\['a'\]='gnmax' is not a mechanism",
        ),
        ({"mechanisms": {"a": GNMax()}}, "GNMax has sigma=None; set sigma"),
        ({"n_classes": 1}, "n_classes=1 must be a whole number of at least 2"),
        ({"delta": 0}, "delta=0 must be a number strictly between 0 and 1"),
        ({"n_queries": 0}, "n_queries=0 must be a whole number of at least 1"),
        ({"n_queries": 2.5}, "n_queries=2.5 must be a whole number"),
        ({"n_queries": True}, "n_queries=True must be a whole number"),
        (
            {
                "mechanisms": {
                    "a": GumbelMax(c=0.1),
                    "b": SampledMechanism(GNMax(9), 0.1),
                }
            },
            "added or removed row, others",
        ),
    ],
)
def test_what_cannot_work_is_refused_and_nothing_is_drawn(wrong, message):
    right = {
        "mechanisms": {"a": GumbelMax(c=0.1)},
        "n_classes": 3,
        "delta": 1e-5,
        "n_queries": 10,
    }
    call = right | wrong
    with pytest.raises(ValueError, match=message):
        AnswerCostDisplay.from_mechanisms(call.pop("mechanisms"), **call)
    assert not plt.get_fignums()


@pytest.mark.slow
def test_costs_on_secret_samples_compare_among_themselves():
    display = AnswerCostDisplay.from_mechanisms(
        {f"{rate}": SampledMechanism(GNMax(9), rate) for rate in [0.1, 0.2]},
        n_classes=2,
        delta=1e-5,
        n_queries=20,
    )
    assert np.all(display.epsilons["0.1"] < display.epsilons["0.2"])


@pytest.mark.slow
def test_without_matplotlib_the_error_names_the_package(monkeypatch, pate):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="AnswerCostDisplay needs matplotlib; pip"):
        AnswerCostDisplay.from_estimator(pate)
