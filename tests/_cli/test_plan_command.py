"""Command ``plan``: it prints a plan; an invalid option is an error of one line."""

import json
import os
import re
import subprocess
import sys

import pytest

import sklearn_pate
from sklearn_pate import DPNewtonClassifier, PATEClassifier
from sklearn_pate.inspection import plan
from sklearn_pate.mechanisms import ConfidentGNMax
from tests.private import main

GUMBEL = ["plan", "--mechanism", "gumbel"]  # fast to calibrate
ON_PUBLIC_ROWS = [*GUMBEL, "--rows", "900", "--queries", "30"]


def test_a_plan_is_printed(capsys):
    assert main(ON_PUBLIC_ROWS) == 0
    planned = plan(PATEClassifier(n_queries=30, mechanism="gumbel"), n_rows=900)
    assert capsys.readouterr().out == f"{planned}\n"


@pytest.mark.thorough
def test_every_option_reaches_the_plan(capsys):
    options = (
        "--unit group --teachers 50 --queries 30 --classes 4 --epsilon 2 --delta 1e-6 "
        "--mechanism confident --threshold 0.6 --margins 0.2 0.9 --json"
    )
    assert main(["plan", *options.split()]) == 0
    pate = PATEClassifier(
        n_teachers=50,
        n_queries=30,
        epsilon=2,
        delta=1e-6,
        mechanism=ConfidentGNMax(threshold=0.6),
        privacy_unit="group",
    )
    planned = plan(pate, n_classes=4, margins=[0.2, 0.9])
    assert json.loads(capsys.readouterr().out) == planned.to_dict()


@pytest.mark.parametrize("shares", [[0.02], [0.98, 0.02]])
def test_shares_of_classes_reach_the_plan(capsys, shares):
    assert main(["plan", "--rows", "600", "--class-prior", *map(str, shares)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "of the rarest class, with a share of 0.02." in printed


@pytest.mark.slow
@pytest.mark.parametrize(("threshold", "votes"), [("1", 1), ("1.0", 30), ("12", 12)])
def test_a_threshold_is_votes_or_a_share_of_the_teachers(capsys, threshold, votes):
    confident = ["--mechanism", "confident", "--threshold", threshold]
    assert main(["plan", "--rows", "900", "--queries", "30", *confident]) == 0
    assert f"threshold={votes})" in capsys.readouterr().out


@pytest.mark.parametrize("unit", ["row", "group"])
def test_a_newton_fit_is_planned(capsys, unit):
    options = f"--learner newton --rows 9000 --unit {unit} --classes 3 --epsilon 2"
    assert main(["plan", *options.split(), "--json"]) == 0
    clf = DPNewtonClassifier(epsilon=2, privacy_unit=unit, n_groups=9000)
    planned = plan(clf, n_rows=9000 if unit == "row" else None, n_classes=3)
    assert json.loads(capsys.readouterr().out) == planned.to_dict()


def test_a_newton_fit_is_planned_on_noisy_counts(capsys, tmp_path):
    domain = tmp_path / "domain.json"
    domain.write_text('{"age": {"range": [17, 90]}, "sex": ["F", "M"]}')
    options = ["--learner", "newton", "--rows", "9000", "--domain", str(domain)]
    assert main(["plan", *options]) == 0
    assert "drawn from noisy counts of 2 columns" in capsys.readouterr().out


def test_help_has_examples(capsys):
    commands = ("plan", "measure", "report", "add", "study", "vote", "fit-votes")
    for arguments in (["--help"], *([command, "--help"] for command in commands)):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        printed = capsys.readouterr().out
        assert "examples:" in printed
        assert max(map(len, printed.splitlines())) <= 100


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"sklearn-pate {sklearn_pate.__version__}\n"


@pytest.mark.thorough
def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "sklearn_pate", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("usage: python -m sklearn_pate [-h]")
    for command in ("plan", "measure", "report", "study", "vote", "fit-votes"):
        assert f"\n    {command}" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="other systems report it in another way")
@pytest.mark.parametrize("buffering", [1, -1])  # by line, or all at the end
@pytest.mark.parametrize("command", [["--help"], ON_PUBLIC_ROWS])
def test_a_reader_that_stops_early_is_no_error(command, buffering, monkeypatch, capsys):
    read, write = os.pipe()
    os.close(read)
    with open(write, "w", buffering) as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(command) == 141
    assert capsys.readouterr().err == ""


WRONG = [
    ([], "the following arguments are required: COMMAND"),
    (["guess"], "invalid choice: 'guess'"),
    (
        ["study", "--classes", "-1,1"],
        "--classes: expected one argument; write a value that starts with a minus as "
        "--classes=...; see",
    ),
    (["plan", "--learner", "newton"], "needs the number of rows or groups; pass --ro"),
    (
        ["plan", "--learner", "newton", "--rows", "9", "--teachers", "3"],
        "--learner newton does not use --teachers; leave it out",
    ),
    (
        ["plan", "--learner", "newton", "--rows", "9", "--teachers", "5"],
        "--learner newton does not use --teachers; leave it out",
    ),
    (["plan", "--learner", "newton", "--rows", "0"], "--rows 0"),
    (["plan", "--rows", "900", "--student", "good"], "invalid choice: 'good'"),
    ([*GUMBEL, "--queries", "30"], "--teachers auto is .*; pass --rows, or --teachers"),
    (
        [*GUMBEL, "--queries", "3", "--unit", "group"],
        "--teachers auto depends on the number of rows, wh",
    ),
    (
        [*ON_PUBLIC_ROWS, "--unit", "group"],
        "--rows 900 is private if a group is the unit",
    ),
    ([*ON_PUBLIC_ROWS, "--unit", "patient"], "--unit: invalid choice: 'patient'"),
    (
        [*ON_PUBLIC_ROWS, "--teachers", "901"],
        "--teachers 901 is more than --rows 900; lower --",
    ),
    (
        [*ON_PUBLIC_ROWS, "--teachers", "many"],
        "--teachers: 'many' is not a whole number; write",
    ),
    ([*ON_PUBLIC_ROWS, "--teachers", "0"], "--teachers 0 must be"),
    (
        [*ON_PUBLIC_ROWS, "--queries", "0"],
        "--queries 0 must be a whole number of at least 1",
    ),
    (
        [*ON_PUBLIC_ROWS, "--queries", "1e3"],
        "--queries: '1e3' is not a whole number; write 100",
    ),
    (
        [*ON_PUBLIC_ROWS, "--classes", "1"],
        "--classes 1 must be a whole number of at least 2",
    ),
    (
        [*ON_PUBLIC_ROWS, "--epsilon", "0"],
        "--epsilon 0.0 must be a positive, finite number",
    ),
    ([*ON_PUBLIC_ROWS, "--epsilon", "one"], "--epsilon: 'one' is not a number; write"),
    (
        [*ON_PUBLIC_ROWS, "--epsilon", "1e-9", "--delta", "1e-9"],
        r"--epsilon 1e-09 needs noise of 3.2573\de\+09 rows or groups, more than the",
    ),
    (
        [*ON_PUBLIC_ROWS, "--delta", "1"],
        "--delta 1.0 must be a number strictly between 0 and 0.1",
    ),
    ([*ON_PUBLIC_ROWS, "--mechanism", "best"], "--mechanism: invalid choice: 'best'"),
    ([*ON_PUBLIC_ROWS, "--mechanism", "interactive"], "invalid choice: 'interactive'"),
    (
        [*ON_PUBLIC_ROWS, "--threshold", "9"],
        "--threshold 9 applies to --mechanism confident only",
    ),
    (
        [*ON_PUBLIC_ROWS, "--margins", "2"],
        r"--margins \[2.0\] must be shares of the teachers",
    ),
    ([*ON_PUBLIC_ROWS, "--margin", "0.2"], "unrecognized arguments: --margin"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_options_are_refused_in_one_sentence(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("sklearn-pate")
    assert printed.err.count("\n") == 1
    assert re.search(message, printed.err), printed.err
