"""Private metrics as plain values, from which their statement follows."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from sklearn_pate._inputs._labels import plain_label
from sklearn_pate.accounting._assumptions import ASSUMPTIONS, SEEDED, Assumption
from sklearn_pate.accounting._cost import Cost
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import PrivacySpent, state_cost
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts, TwoPartRelease

# Lists of an array for each scored class.
_OF_CLASSES = {
    "histograms": np.int64,
    "edges": np.float64,
    "middles": np.float64,
    "middle_errors": np.float64,
}
_FORMAT = {"format": "sklearn_pate metrics", "format_version": 3}
#: Public name of the subgroup of all values that were not declared.
OTHER = "other or missing"
# Most cells of a subgroup, whose simulation takes memory, and of all subgroups.
_MOST_CELLS, _MOST_IN_ALL = 2**13, 2**18
# Difference of figures that random numbers of another version explain: five standard
# deviations of the ends of an interval are a tenth of its width, and the rounding.
_OF_WIDTH, _OF_ROUNDING = 0.1, 1e-3
# Relative difference of epsilon that the rounding of another platform explains.
_OF_EPSILON = 1e-9


def metrics_statement(
    both: TwoPartRelease, cost: Cost, delta: float, assumptions: tuple[Assumption, ...]
) -> PrivacySpent:
    """State the cost of both parts of a measurement."""
    first, second = both.parts
    return state_cost(
        cost,
        delta,
        release="metrics",
        mechanism=both.in_one_line(),
        assumptions=assumptions,
        n_tables=first.n_tables + second.n_tables,
    )


def values_of(metrics: Any) -> dict[str, Any]:
    """Write private metrics as values for strict JSON."""
    spent = metrics.privacy_spent_
    if math.isinf(spent.epsilon):
        raise ValueError(
            "These metrics have no privacy guarantee, as their noise was seeded, and "
            "cannot be written; measure again without a seed of the noise."
        )
    of_subgroups = metrics.by_subgroup.values() if len(metrics.subgroups_) > 1 else ()
    return _FORMAT | {
        "statement": spent.in_one_line(),
        "figures": figures_of(metrics),
        "subgroups": [
            None if one is None else plain_label(one) for one in metrics.subgroups_
        ],
        "by_subgroup": [figures_of(one) for one in of_subgroups],
        **{
            name: getattr(spent, name)
            for name in ("epsilon", "delta", "unit", "relation", "n_tables")
        },
        "assumptions": [
            {"code": one.code, "sentence": one.sentence} for one in spent.assumptions
        ],
        "model_fingerprint": metrics.model_fingerprint_,
        "n_rows": metrics.n_rows_,
        "noise_scales": [*metrics.noise_scales_],
        "classes": [plain_label(one) for one in metrics.classes_.tolist()],
        "confusion": metrics.confusion_.tolist(),
        **{
            name: [one.tolist() for one in getattr(metrics, f"{name}_")]
            for name in _OF_CLASSES
        },
    }


def figures_of(estimates: Mapping[Any, Any]) -> dict[str, Any]:
    """Write estimates by name, and by class below the name."""
    figures: dict[str, Any] = {}
    for name, one in estimates.items():
        plain = {
            part: None if math.isnan(number) else round(number, 6)
            for part, number in one._asdict().items()
        }
        if isinstance(name, str):
            figures[name] = plain
        else:
            figures.setdefault(name[0], {})[str(plain_label(name[1]))] = plain
    return figures


def fields_of(values: dict[str, Any]) -> dict[str, Any]:
    """Read the fields of private metrics from values, which may be forged.

    `check_values` checks the types, by a comparison with the values of these fields.
    """
    classes, subgroups = values["classes"], values["subgroups"]
    of_classes = {
        f"{name}_": [np.array(one, dtype=kind) for one in values[name]]
        for name, kind in _OF_CLASSES.items()
    }
    histograms, edges, middles, middle_errors = of_classes.values()
    n_classes, n_subgroups = len(classes), len(subgroups)
    n_cells = n_classes**2 + 1 + sum(2 * one.size + 2 for one in edges)
    if n_cells > _MOST_CELLS or n_subgroups * n_cells > _MOST_IN_ALL:
        raise ValueError(f"they have too many counts: {n_subgroups * n_cells}")
    confusion = np.array(values["confusion"], dtype=np.int64)
    n_scored = 1 if n_classes == 2 else n_classes
    shapes = [(one.size + 1,) for one in edges]
    if (
        n_classes < 2
        or len({*classes}) < n_classes
        or len({*subgroups}) < max(n_subgroups, 1)
        or (subgroups != [None] and subgroups[-1] != OTHER)
        or not all(str(one).isprintable() for one in (*classes, *subgroups))
        or len(edges) != n_scored
        or [one.shape for one in middles] != shapes
        or [one.shape for one in middle_errors] != shapes
        or confusion.shape != (n_subgroups, n_classes**2 + 1)
        or [one.shape for one in histograms]
        != [(n_subgroups, *one, 2) for one in shapes]
        or any(np.any(np.diff(one, prepend=0.0, append=1.0) <= 0) for one in edges)
        or any(np.any((one < 0) | (one > 1)) for one in (*middles, *middle_errors))
        or values["unit"] != ("row" if values["n_rows"] is not None else "group")
        or values["n_tables"] != 1 + 2 * n_scored
        or not re.fullmatch("[0-9a-f]{64}", values["model_fingerprint"])
    ):
        raise ValueError(
            "their counts, bins, classes, model or unit do not fit together"
        )
    first, second = values["noise_scales"]
    both = TwoPartRelease(
        MarginalCounts(first, n_tables=values["n_tables"] - n_scored),
        MarginalCounts(second, n_tables=n_scored),
    )
    both._check_ready()
    check_delta(values["delta"])
    assumptions = tuple(ASSUMPTIONS[one["code"]] for one in values["assumptions"])
    if SEEDED in assumptions:
        raise ValueError("their noise was seeded")
    cost = both.cost(unit=values["unit"])
    return {
        "classes_": np.array(classes),
        "subgroups_": subgroups,
        "confusion_": confusion,
        **of_classes,
        "noise_scales_": (first, second),
        "n_rows_": values["n_rows"],
        "privacy_spent_": metrics_statement(both, cost, values["delta"], assumptions),
        "model_fingerprint_": values["model_fingerprint"],
    }


def check_values(stated: dict[str, Any], derived: dict[str, Any]) -> None:
    """Raise ValueError unless values are those that follow from their fields."""
    if math.isclose(stated["epsilon"], derived["epsilon"], rel_tol=_OF_EPSILON):
        derived = derived | {"epsilon": stated["epsilon"]}
    for name in sorted(stated.keys() | derived.keys()):
        if not _agree(stated.get(name), derived.get(name)):
            raise ValueError(f"their {name} does not match their other fields")


def _agree(stated: Any, derived: Any) -> bool:
    """Compare values, which are equal but for the random numbers of an interval."""
    if isinstance(derived, dict) and isinstance(stated, dict):
        if stated.keys() != derived.keys():
            return False
        if derived.keys() == {"value", "low", "high"} and None not in derived.values():
            most = _OF_ROUNDING + _OF_WIDTH * (derived["high"] - derived["low"])
            return all(abs(stated[name] - derived[name]) <= most for name in derived)
        return all(_agree(stated[name], derived[name]) for name in derived)
    if isinstance(derived, list) and derived and isinstance(derived[0], dict):
        pairs = zip(stated, derived, strict=False)
        return len(stated) == len(derived) and all(_agree(*pair) for pair in pairs)
    return json.dumps(stated) == json.dumps(derived)
