"""The examples run, say what they promise, and draw."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    def run(name, **smaller):
        picture = tmp_path / "picture.png"
        monkeypatch.setattr(sys, "argv", [name, "--picture", str(picture)])
        monkeypatch.setenv("MPLBACKEND", "agg")
        main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
        for constant, value in smaller.items():
            monkeypatch.setitem(main.__globals__, constant, value)
        main()
        assert picture.stat().st_size > 5000
        return capsys.readouterr().out

    return run


def test_quickstart(run):
    assert "epsilon=4.000" in run("quickstart")


def test_pipeline_and_grid_search(run):
    printed = run("pipeline_and_grid_search")
    assert "standardscaler (StandardScaler) is fitted on private rows" in printed
    assert "scaler inside:\n  no leak" in printed
    assert "10 fits, each of epsilon 4.00" in printed


def test_hand_over(run):
    printed = run("hand_over")
    assert "A first fit at epsilon 4: 30% of the budget is spent." in printed
    assert "The very same again gets the same answers: 30%." in printed
    assert "39.39% is left" in printed
    assert "epsilon=4.64 would fit." in printed
    assert "in 2 charges" in printed
    assert "Whoever receives it: This fit is (epsilon=4.000" in printed


def test_five_hospitals(run, diabetes):
    printed = run("five_hospitals", N_TEACHERS_EACH=3)
    assert "votes of each hospital: 3" in printed
    assert "15283 questions to 15 teachers" in printed
    assert "change all votes of one party" in printed


def test_active_queries(run):
    printed = run("active_queries", N_QUERIES=[20], N_SPLITS=1)
    assert "the same for all strategies: True" in printed
    assert "these questions only: uncertainty, experts" in printed
    assert "80 interactive questions, PrivacySpent(epsilon=3.686" in printed


def test_mnist_pate_g(run, mnist):
    printed = run(
        "mnist_pate_g",
        N_PRIVATE=3000,
        N_PUBLIC=500,
        N_TEACHERS=25,
        N_QUERIES=20,
        N_EPOCHS=1,
    )
    assert "20 questions to 25 teachers were answered by LNMax(gamma=0.05)" in printed
    assert "the paper's bound at these votes: sensitive" in printed
    assert "the student of all public images" in printed


def test_petdl_noisy_loss(run):
    printed = run("petdl_noisy_loss")
    assert "it is the same to the last bit: True" in printed
    assert "with somebody else in row 0, another: True" in printed
    assert "20 of 20 guesses were right" in printed
    assert "epsilon is at least 1.82, where 1.21 is claimed\n  by the paper" in printed
