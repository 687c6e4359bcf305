"""Splits by group: no group moves another one."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupShuffleSplit, cross_val_score

from sklearn_pate.model_selection import GroupHashSplit


@pytest.fixture
def patient():
    rng = np.random.default_rng(0)
    return rng.permutation(np.repeat(np.arange(400), 1 + rng.integers(4, size=400)))


def patients_in_test(patient, splitter):
    [(_, test)] = splitter.split(patient, groups=patient)
    return set(patient[test].tolist())


@pytest.mark.parametrize("removed", range(0, 400, 23))
def test_a_removed_patient_moves_no_other_patient(patient, removed):
    split = GroupHashSplit(test_size=0.3, random_state=7)
    before = patients_in_test(patient, split)
    after = patients_in_test(patient[patient != removed], split)
    assert after == before - {removed}


def test_a_shuffle_of_groups_moves_many(patient):
    """The reason for this class, and proof that the test above can fail."""
    split = GroupShuffleSplit(1, test_size=0.3, random_state=7)
    before = patients_in_test(patient, split)
    after = patients_in_test(patient[patient != 0], split)
    assert len(after ^ before) > 50


def test_all_rows_of_a_patient_are_in_one_part(patient):
    for train, test in GroupHashSplit(n_splits=5, random_state=0).split(
        None, groups=patient
    ):
        assert not set(patient[train]) & set(patient[test])
        assert sorted([*train, *test]) == list(range(len(patient)))


def test_the_share_of_test_groups_is_that_of_test_size():
    splits = GroupHashSplit(0.2, 4, random_state=3).split(
        None, groups=np.arange(20_000)
    )
    found = [len(test) for _, test in splits]
    # Six standard deviations of a binomial number.
    np.testing.assert_allclose(found, 4000, atol=6 * np.sqrt(20_000 * 0.2 * 0.8))
    assert len(set(found)) > 1


def test_neither_features_nor_labels_nor_the_container_decide(patient):
    split = GroupHashSplit(random_state=1)
    [(train, _)] = split.split(np.ones((len(patient), 2)), patient % 2, patient)
    for groups in (pd.Series(patient), patient.astype(float), patient.astype(str)):
        [(again, _)] = split.split(None, groups=groups)
        np.testing.assert_array_equal(again, train)


def test_a_row_without_an_id_is_in_neither_part():
    ids = ["ann", None, "bob", "", "cy", "dee", "eve"]
    [(train, test)] = GroupHashSplit(0.5, random_state=0).split(None, groups=ids)
    assert sorted([*train, *test]) == [0, 2, 4, 5, 6]


def test_a_search_passes_groups_with_and_without_routing(patient):
    X, y = np.c_[patient % 7, patient % 3], patient % 2
    split = GroupHashSplit(n_splits=3, random_state=0)
    plain = cross_val_score(LogisticRegression(), X, y, groups=patient, cv=split)
    with config_context(enable_metadata_routing=True):
        routed = cross_val_score(
            LogisticRegression(), X, y, cv=split, params={"groups": patient}
        )
    assert split.get_n_splits() == len(plain) == 3
    np.testing.assert_array_equal(plain, routed)


def test_it_is_independent_of_the_public_part_of_a_fit(patient):
    """The same seed does not select the same groups for another purpose."""
    from tests.private import group_ids, hold_out_groups

    ids, _ = group_ids(patient, len(patient))
    for_test, for_public = (
        hold_out_groups(ids, 0.5, 0, purpose) for purpose in (b"test", b"public")
    )
    assert 100 < np.count_nonzero(for_test != for_public) < 300


@pytest.mark.parametrize(
    ("split", "groups", "message"),
    [
        (
            GroupHashSplit(1.0),
            [1, 2],
            "test_size=1.0 must be a number strictly",
        ),
        (
            GroupHashSplit("a"),
            [1, 2],
            "test_size='a' must be a number strictly",
        ),
        (GroupHashSplit(n_splits=0), [1, 2], "n_splits=0"),
        (GroupHashSplit(), None, "GroupHashSplit needs groups"),
        (GroupHashSplit(), [0.5, 1.0], "groups holds a fraction"),
        (GroupHashSplit(1e-9, random_state=0), [1, 2], "use another random_state"),
    ],
)
def test_bad_input_is_refused(split, groups, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        next(split.split(None, groups=groups))


def test_a_part_that_was_split_with_the_same_key_says_what_to_do(patient):
    split = GroupHashSplit(random_state=0)
    [(train, _)] = split.split(None, groups=patient)
    with pytest.raises(ValueError, match="no earlier split of these"):
        next(split.split(None, groups=patient[train]))


def test_it_prints_its_parameters():
    assert "test_size=0.3" in repr(GroupHashSplit(0.3))
