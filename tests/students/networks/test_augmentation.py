"""Changes of images and rows, and their seeds."""

import pytest
import torch
from sklearn.base import clone

from sklearn_pate.students import ImageAugmentation
from tests.private import RowAugmentation, check_parameters

STILL = {"rotation": 0, "shift": 0, "scale": 0, "shear": 0}


@pytest.fixture
def images(digits):
    X, _ = digits
    return torch.tensor(X[:50] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)


@pytest.fixture
def rows(digits):
    X, _ = digits
    X = torch.tensor(X[:500], dtype=torch.float32)[:, 18:22]
    return (X - X.mean(dim=0)) / X.std(dim=0)


def seeded(change, inputs):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return change(inputs)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"elastic": 0.05}, {"erase": 0.5}, {"contrast": 0.3}],
    ids=str,
)
def test_changed_images_keep_their_shape_and_range(parameters, images):
    augmentation = ImageAugmentation(**parameters)
    original = images.clone()
    for change in (augmentation.weak, augmentation.strong):
        changed = change(images)
        assert changed.shape == images.shape
        assert changed.dtype == images.dtype
        assert changed.min() >= 0
        assert changed.max() <= 1 + 1e-6
        assert not torch.equal(changed, images)
    assert torch.equal(images, original)  # the public rows are not written to


def test_without_strength_images_stay_as_they_are(images):
    augmentation = ImageAugmentation(**STILL, weak_shift=0)
    torch.testing.assert_close(augmentation.strong(images), images, atol=1e-5, rtol=0)
    torch.testing.assert_close(augmentation.weak(images), images, atol=1e-5, rtol=0)


def test_images_are_never_mirrored():
    ramp = torch.linspace(0, 1, 16).repeat(16, 1).expand(200, 1, 16, 16)
    changed = ImageAugmentation().strong(ramp)
    assert (changed[..., 12:].mean(dim=(1, 2, 3)) > 0.5).all()
    assert (changed[..., :4].mean(dim=(1, 2, 3)) < 0.5).all()


def test_an_erased_square_is_at_most_as_large_as_the_parameter():
    white = torch.ones(500, 3, 20, 20)
    erased = ImageAugmentation(**STILL, erase=0.5).strong(white) == 0
    assert torch.equal(erased[:, 0], erased[:, 2])  # in all channels at once
    shares = erased[:, 0].float().mean(dim=(1, 2))
    assert 0.02 < shares.mean() < 0.25
    assert shares.max() <= 0.5**2 + 1e-6


def test_swapped_values_stay_in_their_feature(digits):
    rows = torch.tensor(digits[0][:500], dtype=torch.float32)[:, 18:22]
    # Whole numbers, which are apart by much more than the noise that is added.
    swapped = (RowAugmentation().strong(10 * rows) / 10).round()
    for feature in range(rows.shape[1]):
        assert set(swapped[:, feature].tolist()) <= set(rows[:, feature].tolist())
    changed = (swapped != rows).float().mean()
    assert 0.2 < changed <= 0.35


def test_a_weak_change_is_smaller_than_a_strong_one(rows, images):
    for augmentation, inputs in (
        (RowAugmentation(), rows),
        (ImageAugmentation(), images),
    ):
        weak = (seeded(augmentation.weak, inputs) - inputs).abs().mean()
        strong = (seeded(augmentation.strong, inputs) - inputs).abs().mean()
        assert 0 < weak < strong


def test_changes_are_seeded_and_parameters_are_cloned(images):
    augmentation = ImageAugmentation()
    first = seeded(augmentation.strong, images)
    assert torch.equal(seeded(clone(augmentation).strong, images), first)
    assert not torch.equal(augmentation.strong(images), first)


@pytest.mark.parametrize(
    ("augmentation", "message"),
    [
        (ImageAugmentation(rotation=200), "rotation=200 must be"),
        (ImageAugmentation(shift=-0.1), "shift=-0.1 must be"),
        (ImageAugmentation(erase="half"), "erase='half' must be"),
    ],
)
def test_bad_strengths_are_named(augmentation, message):
    with pytest.raises(ValueError, match=message):
        check_parameters(augmentation)
