"""About 200 small configurations, each a function that returns a record."""

import json
import logging
from functools import partial
from types import SimpleNamespace

import names
import numpy as np
import pandas as pd
import polars as pl
import recording
import scipy.sparse as sp
from names import newton, pate, public, translated
from recording import EVENTS, KILL, TRIED, Teacher, of_fit, of_ledger, of_refusal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.semi_supervised import LabelPropagation, SelfTrainingClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PrivacyLedger, PrivateMarginals, PublicData, Votes

CONFIGURATIONS = {}


def rows(n_classes=2, n_rows=600, n_public=150, n_features=4):
    """Draw overlapping classes; a person has two rows, which are far apart."""
    rng = np.random.default_rng(n_classes)
    centers = rng.normal(size=(n_classes, n_features)) * 1.5
    of_all = rng.integers(n_classes, size=n_rows + n_public + 60)
    X = centers[of_all] + rng.normal(size=(len(of_all), n_features))
    groups = np.array([f"p{k}" for k in rng.permutation(n_rows) // 2])
    end = n_rows + n_public
    return SimpleNamespace(
        X=X[:n_rows],
        y=of_all[:n_rows],
        X_public=X[n_rows:end],
        fresh=X[end:],
        groups=groups,
    )


def table(data):
    """Turn rows into a table of numbers, text and categories."""

    def framed(X):
        return pd.DataFrame(
            {
                "age": np.clip(50 + 10 * X[:, 0], 17, 90).round(),
                "sex": np.where(X[:, 1] > 0, "F", "M"),
                "dose": X[:, 2].astype("float32"),
                "site": pd.Categorical.from_codes((X[:, 3] > 0) + 0, ["a", "b"]),
            }
        )

    changed = {name: framed(vars(data)[name]) for name in ("X", "X_public", "fresh")}
    return SimpleNamespace(**(vars(data) | changed))


def changed(data, of_X=None, **fields):
    """Change all rows by a function, or some fields."""
    if of_X is not None:
        fields |= {n: of_X(vars(data)[n]) for n in ("X", "X_public", "fresh")}
    return SimpleNamespace(**(vars(data) | fields))


TWO, THREE = rows(2), rows(3)
TABLE = table(TWO)
DOMAIN = {"age": (17, 90), "sex": ["F", "M"], "dose": (-6.0, 6.0)}
BASE = {
    "n_teachers": 20,
    "n_queries": 40,
    "epsilon": 20.0,
    "mechanism": "gnmax",
    "query_strategy": "random",
    "representation": None,
    "random_state": 0,
}


def encoded(classifier):
    """Put an encoder of the table in front of a classifier."""
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "site"]),
        remainder=StandardScaler(),
        sparse_threshold=0,
    )
    return make_pipeline(encoder, classifier)


def own(name, **parameters):
    """Make an object of a public class."""
    return public(name)(**parameters)


def add(name, function, *args, **kwargs):
    """List a configuration; a name is used once."""
    assert name not in CONFIGURATIONS, name
    CONFIGURATIONS[name] = partial(function, *args, **kwargs)


def given(learner, data, public_rows="wrapped"):
    """Return the arguments of `fit`."""
    arguments = {"X": data.X, "y": data.y}
    if public_rows:
        wrap = PublicData if public_rows == "wrapped" else (lambda X: X)
        arguments["X_public"] = wrap(data.X_public)
    if getattr(learner, "privacy_unit", "row") == "group":
        arguments["groups"] = data.groups
    return arguments


def fit(make, data=TWO, public_rows="wrapped", then=None, unordered=False):
    """Fit a learner, and record what it released."""
    learner = make()
    if isinstance(data.X_public, np.ndarray):
        TRIED.append(data.X_public)
    learner.fit(**given(learner, data, public_rows))
    record = of_fit(learner, data.fresh, names)
    if then is not None:
        record |= then(learner, data)
    if getattr(learner, "ledger", None) is not None:
        record["ledger"] = of_ledger(learner.ledger)
    if unordered:
        EVENTS[:] = sorted(EVENTS, key=str)
    return record


def votes(estimator=None, student=None, **parameters):
    """Return a function that makes a PATEClassifier with teachers."""
    estimator = Teacher() if estimator is None else estimator

    def make():
        parts = {n: p() if callable(p) else p for n, p in (BASE | parameters).items()}
        parts = {n: p for n, p in parts.items() if p is not ...}
        return pate(clone(estimator), student, **parts)

    return make


def made(name, *args, **parameters):
    """Return a function that makes a learner of that public name."""

    def make():
        parts = {n: p() if callable(p) else p for n, p in parameters.items()}
        if name == "newton":
            return newton(**parts)
        return public(name)(*args, **translated(public(name), parts))

    return make


def ledger(epsilon=500.0):
    """Open a ledger in the folder of the configuration."""
    return PrivacyLedger("patients.sqlite", epsilon=epsilon, delta=1e-6)


LEDGER = {"ledger": ledger, "delta": 1e-6}


def flat(X):
    """Turn images into rows."""
    return X.reshape(len(X), -1)


# fmt: off
# Mechanisms that answer with classes, by name and with noise of their own.
for data, n in ((TWO, 2), (THREE, 3)):
    for one in ("gnmax", "lnmax", "gumbel", "permute-and-flip", "confident"):
        add(f"votes {one} {n}", fit, votes(mechanism=one), data)
    add(f"votes interactive {n}", fit, votes(mechanism="interactive", query_strategy="interactive"), data)
    add(f"votes histogram {n}", fit, votes(release="histogram"), data)
    student = own("DistillationClassifier", estimator=LogisticRegression())
    add(f"votes histogram soft {n}", fit, votes(None, student, release="histogram"), data)
OWN_NOISE = {
    "GNMax": {"sigma": 3.0},
    "LNMax": {"gamma": 0.3},
    "GumbelMax": {"c": 0.5},
    "PermuteAndFlip": {"c": 0.5},
    "ConfidentGNMax": {"threshold": 0.6, "sigma_threshold": 4.0, "sigma": 2.0},
    "InteractiveGNMax": {"threshold": 0.4, "sigma_threshold": 5.0, "sigma": 2.0},
    "NoisyHistogram": {"sigma": 4.0},
}
for one, noise in OWN_NOISE.items():
    more = {"release": "histogram"} if one == "NoisyHistogram" else {}
    if one == "InteractiveGNMax":
        more = {"query_strategy": "interactive"}
    add(f"votes own noise {one}", fit, votes(mechanism=partial(own, one, **noise), epsilon=None, **more), THREE)
for n_answers in (5, 20):
    capped = partial(own, "ConfidentGNMax", threshold=0.6, max_answers=n_answers)
    add(f"votes confident at most {n_answers}", fit, votes(mechanism=capped), THREE)
for epsilon in (0.5, 2.0, 8.0):
    add(f"votes epsilon {epsilon}", fit, votes(epsilon=epsilon, n_teachers=40), TWO)
add("votes small delta", fit, votes(delta=1e-9))
add("votes many queries", fit, votes(n_queries=150))
add("votes all defaults", fit, lambda: pate(Teacher(), random_state=0))
add("votes all defaults 3", fit, lambda: pate(DecisionTreeClassifier(), random_state=1), THREE)
add("votes automatic scores", fit, lambda: pate(LogisticRegression(), n_teachers=60, epsilon=50.0, random_state=0))
add("votes default teacher", fit, lambda: pate(n_teachers=20, epsilon=20.0, n_queries=40, random_state=0))

# Query strategies.
for one in ("random", "representative", "uncertainty", "experts", "auto"):
    add(f"queries {one}", fit, votes(query_strategy=one), THREE)
add("queries two rounds", fit, votes(query_strategy=partial(own, "UncertaintyQueries", n_rounds=2)))
add("queries three experts", fit, votes(query_strategy=partial(own, "ExpertQueries", n_rounds=3)))
add("queries interactive rounds", fit, votes(mechanism="interactive", query_strategy=partial(own, "InteractiveQueries", n_rounds=2)))
add("queries uncertain student", fit, votes(None, RandomForestClassifier(5), query_strategy="uncertainty"))

# Mean scores.
SCORES = {"mechanism": "scores", "n_queries": ..., "query_strategy": ...}
for data, n in ((TWO, 2), (THREE, 3)):
    add(f"scores {n}", fit, votes(**SCORES), data)
    add(f"scores auto representation {n}", fit, votes(**SCORES | {"representation": "auto"}), data)
    for basis in ("linear", "rbf"):
        mechanism = partial(own, "MeanScores", basis=basis)
        add(f"scores {basis} {n}", fit, votes(**SCORES | {"mechanism": mechanism}), data)
loud = partial(own, "MeanScores", noise_scale=0.5)
add("scores own noise", fit, votes(**SCORES | {"mechanism": loud, "epsilon": None}))
few = partial(own, "MeanScores", max_coordinates=3)
add("scores few coordinates", fit, votes(**SCORES | {"mechanism": few}))
add("scores student", fit, votes(None, RandomForestClassifier(5, random_state=0), **SCORES))
add("scores threshold", fit, votes(**SCORES, threshold=0.3))
add("scores group", fit, votes(**SCORES, privacy_unit="group"))
add("scores ledger twice", fit, votes(**SCORES, **LEDGER), then=lambda one, data: fit_again(one, data))

# Units, representations, teachers, students.
for one in ("gnmax", "lnmax", "confident"):
    add(f"group {one}", fit, votes(mechanism=one, privacy_unit="group"), THREE)
add("group uncertainty", fit, votes(query_strategy="uncertainty", privacy_unit="group"))
add("group histogram", fit, votes(release="histogram", privacy_unit="group"))
whole = changed(TWO, groups=np.array([int(k[1:]) for k in TWO.groups]))
add("group whole numbers", fit, votes(privacy_unit="group"), whole)
missing = np.array([None if k in ("p1", "p2") else k for k in TWO.groups], dtype=object)
add("group missing ids", fit, votes(privacy_unit="group"), changed(TWO, groups=missing))
for name, one in {"auto": "auto", "scaler": StandardScaler(), "pca": PCA(2)}.items():
    for strategy in ("random", "representative"):
        add(f"representation {name} {strategy}", fit, votes(representation=one, query_strategy=strategy), THREE)
small = partial(own, "ImageRepresentation", n_filters=20, n_components=10)
seen = changed(rows(3, n_features=64), lambda X: X.reshape(-1, 8, 8))
add("representation images", fit, votes(LogisticRegression(), make_pipeline(FunctionTransformer(flat), LogisticRegression()), representation=small), seen)
add("representation images scores", fit, votes(LogisticRegression(), **SCORES | {"representation": small}), seen)
network = {"max_epochs": 2, "lr": 0.1, "batch_size": 32, "iterator_train__shuffle": True}


def skorch_net(n_classes=2, **parameters):
    """Make a network of skorch."""
    import skorch
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(8, n_classes))
    return skorch.NeuralNetClassifier(module, criterion=torch.nn.CrossEntropyLoss, train_split=None, verbose=0, **network | parameters)


SINGLE = changed(TWO, lambda X: X.astype("float32"))
TEACHERS = {
    "logistic": LogisticRegression(),
    "tree": DecisionTreeClassifier(max_depth=3),
    "forest": RandomForestClassifier(4),
    "neighbours": KNeighborsClassifier(3),
    "svc": LinearSVC(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "given a random_state": RandomForestClassifier(4, random_state=3),
}
for name, one in TEACHERS.items():
    add(f"teacher {name}", fit, votes(one), THREE)
add("teacher network", lambda: fit(votes(skorch_net(), GaussianNB(), n_teachers=10), SINGLE))
add("teacher network scores", lambda: fit(votes(skorch_net(), **SCORES | {"n_teachers": 10}), SINGLE))


class Failing(Teacher):
    """Fails on some shards."""

    def fit(self, X, y, sample_weight=None):
        """Fit."""
        if len(X) % 3 == 0 and not np.isin(X, TWO.X_public).all():
            raise ArithmeticError("a shard that cannot be learned")
        return super().fit(X, y, sample_weight)


add("teacher failing", fit, votes(Failing(), n_teachers=25))
add("teacher of few rows", fit, votes(n_teachers=300), changed(TWO, y=np.sort(TWO.y)))
add("teacher group of one class", fit, votes(n_teachers=100, privacy_unit="group"), THREE)
STUDENTS = {
    "forest": RandomForestClassifier(5),
    "naive bayes": GaussianNB(),
    "propagation": LabelPropagation(gamma=2),
    "self-training": SelfTrainingClassifier(LogisticRegression()),
    "graph": own("GraphSelfTrainingClassifier", estimator=LogisticRegression()),
    "distillation": own("DistillationClassifier", estimator=LogisticRegression()),
    "svc": LinearSVC(),
}
for name, one in STUDENTS.items():
    add(f"student {name}", fit, votes(None, one), THREE)
add("student network", lambda: fit(votes(None, skorch_net(3)), changed(THREE, lambda X: X.astype("float32"))))
for one in ("FixMatchClassifier", "GANClassifier"):
    add(f"student {one}", lambda one: fit(votes(None, own(one, max_epochs=2), n_queries=60), SINGLE), one)

# Containers.
add("container float32", fit, votes(), SINGLE)
add("container lists", fit, votes(), changed(TWO, lambda X: X.tolist()))
add("container fortran", fit, votes(), changed(TWO, np.asfortranarray))
add("container objects", fit, votes(LogisticRegression(), GaussianNB()), changed(TWO, lambda X: X.astype(object)))
add("container csr", fit, votes(LogisticRegression(), LogisticRegression()), changed(TWO, sp.csr_matrix))
add("container csr array", fit, votes(DecisionTreeClassifier(), LogisticRegression()), changed(TWO, sp.csr_array))
for name, frame in {"pandas": TABLE, "polars": changed(TABLE, pl.from_pandas)}.items():
    add(f"container {name}", fit, votes(encoded(GaussianNB()), encoded(LogisticRegression())), frame)
    add(f"container {name} scores", fit, votes(encoded(GaussianNB()), **SCORES | {"representation": "auto"}), frame)
    add(f"container {name} group", fit, votes(encoded(LogisticRegression()), encoded(GaussianNB()), privacy_unit="group"), frame)
add("container pandas numbers", fit, votes(), changed(TWO, lambda X: pd.DataFrame(X, columns=list("abcd"))))
holes = TWO.X.copy()
holes[::7, 1] = np.nan
add("container NaN rows", fit, votes(), changed(TWO, X=holes))
add("container NaN for trees", fit, votes(DecisionTreeClassifier(max_depth=3)), changed(TWO, X=holes))
odd = TWO.X.copy()
odd[5, 0], odd[17, 2], odd[30, 3] = np.inf, 1e300, -np.inf
add("container odd values", fit, votes(LogisticRegression(), GaussianNB()), changed(TWO, X=odd))
words = TWO.X.astype(object)
words[3, 1], words[8, 0] = "unknown", None
add("container text among numbers", fit, votes(LogisticRegression(), GaussianNB()), changed(TWO, X=words))
letters = np.array(["ill", "unsure", "well"])
add("labels text", fit, votes(), changed(THREE, y=letters[THREE.y]))
add("labels series", fit, votes(), changed(THREE, y=pd.Series(letters[THREE.y], dtype="category")))
add("labels bool", fit, votes(), changed(TWO, y=TWO.y == 1))
add("labels floats", fit, votes(), changed(TWO, y=TWO.y * 2.0))
add("labels list", fit, votes(), changed(THREE, y=THREE.y.tolist()))
for name, make in {"votes": votes(classes=[0, 1]), "scores": votes(**SCORES, classes=[0, 1]), "newton": made("newton", classes=[0, 1], random_state=0, epsilon=5.0), "group": votes(classes=[0, 1], privacy_unit="group")}.items():
    add(f"labels unknown {name}", fit, make, THREE)
add("labels given in another order", fit, votes(classes=[2, 0, 1, 5]), THREE)
absent = np.array([None if k % 11 == 0 else "iu"[c] for k, c in enumerate(TWO.y)], dtype=object)
add("labels missing", fit, votes(classes=["i", "u"]), changed(TWO, y=absent))

# Public rows.
add("public unwrapped", fit, votes(), public_rows="raw")
for unit in ("row", "group"):
    held = {"public_size": 0.2, "privacy_unit": unit}
    add(f"public held out {unit}", fit, votes(**held), public_rows=None)
    add(f"public held out scores {unit}", fit, votes(**SCORES, **held), public_rows=None)
    drawn = {"synthetic": partial(PrivateMarginals, (-6.0, 6.0), n_rows=80, n_bins=8), "privacy_unit": unit}
    add(f"public synthetic {unit}", fit, votes(**drawn), public_rows=None)
    add(f"public synthetic scores {unit}", fit, votes(**SCORES, **drawn), public_rows=None)
    of_table = {"synthetic": partial(PrivateMarginals, DOMAIN, n_rows=80), "privacy_unit": unit}
    add(f"public synthetic table {unit}", fit, votes(encoded(GaussianNB()), encoded(LogisticRegression()), **of_table), TABLE, None)
loud_counts = partial(PrivateMarginals, (-6.0, 6.0), n_rows=80, n_bins=8, sigma=6.0, by_class=False)
add("public synthetic own noise", fit, votes(epsilon=None, mechanism=partial(own, "GNMax", sigma=3.0), synthetic=loud_counts), public_rows=None)

# Newton steps.
NEWTON = {"epsilon": 3.0, "random_state": 0}
for data, n in ((TWO, 2), (THREE, 3)):
    for unit in ("row", "group"):
        for basis in ("auto", "linear", "rbf"):
            grouped = {"privacy_unit": unit, "n_groups": 300} if unit == "group" else {}
            add(f"newton {basis} {unit} {n}", fit, made("newton", basis=basis, **NEWTON, **grouped), data)
add("newton defaults", fit, made("newton", random_state=0))
add("newton by default of PATE", fit, lambda: newton(random_state=1) if names.has_newton() else pate(random_state=1))
add("newton threshold", fit, made("newton", threshold=0.3, **NEWTON))
add("newton rare class", fit, made("newton", classes=[0, 1], **NEWTON), changed(TWO, y=np.where(np.arange(600) % 10, 0, TWO.y)))
for name, one in {"scaler": StandardScaler(), "pca": PCA(3)}.items():
    add(f"newton representation {name}", fit, made("newton", representation=one, **NEWTON))
add("newton table", fit, made("newton", **NEWTON), TABLE)
add("newton polars", fit, made("newton", **NEWTON), changed(TABLE, pl.from_pandas))
add("newton odd values", fit, made("newton", **NEWTON), changed(TWO, X=odd))
add("newton much noise", fit, made("newton", epsilon=0.3, random_state=0))
add("newton much noise group", fit, made("newton", epsilon=0.5, random_state=0, privacy_unit="group", n_groups=300), THREE)
add("newton far scaled rows", fit, made("newton", representation=StandardScaler(), **NEWTON), changed(TWO, X=TWO.X * np.where(np.arange(600) % 5, 1, 50)[:, np.newaxis]))
add("newton images", fit, made("newton", **NEWTON), seen)
add("newton image filters", fit, made("newton", representation=small, **NEWTON), seen)
add("newton far rows", fit, made("newton", **NEWTON), changed(TWO, X=TWO.X * np.where(np.arange(600) % 5, 1, 50)[:, np.newaxis]))
add("newton NaN rows", fit, made("newton", **NEWTON), changed(TWO, X=holes))
add("newton held out", fit, made("newton", public_size=0.2, **NEWTON), public_rows=None)
add("newton held out group", fit, made("newton", public_size=0.2, privacy_unit="group", n_groups=300, **NEWTON), public_rows=None)
add("newton synthetic", fit, made("newton", synthetic=partial(PrivateMarginals, (-6.0, 6.0), n_rows=80, n_bins=8), **NEWTON), public_rows=None)
add("newton synthetic table", fit, made("newton", synthetic=partial(PrivateMarginals, DOMAIN, n_rows=200), **NEWTON), TABLE, None)
add("newton missing group ids", fit, made("newton", privacy_unit="group", n_groups=300, **NEWTON), changed(TWO, groups=missing))

# Other learners.
LINEAR = {"feature_bounds": (-6.0, 6.0), "classes": [0, 1, 2], "epsilon": 5.0}
for method in ("objective", "output", "gaussian"):
    for one in ("DPLogisticRegression", "DPLinearSVC"):
        add(f"linear {one} {method}", fit, made(one, method=method, **LINEAR), THREE, None)
add("linear data_norm", fit, made("DPLogisticRegression", data_norm=8.0, C=1.0, classes=[0, 1]), public_rows=None)
add("linear no intercept", fit, made("DPLogisticRegression", data_norm=8.0, fit_intercept=False), public_rows=None)
add("linear unknown labels", fit, made("DPLogisticRegression", **LINEAR | {"classes": [0, 1]}), THREE, None)
add("linear NaN rows", fit, made("DPLogisticRegression", **LINEAR | {"classes": [0, 1]}), changed(TWO, X=holes), None)
add("linear ledger", fit, made("DPLogisticRegression", **LINEAR, **LEDGER), THREE, None)
for unit in ("row", "group"):
    counted = {"privacy_unit": unit, "epsilon": 3.0, "random_state": 0}
    add(f"naive bayes {unit}", fit, made("DPNaiveBayesClassifier", (-6.0, 6.0), n_bins=8, **counted), THREE, None)
    add(f"naive bayes table {unit}", fit, made("DPNaiveBayesClassifier", DOMAIN, **counted), TABLE, None)
add("naive bayes ledger", fit, made("DPNaiveBayesClassifier", (-6.0, 6.0), classes=[0, 1, 2, 3], **LEDGER), THREE, None)
for name, one in {"epsilon": {"epsilon": 5.0}, "multiplier": {"epsilon": None, "noise_multiplier": 1.5}, "rdp": {"epsilon": 5.0, "accountant": "rdp"}, "ledger": LEDGER}.items():
    add(f"dpsgd {name}", lambda one: fit(made("DPSGDClassifier", skorch_net(), random_state=0, **one), SINGLE, None), one)
KNN = {"sampling_rate": 0.5, "n_queries": 30, "epsilon": 20.0, "random_state": 0}
for name, one in {
    "gnmax": {},
    "group": {"privacy_unit": "group"},
    "cosine": {"metric": "cosine", "n_neighbors": 15},
    "confident": {"mechanism": "confident"},
    "uncertainty": {"query_strategy": "uncertainty"},
    "histogram": {"release": "histogram"},
    "representation": {"representation": PCA(2)},
    "own noise": {"mechanism": partial(own, "GNMax", sigma=3.0), "epsilon": None},
    "ledger": {**LEDGER},
    "unknown labels": {"classes": [0, 1]},
}.items():
    add(f"knn {name}", fit, made("PrivateKNNClassifier", GaussianNB(), **KNN | one), THREE)
add("knn held out", fit, made("PrivateKNNClassifier", GaussianNB(), public_size=0.3, **KNN), THREE, None)
add("knn synthetic", fit, made("PrivateKNNClassifier", GaussianNB(), synthetic=partial(PrivateMarginals, (-6.0, 6.0), n_rows=80, n_bins=8), **KNN), THREE, None)
PETDL = {"n_teachers": 20, "public_batch_size": 10, "epsilon": 20.0, "random_state": 0}
for name, one in {
    "clusters": {},
    "random": {"batches": "random"},
    "group": {"privacy_unit": "group"},
    "weighted": {"weighted": True, "temperature": 2.0},
    "clipped": {"clipping_bound": 0.5},
    "own noise": {"noise_scale": 0.5, "epsilon": None},
    "ledger": {**LEDGER},
    "unknown labels": {"classes": [0, 1]},
}.items():
    add(f"petdl {name}", fit, made("PETDLClassifier", Teacher(), LogisticRegression(), **PETDL | one), THREE)
add("petdl network", lambda: fit(made("PETDLClassifier", Teacher(), **PETDL, distillation_epochs=2), SINGLE))
add("petdl hint", lambda: fit(made("PETDLClassifier", GaussianNB(), **PETDL, distillation_epochs=2, hint_epochs=1), SINGLE))
SEARCH = {"mean_n_trials": 2, "random_state": 0}
inner = {"method": "objective", "data_norm": 1.0}
pure = make_pipeline(Normalizer(), own("DPLogisticRegression", **inner))
for one in ("logarithmic", "geometric", "poisson", "disjoint"):
    add(f"search pure {one}", fit, made("PrivateSearchCV", pure, {"dplogisticregression__C": [0.1, 1.0]}, n_trials_distribution=one, classes=[0, 1, 2], **SEARCH), THREE, None)
    add(f"search votes {one}", lambda one: fit(made("PrivateSearchCV", votes(n_teachers=10)(), {"epsilon": [10.0, 20.0]}, n_trials_distribution=one, **SEARCH)), one)
add("search ledger", fit, made("PrivateSearchCV", pure, {"dplogisticregression__C": [0.1, 1.0]}, classes=[0, 1, 2], **SEARCH, **LEDGER), THREE, None)


# Ledgers: a fit that is repeated, killed or refused.
def released(learner):
    """Return the released numbers of a fit."""
    fields = {"answers_", "released_", "marginals_"} - names.not_compared(learner)
    kept = {name: getattr(learner, name, None) for name in sorted(fields)}
    return kept | {"coefficients": names.coefficients(learner)}


def fit_again(learner, data, public_rows="wrapped", **parameters):
    """Fit a clone again, perhaps with other parameters."""
    EVENTS.append(("again",))
    other = clone(learner).set_params(**parameters)
    other.fit(**given(other, data, public_rows))
    return {f"again {parameters}": released(other)}


def killed(make, kind, number, data=TWO, public_rows="wrapped"):
    """Kill a fit, and fit again."""
    TRIED.append(data.X_public)
    learner, KILL[kind] = make(), number
    record = {"killed": of_refusal(lambda: learner.fit(**given(learner, data, public_rows)), learner.ledger)}
    assert record["killed"]["error"] == "Killed", record
    return record | {"then": fit(make, data, public_rows)}


DRAWN = {"synthetic": partial(PrivateMarginals, (-6.0, 6.0), n_rows=80, n_bins=8)}
STORED = {
    "votes": (votes(**LEDGER), TWO),
    "histogram": (votes(release="histogram", **LEDGER), THREE),
    "rounds": (votes(query_strategy="uncertainty", **LEDGER), THREE),
    "confident": (votes(mechanism="confident", privacy_unit="group", **LEDGER), TWO),
    "scores": (votes(**SCORES, **LEDGER), THREE),
    "newton": (made("newton", **NEWTON, **LEDGER), TWO),
    "newton group": (made("newton", privacy_unit="group", n_groups=300, **NEWTON, **LEDGER), THREE),
    "petdl": (made("PETDLClassifier", Teacher(), GaussianNB(), **PETDL, **LEDGER), TWO),
    "knn": (made("PrivateKNNClassifier", GaussianNB(), **KNN, **LEDGER), THREE),
    "synthetic": (votes(**DRAWN, **LEDGER), TWO),
    "synthetic newton": (made("newton", **DRAWN, **NEWTON, **LEDGER), TWO),
}
for name, (make, data) in STORED.items():
    wrap = None if "synthetic" in name else "wrapped"
    add(f"ledger repeated {name}", fit, make, data, wrap, lambda one, data, wrap=wrap: fit_again(one, data, wrap) | fit_again(one, data, wrap, random_state=1))
    for kind in ("noise", "store"):
        add(f"ledger killed {kind} {name}", killed, make, kind, 0, data, wrap)
for kind, number in (("noise", 1), ("noise", 2), ("store", 1), ("store", 2)):
    add(f"ledger killed {kind} {number} newton", killed, STORED["newton"][0], kind, number)
    add(f"ledger killed {kind} {number} rounds", killed, STORED["rounds"][0], kind, number, THREE)
for number in (0, 7):
    add(f"ledger killed teacher {number}", killed, votes(**LEDGER), "teacher", number)
    add(f"ledger killed teacher {number} memory", killed, votes(**LEDGER, memory="votes"), "teacher", number)
add("ledger killed charge", killed, votes(**LEDGER), "charge", 0)


def over_budget(make, data=TWO, public_rows="wrapped"):
    """Fit until a ledger refuses."""
    record: dict = {}
    for number in range(5):
        learner = make().set_params(**{"random_state": number} if "random_state" in make().get_params() else {})
        EVENTS.append((number,))
        arguments = given(learner, data, public_rows)
        record[number] = of_refusal(partial(learner.fit, **arguments), learner.ledger)
    return record


SMALL = {"ledger": partial(ledger, 5.0), "delta": 1e-6, "epsilon": 3.0}
for name, make in {
    "votes": votes(**SMALL),
    "scores": votes(**SCORES | SMALL),
    "newton": made("newton", random_state=0, **SMALL),
    "synthetic": votes(**DRAWN, **SMALL),
    "knn": made("PrivateKNNClassifier", GaussianNB(), **KNN | SMALL),
    "own noise": votes(**SMALL | {"epsilon": None}, mechanism=partial(own, "LNMax", gamma=0.08)),
}.items():
    add(f"ledger exceeded {name}", over_budget, make, TWO, None if name == "synthetic" else "wrapped")
add("ledger exceeded linear", over_budget, made("DPLogisticRegression", data_norm=8.0, **SMALL), TWO, None)


def two_learners():
    """Fit learners of several units into one ledger."""
    record = {}
    for name, make in {"votes": votes(**LEDGER), "newton": made("newton", **NEWTON, **LEDGER), "group": votes(privacy_unit="group", **LEDGER)}.items():
        learner = make()
        record[name] = of_refusal(partial(learner.fit, **given(learner, TWO)), learner.ledger)
    release = public("OtherRelease").from_zcdp(0.1, unit="row", relation="replace-one", description="a table")
    release.charge(ledger(), delta=1e-6)
    return record | {"ledger": of_ledger(ledger())}


add("ledger of several learners", two_learners)

# Memory, processes, clusters.
add("memory twice", fit, votes(memory="votes"), TWO, "wrapped", lambda one, data: fit_again(one, data) | fit_again(one, data, epsilon=10.0) | fit_again(one, data, random_state=1))
add("memory group", fit, votes(memory="votes", privacy_unit="group"), TWO, "wrapped", fit_again)
add("processes votes", fit, votes(n_jobs=2), THREE, unordered=True)
add("processes scores", fit, votes(**SCORES, n_jobs=2), TWO, unordered=True)


def on_threads(make):
    """Fit with threads of joblib."""
    import joblib

    with joblib.parallel_config("threading", n_jobs=2):
        return fit(make, unordered=True)


add("processes threads", on_threads, votes())


def on_dask(make, frame=TABLE):
    """Fit on a cluster in this process."""
    import dask.dataframe as dd
    from distributed import Client

    learner = make()
    whole = frame.X.assign(label=frame.y, patient=frame.groups)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        cut = dd.from_pandas(whole, npartitions=4, sort=False)
        grouped = {"groups": cut["patient"]} if learner.privacy_unit == "group" else {}
        learner.fit(cut[[*frame.X]], cut["label"], X_public=PublicData(frame.X_public), **grouped)
    record = of_fit(learner, frame.fresh, names)
    EVENTS[:] = sorted(EVENTS, key=str)
    return record


CLUSTER = votes(encoded(GaussianNB()), encoded(GaussianNB()), classes=[0, 1])
add("dask rows", on_dask, CLUSTER)
add("dask groups", on_dask, votes(encoded(GaussianNB()), encoded(GaussianNB()), classes=[0, 1], privacy_unit="group"))
add("dask scores", on_dask, votes(encoded(GaussianNB()), **SCORES, classes=[0, 1]))


def seeded(make):
    """Fit with seeded noise."""
    learner = make()
    with names.seeded_noise(learner):
        learner.fit(**given(learner, TWO))
    EVENTS.clear()
    return {"spent": recording.of_statement(learner.privacy_spent_)}


add("seeded votes", seeded, votes())
add("seeded scores", seeded, votes(**SCORES))
add("seeded newton", seeded, made("newton", **NEWTON))


# Votes of parties and sites.
def votes_of_sites(n_sites=2, n_teachers=10):
    """Train the teachers of some sites."""
    found = []
    for site in range(n_sites):
        mine = np.arange(len(THREE.X)) // 2 % n_sites == site
        X, y, ids = THREE.X[mine], THREE.y[mine], THREE.groups[mine]
        shard = public("shard_of")(ids, n_teachers, 5)
        cast = {k: public("cast_votes")(Teacher(), X[shard == k], y[shard == k], THREE.X_public, classes=[0, 1, 2], shard=k, seed=5) for k in range(n_teachers) if (shard == k).any()}
        found.append(Votes.from_shards(cast, THREE.X_public, classes=[0, 1, 2], n_teachers=n_teachers, key=5, privacy_unit="group", site=f"site {site}"))
    return found


def from_votes(kind, **parameters):
    """Fit from votes."""
    learner = votes(LogisticRegression(), **{"classes": [0, 1, 2], "n_teachers": ...} | parameters)()
    TRIED.append(THREE.X_public)
    unit: dict = {}
    if kind == "labels":
        cast = [GaussianNB().fit(THREE.X[k::20], THREE.y[k::20]).predict(THREE.X_public) for k in range(20)]
        cast[3] = np.where(np.arange(150) % 4, cast[3], 7)
    else:
        cast, unit = Votes.merge(votes_of_sites()), {"privacy_unit": "group"}
    if kind == "saved":
        cast.save("all.votes")
        cast = Votes.load("all.votes")
    learner.fit_from_votes(PublicData(THREE.X_public), cast, **unit)
    record = of_fit(learner, THREE.fresh, names)
    return record | ({"ledger": of_ledger(learner.ledger)} if learner.ledger is not None else {})


for one in ("gnmax", "lnmax", "confident"):
    add(f"parties {one}", from_votes, "labels", mechanism=one)
add("parties uncertainty", from_votes, "labels", query_strategy="uncertainty")
add("parties ledger", from_votes, "labels", **LEDGER | {"ledger": None})
add("parties merged", from_votes, "merged")
add("parties saved", from_votes, "saved", release="histogram")


def from_outputs():
    """Fit PETDL from the class probabilities of parties."""
    sent = [GaussianNB().fit(THREE.X[k::20], THREE.y[k::20]).predict_proba(THREE.X_public) for k in range(20)]
    learner = made("PETDLClassifier", None, LogisticRegression(), public_batch_size=10, epsilon=20.0, classes=[0, 1, 2], random_state=0)()
    return of_fit(learner.fit_from_outputs(PublicData(THREE.X_public), sent), THREE.fresh, names)


add("parties outputs", from_outputs)


# Plans.
def planned(make, data=TWO, public_rows="wrapped"):
    """State the cost of a fit, and plan it."""
    learner = make()
    arguments = given(learner, data, public_rows)
    record = {"spent": recording.of_statement(learner.plan_privacy(**arguments))}
    record["plan"] = names.plan(learner, **arguments)
    return record


for name, make in {
    "votes": votes(),
    "weak": votes(epsilon=0.1),
    "confident": votes(mechanism="confident"),
    "scores": votes(**SCORES),
    "group": votes(privacy_unit="group", n_teachers=30),
    "newton": made("newton", **NEWTON),
    "newton group": made("newton", privacy_unit="group", n_groups=300, **NEWTON),
}.items():
    add(f"plan of {name}", planned, make, THREE)
add("plan of synthetic", planned, votes(**DRAWN), TWO, None)
add("plan of linear", planned, made("DPLogisticRegression", **LINEAR), THREE, None)
add("plan of naive bayes", planned, made("DPNaiveBayesClassifier", (-6.0, 6.0)), TWO, None)
add("plan of search", planned, made("PrivateSearchCV", pure, {"dplogisticregression__C": [0.1, 1.0]}, classes=[0, 1, 2], **SEARCH), THREE, None)


def planned_from_numbers(**numbers):
    """Plan from numbers alone."""
    parts = {n: p() if callable(p) else p for n, p in numbers.items()}
    return {"plan": names.plan_from_numbers(**parts)}


for number, one in enumerate(
    [
        {"n_rows": 30000, "n_teachers": 250},
        {"n_rows": 30000, "n_queries": 100, "mechanism": "lnmax"},
        {"n_teachers": 100, "privacy_unit": "group", "n_classes": 3, "n_queries": 50},
        {"n_rows": 5000, "mechanism": "scores", "epsilon": 3.0, "n_teachers": 80},
        {"n_rows": 5000, "n_queries": 50, "mechanism": "confident", "class_prior": 0.1},
        {"n_rows": 9000, "n_teachers": 90, "n_queries": 100, "synthetic": partial(PrivateMarginals, DOMAIN)},
        {"n_rows": 9000, "n_queries": 100, "epsilon": None, "mechanism": partial(own, "GNMax", sigma=20.0)},
    ]
):
    add(f"plan from numbers {number}", planned_from_numbers, **one)


def planned_search():
    """Plan a search of scikit-learn around a fit with a ledger."""
    search = GridSearchCV(votes(**LEDGER)(), {"n_queries": [20, 30]}, cv=3)
    plan = public("plan_search", "plan")(search, TWO.X, TWO.y, X_public=PublicData(TWO.X_public))
    record = {n: getattr(plan, n, None) for n in ("n_fits", "fits", "share", "left", "fitting_epsilon")}
    return record | {"ledger": of_ledger(ledger())}


add("plan of a grid search", planned_search)


# Publication, reports, leaks, audits.
def published(make, data=THREE, public_rows="wrapped"):
    """Publish, save, load, report."""
    learner = make()
    learner.fit(**given(learner, data, public_rows))
    whole = learner.publish()
    whole.save("model.skops")
    loaded = public("PublishedClassifier").load("model.skops")
    with open("model.json") as file:
        card = json.load(file)
    report = public("PrivacyReport").from_estimator(learner)
    record = {"predict": loaded.predict(data.fresh), "classes": loaded.classes_}
    if hasattr(whole, "predict_proba"):
        record["predict_proba"] = loaded.predict_proba(data.fresh)
    record["card"] = {name: card[name] for name in ("statement", "epsilon", "delta", "unit", "relation", "classes", "n_features")}
    record["mechanism"] = names.numbers(card.get("mechanism_fields", card["mechanism"]))
    record["loaded"] = recording.of_statement(loaded.privacy_spent_)
    record["assumptions"] = [one["code"] for one in card["assumptions"] if "code" in one]
    record["report"] = names.numbers(report.to_dict())
    record["formats"] = [bool(text) for text in (report.to_html(), report.to_markdown(), report.to_json())]
    record["leaks"] = [one.name for one in public("privacy_leaks")(learner)]
    record["command"] = recording.of_command(["report", "model.skops", "-o", "report.html"])
    other = make()
    other.fit(**given(other, data, public_rows)).publish().save("other.skops")
    record["sum"] = recording.of_command(["add", "model.json", "other.json", "--json"])
    record["repeated"] = recording.of_command(["add", "model.json", "model.json"])
    return record


PUBLISHED = {
    "votes": votes(LogisticRegression(), LogisticRegression()),
    "group": votes(LogisticRegression(), LogisticRegression(), privacy_unit="group"),
    "confident": votes(LogisticRegression(), LogisticRegression(), mechanism="confident"),
    "histogram": votes(LogisticRegression(), LogisticRegression(), release="histogram"),
    "lnmax": votes(LogisticRegression(), LogisticRegression(), mechanism="lnmax"),
    "scores": votes(LogisticRegression(), **SCORES),
    "newton": made("newton", **NEWTON),
    "newton group": made("newton", privacy_unit="group", n_groups=300, **NEWTON),
    "knn": made("PrivateKNNClassifier", LogisticRegression(), **KNN),
    "petdl": made("PETDLClassifier", GaussianNB(), LogisticRegression(), **PETDL),
}
for name, make in PUBLISHED.items():
    add(f"published {name}", published, make)
add("published linear", published, made("DPLogisticRegression", **LINEAR), THREE, None)
add("published naive bayes", published, made("DPNaiveBayesClassifier", (-6.0, 6.0), n_bins=8, epsilon=3.0), THREE, None)
add("published synthetic", published, votes(LogisticRegression(), LogisticRegression(), **DRAWN), TWO, None)
add("published search", published, made("PrivateSearchCV", pure, {"dplogisticregression__C": [0.1, 1.0]}, classes=[0, 1, 2], **SEARCH), THREE, None)


def leaks():
    """List what leaks of a pipeline and a search."""
    clf = votes(make_pipeline(StandardScaler(), LogisticRegression()), public_size=0.2)()
    around = make_pipeline(StandardScaler(), PCA(2), clf)
    search = GridSearchCV(around, {"pateclassifier__epsilon": [1.0, 2.0]})
    return {"leaks": [[one.name for one in public("privacy_leaks")(each)] for each in (clf, around, search)]}


add("leaks", leaks)


def audited(name, counts, neighbour, **parameters):
    """Audit a mechanism."""
    found = public("audit_mechanism")(own(name, **parameters), counts, neighbour, n_trials=2000, n_repeats=2, delta=0.01)
    return {"numbers": {n: v for n, v in sorted(vars(found).items()) if isinstance(v, float | int)}}


add("audit gnmax", audited, "GNMax", [10, 10], [9, 11], sigma=3.0)
add("audit lnmax", audited, "LNMax", [10, 10, 3], [9, 11, 3], gamma=0.3)
add("audit confident", audited, "ConfidentGNMax", [10, 5], [9, 6], threshold=8, sigma_threshold=4.0, sigma=3.0)
add("audit histogram", audited, "NoisyHistogram", [10, 10], [9, 11], sigma=3.0)
for number, one in enumerate(
    [
        "--rows 30000 --queries 100 --json",
        "--rows 30000 --teachers 250 --mechanism scores --json",
        "--unit group --teachers 250 --queries 100 --json",
        "--rows 3000 --queries 100 --mechanism confident --threshold 0.6 --classes 4 --json",
        "--rows 30000 --queries 100",
        "--rows -4 --json",
        "--teachers many",
    ]
):
    add(f"command plan {number}", recording.of_command, ["plan", *one.split()])


def sites():
    """Run the commands of several sites."""
    with open("teacher.py", "w") as file:
        file.write("from sklearn.naive_bayes import GaussianNB\nteacher = GaussianNB()\n")
    whole = pd.DataFrame(TWO.X[:, :2], columns=["age", "dose"])
    whole = whole.assign(label=np.where(TWO.y, "yes", "no"), patient=TWO.groups)
    pd.DataFrame(TWO.X_public[:, :2], columns=["age", "dose"]).to_csv("public.csv", index=False)
    shared = "--study study.json --public public.csv"
    run = lambda text: recording.of_command(text.split())  # noqa: E731
    record = {"study": run("study --public public.csv --classes no,yes --teachers 15 --sites north,south")}
    for place, site in enumerate(("north", "south")):
        mine = [int(k[1:]) % 2 == place for k in TWO.groups]
        whole[mine].to_csv(f"{site}.csv", index=False)
        record[site] = run(f"vote {shared} --key study.key --site {site} --data {site}.csv --label label --group patient --teacher teacher.py -o {site}.votes")
    record["fit"] = run(f"fit-votes north.votes south.votes {shared} --queries 40 --epsilon 20 -o model.skops --report report.html")
    record["again"] = run(f"fit-votes north.votes south.votes {shared} --queries 40 -o model.skops")
    record["one site"] = run(f"fit-votes north.votes {shared} --queries 40 -o other.skops")
    model = public("PublishedClassifier").load("model.skops")
    fresh = pd.DataFrame(TWO.fresh[:, :2], columns=["age", "dose"])
    return record | {"predict": model.predict(fresh), "spent": recording.of_statement(model.privacy_spent_)}


add("command sites", sites)


# Accounting.
def costs(name, **parameters):
    """State the cost of a mechanism at some numbers of queries and classes."""
    mechanism = own(name, **parameters)
    return {f"{n} {k}": recording.of_cost(*names.cost_of(mechanism, n, k)) for n, k in ((1, 2), (30, 2), (30, 5), (300, 3))}


for name, one in OWN_NOISE.items():
    wide = {n: v * (8 if "sigma" in n else 1 / 8 if n in "gammac" else 1) for n, v in one.items()}
    add(f"accounting {name}", costs, name, **wide)
add("accounting MeanScores", costs, "MeanScores", noise_scale=5.0)
add("accounting NoisySum", costs, "NoisySum", noise_scale=5.0, n_parts=3)


def other_releases():
    """Record costs of other libraries."""
    of = public("OtherRelease")
    facts = {"unit": "row", "relation": "add-remove", "description": "another release"}
    made = {"pure": of.from_pure(0.5, **facts), "zcdp": of.from_zcdp(0.05, **facts), "approximate": of.from_approximate(0.5, 1e-7, **facts)}
    record: dict = {name: recording.of_cost(one.curve, one.profile) for name, one in made.items()}
    made["replaced"] = made["zcdp"].to_relation("replace-one")
    record["replaced"] = recording.of_cost(made["replaced"].curve, made["replaced"].profile)
    own_ledger = ledger(3.0)
    for name in ("zcdp", "pure", "approximate"):
        record[f"charged {name}"] = of_refusal(partial(made[name].charge, own_ledger, delta=1e-6), own_ledger)
    return record


add("accounting other releases", other_releases)


def composed():
    """Compose, calibrate and analyse."""
    first, second = own("GNMax", sigma=40.0), own("LNMax", gamma=0.02)
    (a, p), (b, q) = names.cost_of(first, 50, 3), names.cost_of(second, 20, 3)
    counts = np.array([[18, 2, 0], [9, 8, 3], [20, 0, 0], [0, 0, 0]])
    record = {"sum": recording.of_cost(a + b, public("compose_profiles")([p, q])), "three": (a * 3).values}
    record["local"] = own("GNMax", sigma=3.0).local_curve(counts).values
    record["optimal"] = own("LNMax", gamma=0.3).optimal_curve(counts).values
    record["units"] = np.asarray(p.of_units(3).delta_at([0.5, 1.0, 3.0]))
    record["attack"] = [p.attack_accuracy(), p.detection_rate(0.05)]
    record["n_queries"] = public("calibrate_n_queries")(lambda n: names.cost_of(first, n, 3)[0], epsilon=1.0, delta=1e-5)
    record["scale"] = public("calibrate_noise")(lambda s, *more: names.curve_of(own("GNMax", sigma=s), 10, 2, *more), epsilon=1.0, delta=1e-5)
    return record


add("accounting composed", composed)


def analysed(make):
    """Compute the cost that depends on the votes."""
    learner = make().fit(**given(make(), THREE))
    analysis = learner.privacy_analysis_
    record = {n: getattr(analysis, n, None) for n in ("epsilon", "paper_epsilon", "optimal_epsilon")}
    return record | {"curve": analysis.curve.values}


for one in ("gnmax", "lnmax", "confident"):
    add(f"accounting analysis {one}", analysed, votes(mechanism=one))
add("accounting analysis uncertainty", analysed, votes(query_strategy="uncertainty"))


# Refusals: the type of the error, and nothing is charged or drawn.
def refused(make, data=TWO, public_rows="wrapped", method="fit"):
    """Pass what cannot be used."""
    learner: list = []

    def call():
        learner.append(make())
        getattr(learner[0], method)(**given(learner[0], data, public_rows))

    return of_refusal(call, ledger())


WRONG = {
    "n_teachers": [0, 10.0, "many", 601],
    "n_queries": [-1, 151],
    "epsilon": [0, -1.0, np.inf, "1", 1e-9],
    "delta": [0, 1.0, None],
    "mechanism": ["gaussian", "interactive", partial(own, "GNMax", sigma=40.0)],
    "query_strategy": ["best", "interactive", partial(own, "UncertaintyQueries", n_rounds=0)],
    "privacy_unit": ["patient"],
    "public_size": [1, 20, 0.5],
    "classes": [[1], [0, 1, 1], ["a", 1], ["x", "y"], "ab"],
    "representation": [LogisticRegression()],
    "n_jobs": [0],
    "memory": [3],
    "random_state": ["x"],
    "threshold": [2, "x"],
    "synthetic": [partial(PrivateMarginals, (-6.0, 6.0))],
    "verbose": ["loud"],
}
for parameter, values in WRONG.items():
    for number, one in enumerate(values):
        add(f"refused {parameter} {number}", refused, votes(**{**LEDGER, parameter: one}))
for name, one in {"regressor": LinearRegression(), "class": DecisionTreeClassifier, "text": "forest"}.items():
    add(f"refused estimator {name}", refused, lambda one=one: pate(one, **BASE | {"ledger": ledger()}))
    add(f"refused student {name}", refused, lambda one=one: pate(GaussianNB(), one, **BASE | {"ledger": ledger()}))
FIT = votes(**LEDGER)
for name, one in {
    "one class": changed(TWO, y=np.zeros(600)),
    "continuous y": changed(TWO, y=TWO.X[:, 0]),
    "too few labels": changed(TWO, y=TWO.y[1:]),
    "no rows": changed(TWO, X=TWO.X[:0], y=TWO.y[:0]),
    "other columns": changed(TWO, X_public=TWO.X_public[:, :3]),
    "NaN in public rows": changed(TWO, X_public=holes[:100]),
    "missing labels": changed(TWO, y=absent),
    "text": changed(TWO, X=TWO.X.astype(str), X_public=TWO.X_public.astype(str)),
    "one dimension": changed(TWO, X=TWO.X[:, 0]),
}.items():
    add(f"refused data {name}", refused, FIT, one)
    kind = "accepted" if name in ("text", "NaN in public rows") else "refused"
    add(f"{kind} newton {name}", refused, made("newton", **NEWTON, **LEDGER), one)
add("refused no public rows", refused, FIT, TWO, None)
add("refused one group", refused, votes(**LEDGER, privacy_unit="group"), changed(TWO, groups=np.zeros(600, int)))
add("refused newton without n_groups", refused, made("newton", privacy_unit="group", **NEWTON, **LEDGER))
add("refused newton n_groups", refused, made("newton", n_groups=0, **NEWTON, **LEDGER))
add("refused failing teachers", refused, votes(LogisticRegression(C=-1), **LEDGER))
add("refused failing student", refused, votes(None, LogisticRegression(C=-1), **LEDGER))
add("refused plan", refused, votes(n_teachers=0), TWO, "wrapped", "plan_privacy")
for name, one in {"C": {"C": -1}, "method": {"method": "x"}, "bounds": {"feature_bounds": (3, 1)}, "epsilon": {"epsilon": 0}}.items():
    add(f"refused linear {name}", refused, made("DPLogisticRegression", **LINEAR | LEDGER | one), THREE, None)
