"""The file of a ledger: access, damage, a full disk and killed processes."""

import json
import os
import pickle
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from sklearn_pate import LedgerError, PrivacyLedger
from tests.accounting.charges import charge

HERE = Path(__file__).parent


def run_alone(script, *arguments, **kwargs):
    """Run a script in a separate process, as it changes limits or the user."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )


def test_a_ledger_that_is_not_there_is_not_made_without_a_budget(path):
    with pytest.raises(LedgerError, match=r"There is no ledger at .*; pass epsilon="):
        PrivacyLedger(path)
    assert not path.exists()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(LedgerError, match="is a folder; name a file in it"):
        PrivacyLedger(tmp_path, epsilon=3, delta=1e-6)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LedgerError, match=r"There is no folder .*nowhere; create it"):
        PrivacyLedger(tmp_path / "nowhere" / "patients.sqlite", epsilon=3, delta=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a ledger"),
        (b"This is a text file, and long enough to be looked at." * 100, "is not a l"),
    ],
    ids=["empty", "text"],
)
def test_a_file_that_is_no_ledger_is_left_alone(path, content, message):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=message):
        PrivacyLedger(path, epsilon=3, delta=1e-6)
    assert path.read_bytes() == content


def test_another_database_is_no_ledger(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE budget (id INTEGER)")
    other.close()
    with pytest.raises(LedgerError, match="is not a ledger; pass another file"):
        PrivacyLedger(path, epsilon=3, delta=1e-6)


def test_a_newer_format_is_refused(path, ledger):
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 4")
    file.close()
    with pytest.raises(LedgerError, match="has format 4, but this version"):
        charge(ledger)


@pytest.mark.parametrize("start", [20, 100, 4096, 8192, 20_000])
def test_a_damaged_file_charges_nothing_and_raises(path, ledger, start):
    for _ in range(20):
        charge(ledger, 0.0001)
    content = bytearray(path.read_bytes())
    for place in range(start, len(content), 7):
        content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"damaged|is no ledger|has format"):
        charge(ledger)


AS_ANOTHER_USER = """
import os, sys
from sklearn_pate import LedgerError, PrivacyLedger
from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
if os.getuid() == 0:
    os.setuid(65534)
ledger = PrivacyLedger(sys.argv[1])
print(ledger.report())
curve = RdpCurve(DEFAULT_ORDERS, 0.01 * DEFAULT_ORDERS)
try:
    ledger.charge(curve, delta=1e-6, unit="row", relation="replace-one", description="")
except LedgerError as error:
    print(error)
"""


@pytest.mark.thorough
def test_a_read_only_ledger_can_be_read_and_not_charged():
    with tempfile.TemporaryDirectory() as folder:  # readable by all users
        Path(folder).chmod(0o755)
        ledger = PrivacyLedger(f"{folder}/patients.sqlite", epsilon=3, delta=1e-6)
        charge(ledger)
        ledger.path.chmod(0o444)
        done = run_alone(AS_ANOTHER_USER, ledger.path)
        assert "in 1 entry" in done.stdout, done.stderr
        assert "nothing can be charged, so no query was answered" in done.stdout
        assert len(ledger.entries()) == 1


ON_A_FULL_DISK = """
import os, resource, signal, sys
from sklearn_pate import LedgerError, PrivacyLedger
from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
curve = RdpCurve(DEFAULT_ORDERS, 0.0001 * DEFAULT_ORDERS)
for path, more in zip(sys.argv[1::2], sys.argv[2::2]):
    ledger = PrivacyLedger(path)
    limit = os.path.getsize(path) + int(more)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    charged = 0
    try:
        while True:
            ledger.charge(
                curve, delta=1e-6, unit="row", relation="replace-one", description=""
            )
            charged += 1
    except LedgerError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        print(charged, error)
"""


@pytest.mark.thorough
def test_a_full_disk_charges_all_or_nothing(tmp_path):
    ledgers = {
        limit: PrivacyLedger(tmp_path / f"{limit}.sqlite", epsilon=3, delta=1e-6)
        for limit in (0, 3000, 30_000)
    }
    given = [part for limit, one in ledgers.items() for part in (one.path, limit)]
    done = run_alone(ON_A_FULL_DISK, *given)
    for ledger, line in zip(ledgers.values(), done.stdout.splitlines(), strict=True):
        n_charged, message = line.split(" ", 1)
        assert "Free space on the disk and try again" in message, done.stderr
        assert len(ledger.entries()) == int(n_charged)
        charge(ledger)


@pytest.mark.slow
def test_a_ledger_in_use_is_waited_for(path, ledger):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=charge, args=(ledger,))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    assert ledger.entries() == []
    other.execute("ROLLBACK")
    other.close()
    waiting.join()
    assert len(ledger.entries()) == 1


def test_the_key_is_for_this_user_only_and_made_once(path, ledger):
    key = ledger.key
    assert len(key) >= 32
    assert PrivacyLedger(path).key == key
    if os.name == "posix":
        assert stat.S_IMODE(Path(f"{path}.key").stat().st_mode) == 0o600
    assert key not in pickle.dumps(ledger)
    assert key not in path.read_bytes()


def test_the_given_key_file_is_used_and_a_short_key_refused(tmp_path, path):
    ledger = PrivacyLedger(path, epsilon=3, delta=1e-6, key_file=tmp_path / "key")
    assert ledger.key == (tmp_path / "key").read_bytes()
    (tmp_path / "key").write_bytes(b"secret")
    with pytest.raises(LedgerError, match="has 6 bytes, but a key needs 32"):
        _ = ledger.key


def test_the_ledger_is_not_its_own_key(path):
    with pytest.raises(ValueError, match="is the ledger itself; choose another file"):
        PrivacyLedger(path, epsilon=3, delta=1e-6, key_file=path)
    with pytest.raises(ValueError, match="key_file=3 must name a file"):
        PrivacyLedger(path, epsilon=3, delta=1e-6, key_file=3)


@pytest.mark.parametrize("name", ["a b", "what?", "#1", "100%25", "\u00e4"])
def test_a_file_may_have_any_name(tmp_path, name):
    ledger = PrivacyLedger(tmp_path / name, epsilon=3, delta=1e-6)
    charge(ledger)
    assert PrivacyLedger(tmp_path / name).spent > 0
    assert sorted(os.listdir(tmp_path)) == [name, f"{name}.key"]


def remove(*paths):
    for path in map(Path, paths):
        path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[:4096])


def link(path, to):
    path.unlink()
    path.symlink_to(to)


LOST = {
    "gone": remove,
    "a link to nothing": lambda path: link(path, path.with_name("away")),
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut,
    "a folder": lambda path: remove(path) or path.mkdir(),
    "a link to itself": lambda path: link(path, path),
    "another file": lambda path: path.write_bytes(b"text" * 4096),
}


@pytest.mark.parametrize(
    "budget", [{}, {"epsilon": 3, "delta": 1e-6}], ids=["open", "new"]
)
@pytest.mark.parametrize("lost", LOST)
def test_a_lost_ledger_never_starts_a_new_budget(tmp_path, path, lost, budget):
    charge(PrivacyLedger(path, epsilon=3, delta=1e-6))
    LOST[lost](path)
    with pytest.raises((LedgerError, ValueError)):
        PrivacyLedger(path, **budget)
    assert not (tmp_path / "away").exists()


def test_a_ledger_that_is_missing_beside_its_key_is_to_be_restored(tmp_path, path):
    given = {"epsilon": 3, "delta": 1e-6, "key_file": tmp_path / "secret"}
    PrivacyLedger(path, **given)
    kept = path.read_bytes()
    path.unlink()
    with pytest.raises(LedgerError, match=r"missing, but .*secret remains\. Restore"):
        PrivacyLedger(path, **given)
    path.write_bytes(kept)
    assert PrivacyLedger(path, **given).entries() == []


def test_a_journal_tells_that_a_ledger_is_missing(path):
    Path(f"{path}-journal").touch()
    with pytest.raises(LedgerError, match=r"missing, but .*-journal remains"):
        PrivacyLedger(path, epsilon=3, delta=1e-6)


def test_an_older_copy_in_its_place_is_refused(path, ledger):
    charge(ledger)
    kept = path.read_bytes()
    charge(ledger)
    path.write_bytes(kept)
    with pytest.raises(LedgerError, match="lacks entries that it had before"):
        charge(ledger)


def test_another_ledger_in_its_place_is_refused(path, ledger):
    kept = pickle.dumps(ledger)
    remove(path, f"{path}.key")
    PrivacyLedger(path, epsilon=0.1, delta=1e-6)
    for one in (ledger, pickle.loads(kept)):
        with pytest.raises(
            LedgerError, match="now holds another ledger than the one that"
        ):
            charge(one)
    assert PrivacyLedger(path).entries() == []


@pytest.mark.slow
def test_killed_processes_lose_no_entry(tmp_path):
    done = subprocess.run(
        [sys.executable, HERE / "kills.py", tmp_path, "15"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= 15
    assert found["queries drawn"] <= found["queries charged"]
    assert found["fits finished"] > 10
    assert found["fits refused"] > 0
    assert 0.9 < found["share spent"] <= 1
