"""Command ``audit``: the claim, the result, and the exit code."""

import json
import re

import pytest

from sklearn_pate._cli import main
from sklearn_pate._cli._options import MECHANISMS
from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.mechanisms._noisy_max import gaussian_plurality

QUICK = ["audit", "--trials", "1000"]


def found(capsys, *options):
    code = main([*QUICK, *options, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_an_audit_prints_the_claim_and_the_result(capsys):
    assert main(QUICK) == 0
    text = capsys.readouterr().out
    claim = GNMax(sigma=5.0).cost(20, 2).epsilon(0.01)
    assert f"at most {write_epsilon(claim)}, at delta=0.01" in text
    assert "Not contradicted" in text
    assert "does not prove the claim" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
def test_noise_of_a_quarter_of_its_scale_is_contradicted(capsys, monkeypatch):
    def answer(self, counts, noise):
        return gaussian_plurality(counts, self.sigma / 4, noise)

    monkeypatch.setattr(GNMax, "_answer", answer)
    assert main([*QUICK, "--trials", "5000"]) == 1
    assert "CONTRADICTED" in capsys.readouterr().out


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_can_be_audited(capsys, mechanism):
    code, printed = found(capsys, "--mechanism", mechanism)
    assert code == 0
    assert not printed["contradicted"]
    assert printed["epsilon_lower"] <= printed["epsilon_claimed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "mechanism"),
    [
        ("--sigma 3", "GNMax(sigma=3.0)"),
        ("--mechanism lnmax --gamma 0.5", "LNMax(gamma=0.5)"),
        ("--mechanism gumbel --c 0.5", "GumbelMax(c=0.5)"),
        (
            "--mechanism confident --threshold 9 --sigma-threshold 7 --sigma 6",
            "ConfidentGNMax(sigma=6.0, sigma_threshold=7.0, threshold=9)",
        ),
    ],
)
def test_options_set_the_noise(capsys, options, mechanism):
    _, printed = found(capsys, *options.split())
    assert printed["mechanism"] == mechanism


def test_options_set_the_votes_and_the_trials(capsys):
    options = "--counts 8,9,2 --neighbour 8,9,1 --queries 3 --delta 0.1"
    _, printed = found(capsys, *options.split(), "--confidence", "0.99")
    assert printed["counts"] == [8, 9, 2]
    assert printed["neighbour"] == [8, 9, 1]
    assert (printed["n_queries"], printed["n_trials"]) == (3, 1000)
    assert (printed["delta"], printed["confidence"]) == (0.1, 0.99)


@pytest.mark.parametrize(
    ("counts", "neighbour"), [("4,4", [3, 5]), ("1,2,6", [2, 2, 5]), ("0,3", [1, 2])]
)
def test_by_default_a_vote_moves_away_from_the_most_voted_class(
    capsys, counts, neighbour
):
    _, printed = found(capsys, "--counts", counts)
    assert printed["neighbour"] == neighbour


WRONG = [
    (["--sigma", "0"], "--sigma 0.0 of GNMax must be a positive, finite number"),
    (["--sigma", "wide"], "--sigma: 'wide' is not a number; write"),
    (["--gamma", "0.1"], "--gamma 0.1 does not apply to --mechanism gnmax, .* --sigma"),
    (
        ["--mechanism", "lnmax", "--threshold", "9"],
        "--threshold 9 does not apply to --mechanism lnmax, which takes --gamma",
    ),
    (["--mechanism", "interactive"], "--mechanism: invalid choice: 'interactive'"),
    (["--counts", "ten"], "--counts: 'ten' is not a list of votes .*; write 130,120"),
    (
        ["--counts", "10"],
        "--counts: '10' is not a list of votes for two classes or more",
    ),
    (["--counts", "-1,4"], r"starts with a minus is written --counts=\.\.\.; see"),
    (["--counts=-1,4"], "--counts: '-1,4' is not a list of votes"),
    (["--neighbour", "12,8"], r"--neighbour \[12, 8\] is no neighbour of --counts"),
    (["--neighbour", "5,5,5"], r"--neighbour \[5, 5, 5\] has 3 classes and --counts"),
    (["--trials", "1"], "--trials 1 must be a whole number of at least 2"),
    (["--queries", "0"], "--queries 0 must be a whole number of at least 1"),
    (["--delta", "0"], "--delta 0.0 must be a number strictly between 0 and 1"),
    (["--confidence", "1"], "--confidence 1.0 must be a probability"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_options_are_refused_in_one_sentence(capsys, options, message):
    with pytest.raises(SystemExit) as stopped:
        main(["audit", *options])
    streams = capsys.readouterr()
    assert stopped.value.code == 2
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    assert re.search(message, streams.err), streams.err


OWN = """
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.mechanisms._noisy_max import gaussian_plurality


class Own(GNMax):
    def _answer(self, counts, noise):
        return gaussian_plurality(counts, self.sigma / {part}, noise)


mechanism = Own(sigma=5.0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("part", "code"), [(1, 0), (4, 1)])
def test_a_mechanism_of_a_file_is_audited(capsys, tmp_path, part, code):
    path = tmp_path / "own.py"
    path.write_text(OWN.format(part=part))
    assert main([*QUICK, "--trials", "5000", "--file", str(path)]) == code
    assert "Own(sigma=5.0)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (OWN.format(part=1), ["--sigma", "3"], "--sigma 3.0 does not apply to a"),
        (OWN.format(part=1), ["--mechanism", "lnmax"], "--mechanism lnmax does not"),
        ("x = 1", [], "defines no mechanism; add a line such as mechanism = My"),
        ("mechanism = 5", [], "assigns 5 to mechanism, which is no instance"),
        ("mechanism = 1 / 0", [], "failed with ZeroDivisionError"),
        ("raise SystemExit(0)", [], "failed with SystemExit"),
    ],
)
def test_files_without_a_mechanism_are_refused(
    capsys, tmp_path, code, options, message
):
    path = tmp_path / "own.py"
    path.write_text(code)
    with pytest.raises(SystemExit) as exit_code:
        main(["audit", "--file", str(path), *options])
    assert exit_code.value.code == 2
    assert message in capsys.readouterr().err
