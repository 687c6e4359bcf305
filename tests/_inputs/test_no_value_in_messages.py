"""No message of a wrong call shows a value of the private rows."""

import traceback
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivateMarginals,
    PublicData,
    Votes,
    learners,
)
from sklearn_pate.distributed import cast_votes
from sklearn_pate.learners import PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import PrivateSearchCV, fit_and_measure

SENTINEL = 7654321
TEXT = "Zanzibar7654321"
X = np.random.default_rng(0).normal(size=(60, 3))
X[::7, 1] = SENTINEL
Y = np.arange(60) % 2
NAMES = np.where(Y, TEXT, "b")
X_PUBLIC = np.random.default_rng(1).normal(size=(30, 3))
RAGGED = [[SENTINEL, 1.0], [SENTINEL], *[[1.0, 2.0]] * 58]
TEXTS = X.astype(object)
TEXTS[:, 1] = TEXT
CELLS = X.astype(object)
CELLS[::7, 1] = [[SENTINEL]] * 9
DICTS = [{"age": SENTINEL}] * 60
GROUPS = np.arange(60) // 2 + SENTINEL

# Arguments that differ from X, Y and no groups.
WRONG = {
    "swapped": {"X": Y * SENTINEL, "y": X},
    "swapped, a list": {"X": (Y * SENTINEL).tolist(), "y": X.tolist()},
    "swapped, a frame": {"X": pd.Series(NAMES), "y": pd.DataFrame(X)},
    "one-dimensional": {"X": X[:, 1]},
    "one-dimensional, a list": {"X": X[:, 1].tolist()},
    "a series": {"X": pd.Series(X[:, 1])},
    "one text": {"X": TEXT},
    "a number": {"X": SENTINEL},
    "a number, an array": {"X": np.array(SENTINEL)},
    "a number of numpy": {"X": np.float64(SENTINEL)},
    "one text, an array": {"X": np.array(TEXT)},
    "one object, an array": {"X": np.array(TEXT, dtype=object)},
    "y a number": {"y": np.array(SENTINEL)},
    "y one text, an array": {"y": np.array(TEXT)},
    "y a number of numpy": {"y": np.int64(SENTINEL)},
    "groups a number": {"groups": np.array(SENTINEL)},
    "groups one text, an array": {"groups": np.array(TEXT)},
    "ragged": {"X": RAGGED},
    "text": {"X": TEXTS},
    "text, a list": {"X": TEXTS.tolist()},
    "text, a frame": {"X": pd.DataFrame(TEXTS)},
    "strings": {"X": TEXTS.astype(str)},
    "cells": {"X": CELLS},
    "cells, a frame": {"X": pd.DataFrame(CELLS)},
    "dicts": {"X": DICTS},
    "a dict": {"X": {TEXT: X[:, 1]}},
    "three axes": {"X": X[:, :, None]},
    "complex": {"X": X.astype(complex)},
    "complex, a list": {"X": X.astype(complex).tolist()},
    "complex, a frame": {"X": pd.DataFrame(X.astype(complex))},
    "complex, sparse": {"X": sp.csr_matrix(X.astype(complex))},
    "y complex": {"y": X[:, 1].astype(complex)},
    "dates": {"X": X.astype("M8[s]")},
    "records": {"X": np.rec.fromarrays(X.T)},
    "bytes": {"X": TEXTS.astype("S")},
    "infinite": {"X": np.where(X > 1000, np.inf, X) + SENTINEL},
    "groups complex": {"groups": GROUPS.astype(complex)},
    "sparse": {"X": sp.csr_matrix(X)},
    "few rows": {"X": X[:59]},
    "no row": {"X": X[:0]},
    "y of another length": {"y": NAMES[:50]},
    "y of one class": {"y": np.full(60, TEXT)},
    "y of other classes": {"y": np.full(60, SENTINEL)},
    "y a matrix": {"y": np.column_stack([NAMES, NAMES])},
    "y sparse": {"y": sp.csr_matrix(Y[:, None] * SENTINEL)},
    "y of floats": {"y": X[:, 1]},
    "y of objects": {"y": CELLS[:, 1]},
    "y of dicts": {"y": DICTS},
    "y ragged": {"y": RAGGED},
    "y one text": {"y": TEXT},
    "y mixed": {"y": [TEXT, SENTINEL] * 30},
    "groups of another length": {"groups": GROUPS[:50]},
    "groups a matrix": {"groups": GROUPS.reshape(30, 2)},
    "groups of floats": {"groups": GROUPS + 0.5},
    "groups mixed": {"groups": [TEXT, SENTINEL] * 30},
    "groups of lists": {"groups": RAGGED},
    "groups of dicts": {"groups": DICTS},
    "groups one text": {"groups": TEXT},
}

NET = NeuralNetClassifier(
    nn.Linear(3, 2), criterion=nn.CrossEntropyLoss, max_epochs=1, batch_size=20
)
PUBLIC_MODEL = GaussianNB().fit(X_PUBLIC, np.arange(30) % 2)
PUBLIC = {"X_public": PublicData(X_PUBLIC)}
NOISE = {"noise_scale": 500.0, "epsilon": None}
VOTING = {"n_queries": 5, "epsilon": None, "mechanism": GNMax(50)}
LEARNERS = {  # with cheap settings
    "PATEClassifier": (PATEClassifier(GaussianNB(), n_teachers=3, **VOTING), PUBLIC),
    "held out": (
        PATEClassifier(GaussianNB(), n_teachers=3, public_size=0.3, **VOTING),
        {},
    ),
    "synthetic": (
        PATEClassifier(n_teachers=3, synthetic=PrivateMarginals((-3, 3), n_rows=30)),
        {},
    ),
    "DPNewtonClassifier": (DPNewtonClassifier(), PUBLIC),
    "DPNewtonClassifier, synthetic": (
        DPNewtonClassifier(synthetic=PrivateMarginals((-3, 3), n_rows=30)),
        {},
    ),
    "PETDLClassifier": (PETDLClassifier(GaussianNB(), n_teachers=3, **NOISE), PUBLIC),
    "PrivateKNNClassifier": (PrivateKNNClassifier(n_neighbors=3, **VOTING), PUBLIC),
    "DPLinearSVC": (learners.DPLinearSVC(data_norm=1.0), {}),
    "DPLogisticRegression": (learners.DPLogisticRegression(data_norm=1.0), {}),
    "DPNaiveBayesClassifier": (learners.DPNaiveBayesClassifier((-3, 3)), {}),
    "DPSGDClassifier": (
        learners.DPSGDClassifier(NET, noise_multiplier=9.0, epsilon=None),
        {},
    ),
    "PrivateSearchCV": (
        PrivateSearchCV(learners.DPLinearSVC(data_norm=1.0), {"C": [1.0, 2.0]}),
        {},
    ),
}


def takes_groups(call):
    return call not in LEARNERS or "privacy_unit" in LEARNERS[call][0].get_params()


def fit(name, X, y, groups):
    learner, given = LEARNERS[name]
    learner = learner.set_params(classes=[0, 1])
    if groups is not None:
        learner = learner.set_params(privacy_unit="group")
        given = given | {"groups": groups}
    elif "privacy_unit" in learner.get_params():
        learner.set_params(privacy_unit="row")
    learner.fit(X, y, **given)


def cast(X, y, groups):
    cast_votes(GaussianNB(), X, y, X_PUBLIC, classes=[0, 1], shard=0)


def count(X, y, groups):
    Votes.from_labels([y], classes=[0, 1])


def measure(X, y, groups):
    private_metrics(PUBLIC_MODEL, X, y, epsilon=1.0, groups=groups)


def by_subgroup(groups):
    subgroups = GROUPS if groups is None else groups
    return {"subgroups": subgroups, "subgroup_values": [1, 2]}


def measure_subgroups(X, y, groups):
    private_metrics(PUBLIC_MODEL, X, y, epsilon=1.0, **by_subgroup(groups))


def fit_and_score(X, y, groups):
    learner = learners.DPNaiveBayesClassifier((-3, 3), classes=[0, 1])
    if groups is not None:
        learner.set_params(privacy_unit="group")
    fit_and_measure(learner, X, y, **({} if groups is None else {"groups": groups}))


def fit_and_score_subgroups(X, y, groups):
    learner = learners.DPNaiveBayesClassifier((-3, 3), classes=[0, 1])
    fit_and_measure(learner, X, y, **by_subgroup(groups))


CALLS = {name: partial(fit, name) for name in LEARNERS}
CALLS |= {"cast_votes": cast, "Votes": count}
CALLS |= {"private_metrics": measure, "fit_and_measure": fit_and_score}
CALLS |= {
    "private_metrics, subgroups": measure_subgroups,
    "fit_and_measure, subgroups": fit_and_score_subgroups,
}


def test_all_learners_are_called():
    parameters = {"Clusters", "Hint", "RandomBatches"}  # which read no rows
    assert set(learners.__all__) - parameters <= set(CALLS)


def shown_by(call, case, capfd):
    """Return what a call with wrong rows raises, warns of and prints."""
    rows = {"X": X, "y": Y, "groups": None} | WRONG[case]
    shown = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            CALLS[call](*rows.values())
        except Exception as error:
            for one in chain(error):
                shown += "".join(traceback.format_exception_only(one))
    return (
        shown
        + "".join(str(one.message) for one in caught)
        + "".join(capfd.readouterr())
    )


@pytest.mark.parametrize("call", CALLS)
def test_no_message_shows_a_private_value(call, capfd):
    cases = [
        case
        for case in WRONG
        if WRONG[case].get("groups") is None or takes_groups(call)
    ]
    shown = {case: shown_by(call, case, capfd) for case in cases}
    shows_it = [
        case
        for case, text in shown.items()
        if str(SENTINEL) in text.replace(",", "").replace("_", "") or "7.654" in text
    ]
    assert shows_it == []


def chain(error):
    """List an error and those that are printed with it."""
    while error is not None:
        yield error
        hidden = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or hidden
