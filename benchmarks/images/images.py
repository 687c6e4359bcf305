"""MNIST and SVHN: accuracy against privacy. Writes results/images.json.

pate_g        the settings of the 2017 paper: Laplace noise of scale 20, a GAN student
ours          the most accurate settings at publishable epsilon 0.25 and 0.5
ablation      `ours` at epsilon 0.5, with one setting changed at a time
queries       query strategies, for two students
distillation  histograms and answers at equal epsilon
noise         teachers, their gap, labels under noise: figures 2 and 3 of the 2017 paper
svhn          the same method on SVHN

``--data svhn-official`` uses the official SVHN instead of a derived part of it. Votes
of each teacher and runs of students are stored in ``benchmarks/work``. After an
interruption, the same command resumes. Partition, teachers and students are seeded; the
noise is not, and differs in each run.
"""

import time
import warnings
from functools import partial

import joblib
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_union

from benchmarks.images.models import (
    GAMMA,
    STUDENTS,
    TEACHERS,
    answers_at_scale_20,
    vote_figures,
)
from benchmarks.images.pixels import DATA
from benchmarks.record import WORK, Runs, command, save, summaries
from sklearn_pate import PATEClassifier
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate._teachers._training import VoteForm, collect
from sklearn_pate._votes._votes import Votes
from sklearn_pate.mechanisms import LNMax

SHUFFLES = range(5)
DELTA = 1e-5
OURS = {
    "teacher": "discriminant",
    "n_teachers": 1000,
    "representation": "both",
    "n_queries": 100,
    "query_strategy": "representative",
    "mechanism": "gnmax",
    "student": "graph, FixMatch",
}
KINDS = ("encoder", "gradients")
# A student that takes seconds, to compare the other settings.
QUICK = OURS | {"student": "graph, discriminant"}
ABLATION = {
    "all but the student": QUICK,
    "teachers: 250": QUICK | {"n_teachers": 250},
    "teachers: 250 networks": QUICK | {"teacher": "network", "n_teachers": 250},
    "queries: random rows": QUICK | {"query_strategy": "random"},
    "queries: where the student is unsure": QUICK | {"query_strategy": "uncertainty"},
    "queries: 30": QUICK | {"n_queries": 30},
    "queries: 300": QUICK | {"n_queries": 300},
    "queries: 1000": QUICK | {"n_queries": 1000},
    "mechanism: Laplace": QUICK | {"mechanism": "lnmax"},
    "mechanism: Gumbel": QUICK | {"mechanism": "gumbel"},
    "mechanism: Confident": QUICK | {"mechanism": "confident"},
    "student: logistic regression on the answers": OURS | {"student": "logistic"},
    "student: FixMatch": OURS | {"student": "FixMatch"},
    "student: GAN": OURS | {"student": "GAN"},
    "student: graph, GAN": OURS | {"student": "graph, GAN"},
    "student: graph, FixMatch": OURS,
}


def votes_and_representation(images, setting, seed):
    """Return vote counts on the public rows of a shuffle, and the representation.

    Networks learn from pixels, and are trained once for all shuffles. A representation,
    and teachers on it, are fitted for each shuffle.
    """
    public, _ = images.shuffled(seed)
    X_test = images.test[0]
    kind = setting["representation"]
    representation = fitted_representation(images, kind, X_test[public], seed)
    name = f"{images.name}-{setting['teacher']}-{setting['n_teachers']}"
    if setting["teacher"] == "network":
        path = WORK / f"{name}.npy"
        on_test = _kept(
            path, lambda: _poll(images, setting, images.pixels().fit(X_test), X_test)
        )
        return on_test[public], representation
    path = WORK / f"{name}-{kind}-{seed}.npy"
    return (
        _kept(path, lambda: _poll(images, setting, representation, X_test[public])),
        representation,
    )


def fitted_representation(images, kind, X_public, seed):
    """Return a representation fitted on the public rows of a shuffle."""
    if kind == "both":
        parts = [fitted_representation(images, one, X_public, seed) for one in KINDS]
        return make_union(*map(FrozenEstimator, parts)).fit(X_public)
    path = WORK / f"{images.name}-{kind}-{seed}.joblib"
    return _kept(path, lambda: getattr(images, kind)().fit(X_public))


def _poll(images, setting, representation, X):
    start = time.perf_counter()
    rows, codes = images.private
    n_teachers = setting["n_teachers"]
    votes, _ = collect(
        TEACHERS[setting["teacher"]](images, n_teachers),
        rows,
        codes,
        shard_rows(len(rows), n_teachers, 0),
        representation.transform(X),
        form=VoteForm(10),
        aggregate=partial(Votes, n_public=len(X), n_classes=10),
        seeds=np.random.RandomState(0).randint(2**31 - 1, size=n_teachers).tolist(),
        representation=representation,
        memory=str(WORK / "teachers"),
        n_jobs=2,
        verbose=1,
    )
    print(
        "teachers",
        setting["teacher"],
        n_teachers,
        f"{time.perf_counter() - start:.0f} s",
    )
    return votes.counts(np.arange(len(X)))


def _kept(path, make):
    if path.exists():
        return joblib.load(path)
    made = make()
    joblib.dump(made, path)
    return made


def votes_by_teacher(counts):
    """Return arrays of labels, one per teacher, with these vote counts."""
    last = np.cumsum(counts, axis=1)
    for teacher in range(int(last[:, -1].max())):
        yield (last <= teacher).sum(axis=1)


def taught(images, setting, seed):
    """Return PATE with answered queries and a trained student."""
    counts, representation = votes_and_representation(images, setting, seed)
    public, _ = images.shuffled(seed)
    mechanism = setting["mechanism"]
    frozen = FrozenEstimator(representation)
    pate = PATEClassifier(
        student=STUDENTS[setting["student"]](images, frozen),
        mechanism=LNMax(gamma=GAMMA) if mechanism == "scale 20" else mechanism,
        epsilon=setting.get("epsilon"),
        delta=DELTA,
        n_queries=setting["n_queries"],
        query_strategy=setting["query_strategy"],
        representation=frozen,
        classes=range(10),
        random_state=seed,
    )
    return pate.fit_from_votes(images.test[0][public], votes_by_teacher(counts))


def run_student(name, setting, seed, key):
    """Answer the queries and train one student; return the key and the results."""
    warnings.simplefilter("ignore")
    images = DATA_BY_NAME[name]()
    votes_and_representation(images, setting, seed)  # not part of the measured time
    public, held_out = images.shuffled(seed)
    X, y = images.test
    start = time.process_time()
    pate = taught(images, setting, seed)
    analysis = pate.privacy_analysis_
    answered = pate.answers_ >= 0
    truth = y[public][pate.queried_indices_]
    return key, {
        "accuracy": float(pate.score(X[held_out], y[held_out])),
        "answers_right": float(np.mean((pate.answers_ == truth)[answered])),
        "n_answered": int(answered.sum()),
        "epsilon": pate.privacy_spent_.epsilon,
        "exact_epsilon": analysis.epsilon,
        "paper_epsilon": analysis.paper_epsilon,
        "cpu_seconds": time.process_time() - start,
    }


def pate_g(images, runs):
    """Repeat the settings of the 2017 paper."""
    setting = OURS | {
        "teacher": "network",
        "n_teachers": 250,
        "mechanism": "scale 20",
        "student": "graph, GAN",
    }
    settings = [setting | {"n_queries": n} for n in (100, 1000)]
    return [
        {"n_queries": one["n_queries"], **summaries(results)}
        for one, results in zip(settings, runs(images, settings, SHUFFLES), strict=True)
    ]


def ours(images, runs):
    """Measure the most accurate settings."""
    settings = [OURS | {"epsilon": epsilon} for epsilon in (0.25, 0.5)]
    return [
        {"target": one["epsilon"], "n_queries": one["n_queries"], **summaries(results)}
        for one, results in zip(settings, runs(images, settings, SHUFFLES), strict=True)
    ]


def ablation(images, runs):
    """Change one setting of `ours` at a time, at epsilon 0.5."""
    settings = [setting | {"epsilon": 0.5} for setting in ABLATION.values()]
    return [
        {"setting": name, **summaries(results)}
        for name, results in zip(
            ABLATION, runs(images, settings, range(2)), strict=True
        )
    ]


def queries(images, runs):
    """Compare query strategies, by the number of queries, at Laplace scale 20."""
    base = OURS | {"teacher": "network", "n_teachers": 250, "mechanism": "scale 20"}
    names = ("random", "representative", "uncertainty", "experts")
    settings = [
        base | {"student": student, "query_strategy": name, "n_queries": n}
        for student in ("logistic", "graph, discriminant")
        for name in names[: 4 if student == "logistic" else 2]
        for n in (50, 100, 300, 1000)
        if (name, n) != ("experts", 1000)  # ten classifiers per round take minutes
    ]
    return [
        {key: one[key] for key in ("student", "query_strategy", "n_queries")}
        | summaries(results)
        for one, results in zip(settings, runs(images, settings, range(3)), strict=True)
    ]


def distillation(images, runs):
    """Compare histograms with answers at equal epsilon."""
    settings = [
        OURS
        | {"epsilon": 0.5, "student": student, "n_queries": n, "release": release}
        | {"mechanism": "gnmax" if release == "answers" else release}
        for n in (100, 300, 1000)
        for release, student in (
            ("answers", "logistic"),
            ("histogram", "distilled"),
            ("histogram", "distilled, T = 5"),
        )
    ]
    return [
        {key: one[key] for key in ("release", "student", "n_queries")}
        | summaries(results)
        for one, results in zip(settings, runs(images, settings, range(3)), strict=True)
    ]


def noise(images, runs):
    """Measure teachers and noisy labels on all test rows."""
    y = images.test[1]
    rows = []
    for n_teachers in (10, 100, 250):
        setting = OURS | {"teacher": "network", "n_teachers": n_teachers}
        counts = _all_votes(images, setting)
        labels = {
            gamma: np.mean(LNMax(gamma=gamma).answer(counts) == y)
            for gamma in np.geomspace(0.01, 1, 13).round(4).tolist()
        }
        rows.append(
            {
                "n_teachers": n_teachers,
                **vote_figures(counts, y, n_teachers),
                "scale_20": answers_at_scale_20(counts, y),
                "gamma": list(labels),
                "label_accuracy": [float(one) for one in labels.values()],
            }
        )
    return rows


def _all_votes(images, setting):
    name = f"{images.name}-{setting['teacher']}-{setting['n_teachers']}"
    X = images.test[0]
    return _kept(
        WORK / f"{name}.npy", lambda: _poll(images, setting, images.pixels().fit(X), X)
    )


def svhn(images, runs):
    """Measure the same method on SVHN, with fewer teachers."""
    setting = OURS | {"n_teachers": 150}
    settings = [
        setting | {"epsilon": epsilon, "student": student}
        for epsilon in (2.0, 8.0)
        for student in ("graph, FixMatch", "logistic")
    ]
    return [
        {
            "data": images.name,
            "target": one["epsilon"],
            "student": one["student"],
            **summaries(results),
        }
        for one, results in zip(settings, runs(images, settings, range(2)), strict=True)
    ]


TABLES = {
    "noise": noise,
    "ours": ours,
    "pate_g": pate_g,
    "queries": queries,
    "distillation": distillation,
    "ablation": ablation,
    "svhn": svhn,
}
_LOADED = {}


def _load(name):
    if name not in _LOADED:
        _LOADED[name] = DATA[name](WORK)
    return _LOADED[name]


DATA_BY_NAME = {
    "MNIST": lambda: _load("mnist"),
    "SVHN (derived grey)": lambda: _load("svhn-derived"),
    "SVHN": lambda: _load("svhn-official"),
}


def main():
    """Measure the named tables, or all."""
    parser = command(__doc__, TABLES)
    parser.add_argument(
        "--data", choices=["svhn-derived", "svhn-official"], default="svhn-derived"
    )
    given = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "runs.jsonl", run_student, votes_and_representation)
    for table in given.tables:
        images = _load(given.data if table == "svhn" else "mnist")
        save("images", table, TABLES[table](images, runs), shuffles=list(SHUFFLES))
