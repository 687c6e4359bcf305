"""Counts of codes: neighbours, a planted defect, the ledger, and which are counted."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier

from sklearn_pate import (
    DPNewtonClassifier,
    PrivacyLedger,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.inspection import audit_neighbours
from tests._aggregation.code_fits import (
    CODES,
    PRIVATE,
    PUBLIC,
    WHOLE,
    X,
    Y,
    auc,
    fit,
)
from tests._aggregation.fits import Crash
from tests.private import (
    CodedColumns,
    FitEntry,
    MarginalCounts,
    _entry,
    read_codes,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning"),
    pytest.mark.filterwarnings("ignore:.* of the public rows have none of the codes"),
]
# Neighbours


def counts_of(rows, labels):
    declared = dict.fromkeys(range(rows.shape[1]), CODES[:40])
    given = {"n_units": len(rows), "n_classes": 3, "sigma_of": lambda n: 1.0}
    return read_codes(declared, rows[:0], **given).count(rows, labels, 3)


class Odd:
    def __str__(self):
        raise RuntimeError


class OddText(str):
    def __str__(self):
        return self

    def __hash__(self):
        raise RuntimeError


class OfOddText:
    def __str__(self):
        return OddText("c003")


class OddClass:
    @property
    def __class__(self):
        raise RuntimeError


class OddFloat(float):
    def is_integer(self):
        raise RuntimeError


class Warns:
    def __str__(self):
        warnings.warn("private", stacklevel=1)
        return "c003"


ODD = [Odd(), OddText("c003"), OfOddText(), OddClass(), OddFloat(1), Warns()]


@pytest.mark.neighbours
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(value, id=type(value).__name__)
        for value in ["c003", "other", None, np.nan, 7, 1e300, [1], b"c003", *ODD]
    ],
)
@pytest.mark.parametrize("label", [-1, 0, 2])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_a_replaced_row_moves_one_count_of_each_table(value, label, n_columns):
    rows = np.random.default_rng(0).choice(CODES[:60], (50, n_columns)).astype(object)
    labels = np.arange(50) % 3
    other, other_labels = rows.copy(), labels.copy()
    replaced = np.empty(n_columns, dtype=object)
    replaced[:] = [value] * n_columns
    other[7], other_labels[7] = replaced, label
    before, after = counts_of(rows, labels), counts_of(other, other_labels)
    moved = after - before
    assert np.abs(moved).max(initial=0) <= 1
    assert moved @ moved <= 2 * n_columns
    assert before.sum() == 50 * n_columns


@pytest.mark.neighbours
@pytest.mark.parametrize("dtype", ["Int64", "object", "int64[pyarrow]", "category"])
def test_one_missing_value_moves_no_count_of_large_whole_numbers(dtype):
    listed = [WHOLE[number % 20] for number in range(200)]
    labels = np.arange(200) % 2
    coded = read_codes(
        {"code": WHOLE[::8]},  # floats are equal beyond 2^53
        pd.DataFrame({"code": []}),
        n_units=200,
        n_classes=2,
        sigma_of=lambda n: 1.0,
    )
    before, after = (
        coded.count(pd.DataFrame({"code": pd.array(one, dtype=dtype)}), labels, 2)
        for one in (listed, [None, *listed[1:]])
    )
    moved = after - before
    assert moved @ moved <= 2


GROUPS = np.arange(8000) // 4
OF_GROUPS = DPNewtonClassifier(
    codes={"code": CODES},
    privacy_unit="group",
    n_groups=2000,
    classes=[0, 1],
    random_state=0,
)


def counts_of_groups(X_private, y, groups):
    planned = OF_GROUPS._plan(
        X_private, y, X_public=PublicData(X[PUBLIC]), groups=groups
    )
    rows = _entry.counted_rows(planned.private, planned.seeds.synthetic)
    return planned.public.coded.count(*rows, 2)


@pytest.mark.neighbours
@pytest.mark.parametrize("change", ["removed", "changed"])
def test_a_group_counts_once(change):
    rows, labels = X[PRIVATE].reset_index(drop=True), Y[PRIVATE]
    before = counts_of_groups(rows, labels, GROUPS)
    of_group = GROUPS == 5
    if change == "removed":
        stays = ~of_group
        after = counts_of_groups(rows[stays], labels[stays], GROUPS[stays])
    else:
        other = rows.copy()
        other.loc[of_group, "code"] = "c001"
        after = counts_of_groups(other, np.where(of_group, 1 - labels, labels), GROUPS)
    moved = after - before
    assert 0 < moved @ moved <= 2
    assert before.sum() == 2000


# A planted defect


def audit():
    rows = pd.DataFrame({"code": ["a"] * 60 + ["b"] * 60})
    y = np.arange(120) % 2
    other = rows.copy()
    other.loc[0, "code"] = "c"
    clf = DPNewtonClassifier(
        codes={"code": [*"abc"]}, epsilon=0.5, classes=[0, 1], random_state=0
    )
    return audit_neighbours(
        clf,
        (rows, y),
        (other, y),
        X_public=PublicData(pd.DataFrame({"code": [*"abc"] * 20})),
        statistic=lambda fitted: fitted.marginals_["code"][0, 2],
        n_runs=60,
    )


@pytest.mark.thorough
def test_sound_counts_pass_and_a_row_that_is_counted_many_times_is_found(monkeypatch):
    assert not audit().contradicted
    honest = CodedColumns.count
    monkeypatch.setattr(CodedColumns, "count", lambda *given: 1000 * honest(*given))
    assert audit().contradicted


# The ledger


@pytest.mark.slow
def test_a_repeated_fit_is_charged_once_and_gets_the_same_model(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=10, delta=1e-4)
    first, again = fit(ledger=ledger), fit(ledger=ledger)
    assert_array_equal(first.coefficients_, again.coefficients_)
    [entry] = ledger.entries()
    assert entry.epsilon == pytest.approx(first.privacy_spent_.epsilon)
    assert "noisy counts of the codes in 1 column, then" in entry.description


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "when", "n_charges"),
    [
        (FitEntry, "open", "before", 1),
        (MarginalCounts, "release", "before", 2),
        (FitEntry, "keep", "before", 2),
        (FitEntry, "keep", "after", 1),
    ],
)
def test_a_fit_that_died_counts_once_for_each_charge(
    tmp_path, monkeypatch, owner, name, when, n_charges
):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=100, delta=1e-3)
    work = getattr(owner, name)

    def dies(*args, **kwargs):
        if when == "after":
            work(*args, **kwargs)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Crash):
            fit(ledger=ledger)
    fitted = fit(ledger=ledger)
    assert len(ledger.entries()) == n_charges
    assert_array_equal(fit(ledger=ledger).coefficients_, fitted.coefficients_)
    assert len(ledger.entries()) == n_charges


@pytest.mark.slow
@pytest.mark.parametrize("groups", [False, True])
def test_the_order_of_a_dict_does_not_matter(tmp_path, groups):
    both = X.assign(more=X["code"].to_numpy()[::-1])
    listed = {code: code[:2] for code in CODES} if groups else CODES
    turned = {code: listed[code] for code in CODES[::-1]} if groups else CODES[::-1]
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=10, delta=1e-4)
    first = fit(X=both, ledger=ledger, codes={"code": listed, "more": listed})
    again = fit(X=both, ledger=ledger, codes={"more": turned, "code": listed})
    for name in ("code", "more"):
        assert first.codes_[name] == again.codes_[name]
    if len(ledger.entries()) == 1:
        assert_array_equal(first.coefficients_, again.coefficients_)
    assert abs(auc(first, both) - auc(again, both)) < 0.05


# Which columns are counted


def coded(X_public, n_units=8000, sigma=5.0, declared="auto"):
    given = {"n_units": n_units, "n_classes": 2, "sigma_of": lambda n: sigma * n**0.5}
    found = read_codes(declared, X_public, **given)
    return [] if found is None else [*found.by_name]


def test_ids_few_categories_few_rows_and_numbers_are_not_counted():
    rng = np.random.default_rng(0)
    X_public = X[PUBLIC].assign(
        id=[f"id{number}" for number in range(1000)],
        few=rng.choice([*"abcdefghij"], 1000),
        number=rng.integers(300, size=1000),
    )
    assert coded(X_public) == ["code"]
    assert not coded(X_public, n_units=800)
    assert not coded(X_public, n_units=None)
    assert not coded(X_public, sigma=100.0)


@pytest.mark.slow
@pytest.mark.parametrize("codes", ["auto", {"code": None}])
def test_categories_of_private_rows_alone_are_no_codes(codes):
    typed = X.assign(code=pd.Categorical(X["code"], categories=[*CODES, "of one"]))
    fitted = fit(X=typed, codes=codes)
    assert set(fitted.codes_["code"]) == set(X["code"][PUBLIC])


@pytest.mark.slow
def test_columns_of_arrays_are_declared_by_number():
    rows = X.to_numpy(dtype=object)
    fitted = fit(X=rows, codes={3: None})
    assert [*fitted.codes_] == [3]
    assert auc(fitted, rows) > 0.7


@pytest.mark.slow
def test_a_dict_gives_groups_of_codes():
    groups = {code: code[:3] for code in CODES}
    fitted = fit(codes={"code": groups})
    assert fitted.codes_ == {"code": CODES}
    assert auc(fitted) > 0.7


@pytest.mark.thorough
def test_other_learners_of_tables_leave_codes_alone():
    forest = RandomForestClassifier(n_estimators=5)
    rows = X[[*"abc"]]
    assert not hasattr(fit("votes", X=rows, estimator=forest), "codes_")
    domain = dict.fromkeys("abc", (-5.0, 5.0)) | {"code": CODES}
    clf = DPNewtonClassifier(synthetic=PrivateMarginals(domain), random_state=0)
    fitted = clf.fit(X[PRIVATE], Y[PRIVATE])
    assert fitted.privacy_spent_.n_coded is None
    assert not hasattr(fitted, "codes_")
