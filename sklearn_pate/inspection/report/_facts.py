"""Facts of a fit or of a published model for a report and a registry."""

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from numbers import Real
from string import Formatter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._estimators._fingerprints import model_fingerprint
from sklearn_pate._inputs._containers import as_table, column_names
from sklearn_pate._inputs._labels import public_table
from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting._cost import NEIGHBOURS
from sklearn_pate.accounting._ledger import PrivacyLedger, read_entries
from sklearn_pate.accounting._profile import PrivacyProfile, lower_hull
from sklearn_pate.accounting._statement import (
    FITTED_APART,
    FROZEN_IS_PUBLIC,
    PUBLIC_ROWS,
    QUALITY_ROWS_PUBLIC,
    THOUSAND,
    Assumption,
    PrivacySpent,
    kind_of,
    of_thousand,
    round_up,
    sentences_of,
    statement_of,
    with_metrics,
    write_epsilon,
)
from sklearn_pate.accounting._value_checks import (
    capitalised,
    counted,
    printable,
    read_table,
)
from sklearn_pate.inspection._leaks import leaks_of_steps
from sklearn_pate.inspection.report._sections import (
    QUESTIONS,
    conclusion_of,
    epsilon_text,
    estimate_text,
    figure_text,
    missing_in,
    named_estimates,
    number_text,
    two_digits_up,
    unit_assumption,
)
from sklearn_pate.metrics._results import ReleasedMetrics
from sklearn_pate.publication._deployment import (
    Deployment,
    checked_deployment,
    one_line,
)
from sklearn_pate.publication._model_file import paths_of, read_pair, versions_of
from sklearn_pate.publication._privacy_card import (
    canonical_text,
    check_metrics,
)
from sklearn_pate.publication._published import WRAPPERS

_TABLE = read_table("sklearn_pate.inspection.report", "registry.toml")
#: Fields of a Deployment that the registry requires.
REQUIRED: list[str] = _TABLE["required"]
TO_FILL_IN = "TO FILL IN"
# A number with an exponent, and no point, that is the value of a name.
_WITHOUT_POINT = re.compile(r'(?m)(\s*"\w+": \d+)(?=e-?\d+,?$)')
FORMAT = "sklearn_pate privacy report"
FORMAT_VERSION = 13
# Columns in the picture of importance, and public rows that are shuffled.
_N_COLUMNS, _N_SHUFFLED = 12, 2000
FALSE_ALARMS = (1, 10, 50, 100)  # of a thousand
SEVERAL = (1, 2, 3, 5, 10)
# Epsilons in the table of the profile, as shares of the stated one, and deltas below
# the stated one.
SHARES = (0.0, 0.25, 0.5, 0.75)
DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
# A guarantee is weak if more than 990 of 1000 guesses may be right.
_STRONG = 990
_COUNTS = ("n_teachers", "n_queries", "n_tables", "n_coded")
_OF_FIT = ("arithmetic", "randomness", "tuning")
_FINGERPRINT = 12  # letters, as in the spending report of a ledger
QUALITY_IS_PRIVATE = "it has figures that were computed on private rows"
LEDGER_IS_PRIVATE = "it has the history of the ledger"


def registry_record(facts: dict[str, Any]) -> dict[str, Any]:
    """Write the record of a report that has a guarantee and may be published."""
    given, says = facts["deployment"], sentences_of(facts["facts"])
    quality, unit, name = facts["quality"], facts["unit"], given.get("unit_name")
    parameters: dict[str, float] = {"epsilon": float(write_epsilon(facts["epsilon"]))}
    if facts["delta"]:
        parameters["delta"] = facts["delta"]
    if facts["facts"]["rho"] is not None:
        parameters["rho"] = six_digits(facts["facts"]["rho"], np.ceil)
    sentences = (one["sentence"] for one in facts["assumptions"])
    figures = {} if quality is None else quality["figures"]
    utility = ", ".join(f"{one} {figure_text(two)}" for one, two in figures.items())
    if quality is not None:
        utility = f"{utility}, on {quality['evaluated_on']}"
    metrics, of_metrics = facts["metrics"], None
    if metrics is not None:
        named = named_estimates(metrics["figures"]).items()
        estimates = ", ".join(f"{one} {estimate_text(two)}" for one, two in named)
        utility = _joined(utility, _TABLE["metrics"]["utility"].format(estimates))
        costs = [
            f"epsilon={epsilon_text(one)} and delta={number_text(one['delta'])}"
            for one in (facts["model_alone"], metrics)
        ]
        of_metrics = _TABLE["metrics"]["details"].format(*costs)
    slug = re.sub(r"[^a-z0-9]+", "_", given.get("name", "to fill in").lower())
    audits = [f"Audit: {one}." for one in given.get("audits", [])]
    words = {
        "facts": facts,
        "given": _given(given),
        "says": says,
        "slug": slug.strip("_") or "model",
        "date": facts["published"] or facts["date"],
        "variant": _TABLE["variant"][facts["facts"]["variant"]],
        "columns": counted(facts["n_features"], "column"),
        "classes": counted(facts["n_classes"], "class"),
        "unprotected": says.get("unprotected", "None."),
        "unit": unit if name is None else f"{name} (one {unit})",
        "parameters": parameters,
        "mu": f"{says['mu']} " if "mu" in says else "",
        "risk": conclusion_of(facts),
        "assumptions": " ".join(f"{capitalised(one)}." for one in sentences),
        "actors": _listed(given, "actors"),
        "tuning": _joined(says["tuning"], given.get("tuning")),
        "security": given.get("data_security", f"{TO_FILL_IN}."),
        "versions": ", ".join(f"{one} {two}" for one, two in facts["versions"].items()),
        "utility": utility,
        "of_metrics": f" {of_metrics}" if of_metrics else "",
        "more": _joined(*audits, _listed(given, "others")),
        "tier": _tier(given),
    }
    return _filled(_TABLE["record"], words)


def registry_yaml(facts: dict[str, Any]) -> str:
    """Write the record as YAML, after a comment that names what is missing.

    JSON is YAML, with all texts in quotes, except that a number such as 1e-05 needs a
    point.
    """
    record = json.dumps(registry_record(facts), indent=2, ensure_ascii=False)
    record = _WITHOUT_POINT.sub(r"\1.0", record)
    missing = [
        f"# {name}: {QUESTIONS[name][1]}"
        for name in (*REQUIRED, *_TABLE["highest_tier"])
        if name not in facts["deployment"]
    ]
    lines = ["# Draft for the registry of differential privacy deployments."]
    if missing:
        lines += ["# To fill in:", *missing]
    return "\n".join([*lines, record, ""])


def _filled(template: Any, words: dict[str, Any]) -> Any:
    """Fill in the words of a record; a field without a value is left out."""
    if isinstance(template, dict):
        fields = {name: _filled(one, words) for name, one in template.items()}
        return {name: one for name, one in fields.items() if one not in (None, "")}
    if isinstance(template, list):
        return [_filled(one, words) for one in template]
    alone = re.fullmatch(r"\{([^{}]+)\}", template)  # of any type
    if alone:
        return Formatter().get_field(alone[1], (), words)[0]
    return template.format(**words)


def _given(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a Deployment, with what is to be filled in."""
    asked = {
        name: f"{TO_FILL_IN}: {question}" for name, (_, question) in QUESTIONS.items()
    }
    required = (*REQUIRED, "epsilon_justification")
    missing = {name: asked[name] if name in required else None for name in QUESTIONS}
    capitals = {
        name: given[name].capitalize()
        for name in ("curator_kind", "sector")
        if name in given
    }
    authors = given.get("authors", [asked["authors"]])
    return missing | given | capitals | {"authors": authors}


def _tier(given: dict[str, Any]) -> int:
    """Return the tier whose fields are complete, 1 also for an incomplete record."""
    if any(name not in given for name in REQUIRED):
        return 1
    return 2 if any(name not in given for name in _TABLE["highest_tier"]) else 3


def _listed(given: dict[str, Any], table: str) -> str:
    """Write some fields with their headings."""
    headings = _TABLE[table].items()
    return _joined(*(f"{to}: {given[name]}." for name, to in headings if name in given))


def _joined(*sentences: str | None) -> str:
    return " ".join(filter(None, sentences))


def has_card(learner: Any) -> bool:
    """Check whether an estimator is a PublishedClassifier, also before its fit."""
    return hasattr(type(learner), "card")


def deployment_of(
    learner: Any, deployment: Deployment | None, spent: PrivacySpent
) -> dict[str, Any]:
    """Return the description of a model: that on its card, or a given one."""
    given = checked_deployment(deployment, spent).to_dict()
    on_card = learner.card["deployment"] if has_card(learner) else {}
    if on_card and deployment is not None and on_card != given:
        raise ValueError(
            "deployment differs from the deployment on the card of the model; leave "
            "it out to use the card, or publish the model again with the new one."
        )
    return on_card or given


def metrics_of(
    learner: Any, clf: Any, metrics: ReleasedMetrics | None, spent: PrivacySpent
) -> ReleasedMetrics | None:
    """Return the private metrics of a model: those on its card, or given ones.

    Given metrics are of `learner`, or of `clf`, with steps in front of it.
    """
    on_card = getattr(learner, "metrics_", None) if has_card(learner) else None
    if metrics is None:
        return on_card
    # The student of a card need not be loaded.
    of_learner = (
        learner.card["model_fingerprint"]
        if has_card(learner)
        else model_fingerprint(learner)
    )
    of_steps = [] if clf is learner else [model_fingerprint(clf)]
    check_metrics(metrics, [of_learner, *of_steps], spent)
    if on_card is not None and on_card.to_dict() != metrics.to_dict():
        raise ValueError(
            "metrics differ from the metrics on the card of the model; leave them out "
            "to use the card, or publish the model again with the new ones."
        )
    return metrics


def name_file(learner: Any, model_file: str | os.PathLike[str]) -> dict[str, str]:
    """Return name and sha256 of a published model's file, without loading the model.

    The folder is left out: its name may be private. ValueError is raised if the file is
    damaged or has another card than `learner`.
    """
    try:
        path, _ = paths_of(model_file)
    except ValueError as error:
        raise ValueError(str(error).replace("path=", "model_file=")) from None
    if not has_card(learner):
        raise ValueError(
            f"model_file={str(path)!r} is the file of a PublishedClassifier, but clf "
            f"is a {type(learner).__name__}; pass the PublishedClassifier that was "
            "saved, clf.publish()."
        )
    model, card, _ = read_pair(path)
    if canonical_text(card) != canonical_text(learner.card):
        raise ValueError(
            f"model_file={str(path)!r} has another privacy card than clf; pass the "
            "file that clf was saved to or loaded from."
        )
    name = " ".join(path.name.split())
    return {"name": name, "sha256": hashlib.sha256(model).hexdigest()}


@dataclass(frozen=True)
class ReportInputs:
    """Checked inputs of a report: a model, its statements, and their evidence."""

    learner: Any
    #: Names and steps of pipelines in front of the learner.
    steps: list[tuple[str, Any]]
    of_model: PrivacySpent
    #: Statement of all that is published: the model, and its metrics.
    whole: PrivacySpent
    deployment: dict[str, Any]
    title: str
    quality: dict[str, Any] | None
    metrics: ReleasedMetrics | None
    ledger: dict[str, Any] | None
    model_file: dict[str, str] | None
    importance: dict[str, Any] | None

    @classmethod
    def read(
        cls,
        clf: Any,
        *,
        title: str | None,
        quality: Any,
        evaluated_on: str | None,
        quality_is_public: bool | None,
        metrics: ReleasedMetrics | None,
        ledger: PrivacyLedger | None,
        model_file: Any,
        deployment: Deployment | None,
        X_public: Any,
    ) -> Self:
        """Check the arguments of :meth:`PrivacyReport.from_estimator`."""
        learner, steps = _unwrapped(clf)
        spent = _statement_of(learner, clf)
        described = deployment_of(learner, deployment, spent)
        title = _title(described) if title is None else one_line("title", title)
        figures = _quality(quality, evaluated_on, quality_is_public)
        metrics = metrics_of(learner, clf, metrics, spent)
        whole = spent
        if metrics is not None:
            whole = with_metrics(spent, metrics.privacy_spent_)
        return cls(
            learner,
            steps,
            spent,
            whole,
            described,
            title,
            figures,
            metrics,
            _ledger_facts(ledger, spent),
            None if model_file is None else name_file(learner, model_file),
            None if X_public is None else _importance(clf, X_public),
        )

    @cached_property
    def leaks(self) -> list[dict[str, Any]]:
        """List of leaks of the steps, which no statement covers."""
        return [
            {"name": leak.name, "estimator": leak.estimator, "what": str(leak)}
            for leak in leaks_of_steps(self.steps, self.learner)
        ]

    @property
    def is_private(self) -> bool:
        """Whether all that is published has a guarantee."""
        return bool(np.isfinite(self.of_model.epsilon)) and not self.leaks


def collect_facts(given: ReportInputs) -> dict[str, Any]:
    """Collect all facts of a report, as values that strict JSON can hold.

    Bounds are rounded up.
    """
    return {
        **_heading(given),
        **_privacy(given),
        **_publication(given),
        **_model(given),
        **_evidence(given),
    }


def _heading(given: ReportInputs) -> dict[str, Any]:
    internal_because = []
    if given.quality is not None and not given.quality["public"]:
        internal_because.append(QUALITY_IS_PRIVATE)
    if given.ledger is not None:
        internal_because.append(LEDGER_IS_PRIVATE)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "title": given.title,
        "date": datetime.now(UTC).date().isoformat(),
        "internal": bool(internal_because),
        "internal_because": internal_because,
    }


def _privacy(given: ReportInputs) -> dict[str, Any]:
    whole, private = given.whole, given.is_private
    unit_name = given.deployment.get("unit_name")
    assumptions = _assumptions(given, unit_name)
    return {
        "private": private,
        **_stated(whole, given.of_model),
        "promise": _promise(whole) if private else None,
        "costs": _costs(whole) if private else None,
        "model_alone": None if given.metrics is None else _part(given.of_model),
        "kind": kind_of(given.of_model),
        "not_covered": given.leaks,
        "assumptions": [asdict(one) for one in assumptions],
    }


def _publication(given: ReportInputs) -> dict[str, Any]:
    to_fill_in = []
    if given.is_private:
        to_fill_in = missing_in(given.deployment, given.quality, given.metrics)
    return {"deployment": given.deployment, "to_fill_in": to_fill_in}


def _model(given: ReportInputs) -> dict[str, Any]:
    learner, model = given.learner, _model_of(given.learner)
    card = learner.card if has_card(learner) else None
    return {
        # A PublishedClassifier was not fitted, and its card does not name the fit.
        "classifier": None if card else type(learner).__name__,
        "model": _name_of(model),
        "model_file": given.model_file,
        "published": card and card.get("date"),
        "outcome": getattr(learner, "_outcome", None),
        "n_classes": len(learner.classes_),
        "n_features": int(learner.n_features_in_),
        "versions": card["versions"] if card else versions_of(model),
    }


def _evidence(given: ReportInputs) -> dict[str, Any]:
    return {
        "quality": given.quality,
        "metrics": None if given.metrics is None else _metrics(given.metrics),
        "ledger": given.ledger,
        "importance": given.importance,
    }


def _importance(clf: Any, X_public: Any) -> dict[str, Any]:
    """Compute the mean change of predictions of public rows if a column is shuffled."""
    from sklearn.inspection import permutation_importance  # imports much

    X = as_table(public_table(X_public), "X_public", private=False)
    if len(X.shape) > 2:
        raise ValueError(
            f"X_public of shape {X.shape} must be a table, as importance is that of "
            "columns. Leave X_public out."
        )
    of_classes = is_classifier(clf)

    def predicted(rows: Any) -> NDArray[np.float64]:
        if hasattr(clf, "predict_proba"):
            found = clf.predict_proba(rows)
        else:
            found = np.asarray(clf.predict(rows))[:, np.newaxis]
            if of_classes:  # a predicted class has the probability 1
                found = found == clf.classes_
        return np.asarray(found, dtype=np.float64)

    def unchanged(_: Any, rows: Any, before: NDArray[Any]) -> float:
        change = np.abs(predicted(rows) - before).sum(axis=1).mean()
        # What one class gains is what others lose.
        return -float(change) / (2 if of_classes else 1)

    found = permutation_importance(
        clf,
        X,
        predicted(X),
        scoring=unchanged,
        random_state=0,
        max_samples=min(X.shape[0], _N_SHUFFLED),
    )
    names = column_names(X)
    if names is None:
        names = [f"column {place}" for place in range(X.shape[1])]
    order = np.argsort(-found.importances_mean, kind="stable")[:_N_COLUMNS]
    return {
        "of": "probability" if of_classes else "prediction",
        "n_columns": X.shape[1],
        "columns": [
            {"name": str(names[place]), "change": float(found.importances_mean[place])}
            for place in order
        ],
    }


def _title(described: dict[str, Any]) -> str:
    """Name the model and the organisation that is responsible for it."""
    names = (
        described.get("name"),
        described.get("controller", described.get("curator")),
    )
    return ", ".join(filter(None, names)) or "Privacy report"


def _unwrapped(clf: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """Return the private classifier, and the steps of pipelines in front of it."""
    steps, prefix = [], ""
    while True:
        if isinstance(clf, Pipeline):
            *front, (name, clf) = clf.steps
            steps += [(f"{prefix}{one}", step) for one, step in front]
            prefix += f"{name}__"
        elif isinstance(clf, FrozenEstimator):
            clf = clf.estimator
        elif hasattr(type(clf), "_kind"):  # a number or a time, learned as classes
            check_is_fitted(clf, "classifier_")
            clf = clf.classifier_
        else:
            return clf, steps


def _statement_of(learner: Any, clf: Any) -> PrivacySpent:
    spent: PrivacySpent = getattr(
        learner, "model_privacy_spent_", statement_of(learner)
    )
    if spent.release in ("metrics", "several", "measured"):
        raise ValueError(
            f"clf is of type {type(clf).__name__}, whose statement covers several "
            "releases; pass its model as clf and its metrics as metrics, or one of its "
            "estimators_ for several outcomes."
        )
    return spent


def _quality(
    quality: Any, evaluated_on: str | None, is_public: bool | None
) -> dict[str, Any] | None:
    if quality is None:
        for name, value in (
            ("evaluated_on", evaluated_on),
            ("quality_is_public", is_public),
        ):
            if value is not None:
                raise ValueError(
                    f"{name}={value!r} describes figures of quality; pass quality, "
                    "such as {'accuracy': 0.84}, too."
                )
        return None
    if not isinstance(quality, dict) or not quality:
        raise ValueError(
            f"quality={quality!r} must be a dict of names and numbers, such as "
            "{'accuracy': 0.84}."
        )
    figures = {
        name: _figure(name, value)
        for name, value in _named("a name in quality", [*quality], quality).items()
    }
    if evaluated_on is None:
        raise ValueError(
            "quality needs evaluated_on, one sentence about the rows that the figures "
            "were computed on."
        )
    if not isinstance(is_public, (bool, np.bool_)):
        raise ValueError(
            f"quality_is_public={is_public!r} must be True if all rows that the "
            "figures were computed on are public, with their labels, and False "
            "otherwise."
        )
    return {
        "figures": figures,
        "evaluated_on": one_line("evaluated_on", evaluated_on),
        "public": bool(is_public),
    }


def _stated(spent: PrivacySpent, of_model: PrivacySpent) -> dict[str, Any]:
    """Write a statement, without its curve, as JSON values.

    Facts of the fit that the statement does not tell are those of the model.
    """
    of_fit = of_model.facts.to_dict()
    counts = {name: getattr(spent, name) for name in _COUNTS}
    return {
        "statement": spent.in_one_line(),
        **spent.to_dict(),
        "facts": spent.facts.to_dict() | {name: of_fit[name] for name in _OF_FIT},
        "epsilon": float(spent.epsilon) if np.isfinite(spent.epsilon) else None,
        "delta": float(spent.delta),
        "mu": None if spent.mu is None else float(spent.mu),
        **{name: None if one is None else int(one) for name, one in counts.items()},
    }


def _part(of_model: PrivacySpent) -> dict[str, Any]:
    """Write what a report needs about the model alone."""
    fields = _stated(of_model, of_model)
    names = ("statement", "epsilon", "delta", "mechanism")
    return {one: fields[one] for one in (*names, *_COUNTS, "class_count")}


def _metrics(metrics: ReleasedMetrics) -> dict[str, Any]:
    """Write private metrics with their own statement."""
    values = metrics.to_dict()
    return {
        **{name: values[name] for name in ("statement", "epsilon", "delta", "n_rows")},
        "classes": values.get("classes"),
        "figures": values["figures"],
        "by_subgroup": [
            {"subgroup": printable(value), "figures": one}
            for value, one in zip(
                values["subgroups"], values["by_subgroup"], strict=False
            )
        ],
        "apart": FITTED_APART in metrics.privacy_spent_.assumptions,
    }


def _figure(name: str, value: Any) -> float | dict[str, float]:
    """Return a figure, or one for each subpopulation."""
    if isinstance(value, dict) and value:
        named = _named("a subpopulation in quality", [*map(str, value)], value)
        return {one: _number(f"{name}, {one}", number) for one, number in named.items()}
    return _number(name, value)


def _named(what: str, names: list[Any], values: dict[Any, Any]) -> dict[str, Any]:
    """Return the values by their names as short texts, which must differ."""
    texts = [one_line(what, name) for name in names]
    named = dict(zip(texts, values.values(), strict=True))
    if len(named) < len(values):
        raise ValueError(
            f"quality has several names with the same text, among {[*values]}; give "
            "each figure a different name."
        )
    return named


def _number(name: str, value: Any) -> float:
    is_number = isinstance(value, (Real, np.number)) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value):
        raise ValueError(
            f"quality[{name!r}]={value!r} must be a finite number, or a dict with one "
            "for each subpopulation."
        )
    return float(value)


def _ledger_facts(
    ledger: PrivacyLedger | None, spent: PrivacySpent
) -> dict[str, Any] | None:
    if ledger is None:
        return None
    if not isinstance(ledger, PrivacyLedger):
        raise ValueError(
            f"ledger={ledger!r} must be a PrivacyLedger, whose history the report "
            "shows."
        )
    with ledger.reading() as file:
        unit, relation, created = file.execute(
            "SELECT unit, relation, created FROM budget"
        ).fetchone()
        entries = read_entries(file, ledger.filter)
        share = ledger.spent
    if unit is not None and (unit, relation) != (spent.unit, spent.relation):
        raise ValueError(
            f"ledger protects unit={unit!r} with relation={relation!r}, but this fit "
            f"protects unit={spent.unit!r} with relation={spent.relation!r}; pass the "
            "ledger that this fit was charged to."
        )
    return {
        "epsilon": float(ledger.epsilon),
        "delta": float(ledger.delta),
        "unit": unit,
        "relation": relation,
        "neighbours": NEIGHBOURS.get((unit, relation)),
        "created": created,
        "spent": round_up(share, 4),
        # A ledger admits a pure release of its epsilon, which attains this bound.
        "guesses": _guesses(lower_hull([ledger.epsilon], [ledger.delta])),
        "entries": [
            {
                "number": entry.number,
                "time": entry.time,
                "who": entry.who,
                "what": entry.description,
                "dataset": entry.dataset[:_FINGERPRINT],
                "fit": entry.fit[:_FINGERPRINT],
                "epsilon": round_up(entry.epsilon, 3),
                "delta": entry.delta,
                "share": round_up(entry.share, 4),
            }
            for entry in entries
        ],
    }


def _promise(spent: PrivacySpent) -> dict[str, Any]:
    """Bound attackers by the profile of a publication."""
    several = []
    for n_units in SEVERAL:
        profile, epsilon = spent.profile.of_units(n_units), n_units * spent.epsilon
        several.append(
            {
                "units": n_units,
                "epsilon": round_up(epsilon, 3),
                "delta": two_digits_up(profile.delta_at(epsilon)),
                "guesses": _guesses(profile),
            }
        )
    guesses = _guesses(spent.profile)
    return {
        "guesses": guesses,
        "weak": guesses["right_at_most"] > _STRONG,
        "detections": [
            {
                "false_alarms": alarms,
                "detected_at_most": of_thousand(
                    spent.detection_rate(alarms / THOUSAND)
                ),
                "of": THOUSAND,
            }
            for alarms in FALSE_ALARMS
        ],
        "several": several,
    }


def _guesses(profile: PrivacyProfile) -> dict[str, int]:
    right = of_thousand(profile.attack_accuracy())
    return {"right_at_most": right, "by_chance": THOUSAND // 2, "of": THOUSAND}


def _costs(spent: PrivacySpent) -> dict[str, Any]:
    """Compute the profile of a publication, and the cost of two like it."""
    two = spent + spent
    return {
        "pairs": _pairs(spent),
        "two": {
            "epsilon": round_up(two.epsilon, 3),
            "delta": float(two.delta),
            "guesses": _guesses(two.profile),
        },
    }


def _pairs(spent: PrivacySpent) -> list[dict[str, Any]]:
    """List pairs of epsilon and delta around the stated one, by increasing epsilon."""
    epsilon, delta = float(spent.epsilon), float(spent.delta)
    smaller = [share * epsilon for share in SHARES]
    larger = [(spent.epsilon_at(one), one) for one in DELTAS if one < delta]
    pairs = [
        *((one, two_digits_up(spent.delta_at(one)), False) for one in smaller),
        (epsilon, delta, True),
        *((*one, False) for one in larger if np.isfinite(one[0])),
    ]
    return [
        {"epsilon": round_up(at, 3), "delta": one, "stated": stated}
        for at, one, stated in pairs
    ]


def _assumptions(given: ReportInputs, unit_name: str | None) -> list[Assumption]:
    assumptions = list(given.whole.assumptions)
    if unit_name is not None:
        assumptions.append(unit_assumption(given.whole.unit, unit_name))
    frozen = any(
        isinstance(part, FrozenEstimator)
        for _, step in given.steps
        if hasattr(step, "get_params")
        for part in (step, *step.get_params().values())
    )
    if frozen:
        assumptions.append(FROZEN_IS_PUBLIC)
    if given.quality is not None and given.quality["public"]:
        assumptions.append(QUALITY_ROWS_PUBLIC)
    if given.importance is not None:
        assumptions.append(PUBLIC_ROWS)
    return list(dict.fromkeys(assumptions))


def _model_of(learner: Any) -> Any:
    """Return the innermost model that predicts."""
    for name in ("best_estimator_", "student_", "model_", "network_"):
        if hasattr(learner, name):
            return _model_of(getattr(learner, name))
    if isinstance(learner, WRAPPERS):
        return _model_of(learner.estimator_)
    return learner


def _name_of(model: Any) -> str:
    if isinstance(model, Pipeline):
        names = ", ".join(_name_of(_model_of(step)) for _, step in model.steps)
        return f"Pipeline({names})"
    return type(model).__name__
