"""Code of README.md runs unchanged."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.usefixtures("adult")  # skips where there is neither file nor network
def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it saves a report
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 9
    namespace = {}
    for block in blocks:
        exec(block, namespace)
    assert "epsilon=1.000" in (tmp_path / "report.html").read_text()
    clf = namespace["clf"]
    assert repr(clf.privacy_spent_) == "PrivacySpent(epsilon=1.000, delta=1e-05)"
    assert len(namespace["ledger"].entries()) == 1
    assert clf.score(namespace["X_test"], namespace["y_test"]) > 0.83
