"""Hints on similar clusters of public rows."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from sklearn_pate.students import (
    ConvSmall,
    FixMatchClassifier,
    GANClassifier,
    RelationalHint,
)
from tests.private import disagreement, hidden_representation, train_student

N_PUBLIC, N_ANSWERS, N_CLUSTERS = 1000, 100, 60
STUDENTS = [
    pytest.param(FixMatchClassifier(), id="rows"),
    pytest.param(
        FixMatchClassifier(image_shape=(8, 8)), id="images", marks=pytest.mark.thorough
    ),
    pytest.param(FixMatchClassifier(ConvSmall(), image_shape=(8, 8)), id="small"),
]


@pytest.fixture(scope="module")
def public(digits):
    """Public rows, their answers, and rows to test on."""
    X, y = digits
    order = np.random.RandomState(0).permutation(len(X))
    X, y = X[order], y[order]
    answers = y[:N_PUBLIC].copy()
    answers[N_ANSWERS:] = -1
    return X[:N_PUBLIC], answers, X[N_PUBLIC:], y[N_PUBLIC:]


@pytest.fixture(scope="module")
def hint(digits, public):
    """Clusters are similar if most of their rows are of one class; without noise."""
    X, y = digits
    y = y[np.random.RandomState(0).permutation(len(X))][:N_PUBLIC]
    clusters = KMeans(N_CLUSTERS, n_init=1, random_state=0).fit(public[0]).labels_
    classes = [
        np.bincount(y[clusters == cluster]).argmax() for cluster in range(N_CLUSTERS)
    ]
    return RelationalHint(clusters, np.equal.outer(classes, classes), max_epochs=3)


def mixed_up(hint):
    order = np.random.RandomState(1).permutation(N_CLUSTERS)
    return RelationalHint(
        hint.cluster_of_row, hint.similarities[np.ix_(order, order)], max_epochs=3
    )


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def inputs(rows):
    return torch.from_numpy(rows / 16).float()


def mean_score(student, public, hint):
    X, answers, X_test, y_test = public
    scores = [
        clone(student)
        .set_params(max_epochs=1, random_state=seed)
        .fit(X, answers, hint=hint)
        .score(X_test, y_test)
        for seed in range(3)
    ]
    return np.mean(scores)


@pytest.mark.thorough
@pytest.mark.parametrize("student", STUDENTS)
def test_the_content_of_a_hint_helps_short_training(student, public, hint):
    taught = mean_score(student, public, hint)
    assert taught > mean_score(student, public, None)
    assert taught > mean_score(student, public, mixed_up(hint)) + 0.05


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [None, (8, 8)])
def test_a_gan_learns_from_a_hint_too(shape, public, hint):
    student = GANClassifier(image_shape=shape)
    taught = mean_score(student, public, hint)
    assert taught > mean_score(student, public, mixed_up(hint)) + 0.02


def test_similar_groups_of_the_hint_become_similar_in_the_hidden_layer(public, hint):
    X = inputs(public[0])
    clusters = hint.cluster_of_row
    pairs = np.not_equal.outer(clusters, clusters)
    alike = hint.similarities[np.ix_(clusters, clusters)] > 0

    def contrast(module):
        hidden = hidden_representation(module, X).numpy()
        cosines = np.corrcoef(hidden - hidden.mean(axis=0))
        return cosines[alike].mean() - cosines[pairs & ~alike].mean()

    module = network()
    before, last = contrast(module), deepcopy(module[2].state_dict())
    assert hint.teach(module, X, "cpu") is module
    assert contrast(module) > before + 0.2
    # The last layer is trained on labels.
    torch.testing.assert_close(dict(module[2].state_dict()), dict(last), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("clusters", "similarities"),
    [
        (np.arange(N_PUBLIC) % 5, np.zeros((5, 5))),
        (np.arange(N_PUBLIC) % 5, np.eye(5)),  # about no pair of clusters
        (np.zeros(N_PUBLIC, dtype=int), np.ones((1, 1))),
        (np.full(N_PUBLIC, 3), np.ones((5, 5))),
        (np.where(np.arange(N_PUBLIC) == 7, 1, -1), np.ones((5, 5))),
        (np.full(N_PUBLIC, -1), np.zeros((0, 0))),
    ],
)
def test_a_hint_without_a_similarity_changes_nothing(clusters, similarities, public):
    X, answers, _, _ = public
    student = FixMatchClassifier(max_epochs=1, random_state=0)
    expected = student.fit(X, answers).module_.state_dict()
    without_pairs = RelationalHint(clusters, similarities, max_epochs=1)
    weights = student.fit(X, answers, hint=without_pairs).module_.state_dict()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


def test_two_rows_in_two_groups_are_enough(public):
    X = inputs(public[0][:2])
    hint = RelationalHint(np.arange(2), np.ones((2, 2)), max_epochs=1)
    module = hint.teach(network(), X, "cpu")
    assert all(weights.isfinite().all() for weights in module.parameters())


@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_batches_that_hold_no_pair_do_no_harm(batch_size, public, hint):
    tiny = RelationalHint(
        hint.cluster_of_row, hint.similarities, max_epochs=1, batch_size=batch_size
    )
    module = tiny.teach(network(), inputs(public[0]), "cpu")
    assert all(weights.isfinite().all() for weights in module.parameters())


def test_rows_without_a_group_are_not_used(public, hint):
    X, _, _, _ = public
    clusters = np.where(np.arange(N_PUBLIC) % 3, hint.cluster_of_row, -1)
    partial = RelationalHint(clusters, hint.similarities, max_epochs=1)
    changed = np.where(clusters[:, np.newaxis] < 0, 16 - X, X)
    weights = []
    for rows in (X, changed):
        module = network()
        torch.manual_seed(0)
        partial.teach(module, inputs(rows), "cpu")
        weights.append(module[0].weight)
    assert torch.equal(*weights)


def test_the_scale_and_the_diagonal_of_similarities_are_not_used(public, hint):
    scaled = RelationalHint(
        hint.cluster_of_row,
        8 * hint.similarities + 5 * np.eye(N_CLUSTERS),
        max_epochs=3,
    )
    modules = [network(), network()]
    for module, one in zip(modules, (hint, scaled), strict=True):
        torch.manual_seed(0)
        one.teach(module, inputs(public[0]), "cpu")
    torch.testing.assert_close(modules[0][0].weight, modules[1][0].weight)


def test_the_loss_is_least_where_pairs_agree_and_no_other_pairs_count():
    torch.manual_seed(0)
    hidden = torch.randn(6, 4)
    directions = nn.functional.normalize(hidden - hidden.mean(dim=0))
    similar = (directions @ directions.T).relu()
    counted = ~torch.eye(6, dtype=torch.bool)
    zero = torch.tensor(0.0)
    torch.testing.assert_close(disagreement(hidden, 3 * similar, counted), zero)
    assert disagreement(hidden, 1 - similar, counted) > 0.1
    elsewhere = similar + 9 * torch.eye(6)
    torch.testing.assert_close(disagreement(hidden, elsewhere, counted), zero)
    none = torch.zeros_like(counted)
    assert disagreement(hidden, similar, none) == 0
    assert disagreement(torch.zeros(6, 4), similar, counted) == 0


def test_a_pipeline_passes_the_hint_on(public, hint):
    X, answers, _, _ = public
    student = FixMatchClassifier(max_epochs=1)
    nested = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), student))
    parameters = {
        "X_public": X,
        "queried": np.arange(N_ANSWERS),
        "answers": answers[:N_ANSWERS],
        "n_classes": 10,
        "seed": 0,
    }
    plain = train_student(nested, **parameters)
    taught = train_student(nested, **parameters, hint=hint)
    assert not np.array_equal(plain.predict_proba(X), taught.predict_proba(X))


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(64, 10)
        self.last = nn.Linear(64, 10)

    def forward(self, X):
        return self.used(X)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Sequential(nn.Conv1d(1, 10, 64), nn.Flatten()), "without a torch.nn.Line"),
        (Unused(), "does not use its last torch.nn.Linear"),
    ],
)
def test_a_module_without_a_last_linear_layer_is_refused(module, message, public, hint):
    X, answers, _, _ = public
    student = FixMatchClassifier(module, max_epochs=1)
    with pytest.raises(ValueError, match=f"module is a .*{message}"):
        student.fit(X, answers, hint=hint)
    with pytest.raises(ValueError, match=message):
        hidden_representation(module, inputs(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"similarities": np.zeros((2, 3))}, r"similarities has shape \(2, 3\)"),
        ({"similarities": np.full((3, 3), np.nan)}, "similarities holds NaN"),
        ({"cluster_of_row": np.arange(4)}, "has cluster 3, but similarities has 3"),
        ({"max_epochs": 0}, "max_epochs=0 must be"),
        ({"batch_size": 0}, "batch_size=0 must be"),
        ({"lr": -1}, "lr=-1 must be"),
    ],
)
def test_a_hint_that_cannot_be_learnt_is_refused(parameters, message):
    sound = {
        "cluster_of_row": np.arange(3),
        "similarities": np.zeros((3, 3)),
        "max_epochs": 1,
    }
    with pytest.raises(ValueError, match=message):
        RelationalHint(**{**sound, **parameters})


def test_a_hint_about_other_rows_is_refused(public, hint):
    X, answers, _, _ = public
    with pytest.raises(ValueError, match="hint is about 1000 rows, but X has 999"):
        FixMatchClassifier().fit(X[:-1], answers[:-1], hint=hint)


def test_the_hidden_representation_is_what_the_last_layer_gets(public):
    X = inputs(public[0])
    module = nn.Sequential(nn.Dropout(0.5), *network())
    hidden = hidden_representation(module, X, batch_size=300)
    assert hidden.shape == (N_PUBLIC, 32)
    assert not hidden.requires_grad
    torch.testing.assert_close(module[-1](hidden), module.eval()(X))
