"""Commands ``study``, ``join``, ``reply`` and ``collect``: sums that nobody sees."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_pate import DPNewtonClassifier, PrivacyLedger, PublishedClassifier
from sklearn_pate.metrics import PrivateMetrics
from tests._cli.site_files import write_site_files
from tests.private import main

pytestmark = [
    pytest.mark.slow,
    # A few hundred patients.
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
]

NAMES = ["north", "south", "east"]
COMMON = ["--study", "sums.json", "--public", "public.csv"]
OF_MODEL = [*COMMON, "--estimator", "estimator.py"]
ESTIMATOR = """\
from sklearn_pate import DPNewtonClassifier

estimator = DPNewtonClassifier(
    classes=["no", "yes"], privacy_unit="group", n_groups=400, random_state=0, epsilon=4
)
"""


def study(*options, estimator="estimator.py"):
    names = ",".join(NAMES)
    given = ["--public", "public.csv", "--estimator", estimator, "--sites", names]
    return ["study", *given, "-o", "sums.json", *options]


def join(site, common=OF_MODEL, epsilon="4"):
    ledger = [f"--ledger={site}.sqlite", f"--epsilon={epsilon}"]
    return ["join", *common, "--site", site, *ledger, "-o", f"{site}.join"]


def reply(site, number, fingerprint, common=OF_MODEL, stem="result"):
    rows = ["--data", f"{site}.csv", "--label", "readmitted", "--group", "patient"]
    own = ["--site", site, "--ledger", f"{site}.sqlite", "--fingerprint", fingerprint]
    request = f"{stem}-{number}.request"
    return ["reply", request, *common, *rows, *own, "-o", f"{site}-{number}.reply"]


def collect(files, *options, common=OF_MODEL, output="result.skops"):
    return ["collect", *files, *common, "-o", output, *options]


def fingerprint_of(printed):
    return re.search(r"^Fingerprint: (.*)$", printed, re.MULTILINE)[1]


@pytest.fixture
def joined(tmp_path, monkeypatch, capsys):
    """Folder of three sites that have joined; the fingerprint of their study."""
    monkeypatch.chdir(tmp_path)
    write_site_files(tmp_path)
    Path("estimator.py").write_text(ESTIMATOR)
    assert main(study()) == 0
    for site in NAMES:
        assert main(join(site)) == 0
    assert main(collect([f"{site}.join" for site in NAMES])) == 0
    return fingerprint_of(capsys.readouterr().out)


def refused(arguments, capsys):
    """Run a command that is refused, and return the reason."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def test_three_sites_fit_a_model_and_measure_it(joined, capsys):
    for number in range(1, 6):
        for site in NAMES:
            assert main(reply(site, number, joined)) == 0
        replies = [f"{site}-{number}.reply" for site in NAMES]
        assert main(collect(replies, "--report", "report.html")) == 0
    assert "Written: result.skops, result.json, report.html." in capsys.readouterr().out
    model = PublishedClassifier.load("result.skops")
    assert 3.9 < model.privacy_spent_.epsilon <= 4
    assert model.privacy_spent_.unit == "group"
    assert "Distributed" in Path("report.html").read_text()
    rows = pd.read_csv("west.csv")
    assert model.score(rows[["age", "marker"]], rows["readmitted"]) > 0.6
    [entry] = PrivacyLedger("north.sqlite").entries()
    assert entry.epsilon == pytest.approx(model.privacy_spent_.epsilon, rel=1e-6)


def test_the_command_reply_tells_the_holder_alone_before_anything_is_charged(
    joined, capsys
):
    rows = pd.read_csv("north.csv")
    rows.loc[3, "readmitted"] = "perhaps"
    rows.to_csv("north.csv", index=False)
    capsys.readouterr()
    assert main(reply("north", 1, "")) == 0
    printed = capsys.readouterr().out
    assert "1 row left out: the label 'perhaps' is not in classes" in printed
    assert "Nothing was computed or charged" in printed
    assert joined in printed
    assert not Path("north-1.reply").exists()
    assert PrivacyLedger("north.sqlite").entries() == []
    of_south = [*reply("north", 1, ""), "--ledger", "south.sqlite"]
    assert "another public key of north than this ledger" in refused(of_south, capsys)


@pytest.mark.thorough
def test_wrong_files_and_options_are_refused(joined, capsys):
    other = "0" + joined[1:] if joined[0] != "0" else "1" + joined[1:]
    why = refused(reply("north", 1, other), capsys)
    assert f"--fingerprint '{other}' is not that of the request" in why
    Path("estimator.py").write_text(ESTIMATOR.replace("epsilon=4", "epsilon=3"))
    assert "estimator differs from the study" in refused(
        reply("north", 1, joined), capsys
    )
    Path("estimator.py").write_text(ESTIMATOR)
    public = pd.read_csv("public.csv")
    public.assign(age=public["age"] + 1).to_csv("public.csv", index=False)
    assert "public_rows differs" in refused(reply("north", 1, joined), capsys)
    public.to_csv("public.csv", index=False)
    assert main(reply("north", 1, joined)) == 0
    assert "already; choose another path" in refused(reply("north", 1, joined), capsys)
    why = refused(collect(["north-1.reply", "south.join", "east.join"]), capsys)
    assert "A reply is not a reply" in why
    assert "No reply of south, east" in refused(collect(["north-1.reply"]), capsys)
    assert main(reply("south", 1, joined)) == 0
    text = Path("south-1.reply").read_text()
    Path("cut.reply").write_text(text[:-20])
    assert "A reply is not a reply" in refused(collect(["cut.reply"]), capsys)
    assert "is not a file" in refused(
        [*reply("east", 1, joined), "--ledger", "none.sqlite"], capsys
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--classes", "no,yes"], "--classes is for votes without noise"),
        (["--teachers", "20"], "--teachers is for votes without noise"),
        (["--rows", "2000"], "--rows 2000, but privacy_unit='group'"),
        (["--colluding", "3"], "--colluding 3 must be"),
    ],
)
def test_wrong_options_of_a_study_of_sums(
    tmp_path, monkeypatch, capsys, options, reason
):
    monkeypatch.chdir(tmp_path)
    write_site_files(tmp_path)
    Path("estimator.py").write_text(ESTIMATOR)
    assert reason in refused(study(*options), capsys)
    assert not Path("sums.json").exists()


def test_a_study_needs_an_estimator_or_the_numbers_of_votes(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write_site_files(tmp_path)
    given = ["study", "--public", "public.csv", "--sites", "north,south"]
    assert "--classes is missing" in refused(given, capsys)
    assert "--teachers is missing" in refused([*given, "--classes", "no,yes"], capsys)


def test_a_published_model_is_measured_over_sites(joined, capsys):
    rows = pd.concat([pd.read_csv("west.csv"), pd.read_csv("centre.csv")])
    public = pd.read_csv("public.csv")
    newton = DPNewtonClassifier(classes=["no", "yes"], epsilon=4.0, random_state=0)
    newton.fit(rows[public.columns], rows["readmitted"], X_public=public)
    newton.publish().save("model.skops")
    Path("sums.json").unlink()
    options = ["--epsilon", "2"]
    assert main(study(*options, estimator="model.skops")) == 0
    common = [*COMMON, "--estimator", "model.skops"]
    for site in NAMES:
        assert main([*join(site, common), "--overwrite"]) == 0
    given = {"common": common, "output": "metrics.json"}
    capsys.readouterr()
    assert main(collect([f"{site}.join" for site in NAMES], **given)) == 0
    fingerprint = fingerprint_of(capsys.readouterr().out)
    for number in (1, 2):
        for site in NAMES:
            assert main(reply(site, number, fingerprint, common, "metrics")) == 0
        assert main(collect([f"{site}-{number}.reply" for site in NAMES], **given)) == 0
    metrics = PrivateMetrics.load("metrics.json")
    assert metrics.sites_ == (3, 1)
    assert metrics.privacy_spent_.unit == "group"
    measured = pd.concat([pd.read_csv(f"{site}.csv") for site in NAMES])
    correct = newton.predict(measured[public.columns]) == measured["readmitted"]
    assert metrics["accuracy"].value == pytest.approx(np.mean(correct), abs=0.2)
    assert json.loads(Path("metrics.json").read_text())["sites"] == [3, 1]
