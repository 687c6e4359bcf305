"""What the model uses, as a report computes and draws it from public rows."""

import re

import numpy as np
import pandas as pd
import pytest

from sklearn_pate import DPNewtonClassifier, PublicData
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPLinearSVC
from sklearn_pate.outcomes import BinnedRegressor
from tests.inspection.report.reported import Page, linear, rows

rng = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "unused": rng.normal(size=3000),
        "age & sex": rng.uniform(20, 90, 3000),
        "ward": rng.choice(["north", "south"], 3000),
    }
)
BACK = np.where(rng.logistic(size=3000) < (ROWS["age & sex"] - 55) / 10, "back", "home")
PUBLIC = ROWS[2500:]


@pytest.fixture(scope="module")
def clf():
    newton = DPNewtonClassifier(classes=["back", "home"], random_state=0)
    return newton.fit(ROWS[:2500], BACK[:2500], X_public=PublicData(PUBLIC))


def importance_of(model, X_public):
    report = PrivacyReport.from_estimator(model, X_public=X_public)
    return report.to_dict()["importance"]


@pytest.mark.slow
def test_the_change_is_that_of_shuffled_columns(clf):
    found = importance_of(clf.publish(), PUBLIC)
    changes = {one["name"]: one["change"] for one in found["columns"]}
    assert next(iter(changes)) == "age & sex"
    before = clf.predict_proba(PUBLIC)[:, 0]
    for name, change in changes.items():
        shuffled = [
            clf.predict_proba(PUBLIC.assign(**{name: rng.permutation(values)}))[:, 0]
            for values in [PUBLIC[name]] * 20
        ]
        # The mean over shuffles, of 5 and of 20.
        assert change == pytest.approx(np.abs(shuffled - before).mean(), rel=0.2)


def test_the_picture_names_columns_in_order_with_a_text_alternative(clf):
    report = PrivacyReport.from_estimator(clf, X_public=PublicData(PUBLIC))
    first = report.to_dict()["importance"]["columns"][0]
    page = report.to_html()
    assert "<h2>What the model uses</h2>" in page
    assert f">age &amp; sex: {first['change']:.3g}<" in page
    ids = [of["id"] for _, of, _ in Page(page).elements if "id" in of]
    assert {"importance-title", "importance-desc"} <= set(ids)
    assert len(ids) == len(set(ids))
    assert re.search(r"\n1\. age .*& sex: 0\.", report.to_markdown())


def test_public_rows_of_the_picture_are_an_assumption():
    X = rows()[0][500:]

    def assumed(**given):
        report = PrivacyReport.from_estimator(linear(), **given)
        return {one["code"] for one in report.to_dict()["assumptions"]}

    assert assumed(X_public=X) - assumed() == {"public-rows"}
    names = {one["name"] for one in importance_of(linear(), X)["columns"]}
    assert names == {"column 0", "column 1"}


@pytest.mark.slow
def test_numbers_change_in_their_own_unit():
    days = ROWS["age & sex"] / 10
    regressor = BinnedRegressor(DPNewtonClassifier(random_state=0), bins=[2, 4, 6, 9])
    regressor.fit(ROWS[:2500], days[:2500], X_public=PublicData(PUBLIC))
    found = importance_of(regressor, PUBLIC)
    assert found["of"] == "prediction"
    assert 1 < found["columns"][0]["change"] < 4


def test_without_probabilities_the_share_of_changed_predictions_counts():
    X = ROWS[["unused", "age & sex"]].to_numpy()
    bounds = ([-5.0, 0.0], [5.0, 95.0])
    svc = DPLinearSVC(feature_bounds=bounds, classes=["back", "home"], epsilon=50.0)
    found = importance_of(svc.fit(X[:2500], BACK[:2500]), X[2500:])
    assert found["of"] == "probability"
    change = found["columns"][0]["change"]
    assert found["columns"][0]["name"] == "column 1"
    # A share of 500 rows, in the mean of five shuffles.
    assert 2500 * change == pytest.approx(round(2500 * change), abs=1e-6)


def test_images_are_refused_in_one_sentence(clf):
    with pytest.raises(ValueError, match=r"X_public of shape \(5, 1, 8, 8\) must be a"):
        importance_of(clf, np.zeros((5, 1, 8, 8)))
