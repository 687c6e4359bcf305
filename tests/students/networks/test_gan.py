"""The student of PATE-G."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import GANClassifier, ImageAugmentation
from tests.private import (
    Discriminator,
    adversarial_loss,
    default_generator,
    feature_matching_loss,
)

FLAT = {"max_epochs": 2, "random_state": 0}
IMAGES = {**FLAT, "image_shape": (8, 8)}


def linear(input_shape, n_classes):
    return nn.Linear(*input_shape, n_classes)


def linear_generator(n_latent, input_shape):
    return nn.Linear(n_latent, *input_shape)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_check_estimator_has_no_failures():
    student = GANClassifier(linear, linear_generator, n_latent=2, max_epochs=3, lr=0.1)
    results = check_estimator(student, on_fail=None, on_skip=None)
    failed = [one for one in results if one["status"] not in ("passed", "skipped")]
    assert failed == []
    assert len(results) > 45


def with_labels(digits, n_labels, seed, n_rows=1400):
    """Digits, of which some are labelled; the last 397 are to be predicted."""
    X, y = digits
    labels = np.full(n_rows, -1)
    rows = np.random.RandomState(seed).permutation(n_rows)[:n_labels]
    labels[rows] = y[rows]
    return X[:n_rows], labels, X[1400:], y[1400:]


@pytest.fixture(scope="module")
def few_labels(digits):
    return with_labels(digits, 40, seed=0, n_rows=500)


@pytest.mark.thorough
def test_few_labels_teach_more_beside_unlabelled_rows(digits):
    # The gain of one seed is 0.07 on average, with a standard deviation of 0.04.
    gains = []
    for seed in range(3):
        X, labels, X_new, y_new = with_labels(digits, 20, seed)
        known = labels >= 0
        student = GANClassifier(max_epochs=10, random_state=seed).fit(X, labels)
        alone = LogisticRegression(max_iter=2000).fit(X[known], labels[known])
        gains.append(student.score(X_new, y_new) - alone.score(X_new, y_new))
    assert np.mean(gains) > 0


@settings(max_examples=50, deadline=None)
@given(
    real=arrays(np.float64, (3, 4), elements=st.floats(-20, 20)),
    generated=arrays(np.float64, (5, 4), elements=st.floats(-20, 20)),
)
def test_the_adversarial_loss_is_the_papers_formula(real, generated):
    def share_real(logits):
        z = np.exp(logits).sum(axis=1)
        return z / (z + 1)

    def share_generated(logits):
        return 1 / (np.exp(logits).sum(axis=1) + 1)

    expected = -0.5 * (
        np.log(share_real(real)).mean() + np.log(share_generated(generated)).mean()
    )
    found = adversarial_loss(torch.tensor(real), torch.tensor(generated)).item()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(logits=arrays(np.float64, (6, 3), elements=st.floats(-20, 20)))
def test_the_generated_class_is_one_more_logit_that_is_zero(logits):
    logits = torch.tensor(logits)
    with_generated = torch.cat([logits, torch.zeros(6, 1, dtype=torch.float64)], dim=1)
    log_generated = with_generated.log_softmax(dim=1)[:, -1]
    only_generated = 2 * adversarial_loss(torch.full((1, 3), 1e3).double(), logits)
    np.testing.assert_allclose(only_generated, -log_generated.mean(), atol=1e-12)


def test_features_match_when_their_means_do():
    real, generated = torch.tensor([[0.0, 2.0], [2.0, 4.0]]), torch.tensor([[1.0, 3.0]])
    assert feature_matching_loss(real, generated) == 0
    assert feature_matching_loss(real, generated + torch.tensor([2.0, 0.0])) == 2


def test_the_first_rows_leave_every_layer_standardised():
    torch.manual_seed(0)
    discriminator = Discriminator((1, 5, 4), 3, noise=0.5)
    images = torch.rand(300, 1, 5, 4)
    discriminator.eval().standardize_outputs(images)
    outputs = images
    for layer in discriminator:
        outputs = layer(outputs)
        if isinstance(layer, nn.Linear):
            torch.testing.assert_close(
                outputs.mean(dim=0), torch.zeros(len(layer.bias)), atol=1e-4, rtol=0
            )
            torch.testing.assert_close(
                outputs.std(dim=0), torch.ones(len(layer.bias)), atol=1e-4, rtol=0
            )


@pytest.mark.parametrize("shape", [(3,), (1, 8, 8), (3, 9, 6), (1, 1, 2)])
def test_generated_rows_have_the_shape_of_inputs(shape):
    assert default_generator(7, shape)(torch.rand(4, 7)).shape == (4, *shape)


class Teller(nn.Module):
    """One hidden layer, which remembers the last batch of each kind."""

    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.hidden = nn.Linear(int(np.prod(input_shape)), 16)
        self.output = nn.Linear(16, n_classes)

    def forward(self, inputs):
        return self.output(torch.relu(self.hidden(inputs.flatten(1))))


class Bias(nn.Module):
    """A generator that makes the same row from whatever latent vector."""

    def __init__(self, n_latent, input_shape):
        super().__init__()
        self.row = nn.Parameter(torch.zeros(input_shape))

    def forward(self, latent):
        return self.row.expand(len(latent), *self.row.shape)


def test_networks_can_be_given_as_classes_or_as_objects(few_labels):
    X, labels, X_new, _ = few_labels
    torch.manual_seed(0)
    teller, bias = Teller((64,), 10), Bias(100, (64,))
    before = teller.hidden.weight.clone()
    by_object = GANClassifier(teller, bias, **FLAT).fit(X, labels)
    by_class = GANClassifier(Teller, Bias, **FLAT).fit(X, labels)
    assert by_object.predict(X_new).shape == by_class.predict(X_new).shape
    # The user's own networks stay as they were.
    assert torch.equal(teller.hidden.weight, before)
    assert torch.equal(bias.row, torch.zeros(64))


def test_a_generator_learns_the_mean_of_the_rows_from_linear_features():
    # The features of a single layer are the inputs: matching them is matching means.
    X = np.random.RandomState(0).normal(loc=[5, -2, 0], size=(200, 3))
    y = np.r_[np.zeros(10), np.ones(10), np.full(180, -1)].astype(int)
    y[20] = 2
    made = []

    class Watched(Bias):
        def __init__(self, *shapes):
            super().__init__(*shapes)
            nn.init.constant_(self.row, 3.0)
            made.append(self)

    GANClassifier(
        linear,
        Watched,
        max_epochs=20,
        generator_lr=0.05,
        random_state=0,
    ).fit(X, y)
    # Rows are standardised, so that their mean is 0.
    assert made[0].row.abs().max() < 0.3


@pytest.mark.thorough
def test_images_are_changed_by_default(few_labels):
    X, labels, _, _ = few_labels
    calls = []

    class Counting(ImageAugmentation):
        def weak(self, images):
            calls.append("weak")
            return super().weak(images)

        def strong(self, images):
            calls.append("strong")
            return super().strong(images)

    GANClassifier(augmentation=Counting(), **IMAGES).fit(X, labels)
    assert calls.count("strong") == calls.count("weak") > 0
    calls.clear()
    GANClassifier(augmentation=Counting(), guess_weight=0, **IMAGES).fit(X, labels)
    assert set(calls) == {"strong"}

    def changed(augmentation):
        student = GANClassifier(augmentation=augmentation, **IMAGES)
        return student.fit(X, labels).predict_proba(X)

    np.testing.assert_array_equal(changed("auto"), changed(ImageAugmentation()))
    assert not np.array_equal(changed("auto"), changed(None))


@pytest.mark.thorough
def test_the_seed_decides_and_the_global_generator_is_left_alone(few_labels):
    X, labels, X_new, _ = few_labels
    state = torch.random.get_rng_state()

    def probabilities(seed):
        student = GANClassifier(**{**IMAGES, "random_state": seed})
        return student.fit(X, labels).predict_proba(X_new)

    np.testing.assert_array_equal(probabilities(0), probabilities(0))
    assert not np.array_equal(probabilities(0), probabilities(1))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_pickled_weight_normalised_module_predicts_the_same(few_labels):
    X, labels, _, _ = few_labels
    teller = Teller((64,), 10)
    teller.hidden = weight_norm(teller.hidden)
    student = GANClassifier(teller, Bias, **FLAT).fit(X, labels)
    again = pickle.loads(pickle.dumps(student.module_))
    inputs = torch.rand(5, 64)
    assert torch.equal(again(inputs), student.module_(inputs))


def test_a_pickled_student_predicts_the_same(few_labels):
    X, labels, X_new, _ = few_labels
    student = GANClassifier(**IMAGES).fit(X, labels)
    again = pickle.loads(pickle.dumps(student))
    np.testing.assert_array_equal(
        again.predict_proba(X_new), student.predict_proba(X_new)
    )
    assert clone(again).get_params() == student.get_params()


@pytest.mark.slow
def test_no_noise_is_added_to_predictions(few_labels):
    X, labels, X_new, _ = few_labels
    student = GANClassifier(**FLAT).fit(X, labels)
    np.testing.assert_array_equal(
        student.predict_proba(X_new), student.predict_proba(X_new)
    )


@pytest.mark.thorough
def test_training_stops_when_predictions_on_public_rows_settle(few_labels):
    X, labels, _, _ = few_labels
    settled = {**FLAT, "max_epochs": 5, "patience": 2, "tol": 1.0}
    student = GANClassifier(**settled).fit(X, labels)
    assert student.n_iter_ == len(student.history_) == 2
    assert GANClassifier(**{**settled, "patience": None}).fit(X, labels).n_iter_ == 5


@pytest.mark.slow
def test_verbose_prints_a_line_an_epoch(few_labels, capsys):
    X, labels, _, _ = few_labels
    GANClassifier(**FLAT).fit(X, labels)
    assert capsys.readouterr().out == ""
    GANClassifier(verbose=1, **FLAT).fit(X, labels)
    assert capsys.readouterr().out.count("\n") >= 2


def test_a_grid_search_reaches_its_parameters(few_labels):
    X, labels, _, _ = few_labels
    known = labels >= 0
    search = GridSearchCV(
        GANClassifier(Teller, Bias, **FLAT), {"guess_weight": [0, 1]}, cv=2
    ).fit(X[known], labels[known] % 2)
    assert search.best_params_["guess_weight"] in (0, 1)


@pytest.mark.thorough
def test_it_is_a_student_of_pate(digits):
    X, y = digits
    pate = PATEClassifier(
        LogisticRegression(max_iter=2000),
        GANClassifier(max_epochs=10),
        n_teachers=5,
        mechanism=GNMax(sigma=0.1),
        epsilon=None,
        random_state=0,
    ).fit(X[:700], y[:700], X_public=PublicData(X[700:1500]))
    assert len(pate.answers_) == 100  # it declares that it takes unlabelled rows
    assert pate.score(X[1500:], y[1500:]) > 0.8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"generator": 3}, "generator=3 must be"),
        ({"generator": lambda *shapes: nn.Linear(100, 9)}, r"outputs of shape \(9,\)"),
        ({"module": nn.Flatten()}, r"without a torch\.nn\.Linear"),
        (
            {"augmentation": "flip"},
            "augmentation='flip' must have the methods weak and strong",
        ),
        ({"augmentation": ImageAugmentation(shift=2)}, "shift=2"),
        ({"n_latent": 0}, "n_latent=0"),
        ({"noise": -1}, "noise=-1"),
        ({"adversarial_weight": -1}, "adversarial_weight=-1"),
        ({"guess_weight": "a"}, "guess_weight='a'"),
        ({"threshold": 2}, "threshold=2"),
        ({"generator_lr": -1}, "generator_lr=-1"),
    ],
)
def test_bad_parameters_are_named(few_labels, parameters, message):
    X, labels, _, _ = few_labels
    with pytest.raises(ValueError, match=message):
        GANClassifier(**parameters).fit(X, labels)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_student_trained_on_a_gpu_predicts_on_the_cpu(few_labels):
    X, labels, X_new, _ = few_labels
    student = GANClassifier(device="cuda", **IMAGES).fit(X, labels)
    again = pickle.loads(pickle.dumps(student))
    assert not next(again.module_.parameters()).is_cuda
    np.testing.assert_allclose(
        again.predict_proba(X_new), student.predict_proba(X_new), atol=1e-4
    )
