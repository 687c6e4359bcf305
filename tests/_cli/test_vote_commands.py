"""Commands ``study``, ``vote`` and ``fit-votes``: one model of five sites."""

import json
import os
import stat
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PrivacyLedger, PublishedClassifier, Votes
from sklearn_pate.distributed import cast_votes, shard_of
from tests._cli.site_files import (
    N_TEACHERS,
    SITES,
    fit_votes,
    study,
    vote,
    without,
    write_site_files,
)
from tests.private import main, read_public


def votes_in_python(site, X, y, ids, classes=("no", "yes"), seed=0):
    """The votes of a site, without the command."""
    key = bytes.fromhex(Path("study.key").read_text())
    public = pd.read_csv("public.csv")
    shards = shard_of(ids, N_TEACHERS, key)
    votes = {
        shard: cast_votes(
            GaussianNB(),
            X[shards == shard],
            y[shards == shard],
            public,
            classes=classes,
            shard=shard,
            seed=seed,
        )
        for shard in range(N_TEACHERS)
    }
    return Votes.from_shards(
        votes,
        public,
        classes=classes,
        n_teachers=N_TEACHERS,
        key=key,
        privacy_unit=json.loads(Path("study.json").read_text())["privacy_unit"],
        site=site,
    )


def assert_equal_votes(votes, others):
    assert votes.header == others.header
    assert votes.classes.tolist() == others.classes.tolist()
    every_row = np.arange(votes.n_public)
    assert np.array_equal(votes.counts(every_row), others.counts(every_row))
    assert votes.any_cast


def test_the_votes_are_those_of_cast_votes(folder):
    rows = pd.read_csv("south.csv")
    expected = votes_in_python(
        "south", rows[["age", "marker"]], rows["readmitted"], rows["patient"]
    )
    assert_equal_votes(Votes.load("south.votes"), expected)


def test_rows_are_assigned_by_their_position_if_they_are_the_unit(folder, capsys):
    assert main(study("--unit", "row", "-o", "rows.json", "--key", "rows.key")) == 0
    for end in ("json", "key"):
        Path(f"rows.{end}").replace(f"study.{end}")
    assert main(without(vote("south", "--overwrite"), "--group")) == 0
    rows = pd.read_csv("south.csv")
    X, y = rows[["age", "marker"]], rows["readmitted"]
    expected = votes_in_python("south", X, y, np.arange(len(rows)))
    assert_equal_votes(Votes.load("south.votes"), expected)


@pytest.mark.slow
def test_five_sites_publish_a_model(folder, capsys):
    assert main(fit_votes("--epsilon", "3", "--report", "report.html")) == 0
    printed = capsys.readouterr().out
    assert "(epsilon=3.000, delta=1e-05)-differentially private" in printed
    assert f"5 queries to {5 * N_TEACHERS} teachers" in " ".join(printed.split())
    assert "Written: model.skops, model.json. These files may be published." in printed
    assert "Written as a draft: report.html. Complete it" in printed
    model = PublishedClassifier.load("model.skops")
    assert model.privacy_spent_.unit == "group"
    assert model.classes_.tolist() == ["no", "yes"]
    codes = [one.code for one in model.privacy_spent_.assumptions]
    assert {"shards-by-key", "shard-own-rows", "one-site-each"} <= set(codes)
    assert "one group" in Path("report.html").read_text()


@pytest.mark.slow
def test_the_student_mechanism_and_warnings_are_those_of_the_command(folder, capsys):
    Path("student.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "student = LogisticRegression(C=0.125)\n"
    )
    options = ["--student", "student.py", "--mechanism", "gumbel", "--delta", "0.09"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(fit_votes(*options)) == 0
    assert "fit-votes: warning: " in capsys.readouterr().err
    model = PublishedClassifier.load("model.skops")
    assert model.student_.estimator_.C == 0.125
    assert "GumbelMax" in str(model.privacy_spent_)


def test_only_the_user_can_read_key_and_votes(folder):
    for name in ("study.key", "north.votes"):
        if os.name == "posix":
            assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    assert len(bytes.fromhex(Path("study.key").read_text())) == 32


def test_each_study_has_a_new_key(folder):
    assert main(study("-o", "other.json", "--key", "other.key")) == 0
    assert Path("other.key").read_text() != Path("study.key").read_text()
    one, other = (
        json.loads(Path(path).read_text()) for path in ("study.json", "other.json")
    )
    assert one.pop("key") != other.pop("key")
    assert one == other
    assert one["sites"] == SITES
    assert one["privacy_unit"] == "group"
    assert Path("study.key").read_text().strip() not in Path("study.json").read_text()


@pytest.mark.parametrize(
    ("written", "read"),
    [("1,0", [0, 1]), ("1,0+", ["0+", "1"]), ("b, a", ["a", "b"])],
)
def test_classes_are_whole_numbers_if_all_of_them_are(
    tmp_path, monkeypatch, written, read
):
    monkeypatch.chdir(tmp_path)
    write_site_files(tmp_path)
    assert main(study("--classes", written)) == 0
    assert json.loads(Path("study.json").read_text())["classes"] == read


def test_numbers_as_labels_are_read_also_beside_a_missing_one(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write_site_files(tmp_path)
    rows = pd.read_csv("north.csv")
    y = np.where(rows["readmitted"] == "yes", 1.0, 0.0)
    y[:3] = np.nan  # pandas writes the others as 1.0 and 0.0
    y[3] = 7
    rows.assign(readmitted=y).to_csv("north.csv", index=False)
    assert main(study("--classes", "0,1", "--seed", "5")) == 0
    assert main(vote("north")) == 0
    assert "because their label is not a class: 4." in capsys.readouterr().out
    X = rows[["age", "marker"]]
    expected = votes_in_python("north", X, y, rows["patient"], [0, 1], seed=5)
    assert_equal_votes(Votes.load("north.votes"), expected)


def test_words_that_may_stand_for_missing_values_are_classes_and_ids(folder, capsys):
    rows = pd.read_csv("north.csv")
    labels = rows["readmitted"].replace({"no": "None", "yes": "NA"})
    ids = rows["patient"].replace({"0-1": "NA"})
    rows.assign(readmitted=labels, patient=ids).to_csv("north.csv", index=False)
    options = ["-o", "new.json", "--key", "new.key"]
    assert main(study("--classes", "NA,None", *options)) == 0
    options = ["--study", "new.json", "--key", "new.key", "--overwrite"]
    assert main(vote("north", *options)) == 0
    assert "because their label is not a class: 0." in capsys.readouterr().out


def test_columns_of_public_rows_have_types_that_each_column_decides(tmp_path):
    text = "whole,number,gap,flag,word,code\n1,2.5,1,True,a,1\n-2,1e-1,NA,False,NA,7b"
    path = tmp_path / "public.csv"
    path.write_text(text)
    frame = read_public(path)
    assert [frame[name].dtype.kind for name in frame] == [*"iffbOO"]
    assert frame["number"].tolist() == [2.5, 0.1]
    assert np.isnan(frame["gap"][1])
    assert frame["word"].tolist() == ["a", "NA"]


def test_an_odd_value_changes_the_vote_of_one_teacher_at_most(folder):
    """Columns would have another type if it were guessed from all rows."""
    before = Votes.load("north.votes").counts(range(30))
    rows = pd.read_csv("north.csv", dtype=str)
    rows.loc[0, ["age", "marker"]] = ["unknown", "1e999"]
    rows.to_csv("north.csv", index=False)
    assert main(vote("north", "--overwrite")) == 0
    after = Votes.load("north.votes").counts(range(30))
    assert np.abs(after.astype(int) - before).sum(axis=1).max() <= 2


def test_texts_and_booleans_are_read_as_those_of_the_public_rows(folder):
    def add_columns(name, columns):
        rows = pd.read_csv(name)
        rows["code"] = np.where(rows["age"] > 0, "a", "7")
        rows["smoker"] = rows["marker"] > 0
        rows[columns(rows)].to_csv(name, index=False)

    add_columns("public.csv", lambda rows: ["age", "smoker", "code"])
    add_columns("north.csv", lambda rows: rows.columns)
    Path("teacher.py").write_text(
        "from sklearn.compose import make_column_transformer\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import OneHotEncoder\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "encoder = make_column_transformer(\n"
        "    (OneHotEncoder(categories=[['a', '7']]), ['code']),\n"
        "    ('passthrough', ['smoker']),\n"
        ")\n"
        "teacher = make_pipeline(encoder, DecisionTreeClassifier())\n"
    )
    assert main(study("-o", "new.json", "--key", "new.key")) == 0
    options = ["--study", "new.json", "--key", "new.key", "--overwrite"]
    assert main(vote("north", *options)) == 0
    public = pd.read_csv("public.csv", dtype=str)
    counts = Votes.load("north.votes").counts(range(len(public)))
    both = (public["code"] == "a") & (public["smoker"] == "True")
    assert np.array_equal(counts.argmax(axis=1)[both], np.ones(both.sum()))
    neither = (public["code"] == "7") & (public["smoker"] == "False")
    assert np.array_equal(counts.argmax(axis=1)[neither], np.zeros(neither.sum()))
    assert counts[both | neither].max(axis=1).min() == N_TEACHERS


@pytest.mark.slow
def test_parquet_files_give_the_votes_of_csv_files(folder):
    pytest.importorskip("pyarrow")
    for name in ("public", "north"):
        rows = pd.read_csv(f"{name}.csv")
        rows.to_parquet(f"{name}.parquet", index=False)
    options = ["--public", "public.parquet", "--data", "north.parquet"]
    assert main(vote("north", *options, "-o", "parquet.votes")) == 0
    assert_equal_votes(Votes.load("parquet.votes"), Votes.load("north.votes"))


@pytest.mark.thorough
def test_processes_cast_the_same_votes_by_a_class_of_the_teacher_file(folder):
    Path("teacher.py").write_text(
        "import numpy as np\n"
        "from sklearn.naive_bayes import GaussianNB\n"
        "class Turned(GaussianNB):\n"
        "    def predict(self, X):\n"
        "        return np.where(super().predict(X) == 'no', 'yes', 'no')\n"
        "teacher = Turned()\n"
    )
    for jobs in ("1", "2"):
        assert main(vote("north", "--jobs", jobs, "-o", f"{jobs}.votes")) == 0
    assert_equal_votes(Votes.load("1.votes"), Votes.load("2.votes"))
    turned = Votes.load("1.votes").counts(range(30))
    assert np.array_equal(turned[:, ::-1], Votes.load("north.votes").counts(range(30)))


def test_a_teacher_may_be_a_skops_file(folder):
    skops.io.dump(GaussianNB(), "teacher.skops")
    options = ["--teacher", "teacher.skops", "-o", "skops.votes"]
    assert main(vote("north", *options)) == 0
    assert_equal_votes(Votes.load("skops.votes"), Votes.load("north.votes"))


def test_the_site_is_told_how_many_shards_have_one_class(folder, capsys):
    rows = pd.read_csv("north.csv")
    key = bytes.fromhex(Path("study.key").read_text())
    in_first = shard_of(rows["patient"], N_TEACHERS, key) == 0
    rows.loc[in_first, "readmitted"] = rows["readmitted"].iloc[0]
    rows.to_csv("north.csv", index=False)
    assert main(vote("north", "--overwrite")) == 0
    printed = capsys.readouterr().out
    assert "Shards with rows of one class: 1." in printed


def test_teachers_that_fail_are_reported_and_abstain(folder, capsys):
    Path("teacher.py").write_text(
        "from sklearn.naive_bayes import GaussianNB\n"
        "class Sometimes(GaussianNB):\n"
        "    def fit(self, X, y):\n"
        "        if len(y) % 2:\n"
        "            raise RuntimeError('an odd number of rows')\n"
        "        return super().fit(X, y)\n"
        "teacher = Sometimes()\n"
    )
    rows = pd.read_csv("north.csv")
    key = bytes.fromhex(Path("study.key").read_text())
    sizes = np.bincount(shard_of(rows["patient"], N_TEACHERS, key))
    if sizes[0] % 2 == sizes[1] % 2:  # one of them shall fail
        row = np.flatnonzero(shard_of(rows["patient"], N_TEACHERS, key) == 0)[0]
        rows.drop(index=row).to_csv("north.csv", index=False)
        sizes[0] -= 1
    assert main(vote("north", "--overwrite")) == 0
    warned = capsys.readouterr().err
    odd = np.flatnonzero(sizes % 2).tolist()
    assert [f"shard {one} failed" in warned for one in range(N_TEACHERS)] == [
        one in odd for one in range(N_TEACHERS)
    ]
    assert "an odd number" not in warned
    counts = Votes.load("north.votes").counts(range(30))
    assert set(counts.sum(axis=1)) == {N_TEACHERS - len(odd)}


def test_progress_is_written_to_a_terminal_only(folder, capsys, monkeypatch):
    assert main(vote("north", "--overwrite")) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(vote("north", "--overwrite")) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].endswith(f"vote: {N_TEACHERS} of {N_TEACHERS} teachers")


@pytest.mark.thorough
def test_a_ledger_is_charged_once_for_the_same_command(folder, capsys):
    PrivacyLedger("sites.sqlite", epsilon=4.0, delta=1e-5)
    given = ["--ledger", "sites.sqlite", "--epsilon", "3", "--overwrite"]
    for _ in range(2):
        assert main(fit_votes(*given)) == 0
    [entry] = PrivacyLedger("sites.sqlite").entries()
    assert 2.9 < entry.epsilon <= 3
    with pytest.raises(SystemExit):
        main(fit_votes(*given, "--epsilon", "3.5"))
    assert "would take" in capsys.readouterr().err
    assert len(PrivacyLedger("sites.sqlite").entries()) == 1
