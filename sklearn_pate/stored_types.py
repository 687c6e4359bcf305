"""Classes in files of published models, under names that do not change.

A model file names the classes of the objects in it. Public classes are named by the
package that exports them, and other classes by this module, wherever the code lies.
"""

from importlib import import_module
from typing import Any

# Classes that no other module exports, and the modules that define them.
_PRIVATE = {
    "Bins": "_synthetic._domain",
    "Bounds": "learners._linear",
    "CodeLogOdds": "students._representations",
    "KnownColumns": "_inputs._known_columns",
    "LogOdds": "_synthetic._marginals",
    "NaiveBayes": "learners._naive_bayes",
    "NumberColumns": "students._representations",
    "RelabeledClassifier": "_estimators._class_codes",
    "ScoreBasis": "students._basis",
    "SparseColumns": "students._representations",
    "TableColumns": "students._representations",
    "TrainedNetwork": "learners._dpsgd",
    "Values": "_synthetic._domain",
}
# A network whose module is rebuilt from the module's class, which a reader has to
# trust.
TRAINED_NETWORK = f"{__name__}.TrainedNetwork"
#: Networks whose weights are saved as arrays, without pickle.
OWN_NETWORKS = frozenset(
    f"sklearn_pate.students.{name}" for name in ("FixMatchClassifier", "GANClassifier")
)
#: Builder of modules of these networks, besides their default.
OWN_BUILDER = "sklearn_pate.students.ConvSmall"
#: Full names of classes in a model, which `PublishedClassifier.load` trusts. A trusted
#: module would let a file call the functions that the module imports.
OF_MODELS = (
    frozenset(f"{__name__}.{name}" for name in _PRIVATE if name != "KnownColumns")
    | OWN_NETWORKS
    | {
        OWN_BUILDER,
        "sklearn_pate.learners.DPLinearSVC",
        "sklearn_pate.learners.DPLogisticRegression",
        "sklearn_pate.students.DistillationClassifier",
        "sklearn_pate.students.GraphSelfTrainingClassifier",
        "sklearn_pate.students.ImageAugmentation",
        "sklearn_pate.students.ImageRepresentation",
        "sklearn_pate.students.ImageStudent",
        "sklearn_pate.students.ReweightedClassifier",
        "sklearn_pate.students.ScoreFunction",
        "sklearn_pate.students.TableRepresentation",
        "torch.nn.modules.loss.CrossEntropyLoss",
        "torch.nn.modules.loss.NLLLoss",
    }
)
# Classes beside the model, in files that skops writes of a whole PublishedClassifier.
_BESIDE_MODELS = (
    f"{__name__}.KnownColumns",
    "sklearn_pate.accounting.Assumption",
    "sklearn_pate.accounting.PrivacyProfile",
    "sklearn_pate.accounting.PrivacySpent",
    "sklearn_pate.accounting.RdpCurve",
    "sklearn_pate.metrics.OutcomeMetrics",
    "sklearn_pate.metrics.PrivateMetrics",
    "sklearn_pate.outcomes.PublishedMultiOutput",
    "sklearn_pate.outcomes.PublishedRegressor",
    "sklearn_pate.outcomes.PublishedSurvival",
    "sklearn_pate.publication.PublishedClassifier",
)


def types_to_trust() -> list[str]:
    """List the classes of this package that a file of a published model may name.

    For readers of skops files, such as ``mlflow.sklearn.save_model(published, path,
    skops_trusted_types=types_to_trust())``. :meth:`PublishedClassifier.load
    <sklearn_pate.PublishedClassifier.load>` trusts the classes of models without the
    list.

    Returns
    -------
    names : list of str
        Full names of classes, in alphabetical order. Later versions add names, and
        remove none.

    Examples
    --------
    >>> from sklearn_pate.publication import types_to_trust
    >>> "sklearn_pate.students.TableRepresentation" in types_to_trust()
    True
    """
    return sorted(OF_MODELS.union(_BESIDE_MODELS))


def __getattr__(name: str) -> Any:
    if name not in _PRIVATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"sklearn_pate.{_PRIVATE[name]}"), name)
