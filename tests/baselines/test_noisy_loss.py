"""The paper's own noise: it is there, and it hides nothing."""

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from torch import nn

from sklearn_pate import PrivacyLeakWarning, PublicData
from sklearn_pate.baselines import PETDLClassifier
from sklearn_pate.baselines._noisy_loss import NoisyLossNet, NoisyLossNetwork
from sklearn_pate.students.networks._network_training import one_torch_thread
from sklearn_pate.students.networks._public_batches import PublicRows

LEAK = pytest.mark.filterwarnings("ignore:mode='paper':sklearn_pate.PrivacyLeakWarning")
N_TEACHERS = 4


def make(**parameters):
    defaults = {
        "estimator": GaussianNB(var_smoothing=0.1),
        "n_teachers": N_TEACHERS,
        "mode": "paper",
        "epsilon": None,
        "noise_scale": 1.0,
        "clipping_bound": 10.0,
        "batch_size": 64,
        "distillation_epochs": 2,
        "image_shape": (8, 8),
        "compression": 4,
        "random_state": 0,
    }
    return PETDLClassifier(**(defaults | parameters))


@pytest.fixture(scope="module")
def data(digits):
    X, y = digits
    return X[:800] / 16, y[:800], PublicData(X[800:1200] / 16)


def fit(data, **parameters):
    X, y, X_public = data
    return make(**parameters).fit(X, y, X_public=X_public)


def assert_same_student(one, other, X):
    for first, second in zip(weights(one), weights(other), strict=True):
        assert torch.equal(first, second)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def weights(petdl):
    return petdl.student_.module_.state_dict().values()


# What is stated


def test_it_says_that_it_gives_no_privacy_and_why(data):
    with pytest.warns(
        PrivacyLeakWarning, match=r"no privacy, and epsilon is infinite"
    ) as caught:
        petdl = fit(data)
    assert caught[0].filename == __file__
    spent = petdl.privacy_spent_
    assert spent.epsilon == np.inf
    assert (spent.curve * 2).to_epsilon(0.1) == np.inf
    assert "no privacy guarantee" in str(spent)
    assert "whose gradient the noise does not change" in str(spent)
    assert "noise of scale 1.0 on the loss" in str(spent)
    assert spent.n_teachers == N_TEACHERS
    assert petdl.mechanism_ is petdl.privacy_analysis_ is petdl.released_ is None


# What the noise does


@LEAK
@pytest.mark.parametrize("hint_epochs", [0, 2])
@pytest.mark.parametrize(
    "other", [{}, {"noise_scale": 1000.0}, {"noise_scale": 0.0}, {"noise_seed": 1}]
)
def test_no_noise_changes_a_single_bit_of_the_student(data, other, hint_epochs):
    one = fit(data, hint_epochs=hint_epochs)
    another = fit(data, hint_epochs=hint_epochs, **other)
    assert_same_student(one, another, data[0])


@LEAK
def test_the_noise_was_there(data):
    losses = [
        [epoch["train_loss"] for epoch in fit(data).student_.history_] for _ in range(2)
    ]
    assert losses[0] != losses[1]


@LEAK
@pytest.mark.parametrize("noise_scale", [1.0, 1000.0])
def test_neighbours_are_told_apart_with_certainty(data, noise_scale):
    X, y, X_public = data
    neighbour = X.copy(), y.copy(), X_public
    neighbour[0][5], neighbour[1][5] = X[6], 9 - y[5]
    here = fit(data, noise_scale=noise_scale)
    there = fit(neighbour, noise_scale=noise_scale)
    # Whoever can train both knows which one was published, whatever the noise was.
    published = fit(neighbour, noise_scale=noise_scale)
    assert_same_student(published, there, X)
    assert not np.array_equal(published.predict_proba(X), here.predict_proba(X))


@LEAK
def test_the_student_is_a_function_of_what_teachers_said(data):
    X, _, X_public = data
    teachers = [GaussianNB(var_smoothing=0.1) for _ in range(3)]
    said = [
        teacher.fit(X[part::3], data[1][part::3]).predict_proba(X_public.X)
        for part, teacher in enumerate(teachers)
    ]
    wanted = {"classes": range(10), "n_teachers": "auto"}
    one = make(**wanted).fit_from_outputs(X_public, said)
    other = make(**wanted, noise_scale=50.0).fit_from_outputs(X_public, said[::-1])
    assert_same_student(one, other, X)
    assert one.privacy_spent_.unit == "party"


@LEAK
def test_workers_do_not_change_the_student(data):
    one, other = fit(data), fit(data, n_jobs=2)
    assert_same_student(one, other, data[0])


@LEAK
@pytest.mark.parametrize(
    "parameters", [{}, {"hint_epochs": 2}, {"weighted": True, "temperature": 2.0}]
)
def test_it_learns_digits_all_the_same(data, digits, parameters):
    X, y = digits
    petdl = fit(data, distillation_epochs=10, **parameters)
    assert petdl.score(X[1200:] / 16, y[1200:]) > 0.6  # one class for all: 0.1


@LEAK
def test_the_hint_has_passes_of_its_own(data):
    logistic = LogisticRegression(C=0.1, max_iter=1000)
    plain = fit(data, estimator=logistic)
    hinted = fit(data, estimator=logistic, hint_epochs=1)
    assert len(hinted.student_.history_) == len(plain.student_.history_) + 1


# Equations 3 and 4 of the paper


N_ROWS, N_CLASSES = 8, 3
INPUTS = torch.linspace(-1, 1, N_ROWS * 5).reshape(N_ROWS, 5)


def outputs(*codes):
    """Teachers that are certain of a class each."""
    by_teacher = nn.functional.one_hot(torch.tensor(codes), N_CLASSES).float()
    return by_teacher.expand(N_ROWS, -1, -1).reshape(N_ROWS, -1)


def network(n_teachers, **parameters):
    """A linear network that is certain of the first class, ready for a batch."""
    settings = NoisyLossNetwork(
        nn.Linear, n_classes=N_CLASSES, noise_seed=0, **parameters
    )
    module = nn.Linear(5, N_CLASSES)
    with torch.no_grad():
        module.weight.copy_(torch.linspace(-0.2, 0.2, 15).reshape(N_CLASSES, 5))
        module.bias.copy_(torch.tensor([3.0, 0.0, 0.0]))
    net = NoisyLossNet(module, settings=settings, n_teachers=n_teachers, lr=0.1)
    net.initialize()
    net.on_train_begin(net, X=PublicRows(INPUTS, outputs(*[0] * n_teachers)))
    return net


def loss_and_gradient(net, targets):
    net.module_.zero_grad()
    loss = net.batch_loss(INPUTS, targets, INPUTS)
    loss.backward()
    return loss.item(), net.module_.weight.grad.clone()


def cross_entropy(code):
    """The loss of one such teacher, and its gradient."""
    quiet = network(1, noise_scale=0.0, clipping_bound=100.0)
    return loss_and_gradient(quiet, outputs(code))


def test_the_gradient_of_the_noisy_loss_is_that_of_the_loss():
    targets = outputs(0, 1, 2)
    quiet, quiet_gradient = loss_and_gradient(network(3, noise_scale=0.0), targets)
    noisy, noisy_gradient = loss_and_gradient(network(3, noise_scale=100.0), targets)
    assert abs(noisy - quiet) > 1
    assert torch.equal(noisy_gradient, quiet_gradient)
    assert quiet_gradient.any()


def test_a_loss_within_the_bound_is_averaged_as_it_is():
    losses, gradients = zip(*(cross_entropy(code) for code in (0, 1)), strict=True)
    net = network(2, noise_scale=0.0, clipping_bound=100.0)
    loss, gradient = loss_and_gradient(net, outputs(0, 1))
    assert loss == pytest.approx(np.mean(losses), rel=1e-6)
    torch.testing.assert_close(gradient, (gradients[0] + gradients[1]) / 2)


def test_a_loss_beyond_the_bound_counts_as_the_bound_and_teaches_nothing():
    within, gradient_within = cross_entropy(0)
    beyond, _ = cross_entropy(1)
    assert within < 1 < beyond
    net = network(2, noise_scale=0.0, clipping_bound=1.0)
    loss, gradient = loss_and_gradient(net, outputs(0, 1))
    assert loss == pytest.approx((within + 1) / 2, rel=1e-6)
    torch.testing.assert_close(gradient, gradient_within / 2)
    _, nothing = loss_and_gradient(net, outputs(1, 2))
    torch.testing.assert_close(nothing, torch.zeros_like(nothing))


@pytest.mark.parametrize("bound", [0.5, 4.0])
def test_the_noise_is_gaussian_in_clipping_bounds(bound):
    targets = outputs(0, 1)
    clean, _ = loss_and_gradient(
        network(2, noise_scale=0.0, clipping_bound=bound), targets
    )
    net = network(2, noise_scale=1.5, clipping_bound=bound)
    with torch.no_grad(), one_torch_thread():
        losses = [net.batch_loss(INPUTS, targets, INPUTS).item() for _ in range(1000)]
    assert kstest((np.array(losses) - clean) / (1.5 * bound), "norm").pvalue > 1e-3
