"""Record of a report for the registry of differential privacy deployments."""

import json
import re
from string import Formatter
from typing import Any

import numpy as np

from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting._statement import sentences_of, write_epsilon
from sklearn_pate.accounting._value_checks import capitalised, counted, read_table
from sklearn_pate.inspection.report._blocks import QUESTIONS
from sklearn_pate.inspection.report._sections import (
    conclusion_of,
    epsilon_text,
    estimate_text,
    figure_text,
    named_estimates,
    number_text,
)

_TABLE = read_table("sklearn_pate.inspection.report", "registry.toml")
#: Fields of a Deployment that the registry requires.
REQUIRED: list[str] = _TABLE["required"]
TO_FILL_IN = "TO FILL IN"
# A number with an exponent, and no point, that is the value of a name.
_WITHOUT_POINT = re.compile(r'(?m)(\s*"\w+": \d+)(?=e-?\d+,?$)')


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
