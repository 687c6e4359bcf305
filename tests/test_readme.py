"""Code, commands and links of README.md work."""

import json
import re
from pathlib import Path

import pytest

from tests.private import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
RESULTS = ROOT / "benchmarks" / "results" / "readme.json"


@pytest.mark.docs
def test_code_and_commands_of_the_readme_run(tmp_path, monkeypatch, capsys, data_set):
    data_set("adult")
    monkeypatch.setenv("SKLEARN_PATE_DATA", str(data_set.home))
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block, least in zip(BLOCKS, (0.8, 0.84), strict=True):
        exec(block, namespace)
        clf = namespace["clf"]
        assert repr(clf.privacy_spent_) == "PrivacySpent(epsilon=1.000, delta=1e-05)"
        assert clf.score(namespace["X_test"], namespace["y_test"]) > least
    commands = re.findall(r"^python -m sklearn_pate (.*)$", README, flags=re.MULTILINE)
    assert [main(command.split()) for command in commands] == [0, 0]
    assert "epsilon=1.000" in (tmp_path / "report.html").read_text()
    assert "teachers    520" in capsys.readouterr().out


def test_scores_in_comments_are_those_of_the_result_file():
    rows = json.loads(RESULTS.read_text())["adult"]["rows"]
    written = [re.search(r"# about (0\.\d+)", block)[1] for block in BLOCKS]
    assert written == [f"{row['accuracy']['mean']:.3f}" for row in rows]


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r'\]\((?!https:)([^)#]+)[^)]*\)|src="(?!https:)([^"]+)"', README)
    paths = [ROOT / (link or source) for link, source in links]
    assert len(paths) > 10
    assert [path for path in paths if not path.exists()] == []
