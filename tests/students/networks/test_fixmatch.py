"""FixMatchClassifier: unlabelled rows help."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from sklearn_pate.students import (
    FixMatchClassifier,
    ImageAugmentation,
)
from tests.private import RowAugmentation, shrunken_shares


def with_answers(digits, seed, n_public=600):
    """Public rows with 50 answers, and rows to test on."""
    X, y = digits
    order = np.random.RandomState(seed).permutation(len(X))
    X, y = X[order], y[order]
    answers = y[:n_public].copy()
    answers[50:] = -1
    return X[:n_public], answers, X[1200:], y[1200:]


@pytest.fixture(scope="module")
def few_answers(digits):
    return with_answers(digits, seed=0, n_public=1200)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("student", "without"),
    [
        pytest.param(
            FixMatchClassifier(image_shape=(8, 8)),
            {"unlabeled_weight": 0},
            id="FixMatch, images",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            FixMatchClassifier(), {"unlabeled_weight": 0}, id="FixMatch, rows"
        ),
    ],
)
def test_unlabelled_rows_help(student, without, digits):
    # The gain of one seed is 0.05 on average, with a standard deviation of 0.03.
    scores, gains = [], []
    for seed in range(3):
        X, answers, X_test, y_test = with_answers(digits, seed)
        student = clone(student).set_params(max_epochs=10, random_state=seed)
        scores.append(student.fit(X, answers).score(X_test, y_test))
        alone = clone(student).set_params(**without).fit(X, answers)
        gains.append(scores[-1] - alone.score(X_test, y_test))
    assert np.mean(gains) > 0
    assert np.mean(scores) > 0.8


class Diary:
    """Changes nothing, and records its calls."""

    def __init__(self):
        self.asked = {"weak": 0, "strong": 0}

    def weak(self, inputs):
        self.asked["weak"] += len(inputs)
        return inputs

    def strong(self, inputs):
        self.asked["strong"] += len(inputs)
        return inputs


def test_an_augmentation_can_be_given(few_answers):
    X, answers, _, _ = few_answers
    diary = Diary()
    student = FixMatchClassifier(augmentation=diary, max_epochs=1, batch_size=60)
    student.fit(X, answers)
    assert diary.asked["weak"] == 1200
    assert diary.asked["strong"] == 1200 + 20 * 32


@pytest.mark.parametrize(
    ("shape", "kind"), [(None, RowAugmentation), ((8, 8), ImageAugmentation)]
)
def test_the_augmentation_suits_the_inputs_unless_one_is_given(
    shape, kind, few_answers, monkeypatch
):
    X, answers, _, _ = few_answers
    used = []
    strong = kind.strong
    monkeypatch.setattr(
        kind, "strong", lambda *given: used.append(given) or strong(*given)
    )
    FixMatchClassifier(image_shape=shape, max_epochs=1).fit(X, answers)
    assert used


@pytest.mark.parametrize(
    ("student", "message"),
    [
        (FixMatchClassifier(threshold=2), "threshold=2 must be"),
        (FixMatchClassifier(unlabeled_weight=-1), "unlabeled_weight=-1 must be"),
        (FixMatchClassifier(augmentation="flip"), "augmentation='flip' must have"),
        (
            FixMatchClassifier(augmentation=ImageAugmentation(erase=2)),
            "erase=2 must be",
        ),
    ],
)
def test_bad_parameters_are_named(student, message, few_answers):
    X, answers, _, _ = few_answers
    with pytest.raises(ValueError, match=message):
        student.fit(X, answers)


@settings(deadline=None, max_examples=50)
@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    n_classes=st.integers(4, 6),
)
def test_estimated_shares_lie_between_those_of_the_labels_and_equal_ones(
    labels, n_classes
):
    targets = torch.eye(n_classes)[labels]
    seen, shares = targets.mean(dim=0), shrunken_shares(targets)
    equal = torch.full_like(seen, 1 / n_classes)
    torch.testing.assert_close(shares.sum(), torch.tensor(1.0))
    assert (shares >= torch.minimum(seen, equal) - 1e-6).all()
    assert (shares <= torch.maximum(seen, equal) + 1e-6).all()


def test_shares_are_equal_unless_the_labels_contradict():
    by_chance = torch.eye(2)[[0] * 27 + [1] * 23]
    torch.testing.assert_close(shrunken_shares(by_chance), torch.tensor([0.5, 0.5]))
    rare = torch.eye(2)[[0] * 90 + [1] * 10]
    assert 0.09 < shrunken_shares(rare)[1] < 0.13


@pytest.mark.thorough
def test_alignment_keeps_guesses_from_collapsing_to_few_classes(few_answers):
    X, answers, X_test, y_test = few_answers
    student = FixMatchClassifier(image_shape=(8, 8), max_epochs=20, random_state=0)
    aligned = student.fit(X, answers).score(X_test, y_test)
    alone = student.set_params(align=False).fit(X, answers).score(X_test, y_test)
    assert aligned > alone + 0.02
