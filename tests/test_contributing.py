"""What CONTRIBUTING.md shows a contributor runs as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
# Folders of the package find the files of the guide as if they lay in them.
CONFTEST = """
from importlib import import_module
from pathlib import Path

for folder in Path(__file__).parent.glob("sklearn_pate/*"):
    import_module(f"sklearn_pate.{folder.name}").__path__.append(str(folder))
"""


def test_the_examples_of_the_guide_pass_their_tests(tmp_path):
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert len(blocks) == GUIDE.count("```python\n")
    for name, code in blocks:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    # With the project's own settings: warnings are errors, docstrings are run.
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*pytest, "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name, _ in blocks:
        assert f"{Path(name).name} ." in done.stdout, f"{name} was not run"


def test_the_guide_names_only_what_make_can_make():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    named = re.findall(r"`make ([a-z][a-z -]*)`", GUIDE)
    assert named
    assert {one for words in named for one in words.split()} <= targets
