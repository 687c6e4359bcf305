"""Publication of fits on rows drawn from noisy counts, and forged files of theirs."""

import json

import numpy as np
import pytest

from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.publication import PublishedClassifier, publish
from sklearn_pate.testing import seeded_noise
from tests._aggregation.fits import X
from tests._aggregation.synthetic_fits import FITS, fit
from tests.publication.forging import card_of, forge, refused


@pytest.fixture(params=FITS)
def honest(request, tmp_path):
    publish(fit(request.param)).save(tmp_path / "model.skops")
    return tmp_path / "model.skops"


@pytest.fixture
def of_votes(tmp_path):
    publish(fit("votes")).save(tmp_path / "model.skops")
    return tmp_path / "model.skops"


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
def test_a_saved_model_predicts_and_states_as_the_fit_did(kind, tmp_path):
    fitted = fit(kind)
    publish(fitted).save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.privacy_spent_ == fitted.privacy_spent_
    assert loaded.privacy_spent_.n_tables == 2


def test_no_counts_are_published(of_votes):
    fitted = fit("votes")
    assert not hasattr(publish(fitted), "marginals_")
    assert "marginals" not in json.dumps(card_of(of_votes)).lower().replace(
        "marginalcounts", ""
    )


@pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyLeakWarning")
def test_seeded_parts_have_no_guarantee(tmp_path):
    with seeded_noise(0):
        fitted = fit("votes")
    publish(fitted).save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_.epsilon == np.inf


# Forged files


def in_counts(name, value):
    """Change a parameter of the counts."""

    def change(card):
        card["mechanism"]["parameters"]["counts"]["parameters"][name] = value

    return change


def sigma_of(path):
    fields = card_of(path)["mechanism"]["parameters"]["counts"]
    return fields["parameters"]["sigma"]


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_other_noise_on_counts_than_was_drawn_is_refused(honest, factor):
    forge(honest, in_counts("sigma", factor * sigma_of(honest)))
    assert refused(honest).startswith("its epsilon is ")


@pytest.mark.slow
def test_units_of_counts_that_are_not_those_of_answers_are_refused(honest):
    fields = card_of(honest)["mechanism"]["parameters"]["counts"]
    add_remove = not fields["parameters"]["add_remove"]
    forge(honest, in_counts("add_remove", add_remove))
    assert "do not add up; state both for the same unit and relation" in refused(honest)


def test_a_file_without_the_counts_is_refused(of_votes):
    def change(card):
        card["mechanism"] = card["mechanism"]["parameters"]["mechanism"]

    forge(of_votes, change)
    assert refused(of_votes)


@pytest.mark.parametrize("part", ["counts", "mechanism"])
@pytest.mark.parametrize("other", [None, "counts", "mechanism", "both"])
def test_parts_that_are_none_are_refused(of_votes, part, other):
    def change(card):
        fields = card["mechanism"]
        parts = dict(fields["parameters"])
        new = {"both": fields, None: None, **parts}[other]
        card["mechanism"] = fields | {"parameters": parts | {part: new}}

    if other != part:
        forge(of_votes, change)
        assert refused(of_votes)


# The report


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
def test_the_report_is_about_two_releases_and_no_public_rows_of_people(kind):
    report = PrivacyReport.from_estimator(fit(kind))
    for text in (report.to_markdown(), report.to_html()):
        assert "First, the values in each of 2 columns are counted, one value" in text
        assert "of the values in 2 columns: the first release" in text
        assert "the second release" in text
        assert "declared without a look at private rows" in text
        assert "the only release" not in text
        assert "The people in the public rows" not in text
        assert "An equal share of this cost" not in text


@pytest.mark.slow
def test_a_report_of_a_saved_model_is_about_counts_too(of_votes):
    report = PrivacyReport.from_estimator(PublishedClassifier.load(of_votes))
    assert "Columns that are counted | 2 |" in report.to_markdown()
    assert report.to_dict()["n_tables"] == 2
