"""Command ``ledger``: what is spent and left of a budget, and all entries."""

import sqlite3
from contextlib import closing

import pytest

from sklearn_pate import PrivacyLedger
from tests.accounting.charges import charge
from tests.private import main


@pytest.fixture
def path(tmp_path):
    return tmp_path / "patients.sqlite"


def shown(path, capsys):
    assert main(["ledger", str(path)]) == 0
    return capsys.readouterr().out


def test_it_shows_what_is_spent_and_left_and_why_a_share_is_no_epsilon(path, capsys):
    ledger = PrivacyLedger(path, epsilon=3, delta=1e-6)
    assert "nothing was charged yet, and 100% is left" in shown(path, capsys)
    charge(ledger, 0.02, description="50 answers on lungs")
    text = shown(path, capsys)
    assert text == f"{ledger.report()}\n"
    words = " ".join(text.split())
    assert f"{ledger.spent:.2%} of this budget is spent, in 1 entry, and" in words
    assert f"{1 - ledger.spent:.2%} is left: one release with Gaussian noise" in words
    assert "A share of the budget is no share of its epsilon" in words
    assert text.splitlines()[-1].endswith("50 answers on lungs")
    assert max(map(len, text.splitlines()[2:-2])) <= 80


def test_a_forged_description_adds_no_line(path, capsys):
    charge(PrivacyLedger(path, epsilon=3, delta=1e-6))
    honest = shown(path, capsys)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE charges SET description = ?", ("a\n\x1b[2J2  nothing",))
    forged = shown(path, capsys)
    assert len(forged.splitlines()) == len(honest.splitlines())
    assert forged.replace("\n", "").isprintable()


@pytest.mark.parametrize("content", [None, b"", b"text" * 4096])
def test_a_file_that_is_no_ledger_is_refused_in_one_line(path, capsys, content):
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit) as stop:
        main(["ledger", str(path)])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "not a file" in line or "not a ledger" in line
    assert path.exists() == (content is not None)
