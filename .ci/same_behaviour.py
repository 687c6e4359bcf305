"""Compare the behaviour of two checkouts of the package.

``python .ci/same_behaviour.py OLD NEW`` runs the configurations of
``same_behaviour/configurations.py`` with the package of each tree, in processes of
their own, and prints every field that differs. ``--plant`` puts known defects into
copies of NEW, one at a time, and reports what catches each of them.
"""

import argparse
import fnmatch
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

PARTS = Path(__file__).with_suffix("").resolve()


def run_here(tree, out, pattern):
    """Run the configurations with one tree in this process, and write the records."""
    sys.path.insert(0, str(PARTS))
    import recording

    recording.make_secrets_reproducible()
    import names

    assert Path(tree).resolve() in Path(names.sklearn_pate.__file__).parents
    recording.make_noise_reproducible(names.class_named("NoiseSource"), names.unseeded)
    from configurations import CONFIGURATIONS

    records = {}
    for name, configuration in CONFIGURATIONS.items():
        if any(fnmatch.fnmatch(name, one) for one in pattern.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                records[name] = recording.run(name, configuration, folder)
    with open(out, "wb") as file:
        pickle.dump(records, file)


def start(tree, out, pattern):
    """Start the run of one tree."""
    fixed = {
        "PYTHONPATH": f"{Path(tree).resolve()}{os.pathsep}{PARTS}",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_CORETYPE": "Haswell",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    }
    command = [sys.executable, str(Path(__file__).resolve()), "--out", out]
    return subprocess.Popen(
        [*command, str(tree), str(tree), "--only", pattern], env=os.environ | fixed
    )


def records_of(trees, pattern, jobs):
    """Run trees, up to `jobs` at once."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [f"{folder}/{number}" for number in range(len(trees))]
        running = []
        for tree, out in zip(trees, outs, strict=True):
            running.append(start(tree, out, pattern))
            if len(running) >= jobs:
                _wait(running.pop(0))
        for process in running:
            _wait(process)
        found = []
        for out in outs:
            with open(out, "rb") as file:
                found.append(pickle.load(file))
        return found


def _wait(process):
    if process.wait() != 0:
        raise SystemExit(f"A run stopped with exit status {process.returncode}.")


def differences(old, new, field=""):
    """List the fields that differ, bit by bit."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key in [*old, *(key for key in new if key not in old)]
            for line in differences(
                old.get(key, "absent"), new.get(key, "absent"), f"{field}.{key}"
            )
        ]
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            return [(field, f"{old.dtype}{old.shape}, {new.dtype}{new.shape}")]
        if old.dtype.kind == "O" and old.tolist() != new.tolist():
            return [(field, "other objects")]
        if old.dtype.kind != "O" and old.tobytes() != new.tobytes():
            n_other = np.count_nonzero(old != new)
            return [(field, f"{n_other} of {old.size} values differ")]
        return []
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        if len(old) != len(new):
            return [(field, f"{len(old)} items, {len(new)} items: {_first(old, new)}")]
        return [
            line
            for number, pair in enumerate(zip(old, new, strict=True))
            for line in differences(*pair, f"{field}.{number}")
        ][:3]
    same = type(old) is type(new) and (old == new or (old != old and new != new))
    return [] if same else [(field, f"{str(old)[:90]} is now {str(new)[:90]}")]


def _first(old, new):
    """Return the first items that differ."""
    for pair in zip(old, new, strict=False):
        if pair[0] != pair[1]:
            return f"{pair[0]} is now {pair[1]}"
    return f"one has further {[*old, *new][min(len(old), len(new))]}"


def compare(old, new):
    """Compare records, and list what differs and what failed."""
    lines = []
    for name in [*old, *(name for name in new if name not in old)]:
        pair = [dict(one.get(name, {"failed": "absent"})) for one in (old, new)]
        for one in pair:
            one.pop("seconds", None)
        for tree, one in zip(("old", "new"), pair, strict=True):
            if "failed" in one:
                text = one["failed"] if len(old) == 1 else one["failed"].strip()[-200:]
                lines.append((name, f"failed in the {tree} tree", text))
        if not any("failed" in one for one in pair):
            lines += [(name, field[1:], how) for field, how in differences(*pair)]
    return lines


def main():
    """Compare two trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", default="*", help="patterns of names, with commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plant", action="store_true", help="plant defects in NEW")
    parser.add_argument("--times", action="store_true", help="list the slowest")
    parser.add_argument("--out", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.out:
        run_here(given.old, given.out, given.only)
        return
    if given.plant:
        sys.path.insert(0, str(PARTS))
        import defects

        raise SystemExit(defects.plant(given.new, given.only, records_of, compare))
    old, new = records_of([given.old, given.new], given.only, given.jobs)
    lines = compare(old, new)
    for line in lines:
        print(*line, sep=" | ")
    seconds = [sum(one["seconds"] for one in run.values()) for run in (old, new)]
    print(
        f"{len(old)} configurations, {len(lines)} differences; "
        f"{seconds[0]:.0f} s and {seconds[1]:.0f} s."
    )
    if given.times:
        slowest = sorted(old, key=lambda name: -old[name]["seconds"])[:25]
        for name in slowest:
            print(f"{old[name]['seconds']:6.1f} s  {name}")
    raise SystemExit(1 if lines or not old else 0)


if __name__ == "__main__":
    main()
