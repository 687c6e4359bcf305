"""The type of votes, which readers of their bytes must know beforehand."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import TeacherWarning
from sklearn_pate.distributed import cast_votes


class Fails(ClassifierMixin, BaseEstimator):
    """A classifier that cannot be trained."""

    def fit(self, X, y):
        raise RuntimeError


def votes_of(estimator, n_rows, n_classes, first_label=0):
    X, y = np.arange(2.0 * n_rows).reshape(-1, 2), np.arange(n_rows) % n_classes
    classes = range(n_classes)
    return cast_votes(
        estimator, X, y + first_label, np.zeros((3, 2)), classes=classes, shard=0
    )


@pytest.mark.parametrize(("n_classes", "dtype"), [(128, np.int8), (129, np.int16)])
def test_abstentions_have_the_type_of_other_votes(n_classes, dtype):
    assert votes_of(GaussianNB(), 300, n_classes).dtype == dtype
    abstentions = [
        votes_of(GaussianNB(), 0, n_classes),
        votes_of(GaussianNB(), 300, n_classes, first_label=1000),
    ]
    with pytest.warns(TeacherWarning, match="failed and abstains"):
        abstentions.append(votes_of(Fails(), 300, n_classes))
    for votes in abstentions:
        assert votes.dtype == dtype
        np.testing.assert_array_equal(votes, [-1, -1, -1])
