"""Soft votes of a teacher on public batches, and their bounds."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import ortho_group
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from skorch import NeuralNetClassifier
from torch import nn

from tests.private import (
    STEPS,
    SoftVoteForm,
    SoftVoteLayout,
    SoftVotes,
    collect,
    fit_class_indices,
    hidden_representation,
    shard_rows,
)

BATCHES = np.array([0, 0, 0, 1, 1, -1, 2, 2])
SIX_BATCHES = np.arange(60) % 6
N_TEACHERS = 6
PLANTED = 98765.4321


def form(n_batches=3, n_classes=3, n_hint_parts=0, batches=BATCHES, **changed):
    layout = SoftVoteLayout(n_batches, n_classes, n_hint_parts)
    plain = SoftVoteForm(layout, batches, 1.0, 1.0, weighted=False)
    return replace(plain, **changed)


def random_probabilities(n_rows=8, seed=0):
    logits = np.random.default_rng(seed).normal(size=(n_rows, 3), scale=2)
    return softmax(logits, axis=1)


def means(values, batches=BATCHES):
    return np.array(
        [values[batches == g].mean(axis=0) for g in range(batches.max() + 1)]
    )


def assert_rounded_down(vector, exact):
    """Each number is the largest whole one below, but for round-off."""
    exact = np.ravel(exact) * STEPS
    assert vector.shape == (1, exact.size)
    assert vector.dtype == np.int32
    assert np.all(vector[0] <= exact + 1e-9)
    assert np.all(vector[0] > exact - 1 - 1e-9)


# Values of batches


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_values_are_the_means_of_the_softmax_at_that_temperature(temperature):
    logits = np.random.default_rng(0).normal(size=(len(BATCHES), 3), scale=2)
    vector = form(temperature=temperature).of_outputs(softmax(logits, axis=1), None)
    assert_rounded_down(vector, means(softmax(logits / temperature, axis=1)))


def test_a_row_counts_by_the_confidence_of_the_teacher():
    probabilities = random_probabilities()
    confidence = probabilities.max(axis=1, keepdims=True)
    softened = probabilities**0.5 / (probabilities**0.5).sum(axis=1, keepdims=True)
    vector = form(temperature=2.0, weighted=True).of_outputs(probabilities, None)
    assert_rounded_down(vector, means(confidence * softened))


@pytest.mark.parametrize("clipping_bound", [0.2, 0.5, 0.9, 1.5])
def test_vectors_longer_than_the_bound_are_scaled_down_to_it(clipping_bound):
    probabilities = random_probabilities()
    probabilities[BATCHES == 2] = 1 / 3
    exact = means(probabilities)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    scaled = exact / np.maximum(lengths, clipping_bound)
    vector = form(clipping_bound=clipping_bound).of_outputs(probabilities, None)
    assert_rounded_down(vector, scaled)
    found = np.linalg.norm(vector.reshape(3, 3), axis=1)
    is_long = lengths[:, 0] > clipping_bound
    assert np.all(found[is_long] > STEPS - np.sqrt(3))
    assert np.all(found <= STEPS)


def test_rows_of_no_batch_do_not_matter():
    batches = np.where(np.arange(60) < 50, SIX_BATCHES, -1)
    probabilities, hidden = random_probabilities(60), random_probabilities(60, seed=1)
    soft_form = form(6, 3, 2, batches)
    before = soft_form.of_outputs(probabilities, hidden)
    assert before[0, 18:].any()
    probabilities[batches == -1], hidden[batches == -1] = [0, 0, 1], 1e9
    np.testing.assert_array_equal(soft_form.of_outputs(probabilities, hidden), before)


def test_batches_without_rows_and_rows_of_zeros_are_zero():
    vector = form(n_batches=4).of_outputs(random_probabilities(), None)
    assert not vector[0, 9:].any()
    nothing = np.zeros((len(BATCHES), 3))
    for weighted in (False, True):
        soft_form = form(temperature=3.0, weighted=weighted)
        assert not soft_form.of_outputs(nothing, None).any()


def test_a_teacher_of_one_class_votes_for_it_without_a_hint():
    vector = form(n_hint_parts=1).constant(2, len(BATCHES))
    np.testing.assert_array_equal(vector, [[0, 0, STEPS] * 3 + [0, 0, 0]])


class Insists(DecisionTreeClassifier):
    """Requires class indices without gaps, as xgboost does."""

    def fit(self, X, y):
        assert len(np.unique(y)) == np.max(y) + 1
        return super().fit(X, y)


@pytest.mark.parametrize("teacher", [LogisticRegression(), Insists(max_depth=1)])
def test_a_teacher_that_saw_fewer_classes_leaves_the_others_at_zero(blobs, teacher):
    X, y, X_public, _ = blobs
    batches = np.arange(len(X_public)) % 4
    codes = np.array([1, 3, 4])[y]
    fitted = fit_class_indices(teacher, X, codes)
    vector = form(4, 6, batches=batches).read(fitted, X_public)
    exact = np.zeros((4, 6))
    exact[:, [1, 3, 4]] = means(fitted.predict_proba(X_public), batches)
    # Outputs travel in single precision.
    np.testing.assert_allclose(vector.reshape(4, 6), exact * STEPS, atol=1.01)
    assert not vector.reshape(4, 6)[:, [0, 2, 5]].any()


# What makes a teacher fail, and it alone


class Sick(ClassifierMixin, BaseEstimator):
    """Returns odd outputs if the planted row was in its shard."""

    def __init__(self, odd="no"):
        self.odd = odd

    def fit(self, X, y):
        self.is_sick_ = PLANTED in X[:, 0]
        X = np.where(X == PLANTED, 0, X)
        self.teacher_ = LogisticRegression().fit(X, y)
        self.classes_ = self.teacher_.classes_
        if self.odd == "infinite hidden" and self.is_sick_:
            self.module_ = nn.Sequential(Overflow(), nn.Linear(2, 3)).double()
        return self

    def predict_proba(self, X):
        probabilities = self.teacher_.predict_proba(X)
        return ODD[self.odd](probabilities) if self.is_sick_ else probabilities


class Overflow(nn.Module):
    def forward(self, inputs):
        return inputs * torch.inf


ODD = {
    "no": lambda p: p,
    "nan": lambda p: np.where(p == p.max(), np.nan, p),
    "infinite": lambda p: np.where(p == p.max(), np.inf, p),
    "huge": lambda p: np.where(p == p.max(), 1e300, p),
    "more than one": lambda p: 2 * p,
    "negative": lambda p: p - 0.5,
    "whole numbers": lambda p: np.rint(p).astype(int),
    "a row too few": lambda p: p[1:],
    "a column too few": lambda p: p[:, 1:],
    "a column too many": lambda p: np.hstack([p, p]),
    "one column": lambda p: p[:, 0],
    "none": lambda p: None,
    "infinite hidden": lambda p: p,
}


def contributions(estimator, X, y, X_public, soft_form, **how):
    by_teacher = {}

    def aggregate(iterator):
        by_teacher.update(enumerate(iterator))
        return SoftVotes(by_teacher.values(), layout=soft_form.layout)

    votes, problems = collect(
        estimator,
        X,
        y,
        shard_rows(len(X), N_TEACHERS, 0),
        X_public,
        form=soft_form,
        aggregate=aggregate,
        seeds=list(range(N_TEACHERS)),
        **how,
    )
    return by_teacher, votes.sum()[np.newaxis], problems


@pytest.mark.parametrize("odd", ODD)
def test_odd_outputs_make_their_teacher_abstain_and_no_other(blobs, odd):
    X, y, X_public, _ = blobs
    rows = shard_rows(len(X), N_TEACHERS, 0)[2]
    X = X.copy()
    X[rows[0], 0] = PLANTED
    batches = np.arange(len(X_public)) % 5
    soft_form = form(5, 3, 2, batches, temperature=2.0, weighted=True)
    by_teacher, total, problems = contributions(Sick(odd), X, y, X_public, soft_form)
    healthy, healthy_total, none = contributions(Sick(), X, y, X_public, soft_form)
    assert not none
    if odd == "no":
        np.testing.assert_array_equal(total, healthy_total)
        return
    assert [teacher for teacher, _ in problems.failures] == [2]
    assert by_teacher[2] is None
    for teacher in set(range(N_TEACHERS)) - {2}:
        np.testing.assert_array_equal(by_teacher[teacher], healthy[teacher])
    np.testing.assert_array_equal(total, healthy_total - healthy[2])


# The hint


def hint(hidden, n_hint_parts=2, batches=SIX_BATCHES):
    n_batches = batches.max() + 1
    soft_form = form(n_batches, 3, n_hint_parts, batches)
    vector = soft_form.of_outputs(random_probabilities(len(batches)), hidden)
    soft_form.layout.check(vector)
    return soft_form.layout.similarities(soft_form.layout.split(vector)[1][0])


def test_a_hint_is_the_cosines_of_centred_means_without_negative_ones():
    hidden = np.random.default_rng(0).normal(size=(60, 4)) + 3
    centred = means(hidden, SIX_BATCHES)
    centred = centred - centred.mean(axis=0)
    directions = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, 0)
    assert np.any(cosines < -0.1)
    expected = np.maximum(cosines, 0)
    found = hint(hidden, n_hint_parts=3)
    norm = np.linalg.norm(expected[np.triu_indices(6, 1)])
    exact = expected * np.sqrt(3) * STEPS / norm
    assert np.all((found <= exact + 1e-6) & (found > exact - 1 - 1e-6))


@pytest.mark.parametrize("n_hint_parts", [1, 2, 5])
def test_a_hint_has_the_norm_that_is_charged(n_hint_parts):
    found = hint(np.random.default_rng(0).normal(size=(60, 4)), n_hint_parts)
    length = np.linalg.norm(found[np.triu_indices(6, 1)])
    bound = np.sqrt(n_hint_parts) * STEPS
    assert bound - np.sqrt(15) <= length <= bound


def test_batches_of_one_class_are_more_similar_than_others(digits):
    X, y = digits
    batch_classes = np.repeat(np.arange(10), 2)
    batches = np.full(len(y), -1)
    for code in range(10):
        rows = np.flatnonzero(y == code)
        batches[rows] = 2 * code + np.arange(len(rows)) % 2
    alike = hint(X, n_hint_parts=5, batches=batches)
    same = np.equal.outer(batch_classes, batch_classes) & ~np.eye(20, dtype=bool)
    other = ~np.equal.outer(batch_classes, batch_classes)
    assert alike[same].min() > alike[other].max()


def test_a_hint_is_invariant_to_rotation_scale_and_shift():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(60, 5))
    expected = hint(hidden)
    assert np.count_nonzero(expected) > 0
    rotation = ortho_group.rvs(5, random_state=0)
    for other in (
        hidden @ rotation,
        hidden[:, ::-1],
        np.hstack([hidden, np.zeros((60, 3))]),
        1e-20 * hidden,
        1e20 * hidden,
        hidden + rng.normal(size=5),
    ):
        np.testing.assert_allclose(hint(other), expected, atol=1.01)


@pytest.mark.parametrize("hidden", [0.0, 1.0, 1e6 / 3, 0.1 * np.arange(4)])
def test_without_differences_between_batches_there_is_no_hint(hidden):
    assert not hint(np.broadcast_to(hidden, (60, 4))).any()


def test_the_hint_of_a_teacher_without_layers_is_from_its_probabilities(blobs):
    X, y, X_public, _ = blobs
    teacher = LogisticRegression().fit(X, y)
    soft_form = form(5, 3, 1, np.arange(len(X_public)) % 5)
    vector = soft_form.read(teacher, X_public)
    outputs = teacher.predict_proba(X_public).astype(np.float32)
    np.testing.assert_array_equal(vector, soft_form.of_outputs(outputs, outputs))


class Small(nn.Module):
    def __init__(self, n_classes=3):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(2, 7), nn.ReLU())
        self.top = nn.Linear(7, n_classes)

    def forward(self, X):
        return self.top(self.hidden(X.float()))


@pytest.mark.parametrize("steps", [None, [], [StandardScaler()]])
@pytest.mark.parametrize("classes", [[0, 1, 2], [1, 2, 4]])
def test_the_hint_of_a_network_is_from_its_hidden_layer(blobs, steps, classes):
    X, y, X_public, _ = blobs
    X, X_public = X.astype(np.float32), X_public.astype(np.float32)
    torch.manual_seed(0)
    teacher = network = NeuralNetClassifier(
        Small,
        module__n_classes=max(classes) + 1,
        criterion=nn.CrossEntropyLoss,
        max_epochs=2,
        verbose=0,
        train_split=None,
    )
    if steps is not None:
        teacher = make_pipeline(*steps, network)
    teacher = fit_class_indices(teacher, X, np.array(classes)[y])
    seen = StandardScaler().fit(X).transform(X_public) if steps else X_public
    hidden = hidden_representation(network.module_, torch.as_tensor(seen)).numpy()
    assert hidden.shape == (len(X_public), 7)
    outputs = np.zeros((len(X_public), 5), dtype=np.float32)
    outputs[:, : max(classes) + 1] = teacher.predict_proba(X_public)
    soft_form = form(5, 5, 1, np.arange(len(X_public)) % 5)
    expected = soft_form.of_outputs(outputs, hidden)
    assert expected[0, 25:].any()
    np.testing.assert_array_equal(soft_form.read(teacher, X_public), expected)


# What is kept of a poll


class Counts(LogisticRegression):
    """Counts its fits in this process."""

    n_fits = 0

    def fit(self, X, y):
        Counts.n_fits += 1
        return super().fit(X, y)


def test_a_cache_returns_the_same_contributions_and_another_form_trains_anew(
    blobs, tmp_path
):
    X, y, X_public, _ = blobs
    soft_form = form(5, 3, 1, np.arange(len(X_public)) % 5)

    def run(soft_form):
        Counts.n_fits = 0
        memory = str(tmp_path)
        return contributions(Counts(), X, y, X_public, soft_form, memory=memory)[0]

    first = run(soft_form)
    assert Counts.n_fits == N_TEACHERS
    second = run(soft_form)
    assert Counts.n_fits == 0
    for teacher in range(N_TEACHERS):
        np.testing.assert_array_equal(first[teacher], second[teacher])
    for change in (
        {"temperature": 2.0},
        {"clipping_bound": 0.5},
        {"weighted": True},
        {"batch_of_row": np.arange(len(X_public)) % 5 - 1},
        {"layout": SoftVoteLayout(5, 3, 2)},
    ):
        other = run(replace(soft_form, **change))
        assert Counts.n_fits == N_TEACHERS, change
        assert any(not np.array_equal(first[t], other[t]) for t in range(N_TEACHERS))
