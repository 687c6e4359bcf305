"""Teachers on the workers of dask: the votes of a fit in memory, and no row here."""

import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
from tests.cases import thorough_but
from tests.seeding import equal_noise

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow

N_ROWS, N_TEACHERS = 3000, 30
NUMBERS = ["a", "b", "c", "k"]
COLUMNS = [*NUMBERS, "ward"]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def table():
    """Rows of several types, some of them odd; patients in more than one partition."""
    X, y = make_classification(N_ROWS, 4, n_redundant=0, flip_y=0.1, random_state=0)
    frame = pd.DataFrame(X, columns=NUMBERS)
    frame["c"] = frame["c"].astype("float32")
    frame["k"] = (3 * frame["k"]).astype("int64")
    frame.loc[::97, "a"] = np.nan
    frame["ward"] = np.where(X[:, 0] > 0, "north", "søuth")
    owner = np.random.default_rng(0).integers(0, 900, N_ROWS)
    return frame.assign(label=y, patient=[f"p{k}" for k in owner])


@pytest.fixture(scope="module")
def X_public(table):  # noqa: N802
    return PublicData(table[COLUMNS].sample(300, random_state=1).fillna(0.0))


def encoded(classifier):
    return make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["ward"]),
            (StandardScaler(), NUMBERS),
        ),
        classifier,
    )


def make(teacher, **changed):
    defaults = {
        "n_teachers": N_TEACHERS,
        "mechanism": "gnmax",
        "epsilon": 20.0,
        "n_queries": 200,
        "query_strategy": "random",
        "representation": None,
        "random_state": 5,
    }
    return PATEClassifier(teacher, encoded(LogisticRegression()), **defaults | changed)


def fitted(clf, frame, X_public, **options):
    groups = frame["patient"] if clf.privacy_unit == "group" else None
    return clf.fit(
        frame[COLUMNS], frame["label"], X_public=X_public, groups=groups, **options
    )


def cut(table, n_partitions=5):
    return dd.from_pandas(table, npartitions=n_partitions, sort=False)


def counts(clf):
    return clf.privacy_analysis_.counts


TEACHERS = {
    "forest": RandomForestClassifier(5),
    "logistic regression": LogisticRegression(),
    "xgboost": XGBClassifier(n_estimators=5, max_depth=3),
}


@pytest.mark.thorough
@pytest.mark.parametrize("unit", ["row", "group"])
@pytest.mark.parametrize(
    "name", thorough_but(["logistic regression", "xgboost"], TEACHERS)
)
def test_votes_are_those_of_a_fit_in_memory(client, table, X_public, name, unit):
    clf = make(encoded(TEACHERS[name]), privacy_unit=unit)
    ddf = cut(table)
    in_memory = fitted(clf, ddf.compute(), X_public)
    expected, queried = counts(in_memory), in_memory.queried_indices_
    for other in (ddf, cut(table, 3)):
        there = fitted(clf, other, X_public)
        np.testing.assert_array_equal(there.queried_indices_, queried)
        np.testing.assert_array_equal(counts(there), expected)
    assert there.privacy_spent_.unit == unit


def test_arrays_cut_along_rows_and_columns(client):
    X, y = make_classification(2000, 6, random_state=0)
    X_public = PublicData(X[:200].copy())
    clf = make(LogisticRegression()).set_params(student=LogisticRegression())
    expected = counts(clf.fit(X, y, X_public=X_public))
    chunks = da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300)
    np.testing.assert_array_equal(counts(clf.fit(*chunks, X_public=X_public)), expected)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, about dask
@pytest.mark.parametrize("columns", [COLUMNS, ["a", "b"]])
@pytest.mark.parametrize(
    "stored",
    thorough_but(["files", "joined"], ["files", "joined", "persisted", "sorted"]),
)
def test_votes_do_not_depend_on_where_partitions_come_from(
    client, table, X_public, stored, columns, tmp_path
):
    ddf = cut(table.fillna(0.0), 7)
    if stored == "files":
        ddf.to_parquet(tmp_path)
        ddf = dd.read_parquet(tmp_path)
    elif stored == "persisted":
        ddf = ddf.persist()
    elif stored == "joined":
        ddf = ddf.repartition(npartitions=3)
    else:
        ddf = ddf.assign(order=-ddf["b"]).sort_values("order").persist()
    in_memory = ddf.compute()
    teacher = encoded(LogisticRegression()) if columns == COLUMNS else GaussianNB()
    clf = make(teacher).set_params(student=teacher)
    public = PublicData(X_public.X[columns])
    there = counts(clf.fit(ddf[columns], ddf["label"], X_public=public))
    here = clf.fit(in_memory[columns], in_memory["label"], X_public=public)
    np.testing.assert_array_equal(there, counts(here))


@pytest.mark.thorough
@pytest.mark.parametrize("unit", ["row", "group"])
@pytest.mark.parametrize(
    "representation", thorough_but([None, "auto"], [None, "auto", PCA(3)]), ids=str
)
def test_scores_are_those_of_a_fit_in_memory(
    client, table, X_public, representation, unit
):
    options = {"mechanism": "scores", "n_queries": "auto", "query_strategy": "auto"}
    clf = make(LogisticRegression(), **options, representation=representation)
    clf.set_params(student=None, privacy_unit=unit)
    numbers = PublicData(X_public.X[NUMBERS])
    frame = table.head(900).copy()  # some representations take one row at a time
    frame.loc[3, "b"] = np.inf
    frame.loc[4, NUMBERS[:3]] = 1e18
    frame.loc[::50, "label"] = 7
    clf.set_params(classes=[0, 1])

    @equal_noise()
    def released(frame):
        named = {"groups": frame["patient"]} if unit == "group" else {}
        clf.fit(frame[NUMBERS], frame["label"], X_public=numbers, **named)
        return clf.estimate_

    here = released(frame)
    for n_partitions in (2, 5):
        there = released(cut(frame, n_partitions))
        for one, other in zip(there, here, strict=True):
            np.testing.assert_array_equal(one, other)
    assert np.any(here.direction)
    assert clf.privacy_spent_.release == "scores"


@pytest.mark.parametrize("unit", ["row", "group"])
def test_balanced_votes_and_shares_are_those_of_a_fit_in_memory(
    client, table, X_public, unit
):
    options = {"mechanism": "gnmax", "epsilon": 4.0, "query_strategy": "random"}
    clf = make(LogisticRegression(), **options)
    clf.set_params(student=LogisticRegression(), privacy_unit=unit)
    numbers, frame = PublicData(X_public.X[NUMBERS]), table.fillna(0.0)

    @equal_noise()
    def released(frame):
        named = {"groups": frame["patient"]} if unit == "group" else {}
        clf.fit(frame[NUMBERS], frame["label"], X_public=numbers, **named)
        return clf.privacy_analysis_.counts, clf.answers_, clf.class_shares_

    for here, there in zip(released(frame), released(cut(frame)), strict=True):
        np.testing.assert_array_equal(there, here)


def test_a_default_classifier_trains_teachers(client, table, X_public):
    numbers = PublicData(X_public.X[NUMBERS])
    ddf = cut(table.fillna(0.0))
    clf = PATEClassifier(epsilon=5.0).fit(ddf[NUMBERS], ddf["label"], X_public=numbers)
    assert clf.privacy_spent_.n_teachers == round(3 * np.sqrt(N_ROWS))


@pytest.mark.thorough
def test_one_replaced_row_moves_one_vote_of_each_query(client, table, X_public):
    clf = make(encoded(RandomForestClassifier(3)))
    before = counts(fitted(clf, cut(table), X_public))
    for row in (0, 1501, N_ROWS - 1):
        other = table.copy()
        numbers = [other.columns.get_loc(name) for name in ("a", "b", "label")]
        other.iloc[row, numbers] = [50.0, -50.0, 1 - other["label"].iloc[row]]
        moved = counts(fitted(clf, cut(other), X_public)) - before
        assert np.abs(moved).sum(axis=1).max() <= 2


@pytest.mark.thorough
def test_what_reaches_the_client_does_not_grow_with_the_rows(
    client, table, X_public, monkeypatch
):
    received = []
    gather = distributed.Client._gather

    async def counted(self, *arguments, **options):
        result = await gather(self, *arguments, **options)
        received.append(len(pickle.dumps(result)))
        return result

    monkeypatch.setattr(distributed.Client, "_gather", counted)
    clf = make(encoded(LogisticRegression()))
    sizes = []
    for n_copies in (1, 8):
        received.clear()
        fitted(clf, cut(pd.concat(n_copies * [table])), X_public)
        sizes.append(sum(received))
    # The facts of a few partitions, and one count of each class and public row.
    assert sizes[1] < 1.2 * sizes[0]
    assert sizes[0] < len(pickle.dumps(table)) / 4


@pytest.mark.thorough
def test_progress_counts_teachers_on_the_workers(client, table, X_public, capsys):
    learner = make(encoded(LogisticRegression())).set_params(verbose=1)
    fitted(learner, cut(table), X_public)
    assert f"training teachers {N_TEACHERS}/{N_TEACHERS}" in capsys.readouterr().err


class Deadly(DecisionTreeClassifier):
    """A tree that kills the first two workers on which it is trained."""

    def __init__(self, deaths="", survivor=0, random_state=None):
        super().__init__(random_state=random_state)
        self.deaths = deaths
        self.survivor = survivor

    def fit(self, X, y):
        if os.getpid() != self.survivor:
            for death in ("first", "second"):
                try:
                    Path(self.deaths, death).touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


@pytest.mark.thorough
def test_killed_workers_change_no_answer_and_no_cost(client, table, X_public, tmp_path):
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    clf = make(encoded(Deadly(str(deaths), survivor=os.getpid())))
    ddf = cut(table)
    expected = counts(fitted(clf, ddf.compute(), X_public))
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=30.0, delta=1e-5)
    fitted(clf.set_params(ledger=ledger), ddf, X_public)
    assert len([*deaths.iterdir()]) == 2
    client.wait_for_workers(2)
    np.testing.assert_array_equal(counts(clf), expected)
    assert len(ledger.entries()) == 1


@pytest.mark.thorough
def test_a_repeated_fit_gets_its_answers_from_the_ledger(
    client, table, X_public, tmp_path
):
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=40.0, delta=1e-5)
    clf = make(encoded(LogisticRegression()), ledger=ledger)
    first = fitted(clf, cut(table), X_public).answers_
    np.testing.assert_array_equal(fitted(clf, cut(table), X_public).answers_, first)
    assert len(ledger.entries()) == 1
    other = table.assign(b=table["b"] + 1e-9)
    fitted(clf, cut(other), X_public)
    assert len(ledger.entries()) == 2


def test_an_empty_partition_changes_nothing(client, table, X_public):
    clf = make(encoded(LogisticRegression()))
    expected = counts(fitted(clf, cut(table), X_public))
    parts = cut(table).partitions
    nothing = parts[0].map_partitions(lambda rows: rows[:0])
    with_empty = dd.concat([parts[0], nothing, *[parts[k] for k in range(1, 5)]])
    np.testing.assert_array_equal(counts(fitted(clf, with_empty, X_public)), expected)


@pytest.mark.thorough
def test_rows_without_an_id_or_a_class_are_left_out(client, table, X_public):
    clf = make(encoded(LogisticRegression()), privacy_unit="group", classes=[0, 1, 7])
    table = table.copy()
    table.loc[3:40, "patient"] = None
    table.loc[1000:1004, "label"] = 5
    expected = counts(fitted(clf, cut(table).compute(), X_public))
    problems = clf.data_problems_
    fitted(clf, cut(table), X_public)
    np.testing.assert_array_equal(counts(clf), expected)
    assert clf.data_problems_ == (
        "No row has the label 7.",
        "38 rows left out: without a group id.",
        "5 rows left out: the label 5 is not in classes.",
    )
    assert {*clf.data_problems_} <= {*problems}


@pytest.mark.thorough
def test_a_row_without_an_id_adds_no_class(client, table, X_public):
    clf = make(encoded(LogisticRegression()), privacy_unit="group")
    table = table.copy()
    table.loc[3:40, "patient"] = None
    table.loc[7, "label"] = 9
    fitted(clf, cut(table), X_public)
    assert clf.classes_.tolist() == [0, 1]
    votes, problems = counts(clf), clf.data_problems_
    fitted(clf, cut(table).compute(), X_public)
    np.testing.assert_array_equal(counts(clf), votes)
    assert {*problems} <= {*clf.data_problems_}


def changed(ddf, number, change):
    """Change one partition, unknown to the collection."""
    parts = [
        part.map_partitions(change, meta=ddf._meta, enforce_metadata=False)
        if k == number
        else part
        for k, part in enumerate(ddf.partitions)
    ]
    return dd.concat(parts)


BAD = {
    "other columns": (
        lambda ddf: changed(ddf, 2, lambda rows: rows.rename(columns={"a": "z"})),
        r"A partition could not be read \(KeyError: .*'a'.*\); give all partitions",
    ),
    "another type": (
        lambda ddf: changed(ddf, 2, lambda rows: rows.assign(a=rows["a"].astype("f4"))),
        "Partition 2 of X has type float32 in column 'a', but the collection",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_partitions_that_differ_are_named(client, table, X_public, name, tmp_path):
    break_it, message = BAD[name]
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=30.0, delta=1e-5)
    clf = make(encoded(LogisticRegression()), ledger=ledger)
    with pytest.raises(ValueError, match=message):
        fitted(clf, break_it(cut(table)), X_public)
    with pytest.raises(ValueError, match=message):
        fitted(clf.set_params(ledger=None), break_it(cut(table)), X_public)
    assert ledger.entries() == []


def test_y_and_groups_need_the_rows_of_x(client, table, X_public):
    ddf = cut(table)
    clf = make(encoded(LogisticRegression()), privacy_unit="group")

    def fit(y=ddf["label"], groups=ddf["patient"]):
        clf.fit(ddf[COLUMNS], y, X_public=X_public, groups=groups)

    with pytest.raises(ValueError, match="X has 5 partitions and y has 3"):
        fit(y=cut(table, 3)["label"])
    with pytest.raises(
        ValueError, match="y is of type Series, but X is a dask collection"
    ):
        fit(y=table["label"])
    shorter = changed(ddf, 1, lambda rows: rows[:-1])
    with pytest.raises(ValueError, match="Partition 1 has 600 rows in X and 599 in y"):
        fit(y=shorter["label"], groups=shorter["patient"])
    with pytest.raises(ValueError, match="600 rows in y and 599 in groups"):
        fit(groups=shorter["patient"])
    turned = changed(ddf, 1, lambda rows: rows[::-1])
    with pytest.raises(
        ValueError,
        match="Partition 1 has another index, or another order of rows, in X",
    ):
        fit(y=turned["label"], groups=turned["patient"])
    with pytest.raises(ValueError, match="another order of rows, in groups than in y"):
        fit(groups=turned["patient"])
    with pytest.raises(ValueError, match="groups has only one group"):
        fit(groups=ddf["patient"].map(lambda one: "p1", meta=("p", object)))
    with pytest.raises(ValueError, match="groups holds a fraction"):
        fit(groups=ddf["b"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"public_size": 0.2}, r"public_size=0\.2 needs private rows in memory"),
        ({"codes": {"a": [1]}}, r"codes=\{'a': \[1\]\} needs private rows in memory"),
        ({"memory": "folder"}, "memory='folder' needs private rows in memory"),
        (
            {"n_teachers": 4000},
            "n_teachers=4000 is more than the number of private rows",
        ),
        ({"classes": ["a", "b"]}, "No label of y can be in classes"),
    ],
)
def test_parameters_that_need_rows_in_memory_are_refused(
    client, table, X_public, changed, message
):
    clf = make(encoded(LogisticRegression()), **changed)
    given = None if clf.public_size else X_public
    with pytest.raises(ValueError, match=message):
        fitted(clf, cut(table), given)


def test_a_client_is_needed(table, X_public, monkeypatch):
    def no_client():
        raise ValueError("No global client found")

    monkeypatch.setattr("sklearn_pate._teachers._dask_rows.get_client", no_client)
    with pytest.raises(ValueError, match="no dask client is running; start one"):
        fitted(make(encoded(LogisticRegression())), cut(table), X_public)
