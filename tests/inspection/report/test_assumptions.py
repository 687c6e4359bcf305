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
    pate,
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_engineer_signs_the_lines_about_code():
    own_basis = DPNewtonClassifier(representation=FunctionTransformer(), epsilon=3.0)
    private, public = slice(N_PRIVATE), PublicData(X[N_PRIVATE:])
    report = report_on(own_basis.fit(X[private], Y[private], X_public=public))
    text = report.to_markdown()
    engineer, _, others = text.partition("## Assumptions to sign")
    engineer = engineer.partition("## Assumptions for the engineer")[2]
    codes = {True: [], False: []}
    for one in report.to_dict()["assumptions"]:
        codes[one["for_engineer"]].append(one["code"])
        assert (one["question"] in engineer) is one["for_engineer"]
        assert (one["question"] in others) is not one["for_engineer"]
    assert codes[True] == ["representation-public", "representation-row-alone"]
    assert "| Engineer, who ran the fit |" in engineer
    assert "| Data protection officer, consulted |" in others
    assert "Controller, who decides" not in engineer


@pytest.mark.slow
def test_without_lines_about_code_no_engineer_signs():
    text = report_on(linear(method="gaussian")).to_markdown()
    assert ("the engineer" in text) is ("Engineer, who ran the fit" in text)
    assert "ngineer" not in report_on(pate()).to_markdown()


def test_boxes_and_signatures_are_printed_on_one_page():
    page = Page(report_on(linear()).to_html())
    for tag, attrs, parents in page.elements:
        if tag == "table" and attrs.get("class") == "signatures":
            assert parents[-2] == "section"
    n_signed = sum(one.get("class") == "signatures" for one in page.find("table"))
    together = [one for one in page.find("section") if one.get("class") == "together"]
    assert len(together) == n_signed > 0


def sentences_of_table(table):
    """List the sentences of all texts in a table."""
    if isinstance(table, bool):
        return []
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
