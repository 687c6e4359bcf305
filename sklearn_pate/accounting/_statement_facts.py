"""Facts that follow from a privacy statement, as codes and as sentences."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from sklearn_pate.accounting._assumptions import (
    BOUNDS,
    CHOSEN_BLINDLY,
    COLUMNS,
    DOMAIN_DECLARED,
    FLOATING_POINT,
    HELD_OUT_ROWS,
    LABEL_SET,
    LABEL_SET_READ,
    N_FITTED,
    N_ROWS,
    N_ROWS_PUBLIC,
    PUBLIC_ROWS,
    PUBLIC_ROWS_IN_MODEL,
    ROW_BY_ROW,
    SEEDED,
    Assumption,
)
from sklearn_pate.accounting._calibrate import six_digits

if TYPE_CHECKING:
    from sklearn_pate.accounting._statement import PrivacySpent

__all__ = ["HEADINGS", "StatementFacts", "facts_of", "kind_of", "sentences_of"]

#: Content that the guarantee hides, by unit of privacy and relation.
PROTECTED = {
    ("row", "replace-one"): "content of one row",
    ("group", "add-remove-or-change"): "presence and content of one group",
    ("party", "replace-one"): "all votes of one party and all they were made from",
    ("row", "add-remove"): "presence of one row, with its content",
    ("group", "add-remove"): "presence of one group, with all its rows",
}
_NUMBER = {"row": "number of rows", "party": "number of parties"}
#: Quantities that are not protected, by the assumption that it is public.
UNPROTECTED: dict[Assumption, str] = {
    LABEL_SET: "set of labels",
    LABEL_SET_READ: "set of labels",
    COLUMNS: "columns, their types and categories",
    DOMAIN_DECLARED: "declared values and ranges of the columns",
    BOUNDS: "declared bounds",
    PUBLIC_ROWS: "public rows",
    HELD_OUT_ROWS: "rows held out as public rows",
    PUBLIC_ROWS_IN_MODEL: "public rows that the model holds",
    N_ROWS_PUBLIC: _NUMBER["row"],
    N_ROWS: _NUMBER["row"],
    N_FITTED: _NUMBER["row"],
    CHOSEN_BLINDLY: "parameters of the fit",
}
_POST_PROCESSING = {
    "scores": "function",
    "newton": "predictions",
    "counts": "counts",
    "learner": "predictions",
    "search": "predictions",
}
_COMPOSITION = {
    "neighbours": "sampled",
    "search": "search",
    "learner": "unknown",
}

#: Headings of the facts.
HEADINGS = {
    "variant": "Variant",
    "mu": "mu",
    "rho": "rho",
    "protected": "Protected",
    "unprotected": "Not protected",
    "release_type": "Releases",
    "data_source": "Data",
    "access": "Access",
    "trust_model": "Trust",
    "tuning": "Choice of parameters",
    "composition": "Composition",
    "post_processing": "Post-processing",
    "arithmetic": "Arithmetic of the noise",
    "randomness": "Randomness",
    "timing": "Timing",
}
_WITH_VALUE = {
    "mu": "Gaussian differential privacy with mu={}.",
    "rho": "Zero-concentrated differential privacy with rho={}.",
    "protected": "{}.",
    "unprotected": "{}.",
}
# Sentences of the codes. Cards contain the codes alone.
_SENTENCES = {
    "variant": {
        "pure": "Pure: delta is 0.",
        "approximate": "Approximate: epsilon leaves a probability of delta uncovered.",
        "none": "No guarantee.",
    },
    "release_type": {
        "one": "One release. Each further release about the same data adds to its cost."
    },
    "data_source": {"static": "Static: one fixed set of private rows."},
    "access": {
        "non-interactive": "Non-interactive: users have the model, and no access to "
        "private rows."
    },
    "trust_model": {
        "central": "Central: the data holder has the raw data, adds the noise, and is "
        "trusted with both.",
        "collector": "Central: each party keeps its raw data. A collector, who is "
        "trusted with all votes, adds the noise.",
    },
    "tuning": {
        "blind": "Assumed to be made without private data. The cost of any other "
        "tuning is not included.",
        "paid": "By the private search, whose cost is included. Choices around it are "
        "not.",
        "unknown": "Not stated.",
    },
    "composition": {
        "gaussian": "All noise is Gaussian. The whole fit is one test of N(0, 1) "
        "against N(mu, 1); squares of mu of its steps add up.",
        "renyi": "Renyi costs of all answers add up, also if queries follow from "
        "earlier answers; the exact cost is stated where it is known and smaller.",
        "sampled": "Renyi costs of all answers add up, each about a secret sample of "
        "the rows.",
        "steps": "Costs of all steps, each on a secret sample of the rows, are "
        "composed by their privacy losses or Renyi costs.",
        "parts": "Costs of all parts of the training add up.",
        "search": "Cost of the whole search: all of its fits, their scores and the "
        "choice.",
        "unknown": "Not stated.",
    },
    "post_processing": {
        "student": "The student is trained on released results and public rows alone. "
        "Its training and its predictions have no further cost.",
        "function": "The model is the released function, or is trained on it and on "
        "public rows. Its predictions have no further cost.",
        "counts": "The model is computed from the released counts. Its predictions "
        "have no further cost.",
        "predictions": "Predictions of the released model have no further cost.",
    },
    "arithmetic": {
        "whole-numbers": "Noise is drawn in whole numbers, with exactly the "
        "distribution that the cost is computed for. A mechanism of another package "
        "needs a check of its own.",
        "floating-point": "Noise is drawn in floating point, and results are rounded "
        "far above the last bits. That these reveal nothing is assumed.",
        "unknown": "Not stated.",
    },
    "randomness": {
        "operating-system": "All noise comes from the random numbers of the operating "
        "system, and not from random_state.",
        "seeded": "The noise was seeded: there is no guarantee.",
        "unknown": "Not stated.",
    },
    "timing": {
        "variable": "Run time is not made constant and may depend on private rows: "
        "publish no durations."
    },
}


@dataclass(frozen=True)
class StatementFacts:
    """Facts that follow from the fields of a privacy statement. May be published.

    Created by :attr:`PrivacySpent.facts
    <sklearn_pate.PrivacySpent.facts>`. Each code has one sentence, see `sentences`.

    Parameters
    ----------
    variant : {"pure", "approximate", "none"}
        "pure" if delta is 0, "none" if epsilon is infinite.

    mu : float or None
        The fit is mu-Gaussian differentially private; None if no mu is proved.

    rho : float or None
        The fit is rho-zero-concentrated differentially private; None if no rho is
        proved.

    protected : str
        Content that the guarantee hides. Empty without a guarantee.

    unprotected : tuple of str
        Quantities that may be read from the results: they are public by assumption or
        by the neighbour relation.

    count_is_public : bool
        Whether the number of units is among them.

    release_type : {"one"}
        One release about the private data.

    data_source : {"static"}
        The private rows do not change during the release.

    access : {"non-interactive"}
        Users of the model do not query private rows.

    trust_model : {"central", "collector"}
        Holder of the raw data, who adds the noise: one data holder, or a collector of
        the votes of parties, who keep their raw data.

    tuning : {"blind", "paid", "unknown"}
        Parameters are assumed to be chosen without private data, or were chosen by a
        search that the cost includes.

    composition : {"gaussian", "renyi", "sampled", "steps", "parts", "search", \
"unknown"}
        Method by which the costs of all steps are combined.

    post_processing : {"student", "function", "counts", "predictions"}
        Computations on the released results, which have no privacy cost.

    arithmetic : {"whole-numbers", "floating-point", "unknown"}
        Numbers in which noise is drawn.

    randomness : {"operating-system", "seeded", "unknown"}
        Source of the noise.

    timing : {"variable"}
        Run time is not protected.

    Notes
    -----
    A Gaussian test with mu has the Renyi divergence alpha mu^2 / 2 at each order alpha,
    so that rho = mu^2 / 2. A pure epsilon implies rho = epsilon^2 / 2 (Bun, Steinke
    2016, "Concentrated differential privacy: simplifications, extensions, and lower
    bounds", Proposition 1.4 and Lemma 2.4).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_pate.baselines import DPLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DPLogisticRegression(feature_bounds=(0, 10), classes=[0, 1, 2])
    >>> facts = clf.fit(X, y).privacy_spent_.facts
    >>> facts.variant, facts.rho, facts.protected
    ('pure', 0.5, 'content of one row')
    >>> print(facts.sentences()["trust_model"])
    Central: the data holder has the raw data, adds the noise, and is trusted with both.
    """

    variant: str
    mu: float | None
    rho: float | None
    protected: str
    unprotected: tuple[str, ...]
    count_is_public: bool
    release_type: str
    data_source: str
    access: str
    trust_model: str
    tuning: str
    composition: str
    post_processing: str
    arithmetic: str
    randomness: str
    timing: str

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain values.

        Returns
        -------
        facts : dict
            Every field, for strict JSON.
        """
        return asdict(self) | {"unprotected": [*self.unprotected]}

    def sentences(self) -> dict[str, str]:
        """Write the facts in words.

        Returns
        -------
        sentences : dict
            A sentence or number for each field that has one.
        """
        return sentences_of(self.to_dict())


def facts_of(spent: "PrivacySpent") -> StatementFacts:
    """Derive the facts from the fields of a statement."""
    codes = {one.code for one in spent.assumptions}
    kind, private = kind_of(spent), not isinf(spent.epsilon)
    pure_epsilon = spent.profile.epsilon_at(0.0)
    number = _NUMBER.get(spent.unit) if spent.relation == "replace-one" else None
    unprotected = [number] if number else []
    unprotected += [text for one, text in UNPROTECTED.items() if one.code in codes]
    with_guarantee = "approximate" if spent.delta else "pure"
    rho = None if isinf(pure_epsilon) else pure_epsilon**2 / 2
    if spent.mu is not None:
        rho = spent.mu**2 / 2
    is_known = kind != "learner" or FLOATING_POINT.code in codes
    randomness = "operating-system" if is_known else "unknown"
    arithmetic = "whole-numbers" if is_known else "unknown"
    tuning = "blind" if CHOSEN_BLINDLY.code in codes else "unknown"
    return StatementFacts(
        variant=with_guarantee if private else "none",
        mu=spent.mu,
        rho=rho,
        protected=PROTECTED[spent.unit, spent.relation] if private else "",
        unprotected=tuple(dict.fromkeys(unprotected)),
        count_is_public=_NUMBER.get(spent.unit) in unprotected,
        release_type="one",
        data_source="static",
        access="non-interactive",
        trust_model="collector" if spent.unit == "party" else "central",
        tuning="paid" if kind == "search" else tuning,
        composition=_composition_of(spent, kind, codes),
        post_processing=_POST_PROCESSING.get(kind, "student"),
        arithmetic=("floating-point" if FLOATING_POINT.code in codes else arithmetic),
        randomness="seeded" if SEEDED.code in codes else randomness,
        timing="variable",
    )


def kind_of(spent: "PrivacySpent") -> str:
    """Read the kind of the data flow from a statement, for published models too."""
    if spent.release != "answers":
        return {
            "scores": "scores",
            "newton": "newton",
            "sum": "sums",
            "model": "counts" if DOMAIN_DECLARED in spent.assumptions else "learner",
            "search": "search",
        }[spent.release]
    if spent.relation == "add-remove":
        return "neighbours"
    return "parties" if spent.unit == "party" else "teachers"


def sentences_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """Write the facts of a dictionary in words, in the order of HEADINGS."""
    found = {}
    for name in HEADINGS:
        value = facts[name]
        if name in _SENTENCES:
            found[name] = _SENTENCES[name][value]
        elif value:
            if isinstance(value, float):
                value = f"{six_digits(value, np.ceil):g}"
            text = ", ".join(value) if isinstance(value, (list, tuple)) else value
            found[name] = _WITH_VALUE[name].format(text)
    return {name: text[0].upper() + text[1:] for name, text in found.items()}


def _composition_of(spent: "PrivacySpent", kind: str, codes: set[str]) -> str:
    if spent.mu is not None:
        return "gaussian"
    if ROW_BY_ROW.code in codes and kind == "learner":
        return "steps"
    if FLOATING_POINT.code in codes and kind == "learner":
        return "parts"
    return _COMPOSITION.get(kind, "renyi")
