"""Vote margins and noise: closed forms, and a plot that is marked as sensitive."""

import copy
import pickle
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.inspection import VoteMarginsDisplay
from sklearn_pate.inspection._displays import SENSITIVE
from sklearn_pate.learners import PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, GumbelMax, NoisySum
from sklearn_pate.students import DistillationClassifier

matplotlib.use("agg")

X, Y = make_blobs(900, centers=3, random_state=0)
PUBLIC = PublicData(X[600:])
COUNTS = np.array([[90, 10, 0], [40, 35, 20], [1, 0, 97], [30, 30, 30]])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def pate():
    clf = PATEClassifier(GaussianNB(), n_teachers=20, n_queries=40, mechanism="gumbel")
    return clf.fit(X[:600], Y[:600], X_public=PUBLIC)


def draw(counts=COUNTS, **parameters):
    call = {"n_teachers": 100, "sensitive": True} | parameters
    return VoteMarginsDisplay.from_counts(counts, **call)


def stamps(display):
    texts = [text.get_text() for text in display.figure_.findobj(matplotlib.text.Text)]
    return texts.count(SENSITIVE)


def test_a_margin_is_the_largest_count_minus_the_second():
    display = draw(bins=[0, 0.02, 0.5, 0.9, 1])
    assert display.margins.tolist() == [80, 5, 96, 0]
    heights = [bar.get_height() for bar in display.bars_]
    assert heights == [1, 1, 1, 1]
    assert display.turned is None
    assert display.turned_bars_ is display.line_ is None


def test_bars_are_shares_of_all_teachers_and_count_every_query():
    display = draw(np.array([[3, 1], [4, 0], [0, 0]]), n_teachers=4, bins=4)
    assert [bar.get_height() for bar in display.bars_] == [1, 0, 1, 1]
    assert [bar.get_x() for bar in display.bars_] == [0, 0.25, 0.5, 0.75]


def test_how_often_noise_turns_an_answer_is_the_law_of_the_mechanism():
    display = draw(mechanism=GumbelMax(c=0.1))
    # The exponential mechanism: Pr[j] is proportional to exp(c n_j).
    expected = 1 - softmax(0.1 * COUNTS, axis=1).max(axis=1)
    assert display.turned == pytest.approx(expected, rel=1e-9)
    hatched = sum(bar.get_height() for bar in display.turned_bars_)
    assert hatched == pytest.approx(expected.sum())


def test_how_often_noise_turns_an_answer_is_how_often_it_does():
    mechanism, n_draws = GNMax(sigma=12), 4000
    display = draw(mechanism=mechanism)
    for counts, expected in zip(COUNTS[:3], display.turned, strict=False):
        answers = mechanism.answer(np.tile(counts, (n_draws, 1)))
        seen = np.sum(answers != counts.argmax())
        assert binom.cdf(seen, n_draws, expected) > 1e-9
        assert binom.sf(seen - 1, n_draws, expected) > 1e-9


def test_of_a_confident_mechanism_answers_that_are_given_count():
    confident = ConfidentGNMax(threshold=0.8, sigma_threshold=30, sigma=12)
    display, plain = draw(mechanism=confident), draw(mechanism=GNMax(sigma=12))
    assert np.array_equal(display.turned, plain.turned)


@pytest.mark.parametrize("c", [5.0, 1.0, 0.1, 0.013])
def test_at_the_width_of_the_noise_it_turns_one_in_twenty(c):
    display = draw(mechanism=GumbelMax(c=c))
    # 1 / (1 + exp(c m)) = 1 / 20
    assert display.width == np.ceil(np.log(19) / c)
    assert display.line_.get_xdata()[0] == display.width / 100


@pytest.mark.parametrize(("c", "is_wider"), [(0.03, False), (0.029, True)])
def test_noise_that_is_wider_than_the_axes_is_called_so(c, is_wider):
    display = draw(mechanism=GumbelMax(c=c))  # 99 and 102 of 100 votes
    _, right = display.ax_.get_xlim()
    assert (display.line_.get_xdata()[0] > right) == is_wider
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    label = f"one in 20 is changed at {display.width} votes"
    assert texts[-1] == label + ", more than exist" * is_wider


def test_a_fit_is_drawn_from_its_own_votes(pate):
    analysis = pate.privacy_analysis_
    expected = draw(analysis.counts, n_teachers=20, mechanism=pate.mechanism_)
    for clf in (pate, make_pipeline(FunctionTransformer(), pate)):
        display = VoteMarginsDisplay.from_estimator(clf, sensitive=True)
        assert np.array_equal(display.margins, expected.margins)
        assert np.array_equal(display.turned, expected.turned)
        assert (display.n_teachers, display.width) == (20, expected.width)
        assert stamps(display) == 1


@pytest.mark.parametrize(
    "options", [{}, *({"sensitive": one} for one in (False, None, 1, "yes", np.True_))]
)
def test_without_sensitive_being_true_nothing_is_drawn(pate, options):
    message = "without noise, which no privacy statement covers. Pass sensitive=True"
    with pytest.raises(ValueError, match=message):
        VoteMarginsDisplay.from_estimator(pate, **options)
    with pytest.raises(ValueError, match=message):
        VoteMarginsDisplay.from_counts(COUNTS, n_teachers=100, **options)
    assert not plt.get_fignums()


def test_the_stamp_is_on_every_picture_and_across_its_middle():
    for display in (draw(), VoteMarginsDisplay(margins=[3, 5], n_teachers=9).plot()):
        assert stamps(display) == 1
        display.figure_.canvas.draw()
        (stamp,) = display.ax_.texts
        box, axes = stamp.get_window_extent(), display.ax_.get_window_extent()
        assert axes.containsx(box.x0)
        assert axes.containsx(box.x1)
        assert box.width > axes.width / 2
        assert stamp.get_zorder() > max(bar.get_zorder() for bar in display.bars_)


def test_axes_that_are_given_are_drawn_on_and_stamped_once():
    _, (ax, other) = plt.subplots(1, 2)
    display = draw(ax=ax, alpha=0.5)
    draw(ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.bars_[0].get_alpha() == 0.5
    assert stamps(display) == 1
    assert not other.texts
    assert len(plt.get_fignums()) == 1


def test_it_cannot_be_pickled_or_copied():
    display = draw()
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="sensitive and cannot be pickled"):
            leave(display)


def test_what_was_pickled_or_published_has_no_votes(pate):
    for clf in (pickle.loads(pickle.dumps(pate)), pate.publish()):
        with pytest.raises(ValueError, match=r"no votes.*pickled, copied or publi"):
            VoteMarginsDisplay.from_estimator(clf, sensitive=True)


def test_what_is_not_fitted_is_called_so():
    for clf in (PATEClassifier(), make_pipeline(PATEClassifier())):
        with pytest.raises(NotFittedError, match="PATEClassifier instance is not fit"):
            VoteMarginsDisplay.from_estimator(clf, sensitive=True)


@pytest.mark.parametrize(
    "learner",
    [
        PrivateKNNClassifier(GaussianNB(), n_queries=30),
        PETDLClassifier(
            LogisticRegression(),
            DistillationClassifier(LogisticRegression()),
            n_teachers=30,
            public_batch_size=30,
        ),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_learner_without_votes_of_teachers_is_refused(learner):
    clf = learner.fit(X[:600], Y[:600], X_public=PUBLIC)
    with pytest.raises(ValueError, match=f"{type(clf).__name__} has no votes"):
        VoteMarginsDisplay.from_estimator(clf, sensitive=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"counts": [3, 4]}, r"counts has shape \(2,\)"),
        ({"counts": np.zeros((0, 3))}, "counts has no query"),
        ({"counts": [[0.5, 1]]}, "fractional number"),
        ({"n_teachers": 95}, "n_teachers=95 is too small.*has 100 votes"),
        ({"n_teachers": 100.0}, "n_teachers=100.0 must be a whole number"),
        ({"mechanism": GNMax()}, "GNMax has sigma=None; set sigma"),
        ({"mechanism": "gnmax"}, "mechanism='gnmax' is not a PluralityMechanism"),
        ({"mechanism": NoisySum(3)}, "is not a PluralityMechanism"),
    ],
)
def test_what_cannot_be_votes_is_refused_and_nothing_is_drawn(wrong, message):
    with pytest.raises(ValueError, match=message):
        draw(**wrong)
    assert not plt.get_fignums()


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"VoteMarginsDisplay.*sklearn-pate\[plot\]"):
        draw()
