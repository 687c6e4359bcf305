"""Record of a report for the registry of differential privacy deployments."""

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting._statement import sentences_of, write_epsilon
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.inspection.report._blocks import QUESTIONS
from sklearn_pate.inspection.report._guarantee import (
    epsilon_text,
    estimate_text,
    figure_text,
    named_estimates,
    number_text,
)

TO_FILL_IN = "TO FILL IN"
#: Fields of a Deployment that the registry requires.
REQUIRED = (
    "name",
    "intended_use",
    "description",
    "region",
    "curator",
    "curator_kind",
    "authors",
)
# Fields that the highest tier asks for, beside those that follow from the statement.
_HIGHEST_TIER = ("epsilon_justification", "tuning", "data_security")
_VARIANTS = {"pure": "Pure DP", "approximate": "Approximate DP"}
_ACTORS = {
    "curator": "Data curator",
    "controller": "Controller",
    "model_owner": "Owner of the model",
    "recipients": "Recipients of the model",
    "contact": "Contact",
}
_OTHERS = {
    "retention": "Retention",
    "legal_basis": "Legal basis",
    "impact_assessment": "Impact assessment",
}
# A number with an exponent, and no point, that is the value of a name.
_WITHOUT_POINT = re.compile(r'(?m)(\s*"\w+": \d+)(?=e-?\d+,?$)')


def registry_record(facts: dict[str, Any]) -> dict[str, Any]:
    """Write the record of a report that has a guarantee and may be published."""
    given, words = facts["deployment"], sentences_of(facts["facts"])
    actors = _listed(given, _ACTORS)

    def asked(name: str) -> str:
        return given.get(name, f"{TO_FILL_IN}: {QUESTIONS[name][1]}")

    basic = {
        "name": asked("name"),
        "data_curators": [
            {
                "data_curator_name": asked("curator"),
                "data_curator_type": asked("curator_kind").capitalize()
                if "curator_kind" in given
                else asked("curator_kind"),
            }
        ],
        "description": asked("description"),
        "intended_use": asked("intended_use"),
        "data_product_type": "Machine learning model",
        "data_product_region": asked("region"),
        "publication_date": facts["published"] or facts["date"],
    }
    if "sector" in given:
        basic["data_product_sector"] = given["sector"].capitalize()
    return {
        "url_slug": _slug(given.get("name", "to fill in")),
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": _VARIANTS[facts["facts"]["variant"]],
                "data_domain": f"Tables with {counted(facts['n_features'], 'column')} "
                f"and {counted(facts['n_classes'], 'class')}.",
                "unprotected_quantities": words.get("unprotected", "None."),
            },
            "privacy_loss": _privacy_loss(facts, words),
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": words["trust_model"],
                "trust_assumptions": _joined(
                    f"{one['sentence']}." for one in facts["assumptions"]
                ),
                **({"actors": actors} if actors else {}),
                "release_type": "One release",
                "release_type_details": words["release_type"],
                "data_source_type": "Static",
                "data_source_type_details": words["data_source"],
                "access_type": "Non-interactive",
                "access_type_details": words["access"],
            },
            "implementation": _implementation(facts, words),
            "administrative": {
                "status": "Draft",
                "registry_authors": given.get("authors")
                or [f"{TO_FILL_IN}: {QUESTIONS['authors'][1]}"],
                "tier": _tier(given),
            },
        },
    }


def registry_yaml(facts: dict[str, Any]) -> str:
    """Write the record as YAML, after a comment that names what is missing.

    JSON is YAML, with all texts in quotes, except that a number such as 1e-05 needs a
    point.
    """
    record = json.dumps(registry_record(facts), indent=2, ensure_ascii=False)
    record = _WITHOUT_POINT.sub(r"\1.0", record)
    missing = [
        f"# {name}: {QUESTIONS[name][1]}"
        for name in (*REQUIRED, *_HIGHEST_TIER)
        if name not in facts["deployment"]
    ]
    lines = ["# Draft for the registry of differential privacy deployments."]
    if missing:
        lines += ["# To fill in:", *missing]
    return "\n".join([*lines, record, ""])


def _tier(given: dict[str, Any]) -> int:
    """Return the tier whose fields are complete, 1 also for an incomplete record."""
    if any(name not in given for name in REQUIRED):
        return 1
    return 2 if any(name not in given for name in _HIGHEST_TIER) else 3


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "model"


def _privacy_loss(facts: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    given, unit = facts["deployment"], facts["unit"]
    parameters: dict[str, float] = {"epsilon": float(write_epsilon(facts["epsilon"]))}
    if facts["delta"]:
        parameters["delta"] = facts["delta"]
    details = [words["variant"], "Epsilon is in nats, and rounded up."]
    rho = facts["facts"]["rho"]
    if rho is not None:
        parameters["rho"] = six_digits(rho, np.ceil)
    if "mu" in words:
        details.append(words["mu"])
    guesses = facts["promise"]["guesses"]
    details.append(
        "Guesses which of two neighbouring data sets was used are right in at most "
        f"{guesses['right_at_most']} of {guesses['of']} cases."
    )
    metrics = facts["metrics"]
    if metrics is not None:
        costs = [
            f"epsilon={epsilon_text(one)} and delta={number_text(one['delta'])}"
            for one in (metrics, metrics["total"])
        ]
        details.append(
            f"Metrics were released in addition, with {costs[0]}; model and metrics "
            f"together have {costs[1]}, which bounds these guesses."
        )
    name = given.get("unit_name")
    loss = {
        "privacy_unit": unit if name is None else f"{name} (one {unit})",
        "privacy_unit_details": f"Neighbouring data sets: {facts['neighbours']}. "
        f"Protected: {facts['facts']['protected']}.",
        "privacy_parameters": parameters,
        "privacy_parameters_details": " ".join(details),
    }
    if "n_units" in given:
        loss["number_of_privacy_units"] = given["n_units"]
    return loss


def _implementation(facts: dict[str, Any], words: dict[str, str]) -> dict[str, str]:
    given, quality = facts["deployment"], facts["quality"]
    versions = ", ".join(f"{one} {two}" for one, two in facts["versions"].items())
    security = given.get("data_security", f"{TO_FILL_IN}.")
    written = {
        "preprocessing_and_hyperparameter_tuning": " ".join(
            filter(None, (words["tuning"], given.get("tuning")))
        ),
        "mechanisms": f"{facts['mechanism']}. {words['arithmetic']} "
        f"{words['randomness']} {words['timing']} Security of the data: {security} "
        f"Software: {versions}.",
        "composition": words["composition"],
        "post_processing": words["post_processing"],
        "justification": given.get(
            "epsilon_justification",
            f"{TO_FILL_IN}: {QUESTIONS['epsilon_justification'][1]}",
        ),
    }
    utility = []
    if quality is not None:
        figures = ", ".join(
            f"{name} {figure_text(value)}" for name, value in quality["figures"].items()
        )
        utility.append(f"{figures}, on {quality['evaluated_on']}")
    if facts["metrics"] is not None:
        named = named_estimates(facts["metrics"]["figures"])
        figures = ", ".join(
            f"{name} {estimate_text(one)}" for name, one in named.items()
        )
        utility.append(f"On private rows, with 95 % intervals: {figures}.")
    if utility:
        written["utility"] = " ".join(utility)
    more = [f"Audit: {one}." for one in given.get("audits", [])]
    more.append(_listed(given, _OTHERS))
    if any(more):
        written["additional_information"] = " ".join(filter(None, more))
    return written


def _listed(given: dict[str, Any], headings: dict[str, str]) -> str:
    return " ".join(
        f"{heading}: {given[name]}."
        for name, heading in headings.items()
        if name in given
    )


def _joined(sentences: Iterable[str]) -> str:
    return " ".join(one[0].upper() + one[1:] for one in sentences)
