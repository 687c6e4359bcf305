"""Images with channels first or last are the same images."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklearn_pate import PublicDataWarning
from sklearn_pate.students import ImageRepresentation
from tests.private import read_input_shape


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((28, 28, 1), (1, 28, 28)),
        ((32, 32, 3), (3, 32, 32)),
        ((20, 30, 4), (4, 20, 30)),
        ((3, 32, 32), (3, 32, 32)),
        ((64, 8, 8), (64, 8, 8)),
        ((28, 28), (1, 28, 28)),
    ],
)
def test_sizes_decide_where_the_channels_are(shape, expected):
    assert read_input_shape(None, (9, *shape)) == expected
    assert read_input_shape(shape, (9, np.prod(shape))) == expected


@pytest.mark.parametrize("shape", [(3, 3, 3), (4, 40, 4), (64, 64, 13), (9, 9, 9)])
def test_a_layout_that_sizes_leave_open_is_warned_of_unless_given(shape):
    with pytest.warns(PublicDataWarning, match="channels come last"):
        assert read_input_shape(None, (9, *shape)) == shape
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_input_shape(shape, (9, *shape)) == shape


@pytest.mark.thorough
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_components_of_images_are_equal_bit_by_bit(channels, flat):
    first = np.random.default_rng(0).uniform(size=(60, channels, 8, 9))
    last = np.moveaxis(first, 1, -1)
    components = []
    for images in (first, last):
        shape = images.shape[1:] if flat else None
        rows = images.reshape(60, -1) if flat else images
        fitted = ImageRepresentation(shape, n_filters=10, random_state=0).fit(rows)
        components.append(fitted.transform(rows))
    assert_array_equal(*components)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FixMatchClassifier", "GANClassifier"])
def test_networks_get_equal_inputs(name):
    from sklearn_pate import students

    first = np.random.default_rng(0).uniform(size=(40, 3, 8, 8))
    y = np.arange(40) % 2
    network = getattr(students, name)(max_epochs=1, random_state=0)
    one, other = (
        network.fit(images, y).predict_proba(images)
        for images in (first, np.moveaxis(first, 1, -1))
    )
    assert_array_equal(one, other)
