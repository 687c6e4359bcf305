"""Commands ``study``, ``vote`` and ``fit-votes`` refuse bad input in one sentence."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_pate import Votes
from tests._cli.site_files import N_TEACHERS, SITES, fit_votes, study, vote, without
from tests.private import main, write_votes


def refused(arguments, capsys):
    """Run a command that fails; return its message, after a look at all files."""
    before = {path: path.read_bytes() for path in Path().iterdir()}
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert printed.out == ""
    assert {path: path.read_bytes() for path in Path().iterdir()} == before
    *warned, message = printed.err.splitlines()
    assert all(": warning: " in line for line in warned)
    assert f" {arguments[0]}: " in message
    return message


def refused_vote(capsys, *options):
    Path("north.votes").unlink(missing_ok=True)
    return refused(vote("north", *options), capsys)


def change(name, **columns):
    """Change columns of a file; None drops one, and a function is of the column."""
    rows = pd.read_csv(name, dtype=str)
    for column, new in columns.items():
        if new is None:
            rows = rows.drop(columns=column)
        else:
            rows[column] = new(rows[column])
    rows.to_csv(name, index=False)


def one_other(column):
    """Change one digit of the first number."""
    last = "1" if column[0][-1] != "1" else "2"
    return [column[0][:-1] + last, *column[1:]]


def no_first(column):
    return ["", *column[1:]]


@pytest.mark.slow
def test_other_public_rows_are_refused_before_training(folder, capsys):
    change("public.csv", age=one_other)
    Path("teacher.py").write_text("raise AssertionError('executed')")
    message = refused_vote(capsys)
    assert "public.csv differs from the public rows of the study" in message
    assert "public.csv differs" in refused(fit_votes(), capsys)


def test_votes_on_other_public_rows_are_refused_by_file(folder, capsys):
    """A site that wrote the file without the command."""
    public = pd.read_csv("public.csv")
    public.iloc[0, 0] = np.nextafter(public.iloc[0, 0], 9)
    Votes.from_shards(
        {},
        public,
        classes=["no", "yes"],
        n_teachers=N_TEACHERS,
        key=bytes.fromhex(Path("study.key").read_text()),
        privacy_unit="group",
        site="south",
    ).save("south.votes")
    message = refused(fit_votes(), capsys)
    assert "south.votes was cast on other public rows than the study" in message


def test_a_site_that_sends_twice_is_refused_by_file(folder, capsys):
    shutil.copy("east.votes", "east-again.votes")
    message = refused(fit_votes(sites=[*SITES, "east-again"]), capsys)
    assert "east-again.votes repeats the votes of shard 0 of site 'east'" in message
    assert "sent twice" in message


def test_a_site_that_is_missing_is_named(folder, capsys):
    message = refused(fit_votes(sites=SITES[:3]), capsys)
    assert "No file has the votes of west, centre" in message


@pytest.mark.parametrize("n_bytes", [-1, 300, 10])
def test_a_file_that_was_cut_off_is_refused(folder, capsys, n_bytes):
    content = Path("west.votes").read_bytes()
    Path("west.votes").write_bytes(content[:n_bytes])
    message = refused(fit_votes(), capsys)
    assert "west.votes was cut off" in message or "west.votes is not a file" in message


@pytest.mark.parametrize(
    ("shape", "n_votes", "message"),
    [
        ((1, 2), 1, "west.votes has votes on 1 public row, and the study has"),
        ((30,), 1, "west.votes is inconsistent"),
        ((30, 2), N_TEACHERS, "west.votes is inconsistent"),
        ((30, 2), 2**63, "west.votes is inconsistent"),  # their sum is 2**64
    ],
)
def test_a_forged_file_is_refused(folder, capsys, shape, n_votes, message):
    header = json.loads(Path("west.votes").read_bytes().split(b"\n")[1])
    write_votes("west.votes", header, np.full(shape, n_votes, dtype=np.uint64))
    assert message in refused(fit_votes(), capsys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--teachers", "5"], r"south.votes has another number of teachers than the s"),
        (["--unit", "row"], "south.votes protects another unit than the study"),
        (["--classes", "no,yes,maybe"], "south.votes has other classes than the study"),
        ([], "south.votes has shards of another key than the study"),
        (["--sites", "south,moon"], "from site 'moon', which is not in the study"),
    ],
)
def test_votes_of_another_study_are_refused_by_file(folder, capsys, options, message):
    assert main(study(*options, "-o", "other.json", "--key", "other.key")) == 0
    site = "moon" if "--sites" in options else "south"
    shutil.copy("south.csv", "moon.csv")
    arguments = vote(site, "--overwrite", "--study", "other.json", "--key", "other.key")
    if "--unit" in options:
        arguments = without(arguments, "--group")
    assert main(arguments) == 0
    sites = [*SITES, "moon"] if site == "moon" else SITES
    assert message in refused(fit_votes(sites=sites), capsys)


def test_another_key_is_refused_before_training(folder, capsys):
    Path("study.key").write_text(32 * "ab")
    Path("teacher.py").write_text("raise AssertionError('executed')")
    assert "study.key is not the key of the study" in refused_vote(capsys)
    Path("study.key").write_text("a word")
    assert "study.key is not a key file" in refused_vote(capsys)


def test_a_site_that_is_not_in_the_study_is_refused(folder, capsys):
    message = refused_vote(capsys, "--site", "moon")
    assert "--site moon is not one of the sites of the study (north, south" in message


BAD_ROWS = {
    "no label": (["--label", "stay"], {}, "north.csv has no column 'stay'"),
    "no group": (["--group", "ward"], {}, "north.csv has no column 'ward'"),
    "no feature": ([], {"marker": None}, "north.csv has no column 'marker'"),
    "other classes": (
        [],
        {"readmitted": lambda column: "Y" + column},
        "No label in column 'readmitted' of north.csv is one of the classes",
    ),
    "missing id": (
        [],
        {"patient": no_first},
        "north.csv, column 'patient': ids has no",
    ),
    "a fraction as id": (
        ["--data", "north.parquet"],
        {},
        "north.parquet, column 'patient': ids holds a fraction",
    ),
    "text": (
        [],
        {"age": lambda column: "years " + column},
        "north.csv: could not convert string to float: column 'age' is text",
    ),
    "label as feature": (["--label", "age"], {}, "Column 'age' is a feature"),
    "id as feature": (["--group", "marker"], {}, "Column 'marker' is a feature"),
    "another format": (["--data", "north.xls"], {}, "must end in .csv or .parquet"),
    "no file": (["--data", "moon.csv"], {}, "moon.csv"),
    "no processes": (["--jobs", "0"], {}, "--jobs 0 is not a number of processes"),
    "no folder": (["-o", "no/north.votes"], {}, "There is no folder no"),
}


@pytest.mark.parametrize(
    ("options", "columns", "message"), BAD_ROWS.values(), ids=BAD_ROWS
)
def test_rows_that_cannot_be_used_are_refused(
    folder, capsys, options, columns, message
):
    if "north.parquet" in options:
        pytest.importorskip("pyarrow")
        rows = pd.read_csv("north.csv")
        rows.assign(patient=0.5).to_parquet("north.parquet")
    change("north.csv", **columns)
    assert message in refused_vote(capsys, *options)


def test_files_that_are_no_tables_are_refused(folder, capsys):
    lines = Path("north.csv").read_text().splitlines()
    for text, message in (
        ("", "north.csv cannot be read: No columns"),
        (lines[0] + "\n", "north.csv has no rows"),
        (lines[0] + "\n" + lines[1] + ",7\n", "more values than the first line"),
        ("\n".join([*lines[:2], lines[2] + ",7,8"]), "north.csv cannot be read: Error"),
    ):
        Path("north.csv").write_text(text)
        assert message in refused_vote(capsys)
    Path("north.csv").write_bytes(lines[0].encode() + b"\n\xff,1,1,1\n")
    assert "north.csv is not in UTF-8; save it in UTF-8." in refused_vote(capsys)


BAD_TEACHERS = {
    "from sklearn.naive_bayes import GaussianNB": "teacher.py defines no teacher",
    "teacher = 3": "teacher.py is a int, not a classifier",
    "from sklearn.naive_bayes import GaussianNB as teacher": "is a ABCMeta",
    "from sklearn.linear_model import Ridge\nteacher = Ridge()": "is a Ridge",
    "teacher = 1 / 0": "teacher.py failed with ZeroDivisionError: division by zero",
    "teacher = (": "teacher.py failed with SyntaxError",
    "import no_such_module": "teacher.py failed with ModuleNotFoundError",
    "from sklearn.naive_bayes import GaussianNB\nteacher = GaussianNB(priors=[1])": (
        "All teachers failed; correct teacher.py"
    ),
}


@pytest.mark.parametrize("code", BAD_TEACHERS)
def test_a_file_without_a_teacher_is_refused(folder, capsys, code):
    Path("teacher.py").write_text(code)
    assert BAD_TEACHERS[code] in refused_vote(capsys)


def test_types_that_skops_does_not_trust_are_refused_by_name(folder, capsys):
    forest = RandomForestClassifier(2).fit([[0], [1]], [0, 1])
    skops.io.dump(forest, "teacher.skops")
    if not skops.io.get_untrusted_types(file="teacher.skops"):
        pytest.skip("this version of skops trusts trees")
    message = refused_vote(capsys, "--teacher", "teacher.skops")
    assert (
        "teacher.skops holds types that skops does not trust: sklearn.tree" in message
    )
    Path("teacher.skops").write_text("text")
    message = refused_vote(capsys, "--teacher", "teacher.skops")
    assert "teacher.skops is no file that skops can read" in message


def test_a_teacher_in_another_file_is_refused(folder, capsys):
    Path("teacher.pkl").touch()
    message = refused_vote(capsys, "--teacher", "teacher.pkl")
    assert "teacher.pkl must end in .py or .skops" in message
    message = refused_vote(capsys, "--teacher", "moon.py")
    assert "moon.py is not a file; correct the path of --teacher" in message


def test_the_unit_of_the_study_decides_on_groups(folder, capsys):
    assert "pass --group" in refused(
        without(vote("north", "--overwrite"), "--group"), capsys
    )
    assert main(study("--unit", "row", "-o", "rows.json", "--key", "rows.key")) == 0
    message = refused_vote(capsys, "--study", "rows.json", "--key", "rows.key")
    assert "leave --group out" in message


def test_files_are_not_replaced_without_saying_so(folder, capsys):
    Path("study.json").unlink()
    assert "study.key exists already; choose another path." in refused(study(), capsys)
    message = refused(study("--key", "new.key", "-o", "public.csv"), capsys)
    assert "public.csv exists already" in message
    message = refused(vote("north"), capsys)
    assert "north.votes exists already; choose another path, or pass --over" in message
    Path("model.json").touch()
    assert "model.json exists already" in refused(fit_votes(), capsys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--classes", "no"], "--classes ['no'] must list at least two"),
        (["--teachers", "0"], "--teachers 0"),
        (["--sites", "north,north"], "must name at least one site, and no site twice"),
        (["--sites", "north,"], "'north,' has nothing before or behind a comma"),
        (["--seed", "-1"], "--seed -1"),
        (["--seed", str(2**70)], f"--seed {2**70} must be at most"),
        (["--public", "moon.csv"], "moon.csv"),
        (["--key", "new.json"], "The study and its key cannot be one file"),
    ],
)
def test_a_study_that_cannot_be_is_refused(folder, capsys, options, message):
    arguments = study("-o", "new.json", "--key", "new.key", *options)
    assert message in refused(arguments, capsys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text", "study.json is not a study"),
        ("{}", "study.json is not a study"),
        ({"format_version": 2}, "study.json has format 2, and this version reads form"),
        ({"sites": []}, "study.json was changed (sites=[] must name at least one"),
        ({"sites": "north"}, "study.json was changed (sites='north' must be a list"),
        ({"public_rows": 1}, "study.json was changed (public_rows and key must be te"),
        ({"key": None}, "study.json was changed (public_rows and key must be te"),
        ({"n_teachers": "4"}, "study.json was changed (n_teachers='4'"),
        ({"more": 1}, "study.json was changed (its fields are not those of a study)"),
    ],
)
def test_a_file_that_is_no_study_is_refused(folder, capsys, text, message):
    path = Path("study.json")
    path.write_text(
        json.dumps(json.loads(path.read_text()) | text)
        if isinstance(text, dict)
        else text
    )
    assert message in refused_vote(capsys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "model.pkl"], "must end in '.skops'"),
        (["--report", "report.json"], "'report.json' must end in .html or .md"),
        (["--report", "no/report.html"], "There is no folder no"),
        (["--epsilon", "-1"], "--epsilon -1.0"),
        (["--queries", "400"], "--queries 400"),
        (["--threshold", "0.5"], "--threshold 0.5 applies to"),
        (["--student", "moon.py"], "moon.py is not a file; correct the path of --stud"),
        (["--student", "teacher.py"], "teacher.py defines no student"),
    ],
)
def test_a_fit_that_cannot_be_is_refused(folder, capsys, options, message):
    assert message in refused(fit_votes(*options), capsys)


def test_packages_that_are_missing_are_named(folder, capsys, monkeypatch):
    for module, arguments, message in (
        (
            "pandas",
            vote("north", "--overwrite"),
            "needs pandas, which is not installed",
        ),
        ("skops", fit_votes(), "needs skops; pip install"),
        (
            "pyarrow.parquet",
            vote("north", "--overwrite", "--data", "north.parquet"),
            "needs pyarrow, which is not installed",
        ),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            assert message in refused(arguments, capsys)


def test_a_fitted_teacher_is_trained_anew(folder):
    """A clone of it is trained: what it was fitted on does not vote."""
    skops.io.dump(LogisticRegression(), "one.skops")
    fitted = LogisticRegression().fit([[0.0, 0.0], [9.0, 9.0]], [1, 0])
    skops.io.dump(fitted, "two.skops")
    for name in ("one", "two"):
        options = ["--teacher", f"{name}.skops", "-o", f"{name}.votes"]
        assert main(vote("north", *options)) == 0
    one, two = (
        Votes.load(f"{name}.votes").counts(range(30)) for name in ("one", "two")
    )
    assert np.array_equal(one, two)
