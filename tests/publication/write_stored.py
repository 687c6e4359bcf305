"""Write files of every format, and what a reader has to find in them.

After a change of a format, run ``python -m tests.publication.write_stored`` with the
oldest supported versions of all packages, as later versions read what earlier ones
wrote. The files are those of the version in development: files of a released version
stay as they are. Arguments name the files to write; the default is all. The noise is
new in each run.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.fixes import parse_version

import sklearn_pate
from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData, Votes
from sklearn_pate.learners import (
    Clusters,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    DPNewtonClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import LNMax
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.outcomes import (
    BinnedRegressor,
    DiscreteSurvival,
    PrivateMultiOutput,
)
from sklearn_pate.publication import Deployment
from sklearn_pate.students import (
    ImageRepresentation,
    ImageStudent,
    TableRepresentation,
)
from tests._cli.site_files import SITES, study, vote, write_site_files
from tests.private import main
from tests.seeding import seeded_noise

STORED = Path(__file__).parent / "stored"
X, Y = make_blobs(2400, centers=[[-6, -6], [0, 0], [6, 6]], random_state=0)
NAMES = np.array(["ill", "unsure", "well"])
FRESH = [[-6.0, -5.0], [0.5, 0.0], [6.0, 7.0]]
BOUNDS = {"feature_bounds": (-15.0, 15.0)}
PUBLIC = {"n_queries": 20, "random_state": 0}


def folder_of(version):
    """Return the folder of files of a version, or exit if it may have been released.

    A patch release writes the formats of its minor release.
    """
    parsed = parse_version(version)
    folder = STORED / f"{parsed.major}.{parsed.minor}"
    if not parsed.is_devrelease or parsed.micro:
        raise SystemExit(
            f"Version {version} would replace {folder}, and files of a released "
            "version are never written again; use the .dev0 version of the next minor "
            "release."
        )
    return folder


def fit(learner, y=Y, *, public=True):
    """Fit on 2,000 rows, with 80 public ones."""
    given = {"X_public": PublicData(X[2000:2080])} if public else {}
    return learner.fit(X[:2000], y[:2000], **given)


def pate(student=None, **parameters):
    """PATE with few teachers."""
    student = LogisticRegression() if student is None else student
    given = {"n_teachers": 100, "classes": [0, 1, 2], "epsilon": 4.0}
    given |= PUBLIC | parameters
    return PATEClassifier(GaussianNB(), student, **given)


def frame(rows):
    """Give rows as a table with a column of text."""
    wards = np.array(["A", "B"])[(rows[:, 1] > 3).astype(int)]
    return pd.DataFrame({"age": rows[:, 0], "ward": wards})


def of_table():
    """Fit on a table, with the default representation of public rows."""
    clf = DPNewtonClassifier(classes=[0, 1, 2], random_state=0)
    table = frame(X)
    return clf.fit(table[:2000], Y[:2000], X_public=PublicData(table[2000:2080]))


def of_codes():
    """Fit on a table with a column whose codes are counted."""
    clf = DPNewtonClassifier(
        codes={"ward": ["A", "B"]}, classes=[0, 1, 2], epsilon=4.0, random_state=0
    )
    table = frame(X)
    return clf.fit(table[:2000], Y[:2000], X_public=PublicData(table[2000:2080]))


def of_images():
    """Vote on images; few filters, so that the file is small."""
    images, digits = load_digits().images, load_digits().target
    representation = ImageRepresentation(n_filters=20, n_components=30)
    clf = PATEClassifier(
        student=ImageStudent(representation),
        mechanism="gnmax",
        representation=representation,
        classes=range(10),
        epsilon=8.0,
        random_state=0,
    )
    return clf.fit(images[:1000], digits[:1000], X_public=PublicData(images[1000:1300]))


def of_sgd():
    """Train a network with noise; only for this file, torch is needed."""
    from sklearn_pate.learners import DPSGDClassifier
    from tests.publication.learners import network

    clf = DPSGDClassifier(network(lr=1.0, max_epochs=5), classes=[0, 1, 2], epsilon=4)
    return clf.fit(X[:2000].astype(np.float32), Y[:2000])


def of_seed():
    """Fit with seeded noise, which has no guarantee."""
    with warnings.catch_warnings(), seeded_noise(0):
        warnings.simplefilter("ignore")
        return fit(pate())


def described():
    """Publish a model of the text labels that people describe."""
    fitted = fit(pate(classes=[*NAMES]), NAMES[Y])
    return fitted.publish(deployment=Deployment(name="Beds", unit_name="patient"))


MODELS = {
    "pate": lambda: fit(pate()),
    "pate_with_lnmax": lambda: fit(pate(mechanism=LNMax(gamma=0.2), epsilon=None)),
    "mean_scores": lambda: fit(
        PATEClassifier(
            GaussianNB(),
            mechanism="scores",
            classes=[0, 1, 2],
            epsilon=4.0,
            random_state=0,
        )
    ),
    "images": of_images,
    "text_labels": described,
    "numbers_as_labels": lambda: fit(
        pate(GaussianNB(), classes=[3, 7, 11]), np.array([3, 7, 11])[Y]
    ),
    "knn": lambda: fit(
        PrivateKNNClassifier(
            LogisticRegression(), classes=[0, 1, 2], epsilon=4.0, **PUBLIC
        )
    ),
    "petdl": lambda: fit(
        PETDLClassifier(
            LogisticRegression(),
            LogisticRegression(),
            n_teachers=40,
            batches=Clusters(20),
            epsilon=8.0,
            classes=[0, 1, 2],
            random_state=0,
        )
    ),
    "newton_of_a_table": of_table,
    "codes_of_a_table": of_codes,
    "linear": lambda: fit(
        DPLogisticRegression(classes=[0, 1, 2], epsilon=4.0, **BOUNDS), public=False
    ),
    "linear_with_a_representation": lambda: fit(
        DPLogisticRegression(
            representation=TableRepresentation(2), classes=[0, 1, 2], epsilon=4.0
        )
    ),
    "naive_bayes": lambda: fit(
        DPNaiveBayesClassifier((-15.0, 15.0), classes=[*NAMES]), NAMES[Y], public=False
    ),
    "search": lambda: fit(
        PrivateSearchCV(
            DPLogisticRegression(**BOUNDS),
            {"C": [0.1, 1.0]},
            n_trials_distribution="geometric",
            mean_n_trials=2,
            classes=[0, 1, 2],
        ),
        public=False,
    ),
    "seeded": of_seed,
    "network": of_sgd,
}


def write_model(folder, kind):
    """Save a published model; return what a reader finds."""
    made = MODELS[kind]()
    return save(made if hasattr(made, "card") else made.publish(), folder, kind)


def save(published, folder, kind):
    """Save a published model under the name of its kind."""
    trusted = published.save(folder / f"{kind}.skops", overwrite=True)
    return {
        "predictions": published.predict(fresh(kind)).tolist(),
        "epsilon": published.card["epsilon"],
        "trusted": trusted,
    }


def fresh(kind):
    """Give rows to predict, of several classes."""
    if kind == "images":
        return load_digits().images[-3:]
    rows = np.array(FRESH, dtype=np.float32 if kind == "network" else np.float64)
    return frame(rows) if "table" in kind else rows


def write_metrics(folder):
    """Save metrics, and a model with these metrics."""
    fitted = fit(DPNewtonClassifier(classes=[0, 1, 2], random_state=0))
    metrics = private_metrics(fitted, X[:2000], Y[:2000], epsilon=2.0, bins=[0.25, 0.5])
    metrics.save(folder / "metrics.json", overwrite=True)
    return {
        "model": save(fitted.publish(metrics=metrics), folder, "with_metrics"),
        "epsilon": metrics.privacy_spent_.epsilon,
        "accuracy": metrics["accuracy"].value,
        "n_rows": metrics.n_rows_,
    }


def write_outcomes(folder):
    """Save models of a number and of a time with metrics, and of several outcomes."""
    clf, public = DPNewtonClassifier(random_state=0), PublicData(X[2000:2080])
    times = np.empty(len(X), dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = Y > 0, np.abs(X[:, 0])
    number = BinnedRegressor(clf, bins=[-10.0, -3.0, 3.0, 10.0])
    time = DiscreteSurvival(clf, intervals=[3.0, 6.0])
    several = PrivateMultiOutput(clf, classes=[[0, 1, 2], [False, True]])
    outcomes = {
        "outcome_number": (number, X[:, 0]),
        "outcome_time": (time, times),
        "outcomes": (several, np.stack([Y, Y > 1], axis=1)),
    }
    found = {}
    for name, (model, y) in outcomes.items():
        model.fit(X[:2000], y[:2000], X_public=public)
        measured = {}
        if model is not several:
            metrics = private_metrics(model, X[:2000], y[:2000], epsilon=2.0)
            metrics.save(folder / f"{name}_metrics.json", overwrite=True)
            measured = {"metrics": metrics}
        found[name] = save(model.publish(**measured), folder, name)
    return found


def write_study(folder):
    """Write a study with its public rows, and the votes of its sites."""
    folder, here = folder / "study", Path.cwd()
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    write_site_files(Path())
    for name in ("study.json", "study.key"):
        Path(name).unlink(missing_ok=True)
    main(study())
    for site in SITES:
        main([*vote(site), "--overwrite"])
    kept = {"public.csv", "study.json", *(f"{site}.votes" for site in SITES)}
    for path in Path().iterdir():
        if path.name not in kept:
            path.unlink()
    os.chdir(here)
    parts = [Votes.load(folder / f"{site}.votes") for site in SITES]
    return {"votes": repr(Votes.merge(parts))}


def write_ledger(folder):
    """Write a ledger with the entry of one fit, and its key."""
    path = folder / "ledger.sqlite"
    for one in folder.glob("ledger.sqlite*"):
        one.unlink()
    ledger = PrivacyLedger(path, epsilon=10.0, delta=1e-5)
    fit(pate(ledger=ledger))
    [entry] = ledger.entries()
    return {"spent": ledger.spent, "epsilon": entry.epsilon}


OTHERS = {
    "metrics": write_metrics,
    "outcomes": write_outcomes,
    "study": write_study,
    "ledger": write_ledger,
}

if __name__ == "__main__":
    written = folder_of(sklearn_pate.__version__)
    written.mkdir(parents=True, exist_ok=True)
    path = written / "answers.json"
    answers = json.loads(path.read_text()) if path.exists() else {}
    for name in sys.argv[1:] or [*MODELS, *OTHERS]:
        is_model = name in MODELS
        answers[name] = (
            write_model(written, name) if is_model else OTHERS[name](written)
        )
    path.write_text(json.dumps(answers, indent=1) + "\n")
