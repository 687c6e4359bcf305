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


def test_five_hospitals(run, diabetes):
    printed = run("five_hospitals", N_TEACHERS_EACH=3)
    assert "votes of each hospital: 3" in printed
    assert "15283 questions to 15 teachers" in printed
    assert "change all votes of one party" in printed
