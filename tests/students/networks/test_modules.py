"""The small networks of PETDL's students: their sizes, and where they can be used."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from sklearn_pate.students import ConvSmall, FixMatchClassifier
from tests.private import hidden_representation

MNIST = (1, 28, 28)
SHAPES = [MNIST, (3, 32, 32), (1, 8, 8), (2, 5, 9), (30,), (1,)]


def n_parameters(module):
    return sum(weights.numel() for weights in module.parameters())


@pytest.mark.parametrize("input_shape", SHAPES, ids=str)
def test_rows_and_images_become_logits_and_a_non_negative_hidden_layer(input_shape):
    module = ConvSmall()(input_shape, 7)
    inputs = torch.randn(5, *input_shape)
    logits = module(inputs)
    assert logits.shape == (5, 7)
    assert isinstance(module[-1], nn.Linear)
    assert hidden_representation(module, inputs).min() >= 0
    torch.testing.assert_close(module(inputs.flatten(1)), module(inputs))


def test_they_are_made_of_standard_layers_only():
    layers = list(ConvSmall()(MNIST, 10).modules())
    assert {type(layer).__module__.partition(".")[0] for layer in layers} == {"torch"}


def test_they_are_about_as_large_as_those_of_the_paper():
    sizes = [n_parameters(ConvSmall(by)(MNIST, 10)) for by in (1, 2, 3)]
    assert sizes == pytest.approx([80_000, 23_000, 10_000], rel=0.15)


@pytest.mark.parametrize("input_shape", [MNIST, (30,)], ids=str)
def test_compression_makes_them_smaller_until_one_unit_a_layer_is_left(input_shape):
    by = [1, 1.5, 2, 3, 10, 1000]
    sizes = [n_parameters(ConvSmall(one)(input_shape, 10)) for one in by]
    assert all(np.diff(sizes) < 0)
    assert ConvSmall(1000)(input_shape, 10)[-1].in_features == 1


@pytest.mark.parametrize("compression", [0, 0.5, -2, True, "much", None])
def test_a_compression_that_cannot_work_is_named(compression):
    with pytest.raises(ValueError, match=f"compression={compression!r} must be"):
        ConvSmall(compression)(MNIST, 10)


@pytest.mark.thorough
@pytest.mark.parametrize("make", [ConvSmall(), ConvSmall(compression=2)])
def test_a_student_made_of_one_can_be_cloned_and_pickled(make, digits):
    X, y = digits
    student = FixMatchClassifier(
        make, image_shape=(8, 8), max_epochs=15, random_state=0
    )
    fitted = clone(student).fit(X[:1500], y[:1500])
    assert fitted.score(X[1500:], y[1500:]) > 0.8
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X)
    )
