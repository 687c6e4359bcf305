"""Records for the registry have its structure, and name what people have to add."""

import re
import warnings
from functools import cache

import numpy as np
import pytest
import yaml
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax, NoisyHistogram
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.publication import Deployment
from sklearn_pate.students import DistillationClassifier
from tests._aggregation import synthetic_fits
from tests.inspection.report.registry_schema import SCHEMA, violations
from tests.inspection.report.reported import (
    QUALITY,
    Stated,
    linear,
    pate,
    report_on,
    seeded,
)
from tests.private import CURATOR_KINDS, REQUIRED, SECTORS

FULL = {
    "name": "Beds & wards, 2026: “short” stays",
    "intended_use": 'planning: "beds"',
    "description": "stays of one year # all wards",
    "region": "Norway - Ås",
    "curator": "City Hospital",
    "curator_kind": "nonprofit",
    "authors": ["A. Author"],
}
HIGHEST = {
    "epsilon_justification": "few guesses are right",
    "tuning": "on public rows",
    "data_security": "a room without network",
}
BOX = (-20.0, 20.0)
SMALL = {"n_queries": 20, "classes": [0, 1, 2]}


def fit(clf, **given):
    X, y = make_blobs(900, centers=3, random_state=0)
    return clf.fit(X[:700], y[:700], X_public=PublicData(X[700:]), **given)


FITS = {
    "votes": pate,
    "newton": lambda: fit(DPNewtonClassifier(classes=[0, 1, 2])),
    "scores": lambda: fit(
        PATEClassifier(LogisticRegression(), n_teachers=20, classes=[0, 1, 2])
    ),
    "histogram": lambda: pate(mechanism=NoisyHistogram(sigma=8.0)),
    "synthetic rows": lambda: synthetic_fits.fit("votes"),
    "groups": lambda: fit(
        PATEClassifier(
            GaussianNB(), GaussianNB(), n_teachers=20, privacy_unit="group", **SMALL
        ),
        groups=np.arange(700) // 2,
    ),
    "parties": lambda: PATEClassifier(
        GaussianNB(), mechanism=GNMax(sigma=10), epsilon=None, classes=[0, 1]
    ).fit_from_votes([[0.0], [5.0], [6.0]], 200 * [[0, 1, 1]]),
    "neighbours": lambda: fit(PrivateKNNClassifier(GaussianNB(), **SMALL)),
    "sums": lambda: fit(
        PETDLClassifier(
            GaussianNB(),
            DistillationClassifier(LogisticRegression()),
            n_teachers=20,
            batches=Clusters(20),
        )
    ),
    "pure": linear,
    "gaussian": lambda: DPLinearSVC(method="gaussian", feature_bounds=BOX).fit(
        *make_blobs(300, random_state=0)
    ),
    "counts": lambda: DPNaiveBayesClassifier(BOX).fit(*make_blobs(300, random_state=0)),
    "search": lambda: PrivateSearchCV(
        DPLogisticRegression(feature_bounds=BOX),
        {"C": [0.1, 1.0]},
        n_trials_distribution="geometric",
        mean_n_trials=2,
        classes=[0, 1, 2],
    ).fit(*make_blobs(900, centers=3, random_state=0)),
}


SLOW = ("scores", "groups")


@cache
def fitted_of(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[kind]()


def written(report, folder):
    path = folder / "record.yaml"
    report.save(path)
    return path.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow) if kind in SLOW else kind
        for kind in FITS
    ],
)
def test_a_complete_record_of_every_fit_has_the_structure_of_the_registry(
    kind, tmp_path
):
    fitted = fitted_of(kind)
    report = report_on(fitted, deployment=Deployment(**FULL))
    record = yaml.safe_load(written(report, tmp_path))
    assert violations(record) == []
    assert record == report.to_registry()
    spent, loss = fitted.privacy_spent_, record["deployment"]["privacy_loss"]
    parameters = loss["privacy_parameters"]
    assert spent.epsilon <= parameters["epsilon"] * (1 + 1e-11)
    assert parameters["epsilon"] <= spent.epsilon + 0.001
    assert parameters.get("delta", 0.0) == spent.delta
    rho = spent.facts.rho
    assert ("rho" in parameters) == (rho is not None)
    if rho is not None:
        assert rho <= parameters["rho"] * (1 + 1e-12) <= rho * 1.00002
    variant = record["deployment"]["dp_variant"]["variant_name"]
    assert variant == ("Approximate DP" if spent.delta else "Pure DP")
    assert "TO FILL IN" not in str(record["deployment"]["basic"])


@pytest.mark.parametrize("kind", ["votes", "parties", "pure"])
def test_an_incomplete_record_names_what_is_missing_and_passes_no_check(kind, tmp_path):
    report = report_on(fitted_of(kind))
    text = written(report, tmp_path)
    record = yaml.safe_load(text)
    assert record == report.to_registry()
    comments = re.findall(r"^# (\w+): ", text, flags=re.MULTILINE)
    assert comments == [*REQUIRED, *HIGHEST]
    kind_of_curator = "/deployment/basic/data_curators[]/data_curator_type"
    assert violations(record) == [kind_of_curator]
    assert str(record).count("TO FILL IN: ") == len(REQUIRED) + 1
    assert record["deployment"]["administrative"]["tier"] == 1
    assert record["deployment"]["administrative"]["status"] == "Draft"


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUIRED)
def test_each_required_field_has_a_line_to_fill_in(name, tmp_path):
    given = {one: value for one, value in FULL.items() if one != name}
    report = report_on(pate(), deployment=Deployment(**given, **HIGHEST))
    text = written(report, tmp_path)
    assert re.findall(r"^# (\w+): ", text, flags=re.MULTILINE) == [name]
    assert str(report.to_registry()).count("TO FILL IN") == 1
    assert report.to_registry()["deployment"]["administrative"]["tier"] == 1


@pytest.mark.slow
def test_the_tier_grows_with_what_is_given(tmp_path):
    def tier(**given):
        report = report_on(pate(), deployment=Deployment(**given))
        return report.to_registry()["deployment"]["administrative"]["tier"]

    assert [tier(), tier(**FULL), tier(**FULL, **HIGHEST)] == [1, 2, 3]
    report = report_on(pate(), deployment=Deployment(**FULL, **HIGHEST))
    text = written(report, tmp_path)
    assert "TO FILL IN" not in text
    assert text.count("#") == 1 + FULL["description"].count("#")


def test_choices_are_those_of_the_registry():
    basic = SCHEMA["deployment"]["basic"]
    [curator] = basic["data_curators"]
    for names, words in (
        (CURATOR_KINDS, curator["data_curator_type"]),
        (SECTORS, basic["data_product_sector"]),
    ):
        assert [name.capitalize() for name in names] == [*words]


@pytest.mark.slow
@pytest.mark.parametrize("kind", CURATOR_KINDS)
@pytest.mark.parametrize("sector", SECTORS)
def test_every_choice_is_allowed(kind, sector):
    given = FULL | {"curator_kind": kind, "sector": sector}
    record = report_on(pate(), deployment=Deployment(**given)).to_registry()
    assert violations(record) == []


@pytest.mark.slow
def test_the_slug_is_a_name_of_a_file():
    slug = report_on(pate(), deployment=Deployment(**FULL)).to_registry()["url_slug"]
    assert slug == "beds_wards_2026_short_stays"
    for name in ("病院", "—"):
        record = report_on(pate(), deployment=Deployment(name=name)).to_registry()
        assert re.fullmatch("[a-z0-9_]+", record["url_slug"])


def test_all_fields_of_people_are_in_the_record():
    given = FULL | HIGHEST
    given |= {
        name: f"the {name} of it"
        for name in (
            *("controller", "model_owner", "contact", "recipients", "retention"),
            *("legal_basis", "impact_assessment"),
        )
    }
    given |= {"audits": ["the audit of it"], "unit_name": "patient", "n_units": 500}
    record = report_on(pate(), deployment=Deployment(**given)).to_registry()
    assert violations(record) == []
    loss = record["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "patient (one row)"
    assert loss["number_of_privacy_units"] == 500
    for value in given.values():
        if isinstance(value, str) and value != "nonprofit":
            assert value in str(record) or repr(value)[1:-1] in str(record)


def test_public_figures_are_the_utility():
    report = report_on(pate(), quality_is_public=True, **QUALITY)
    utility = report.to_registry()["deployment"]["implementation"]["utility"]
    assert "accuracy 0.8125" in utility
    assert "implementation" in report.to_registry()["deployment"]


def test_small_numbers_are_numbers_in_the_file(tmp_path):
    clf = Stated(delta=1e-9, mu=1e-3)
    report = report_on(clf, deployment=Deployment(**FULL))
    record = yaml.safe_load(written(report, tmp_path))
    parameters = record["deployment"]["privacy_loss"]["privacy_parameters"]
    assert parameters["delta"] == 1e-9
    assert parameters["rho"] == pytest.approx(5e-7)
    assert record == report.to_registry()


def test_text_that_looks_like_a_number_stays_as_it_is(tmp_path):
    given = FULL | {"description": '"rho": 1e-5, and "delta": 1e-5'}
    report = report_on(pate(), deployment=Deployment(**given))
    record = yaml.safe_load(written(report, tmp_path))
    assert record["deployment"]["basic"]["description"] == given["description"]


def test_a_model_without_a_guarantee_has_no_record(tmp_path):
    report = report_on(seeded())
    with pytest.raises(
        ValueError, match="with a privacy guarantee, and this one has none"
    ):
        report.to_registry()
    with pytest.raises(ValueError, match="with a privacy guarantee"):
        report.save(tmp_path / "record.yaml")
    assert not (tmp_path / "record.yaml").exists()


def test_an_internal_report_has_no_record(tmp_path):
    report = report_on(pate(), quality_is_public=False, **QUALITY)
    with pytest.raises(ValueError, match="record for a registry is public, but this"):
        report.to_registry()
    with pytest.raises(ValueError, match="record for a registry is public"):
        report.save(tmp_path / "record.yaml", internal=True)


@pytest.mark.slow
def test_a_published_model_has_the_record_of_its_fit():
    deployment = Deployment(**FULL)
    of_fit = report_on(pate(), deployment=deployment).to_registry()
    published = pate().publish(deployment=deployment)
    assert PrivacyReport.from_estimator(published).to_registry() == of_fit
