"""Every assumption to sign comes with a question, and texts have short sentences."""

import re

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import DistillationClassifier
from tests.inspection.report.reported import (
    BOUNDS,
    Page,
    linear,
    report_on,
    rows,
)
from tests.private import capitalised, read_table

X, Y = rows()
N_PRIVATE = 500
ON_PUBLIC_ROWS = FrozenEstimator(StandardScaler().fit(X[N_PRIVATE:]))
ANSWERS = {"n_queries": 10, "epsilon": 8.0}


def teachers(**parameters):
    return PATEClassifier(GaussianNB(), n_teachers=20, **ANSWERS, **parameters)


def logistic(**parameters):
    return DPLogisticRegression(feature_bounds=BOUNDS, **parameters)


def network():
    torch = pytest.importorskip("torch")
    pytest.importorskip("opacus")
    skorch = pytest.importorskip("skorch")
    return DPSGDClassifier(
        skorch.NeuralNetClassifier(
            torch.nn.Linear,
            module__in_features=2,
            module__out_features=3,
            criterion=torch.nn.CrossEntropyLoss,
            batch_size=100,
            max_epochs=2,
        )
    )


def without_question(learner, **public):
    """Plan a fit, and list its assumptions without a question."""
    n_private = N_PRIVATE if public else len(X)
    spent = learner.plan_privacy(X[:n_private], Y[:n_private], **public)
    assert np.isfinite(spent.epsilon)  # otherwise there is nothing to sign
    return [one for one in spent.assumptions if not one.question]


@pytest.mark.parametrize(
    "learner",
    [
        teachers(),
        teachers(classes=[0, 1, 2]),
        teachers(representation=FunctionTransformer()),
        PrivateKNNClassifier(**ANSWERS),
        DPNewtonClassifier(),
        DPNewtonClassifier(representation=FunctionTransformer()),
        PETDLClassifier(
            LogisticRegression(),
            DistillationClassifier(LogisticRegression()),
            n_teachers=20,
            batches=Clusters(20),
        ),
    ],
)
def test_every_assumption_beside_public_rows_has_a_question(learner):
    assert not without_question(learner, X_public=PublicData(X[N_PRIVATE:]))


@pytest.mark.filterwarnings("ignore::sklearn_pate.PublicDataWarning")
@pytest.mark.parametrize(
    "learner",
    [
        teachers(public_size=0.3),
        PrivateKNNClassifier(public_size=0.3, **ANSWERS),
        DPNewtonClassifier(public_size=0.3),
        DPNewtonClassifier(synthetic=PrivateMarginals((-20, 20)), epsilon=3.0),
        logistic(),
        logistic(method="gaussian"),
        DPLinearSVC(data_norm=20.0),
        DPNaiveBayesClassifier((-20, 20)),
        PrivateSearchCV(
            make_pipeline(ON_PUBLIC_ROWS, logistic()),
            {"dplogisticregression__C": [0.1, 1.0]},
            mean_n_trials=2,
        ),
    ],
)
def test_every_assumption_about_private_rows_has_a_question(learner):
    assert not without_question(learner)


@pytest.mark.slow
def test_every_assumption_about_a_network_has_a_question():
    assert not without_question(network())
    search = PrivateSearchCV(network(), {"max_grad_norm": [0.5]}, mean_n_trials=2)
    assert not without_question(search)


def test_every_assumption_beside_a_ledger_has_a_question(tmp_path):
    ledger = PrivacyLedger(tmp_path / "rows.sqlite", epsilon=30, delta=1e-5)
    learner = teachers(ledger=ledger, random_state=0)
    assert not without_question(learner, X_public=PublicData(X[N_PRIVATE:]))


def test_every_assumption_about_parties_has_a_question():
    learner = PATEClassifier(student=LogisticRegression(), classes=[0, 1, 2], **ANSWERS)
    votes = np.tile(Y[N_PRIVATE:], (30, 1))
    learner.fit_from_votes(PublicData(X[N_PRIVATE:]), votes)
    assert all(one.question for one in learner.privacy_spent_.assumptions)


def test_the_question_stands_beside_its_assumption():
    report = report_on(linear())
    page = "".join(Page(report.to_html()).text)
    for assumption in linear().privacy_spent_.assumptions:
        assert f"{capitalised(assumption.sentence)}. {assumption.question}" in page


def sentences_of_table(table):
    """List the sentences of all texts in a table."""
    if isinstance(table, str):
        return re.split(r"(?<=[.?!]) ", table)
    values = table.values() if isinstance(table, dict) else table
    return [sentence for value in values for sentence in sentences_of_table(value)]


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("accounting", "assumptions"),
        ("accounting", "statement"),
        ("inspection", "leaks"),
        ("inspection.report", "registry"),
        ("inspection.report", "texts"),
    ],
)
def test_no_sentence_of_a_signer_has_more_than_25_words(package, name):
    table = read_table(f"sklearn_pate.{package}", f"{name}.toml")
    table.pop("papers", None)
    for sentence in sentences_of_table(table):
        assert len(sentence.split()) <= 25, sentence
