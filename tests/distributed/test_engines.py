"""Spark and Ray cast the votes of a fit, by the code of the guide page."""

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import PATEClassifier, PublicData

pytestmark = [
    pytest.mark.slow,
    # Engines warn of their own sockets, and of versions of pandas.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "hospitals.md").read_text()
N_PUBLIC = 69
N_TEACHERS = 12
KEY = 7

TEACHERS = {
    "forest": RandomForestClassifier(5),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
}


def blocks(section, language):
    """Return the code blocks of a section of the page."""
    text = PAGE.partition(f"# {section}\n")[2].partition("\n##")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def study(teacher, unit="group", missing=False):
    """Names of the page, for tumours of patients in place of its made-up rows."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    names = y.map({0: "malignant", 1: "benign"})
    rng = np.random.default_rng(0)
    rows = X[N_PUBLIC:].reset_index(drop=True)
    if missing:
        rows = rows.mask(rng.random(rows.shape) < 0.05)
        names = names.mask(rng.random(len(names)) < 0.05)
    rows = rows.assign(label=names[N_PUBLIC:].to_numpy(), position=range(len(rows)))
    # Rows of a patient lie far apart.
    patients = [f"P-{one}" for one in rng.integers(200, size=len(rows))]
    rows["patient"] = patients if unit == "group" else rows["position"]
    namespace = {"__name__": "clusters"}
    definitions = blocks("A table on a cluster", "python")[:2]
    for code in definitions:
        exec(code, namespace)
    namespace |= {
        "rows": rows.sample(frac=1, random_state=0, ignore_index=True),
        "X_public": X[:N_PUBLIC],
        "FEATURES": [*X],
        "CLASSES": ["benign", "malignant"],
        "N_TEACHERS": N_TEACHERS,
        "KEY": KEY,
        "UNIT": unit,
        "teacher": teacher,
    }
    namespace["clf"] = PATEClassifier(
        teacher,
        student=GaussianNB(),
        n_teachers=N_TEACHERS,
        n_queries=N_PUBLIC,
        query_strategy="random",
        representation=None,
        mechanism="gnmax",
        vote="plain",
        epsilon=100,
        classes=namespace["CLASSES"],
        privacy_unit=unit,
        random_state=KEY,
    )
    return namespace


STUDIES = {
    "forest": {"teacher": RandomForestClassifier(5)},
    "logistic": {"teacher": make_pipeline(StandardScaler(), LogisticRegression())},
    "rows as the unit": {"teacher": RandomForestClassifier(5), "unit": "row"},
    "missing values": {"teacher": RandomForestClassifier(5), "missing": True},
}


@pytest.fixture(params=STUDIES)
def names(request):
    return study(**STUDIES[request.param])


@pytest.fixture(scope="module")
def environment():
    """Let workers run this Python, and find the package and pages of this checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield


@pytest.fixture(scope="module")
def spark(environment):
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def ray(environment):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    pytest.importorskip("ray.data", reason="ray.data is not installed")
    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=2**27,
        log_to_driver=False,
    )
    yield ray
    ray.shutdown()


def assert_votes_of_a_fit(names):
    """Compare the released votes, bit by bit, with those of a fit in memory."""
    collected, clf = names["collected"], names["clf"]
    assert [*collected.columns] == ["shard", "votes"]
    assert {len(one) for one in collected["votes"]} == {N_PUBLIC}
    counts, queried = clf.privacy_analysis_.counts, clf.queried_indices_
    assert clf.privacy_spent_.unit == names["UNIT"]
    rows = names["rows"].sort_values("position")
    clf.fit(
        rows[names["FEATURES"]],
        rows["label"],
        X_public=PublicData(names["X_public"]),
        groups=rows["patient"] if names["UNIT"] == "group" else None,
    )
    np.testing.assert_array_equal(queried, clf.queried_indices_)
    np.testing.assert_array_equal(counts, clf.privacy_analysis_.counts)
    assert np.ptp(counts[:, 0]) > 0  # teachers that learned something


def test_votes_of_spark_are_those_of_a_fit(spark, names):
    read, vote = blocks("Spark", "py")
    exec(read, names)
    names["table"] = names["table"].repartition(5)
    exec(vote, names)
    assert_votes_of_a_fit(names)


def test_votes_of_ray_are_those_of_a_fit(ray, names):
    read, vote = blocks("Ray", "py")
    exec(read, names)
    names["table"] = names["table"].repartition(5, shuffle=True)
    exec(vote, names)
    assert_votes_of_a_fit(names)
