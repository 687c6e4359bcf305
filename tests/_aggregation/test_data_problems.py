"""Report of dropped rows, for the data holder only."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData
from sklearn_pate.learners import (
    Clusters,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV

pytestmark = pytest.mark.slow

N_ROWS = 300
GROUPS = np.arange(N_ROWS) // 2
NAMES = np.array(["ill", "unsure", "well"])


@pytest.fixture
def fit(blobs):
    X, y, X_public, _ = blobs

    def fit(rows=slice(None), groups=None, **parameters):
        X_private, labels = X[:N_ROWS][rows], NAMES[y[:N_ROWS]][rows]
        by_group = {} if groups is None else {"privacy_unit": "group"}
        public = (
            {}
            if "public_size" in parameters
            else {"X_public": PublicData(X_public[1:])}
        )
        return PATEClassifier(
            LogisticRegression(),
            n_teachers=10,
            mechanism=GNMax(sigma=1),
            epsilon=None,
            random_state=0,
            **by_group,
            **parameters,
        ).fit(X_private, labels, groups=groups, **public)

    return fit


def test_a_class_that_no_row_has_is_in_the_sensitive_analysis_only(fit, recwarn):
    pate = fit(classes=["ill", "unsure", "wel"])
    first, second = pate.data_problems_
    assert first == "No row has the label 'wel'."
    assert second.endswith("rows left out: the label 'well' is not in classes.")
    assert len(recwarn) == 0
    assert b"No row has" not in pickle.dumps(pate)


def test_nothing_is_reported_where_labels_and_classes_agree(fit):
    assert fit(classes=NAMES).data_problems_ == ()
    assert fit().data_problems_ == ()


def test_rows_without_a_group_change_no_vote(fit, recwarn):
    groups = GROUPS.astype(object)
    groups[[0, 7, 100]] = None
    known = np.array([one is not None for one in groups])
    with_gaps = fit(groups=groups)
    without = fit(known, groups=groups[known])
    np.testing.assert_array_equal(
        with_gaps.privacy_analysis_.counts, without.privacy_analysis_.counts
    )
    assert with_gaps.data_problems_[0] == "3 rows left out: without a group id."
    assert not any("without a group" in one for one in without.data_problems_)
    assert len(recwarn) == 0


@pytest.mark.filterwarnings("ignore:public_size")
def test_a_row_without_a_group_is_never_held_out_as_public(fit):
    groups = GROUPS.astype(float)
    groups[::3] = np.nan
    pate = fit(groups=groups, public_size=0.5)
    assert len(pate.public_indices_)
    assert not np.any(np.isnan(groups[pate.public_indices_]))


def test_petdl_reports_it_too(blobs):
    X, y, X_public, _ = blobs
    petdl = PETDLClassifier(
        LogisticRegression(),
        student=LogisticRegression(),
        n_teachers=10,
        batches=Clusters(30),
        hint=None,
        classes=[0, 1, 2, 9],
    ).fit(X, y, X_public=PublicData(X_public))
    assert petdl.data_problems_ == ("No row has the label 9.",)


PATE = PATEClassifier(
    LogisticRegression(), LogisticRegression(), n_teachers=10, epsilon=8
)
COUNTS = DPNaiveBayesClassifier({0: (-9, 9), 1: (-9, 9)})
BY_GROUP = {
    "votes": PATE,
    "scores": PATEClassifier(
        LogisticRegression(), n_teachers=10, epsilon=8, mechanism="scores"
    ),
    "Newton": DPNewtonClassifier(epsilon=8, n_groups=200),
    "counts": COUNTS,
    "neighbours": PrivateKNNClassifier(LogisticRegression(), epsilon=8),
    "PETDL": PETDLClassifier(
        LogisticRegression(), LogisticRegression(), n_teachers=10, batches=Clusters(30)
    ),
    "search": PrivateSearchCV(
        COUNTS.set_params(privacy_unit="group"), {"epsilon": [1, 2]}, mean_n_trials=2
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning")
@pytest.mark.parametrize("label", ["rare", None])
@pytest.mark.parametrize("name", BY_GROUP)
def test_a_row_without_an_id_adds_no_class(blobs, name, label):
    X, y, X_public, _ = blobs
    labels, groups = NAMES[y].astype(object), (np.arange(600) // 2).astype(object)
    labels[7], groups[7] = label, None
    learner = BY_GROUP[name]
    if name != "search":
        learner.set_params(privacy_unit="group")
    has_public = name not in ("counts", "search")
    public = {"X_public": PublicData(X_public)} if has_public else {}
    fitted = learner.fit(X, labels, groups=groups, **public)
    assert fitted.classes_.tolist() == NAMES.tolist()
    assert "set of labels, which was read" in fitted.privacy_spent_.in_one_line()
