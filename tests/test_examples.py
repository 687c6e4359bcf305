"""The examples run, say what they promise, and draw."""

import runpy
import sys
from pathlib import Path

import matplotlib
import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"
GALLERY = sorted(path.stem for path in EXAMPLES.glob("plot_*.py"))

# What gallery scripts print, however the noise falls.
PROMISES = {
    "plot_active_queries": [
        "The statement is the same for all strategies: True.",
        "Queries followed answers with: uncertainty, experts.",
        "80 interactive queries\nPrivacySpent(epsilon=3.686",
    ],
    "plot_first_fit": ["This fit is (epsilon=4.000", "60 queries to 100 teachers"],
    "plot_five_hospitals": [
        "votes of each hospital: 50",
        "500 queries to 250 teachers",
        "change all votes of one party",
    ],
    "plot_groups": [
        "A split of patients has 0.",
        "privacy_unit='group'",
        "group: neighbouring data sets add or remove one group",
    ],
    "plot_hand_over": [
        "A first fit at epsilon 4: 30% of the budget is spent.",
        "The very same again gets the same answers: 30%.",
        "39.39% is left",
        "epsilon=4.64 would fit.",
        "in 2 charges",
        "This fit is (epsilon=4.000",
    ],
    "plot_pipeline_and_grid_search": [
        "standardscaler (StandardScaler) is fitted on private rows",
        "scaler inside:\n  no leak",
        "10 fits, each of epsilon 4.00",
    ],
    "plot_private_search": [
        "GridSearchCV: 26 fits would cost",
        "PrivateSearchCV(n_trials_distribution='logarithmic'): PrivacySpent(epsilon=3.",
        "PrivacySpent(epsilon=2.000, delta=0.0001), known beforehand",
    ],
}


def test_every_promise_is_that_of_a_gallery_script():
    assert set(PROMISES) <= set(GALLERY)


@pytest.mark.parametrize("name", GALLERY)
def test_a_gallery_script_keeps_its_promises_and_draws(
    name, tmp_path, monkeypatch, capsys
):
    from matplotlib import pyplot

    shown = []
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        pyplot, "show", lambda: shown.extend(map(pyplot.figure, pyplot.get_fignums()))
    )
    try:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        for figure in shown:
            figure.canvas.draw()
        assert any(axes.has_data() for figure in shown for axes in figure.axes)
    finally:
        pyplot.close("all")
    printed = capsys.readouterr().out
    for promise in PROMISES.get(name, []):
        assert promise in printed
    assert not any(tmp_path.iterdir())  # it litters nothing


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


def test_mnist_pate_g(run, mnist):
    printed = run(
        "mnist_pate_g",
        N_PRIVATE=3000,
        N_PUBLIC=500,
        N_TEACHERS=25,
        N_QUERIES=20,
        N_EPOCHS=1,
    )
    assert "20 queries to 25 teachers were answered by LNMax(gamma=0.05)" in printed
    assert "the paper's bound at these votes: sensitive" in printed
    assert "the student of all public images" in printed
