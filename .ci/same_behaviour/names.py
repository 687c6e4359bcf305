"""Names of one behaviour in both trees; the only file that knows what was renamed."""

import inspect
import pkgutil
import re
from contextlib import contextmanager
from importlib import import_module

import numpy as np

import sklearn_pate

# Classes in a pickle that have another name in the new tree.
CLASS_NAMES = {
    "_Numbers": "NumberColumns",
    "_SparseColumns": "SparseColumns",
    "_TableColumns": "TableColumns",
}
# Classes of parameters that were numbers.
PARAMETERS = {"Clusters", "Hint", "RandomBatches"}
# Parts of a card, a plan or a report that are no behaviour.
NO_BEHAVIOUR = re.compile(
    "version|sha256|hash|date|time|format|bytes|path|file$|max_coordinates|"
    "noise_is_seeded"
)
_HOMES = ("", ".learners", ".baselines", ".mechanisms", ".students", ".accounting")
_NOISE = [
    "sigma",
    "sigma_threshold",
    "gamma",
    "c",
    "noise_scale",
    "noise_multiplier",
    "max_answers",
]


def public(*aliases):
    """Find the first of several public names in the packages that may export it."""
    for name in aliases:
        for home in (*_HOMES, ".inspection", ".model_selection", ".distributed"):
            try:
                return getattr(import_module(f"sklearn_pate{home}"), name)
            except (ImportError, AttributeError):
                continue
    raise LookupError(f"No public package of sklearn_pate has one of {aliases}.")


def class_named(name):
    """Find a class by walking all modules."""
    for module in pkgutil.walk_packages(sklearn_pate.__path__, "sklearn_pate."):
        if not module.name.endswith("__main__"):
            found = vars(import_module(module.name)).get(name)
            if isinstance(found, type):
                return found
    raise LookupError(f"No module of sklearn_pate has a class {name}.")


def has_newton():
    """Check for a class of its own for Newton steps."""
    return hasattr(sklearn_pate, "DPNewtonClassifier")


def newton(basis="auto", **parameters):
    """Make the logistic regression by noisy Newton steps."""
    if has_newton():
        return sklearn_pate.DPNewtonClassifier(basis=basis, **parameters)
    mechanism = "steps" if basis == "auto" else public("ScoreSteps")(basis=basis)
    return sklearn_pate.PATEClassifier(mechanism=mechanism, **parameters)


def translated(learner, parameters):
    """Return parameters of a class; release="histogram" may be a mechanism."""
    known = inspect.signature(learner).parameters
    if parameters.get("release") == "histogram" and "release" not in known:
        given = parameters.get("mechanism", "gnmax")
        mechanism = "histogram" if given == "gnmax" else given
        parameters = parameters | {"mechanism": mechanism}
        del parameters["release"]
    if "public_batch_size" in parameters and "public_batch_size" not in known:
        parameters = parameters | petdl_objects(parameters)
        parameters = {n: one for n, one in parameters.items() if n in known}
    if "threshold" in parameters and "threshold" not in known:
        one = sklearn_pate.mechanisms.MeanScores(threshold=parameters["threshold"])
        parameters = {name: parameters[name] for name in {*parameters} - {"threshold"}}
        parameters |= {"mechanism": one}
    return parameters


def petdl_objects(parameters):
    """Make the objects of PETDLClassifier from what were its parameters."""
    by_cluster = parameters.get("batches", "cluster") == "cluster"
    size = parameters["public_batch_size"]
    found = {"batches": public("Clusters" if by_cluster else "RandomBatches")(size)}
    if parameters.get("hint_epochs"):
        found["hint"] = public("Hint")(parameters["hint_epochs"])
    if "distillation_epochs" in parameters:
        found["student"] = public("FixMatchClassifier")(
            public("ConvSmall")(),
            max_epochs=parameters["distillation_epochs"],
            batch_size=size,
            labeled_batch_size=min(64, size),
        )
    return found


def pate(*estimators, **parameters):
    """Make a PATEClassifier."""
    learner = sklearn_pate.PATEClassifier
    return learner(*estimators, **translated(learner, parameters))


def coefficients(fitted):
    """Return the released coefficients of a fit, None if there are none."""
    for path in ("coefficients_", "estimate_.coefficients", "coef_"):
        found = fitted
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is not None:
            return np.asarray(found)
    return None


def not_compared(fitted):
    """Name the fields of a fit that are no behaviour."""
    estimate = type(getattr(fitted, "estimate_", None)).__name__
    if type(fitted).__name__ != "DPNewtonClassifier" and estimate != "StepsEstimate":
        return set()
    return {
        *("answers_", "queried_indices_", "histograms_", "soft_answers_", "votes"),
        *("failures", "warned", "n_problems", "attributes", "pickled"),
    }


@contextmanager
def seeded_noise(learner):
    """Seed the noise of a learner, or of all of them in a block."""
    if "noise_seed" in learner.get_params():
        learner.set_params(noise_seed=3)
        yield
    else:
        with import_module("sklearn_pate.testing").seeded_noise(3):
            yield


def plan(learner, **given):
    """Flatten the numbers of a plan from data or from numbers; {} without a plan."""
    if hasattr(learner, "plan_fit"):
        return numbers(learner.plan_fit(**given).to_dict())
    own = (sklearn_pate.PATEClassifier, sklearn_pate.DPNewtonClassifier)
    if not isinstance(learner, own):
        return {}
    return numbers(public("plan")(learner, **given).to_dict())


def plan_from_numbers(*, n_rows=None, n_classes=2, class_prior=None, **parameters):
    """Flatten the numbers of a plan of PATEClassifier without data."""
    given = {"n_rows": n_rows, "n_classes": n_classes, "class_prior": class_prior}
    if hasattr(sklearn_pate.PATEClassifier, "plan_fit"):
        return numbers(public("plan_fit")(**given, **parameters).to_dict())
    return plan(sklearn_pate.PATEClassifier(**parameters), **given)


def noise_of(fitted):
    """List the scales of the noise of a fit and its parts."""
    scales: dict[str, list[float]] = {}
    mechanism = getattr(fitted, "mechanism_", None)
    for part in (mechanism, getattr(mechanism, "counts", None)):
        own = {} if part is None else part.get_params(deep=True)
        for name, value in own.items():
            last = name.rpartition("__")[2]
            if last in _NOISE and value is not None:
                scales.setdefault(last, []).append(value)
    return {name: sorted(set(values)) for name, values in scales.items()}


def cost_of(mechanism, n_queries, n_classes):
    """Return the stated cost of a mechanism."""
    if hasattr(mechanism, "stated_curve"):
        return (
            mechanism.stated_curve(n_queries, n_classes),
            mechanism.stated_profile(n_queries, n_classes),
        )
    cost = mechanism.cost(n_queries, n_classes)
    return cost.curve, cost.profile


def curve_of(mechanism, n_queries, n_classes, *orders):
    """Return the Renyi curve of a mechanism, at given orders."""
    if hasattr(mechanism, "account_curve"):
        return mechanism.account_curve(n_queries, n_classes, *orders)
    given = {"orders": orders[0]} if orders else {}
    return mechanism.cost(n_queries, n_classes, **given).curve


def unseeded(source, arguments):
    """Check that a NoiseSource draws from the operating system."""
    if hasattr(source, "is_seeded"):
        return not source.is_seeded
    return all(one is None for one in arguments)


def numbers(tree, path=""):
    """Flatten nested dicts and lists to their numbers, by path."""
    if NO_BEHAVIOUR.search(path):
        return {}
    if isinstance(tree, bool | int | float | np.number):
        return {path: tree}
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list | tuple):
        items = enumerate(tree)
    else:
        return {}
    found = {}
    for name, one in items:
        found |= numbers(one, f"{path}/{name}")
    return found
