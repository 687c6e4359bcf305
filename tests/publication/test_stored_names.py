"""Names of classes in files, which stay when code moves."""

import warnings
from importlib import import_module

import mlflow.exceptions
import mlflow.sklearn
import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier

from sklearn_pate.metrics import private_metrics
from sklearn_pate.publication import publish, types_to_trust
from tests.publication.learners import (
    CLASSES,
    LEARNERS,
    assert_predicts_alike,
    fit,
)
from tests.publication.saving import TREE

# Otherwise mlflow asks a process of its own which packages the model imports.
REQUIRED = {"pip_requirements": ["sklearn-pate"]}
# skops saves no torch modules.
OF_TORCH = ("dpsgd", "represented dpsgd", "search of networks")


@pytest.fixture(scope="module")
def far_rows():
    """Rows of classes that are far from each other."""
    centers = [[-6, -6], [0, 0], [6, 6]]
    X, y = make_blobs(2200, centers=centers, random_state=0)
    return X, np.array(CLASSES)[y]


@pytest.mark.parametrize("name", types_to_trust())
def test_a_stored_name_is_that_of_its_class(name):
    module, _, attribute = name.rpartition(".")
    kind = getattr(import_module(module), attribute)
    assert (kind.__module__, kind.__qualname__) == (module, attribute)
    assert "._" not in name


@pytest.mark.parametrize("learner", sorted(set(LEARNERS) - set(OF_TORCH)))
def test_skops_saves_a_published_model_by_stored_names_alone(learner, originals, rows):
    published = originals(learner)
    saved = skops.io.dumps(published)
    assert {*skops.io.get_untrusted_types(data=saved)} <= {*types_to_trust()}
    loaded = skops.io.loads(saved, trusted=types_to_trust())
    assert_predicts_alike(loaded, published, rows[0])
    assert loaded.privacy_spent_ == published.privacy_spent_


def test_mlflow_saves_a_published_model_with_its_metrics(far_rows, tmp_path):
    fitted = fit(LEARNERS["newton"], far_rows)
    metrics = private_metrics(fitted, *far_rows, epsilon=1.0)
    assert metrics["accuracy"].value > 0.9  # computed once, and not saved
    published = publish(fitted, metrics=metrics)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mlflow's own
        mlflow.sklearn.save_model(
            published,
            tmp_path / "model",
            skops_trusted_types=types_to_trust(),
            **REQUIRED,
        )
        loaded = mlflow.sklearn.load_model(tmp_path / "model")
    assert_predicts_alike(loaded, published, far_rows[0])
    assert loaded.card == published.card
    assert loaded.metrics_["accuracy"] == metrics["accuracy"]


def test_mlflow_saves_a_forest_with_the_type_that_its_error_names(far_rows, tmp_path):
    forest = RandomForestClassifier(3, random_state=0)
    published = fit(
        clone(LEARNERS["pate"]).set_params(student=forest), far_rows
    ).publish()
    given = {"skops_trusted_types": types_to_trust(), **REQUIRED}
    dumped = skops.io.dumps(clone(forest).fit([[0]], [0]))
    if TREE not in skops.io.get_untrusted_types(data=dumped):
        pytest.skip("this version of skops trusts trees")
    with pytest.raises(mlflow.exceptions.MlflowException, match=TREE):
        mlflow.sklearn.save_model(published, tmp_path / "model", **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mlflow's own
        given["skops_trusted_types"].append(TREE)
        mlflow.sklearn.save_model(published, tmp_path / "forest", **given)
        loaded = import_module("mlflow.pyfunc").load_model(tmp_path / "forest")
    np.testing.assert_array_equal(
        loaded.predict(far_rows[0]), published.predict(far_rows[0])
    )
