import json
import os
import stat
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData, Votes
from sklearn_pate.distributed import cast_votes, shard_of
from sklearn_pate.exceptions import TeacherWarning
from tests.private import write_votes

N_SHARDS, N_PUBLIC = 20, 60
CLASSES = [0, 1, 2]
STUDY = {"classes": CLASSES, "n_teachers": N_SHARDS, "key": 5, "privacy_unit": "group"}


@pytest.fixture(scope="module")
def patients():
    X, y = make_blobs(1260, centers=3, cluster_std=3, random_state=0)
    ids = np.array([f"p{k // 3}" for k in range(1200)])
    return X[:1200], y[:1200], ids, X[1200:]


def votes_of(patients, teacher, shards=range(N_SHARDS), key=5):
    X, y, ids, X_public = patients
    shard = shard_of(ids, N_SHARDS, key)
    return {
        k: cast_votes(
            teacher,
            X[shard == k],
            y[shard == k],
            X_public,
            classes=CLASSES,
            shard=k,
            seed=5,
        )
        for k in shards
    }


@pytest.fixture(scope="module")
def votes(patients):
    return votes_of(patients, GaussianNB())


def part_of(votes, patients, shards, **changed):
    X_public = changed.pop("X_public", patients[3])
    some = {k: votes[k] for k in shards}
    return Votes.from_shards(some, X_public, **STUDY | changed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "teacher", [GaussianNB(), LogisticRegression(), RandomForestClassifier(5)], ids=str
)
def test_votes_are_those_of_a_fit_with_that_random_state(patients, teacher):
    X, y, ids, X_public = patients
    clf = PATEClassifier(
        teacher,
        n_teachers=N_SHARDS,
        mechanism="gnmax",
        vote="plain",
        epsilon=20,
        n_queries=N_PUBLIC,
        query_strategy="random",
        representation=None,
        privacy_unit="group",
        random_state=5,
    ).fit(X, y, X_public=PublicData(X_public), groups=ids)
    merged = Votes.from_shards(votes_of(patients, teacher), X_public, **STUDY)
    np.testing.assert_array_equal(
        merged.counts(clf.queried_indices_), clf.privacy_analysis_.counts
    )


@pytest.mark.slow
def test_one_patient_moves_one_vote_of_each_row_at_most(patients):
    X, y, ids, X_public = patients
    before = votes_of(patients, GaussianNB())
    for leaver in ("p0", "p17", "p399"):
        stays = ids != leaver
        after = votes_of((X[stays], y[stays], ids[stays], X_public), GaussianNB())
        moved = [k for k in before if not np.array_equal(before[k], after[k])]
        assert len(moved) <= 1
        assert set(moved) <= set(shard_of([leaver], N_SHARDS, 5).tolist())


def test_the_order_of_parts_does_not_matter(votes, patients):
    parts = [part_of(votes, patients, range(k, k + 5)) for k in (0, 5, 10, 15)]
    whole = part_of(votes, patients, range(N_SHARDS)).counts(range(N_PUBLIC))
    for order in (parts, parts[::-1], [Votes.merge(parts[2:]), *parts[:2]]):
        merged = Votes.merge(order)
        np.testing.assert_array_equal(merged.counts(range(N_PUBLIC)), whole)
        assert merged.shape == (N_SHARDS, N_PUBLIC)


def test_a_shard_without_rows_abstains(patients):
    X_public = patients[3]
    nothing = np.zeros((0, 2)), np.zeros(0)
    votes = cast_votes(GaussianNB(), *nothing, X_public, classes=[0, 1], shard=0)
    assert votes.tolist() == N_PUBLIC * [-1]
    one_class = np.ones((4, 2)), np.ones(4)
    votes = cast_votes(GaussianNB(), *one_class, X_public, classes=[0, 1], shard=0)
    assert votes.tolist() == N_PUBLIC * [1]


def test_rows_of_no_class_are_dropped(patients):
    X, y, _, X_public = patients
    named = np.where(y == 2, None, y)
    args = {"classes": [0, 1], "shard": 3}
    np.testing.assert_array_equal(
        cast_votes(GaussianNB(), X, named, X_public, **args),
        cast_votes(GaussianNB(), X[y < 2], y[y < 2], X_public, **args),
    )


class Fails(GaussianNB):
    """Quotes a private row in its error."""

    def fit(self, X, y):
        raise RuntimeError(f"row {X[0]}")


def test_a_teacher_that_fails_abstains_and_its_error_stays(patients):
    X, y, _, X_public = patients
    with pytest.warns(TeacherWarning, match="shard 4 failed .*RuntimeError") as caught:
        votes = cast_votes(Fails(), X, y, X_public, classes=CLASSES, shard=4)
    assert votes.tolist() == N_PUBLIC * [-1]
    assert "row" not in str(caught[0].message).replace("rows", "")


def test_public_rows_need_the_columns_of_private_ones(patients):
    X, y, _, X_public = patients
    with pytest.raises(ValueError, match="2 features"):
        cast_votes(GaussianNB(), X, y, X_public[:, :1], classes=CLASSES, shard=0)


@pytest.mark.parametrize("key", [-1, 2**64, b"", 1.5, None, "text"])
def test_a_key_that_is_no_key_is_refused(key):
    with pytest.raises(ValueError, match="key must be"):
        shard_of([1, 2], 10, key)


def test_a_missing_id_is_refused():
    with pytest.raises(ValueError, match="ids has no id in 2 of 4 rows"):
        shard_of(["a", None, "b", ""], 10, 0)


@pytest.mark.slow
@given(ids=st.lists(st.integers(0, 10**6)), n_teachers=st.integers(1, 50))
def test_an_id_has_its_shard_beside_any_others(ids, n_teachers):
    together = shard_of(ids, n_teachers, b"key").tolist()
    assert together == [shard_of([one], n_teachers, b"key")[0] for one in ids]
    assert all(0 <= one < n_teachers for one in together)


def test_containers_of_ids_agree():
    ids = [7, 12, 7, 300]
    expected = shard_of(ids, 1000, 3).tolist()
    for container in (
        np.array(ids, dtype=np.uint16),
        np.array(ids, dtype=float),
        pd.Series(ids, dtype="Int64"),
        pd.Series(ids).astype(str),
        pd.Series(ids).astype("category"),
        ["7.0", "12", 7, 300.0],
    ):
        assert shard_of(container, 1000, 3).tolist() == expected


def test_files_are_for_one_user_and_come_back(votes, patients, tmp_path):
    path = tmp_path / "north.votes"
    part = part_of(votes, patients, range(8), site="north")
    part.save(path)
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    loaded = Votes.load(path)
    assert repr(loaded) == "Votes(<private>, n_teachers=20, n_public=60)"
    assert loaded.header == part.header
    np.testing.assert_array_equal(loaded.counts(range(9)), part.counts(range(9)))
    content = path.read_bytes()
    for wrong in (content[:-1], content[:40], content[:-1] + b"\xff", content + b"1"):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="was cut off or changed"):
            Votes.load(path)
    path.write_bytes(b"id,age\n1,2\n")
    with pytest.raises(ValueError, match="not a file of votes"):
        Votes.load(path)


def test_votes_without_a_header_stay_here(tmp_path):
    votes = Votes([np.array([0, 1])], n_public=2, n_classes=2)
    with pytest.raises(ValueError, match="without a header"):
        votes.save(tmp_path / "some.votes")
    with pytest.raises(ValueError, match="Part 0 has no header"):
        Votes.merge([votes])


def one_bit_off(X):
    X = X.copy()
    X[7, 1] = np.nextafter(X[7, 1], np.inf)
    return X


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"key": 6}, "Part 1 has shards of another key than part 0"),
        ({"classes": [0, 1, 3]}, r"Part 1 has the classes \[0, 1, 3\]"),
        (
            {"n_teachers": 30},
            r"another number of teachers .* \(30, not 20\)",
        ),
        ({"privacy_unit": "row"}, "Part 1 protects another unit"),
    ],
)
def test_parts_that_do_not_belong_together_are_named(votes, patients, changed, message):
    parts = [
        part_of(votes, patients, range(8)),
        part_of(votes, patients, range(8, 20), **changed),
    ]
    with pytest.raises(ValueError, match=message):
        Votes.merge(parts)


def test_a_bit_of_the_public_rows_is_noticed(votes, patients):
    other = one_bit_off(patients[3])
    parts = [
        part_of(votes, patients, range(8)),
        part_of(votes, patients, range(8, 20), X_public=other),
    ]
    with pytest.raises(ValueError, match="Part 1 was cast on other public rows"):
        Votes.merge(parts)
    clf = PATEClassifier(GaussianNB(), classes=CLASSES, n_queries=5)
    with pytest.raises(
        ValueError, match="X_public differs from the public rows that teachers voted on"
    ):
        clf.fit_from_votes(PublicData(other), parts[0], privacy_unit="group")


def test_a_shard_that_comes_twice_or_is_split_is_named(votes, patients):
    parts = [part_of(votes, patients, range(8)), part_of(votes, patients, range(7, 20))]
    with pytest.raises(
        ValueError, match=r"Part 1 repeats the votes of shard 7: .* split"
    ):
        Votes.merge(parts)
    sites = [part_of(votes, patients, [3], site=one) for one in ("north", "south")]
    assert Votes.merge(sites).shape == (2 * N_SHARDS, N_PUBLIC)


@pytest.mark.slow
def test_statements_name_the_unit_that_shards_hold(votes, patients, tmp_path):
    X_public = PublicData(patients[3])
    one = Votes.merge([part_of(votes, patients, range(N_SHARDS))])
    sites = Votes.merge(
        [part_of(votes, patients, range(N_SHARDS), site=k) for k in ("north", "south")]
    )
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=40.0, delta=1e-5)
    clf = PATEClassifier(
        GaussianNB(), classes=CLASSES, epsilon=20.0, n_queries=20, ledger=ledger
    )
    for refused, unit, message in (
        (one, "row", "the shards of these votes keep each group whole"),
        ([[0] * N_PUBLIC], "group", "needs votes made by Votes.from_shards"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.fit_from_votes(X_public, refused, privacy_unit=unit)
    assert ledger.entries() == []
    spent = clf.fit_from_votes(X_public, one, privacy_unit="group").privacy_spent_
    assert (spent.unit, spent.n_teachers) == ("group", N_SHARDS)
    assert spent.relation == "add-remove-or-change"
    codes = [one.code for one in spent.assumptions]
    assert {"shards-by-key", "shard-own-rows"} <= {*codes}
    assert "one-site-each" not in codes
    clf.set_params(ledger=None)
    spent = clf.fit_from_votes(X_public, sites, privacy_unit="group").privacy_spent_
    assert spent.n_teachers == 2 * N_SHARDS
    assert "one-site-each" in [one.code for one in spent.assumptions]
    assert clf.fit_from_votes(X_public, sites).privacy_spent_.unit == "party"


def votes_file(path, **changes):
    """Write a file of votes with other values in its header."""
    parts = Votes.from_shards(
        {0: np.array([0, 1, 1])},
        np.zeros((3, 2)),
        classes=["ill", "well"],
        n_teachers=4,
        key=0,
        privacy_unit="row",
    )
    header = asdict(parts.header) | {"classes": ["ill", "well"]} | changes
    write_votes(path, header, parts._counts)
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": ["well", "ill"]},
        {"classes": "ill"},
        {"n_teachers": 10**30},
        {"n_teachers": True},
        {"n_teachers": 1.5},
        {"shards": []},
        {"shards": {"": [[]]}},
        {"shards": {"": [10**30]}},
        {"unit": ["row"]},
        {"shards": {"": [True]}},
        {"unit": "party"},
        {"key": None},
        {"public_rows": None},
    ],
    ids=str,
)
def test_a_header_that_no_site_writes_is_refused_by_one_sentence(tmp_path, changes):
    path = votes_file(tmp_path / "a.votes", **changes)
    with pytest.raises(ValueError, match="is inconsistent; ask its site"):
        Votes.load(path)


def test_a_nested_header_is_refused(tmp_path):
    path = tmp_path / "a.votes"
    first, _, rest = votes_file(path).read_bytes().split(b"\n", 2)
    path.write_bytes(b"\n".join([first, b"[" * 100_000, rest]))
    with pytest.raises(ValueError, match="was cut off or changed"):
        Votes.load(path)


def nested(children):
    return st.lists(children, max_size=3) | st.dictionaries(st.text(), children)


ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from([0, 1, 3, 2**63, 10**30, "row", "group", "1", "4,<u4"]),
    nested,
    max_leaves=4,
)
FIELDS = ["unit", "n_teachers", "public_rows", "key", "shards", "classes"]


@pytest.mark.slow
@settings(max_examples=200)
@given(
    name=st.sampled_from([*FIELDS, "shape", "bytes", "sha256"]),
    value=ANY_VALUE | st.dictionaries(st.just(""), st.lists(ANY_VALUE, max_size=2)),
)
def test_any_header_is_read_or_refused_by_one_error(tmp_path_factory, name, value):
    path = votes_file(tmp_path_factory.getbasetemp() / "any.votes")
    first, header, counts = path.read_bytes().split(b"\n", 2)
    changed = json.dumps(json.loads(header) | {name: value}).encode()
    path.write_bytes(b"\n".join([first, changed, counts]))
    try:
        votes = Votes.load(path)
    except ValueError as error:
        assert str(error).startswith(f"{path} ")  # noqa: PT017
        return
    assert votes.classes.tolist() == sorted(votes.classes)
    assert votes.shape[1] == votes.n_public
    n_sites = len(votes.header.shards)
    assert votes.shape[0] == votes.header.n_teachers * n_sites
