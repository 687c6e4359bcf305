"""What a privacy report says, as plain values that its formats render."""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._estimators._class_codes import ContiguousClasses
from sklearn_pate.accounting._assumptions import FROZEN_IS_PUBLIC, QUALITY_ROWS_PUBLIC
from sklearn_pate.accounting._statement import NEIGHBOURS, PrivacySpent, plans_privacy
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.accounting.ledger._spending_report import read_entries
from sklearn_pate.inspection._leaks import leaks_of_steps
from sklearn_pate.inspection.privacy_report._attack_bounds import (
    THOUSAND,
    detections_at_most,
    guesses_at_most,
    of_many,
    of_several,
    round_up,
    wrong_once_in,
)
from sklearn_pate.inspection.privacy_report._published_facts import (
    has_card,
    name_file,
)
from sklearn_pate.publication._mechanism_fields import without_seeds
from sklearn_pate.publication._privacy_card import versions_of

__all__ = ["FORMAT", "FORMAT_VERSION", "collect_facts"]

FORMAT = "sklearn_pate privacy report"
FORMAT_VERSION = 2

FALSE_ALARMS = (1, 10, 50, 100)  # of a thousand
SEVERAL = (1, 2, 3, 5, 10)
DELTAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
# A promise under which fewer than one guess of a hundred need be wrong is weak.
_STRONG = 990
_FINGERPRINT = 12  # letters, as the ledger's own report shows

ASKING = ("teachers", "parties", "neighbours")

QUALITY_IS_PRIVATE = "it has figures that were computed on private rows"
LEDGER_IS_PRIVATE = "it has the history of the ledger"


def collect_facts(
    clf: Any,
    *,
    title: str | None,
    quality: Any,
    evaluated_on: str | None,
    quality_is_public: bool | None,
    ledger: PrivacyLedger | None,
    model_file: Any,
) -> dict[str, Any]:
    """Collect everything that a report says.

    Parameters
    ----------
    clf, title, quality, evaluated_on, quality_is_public, ledger, model_file : object
        As :meth:`PrivacyReport.from_estimator` takes them.

    Returns
    -------
    facts : dict
        Values that strict JSON can hold. Numbers that stand for a promise are rounded
        up.

    Raises
    ------
    ValueError
        If `clf` has no statement, or another argument cannot work.

    NotFittedError
        If `clf` is not fitted.
    """
    learner, steps = _unwrapped(clf)
    spent = _statement_of(learner, clf)
    title = "Privacy report" if title is None else _check_text("title", title)
    figures = _quality(quality, evaluated_on, quality_is_public)
    account = _account(ledger, spent)
    leaks = [
        {"name": leak.name, "estimator": leak.estimator, "what": str(leak)}
        for leak in leaks_of_steps(steps, learner)
    ]
    internal_because = []
    if figures is not None and not figures["public"]:
        internal_because.append(QUALITY_IS_PRIVATE)
    if account is not None:
        internal_because.append(LEDGER_IS_PRIVATE)
    has_guarantee = bool(np.isfinite(spent.epsilon))
    private = has_guarantee and not leaks
    kind = _kind_of(spent)
    model = _model_of(learner)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "title": title,
        "date": datetime.now(UTC).date().isoformat(),
        "internal": bool(internal_because),
        "internal_because": internal_because,
        "private": private,
        "statement": str(spent),
        "epsilon": float(spent.epsilon) if has_guarantee else None,
        "delta": float(spent.delta),
        "unit": spent.unit,
        "relation": spent.relation,
        "release": spent.release,
        "neighbours": spent.neighbours,
        "kind": kind,
        "mechanism": spent.mechanism,
        "n_teachers": None if spent.n_teachers is None else int(spent.n_teachers),
        "n_queries": None if spent.n_queries is None else int(spent.n_queries),
        "promise": _promise(spent.epsilon, spent.delta) if private else None,
        "costs": _costs(spent, kind) if private else None,
        "not_covered": leaks,
        "assumptions": [asdict(one) for one in _assumptions(spent, steps, figures)],
        # Nobody fitted a PublishedClassifier, and its card does not say what was.
        "classifier": None if has_card(learner) else type(learner).__name__,
        "model": _name_of(model),
        "model_file": None if model_file is None else name_file(learner, model_file),
        "published": learner.card.get("date") if has_card(learner) else None,
        "n_classes": len(learner.classes_),
        "n_features": int(learner.n_features_in_),
        "quality": figures,
        "ledger": account,
        "versions": _versions(learner, model),
    }


def _unwrapped(clf):
    """Return the private classifier, and the steps of pipelines in front of it."""
    steps, prefix = [], ""
    while True:
        if isinstance(clf, Pipeline):
            *front, (name, clf) = clf.steps
            steps += [(f"{prefix}{one}", step) for one, step in front]
            prefix += f"{name}__"
        elif isinstance(clf, FrozenEstimator):
            clf = clf.estimator
        else:
            return clf, steps


def _statement_of(learner, clf):
    if plans_privacy(learner) or has_card(learner):
        check_is_fitted(learner, "privacy_spent_")
    spent = getattr(learner, "privacy_spent_", None)
    if not isinstance(spent, PrivacySpent):
        raise ValueError(
            f"clf is a {type(clf).__name__} without a privacy statement "
            "(privacy_spent_); pass a fitted private classifier, such as "
            "PATEClassifier, or a Pipeline that ends in one."
        )
    return replace(spent, mechanism=without_seeds(spent.mechanism))


def _check_text(name, text):
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{name}={text!r} must be a text of at least one letter.")
    return " ".join(text.split())


def _quality(quality, evaluated_on, is_public):
    if quality is None:
        for name, value in (
            ("evaluated_on", evaluated_on),
            ("quality_is_public", is_public),
        ):
            if value is not None:
                raise ValueError(
                    f"{name}={value!r} is about figures, and there are none; "
                    "pass quality, such as {'accuracy': 0.84}, too."
                )
        return None
    if not isinstance(quality, dict) or not quality:
        raise ValueError(
            f"quality={quality!r} must be a dict of names and numbers, such as "
            "{'accuracy': 0.84}."
        )
    for name, value in quality.items():
        _check_text("a name in quality", name)
        is_number = isinstance(value, (Real, np.number)) and not isinstance(value, bool)
        if not is_number or not np.isfinite(value):
            raise ValueError(f"quality[{name!r}]={value!r} must be a finite number.")
    if evaluated_on is None:
        raise ValueError(
            "quality needs evaluated_on, one sentence that says which rows the figures "
            "were computed on."
        )
    if not isinstance(is_public, (bool, np.bool_)):
        raise ValueError(
            f"quality_is_public={is_public!r} must be True, if every row that the "
            "figures were computed on is public, labels included, or False: no privacy "
            "statement covers figures computed on private rows."
        )
    return {
        "figures": {
            " ".join(name.split()): float(value) for name, value in quality.items()
        },
        "evaluated_on": _check_text("evaluated_on", evaluated_on),
        "public": bool(is_public),
    }


def _account(ledger, spent):
    if ledger is None:
        return None
    if not isinstance(ledger, PrivacyLedger):
        raise ValueError(
            f"ledger={ledger!r} must be a PrivacyLedger, whose history is to be on the "
            "page."
        )
    with ledger.reading() as file:
        unit, relation, created = file.execute(
            "SELECT unit, relation, created FROM budget"
        ).fetchone()
        charges = read_entries(file, ledger.filter)
        share = ledger.spent
    if unit is not None and (unit, relation) != (spent.unit, spent.relation):
        raise ValueError(
            f"ledger protects unit={unit!r} with relation={relation!r}, and this fit "
            f"unit={spent.unit!r} with relation={spent.relation!r}: the fit cannot be "
            "among its charges; pass the ledger that it was charged to."
        )
    return {
        "epsilon": float(ledger.epsilon),
        "delta": float(ledger.delta),
        "unit": unit,
        "relation": relation,
        "neighbours": NEIGHBOURS.get((unit, relation)),
        "created": created,
        "spent": round_up(share, 4),
        "guesses": _guesses(ledger.epsilon, ledger.delta),
        "charges": [
            {
                "number": charge.number,
                "time": charge.time,
                "who": charge.who,
                "what": charge.description,
                "dataset": charge.dataset[:_FINGERPRINT],
                "fit": charge.fit[:_FINGERPRINT],
                "epsilon": round_up(charge.epsilon, 3),
                "delta": charge.delta,
                "share": round_up(charge.share, 4),
            }
            for charge in charges
        ],
    }


def _promise(epsilon, delta):
    several = []
    for n_units in SEVERAL:
        weaker = of_several(epsilon, delta, n_units)
        several.append(
            {
                "units": n_units,
                "epsilon": round_up(weaker[0], 3),
                "delta": _two_digits_up(weaker[1]),
                "guesses": _guesses(*weaker),
            }
        )
    guesses = _guesses(epsilon, delta)
    return {
        "guesses": guesses,
        "wrong_once_in": wrong_once_in(epsilon, delta),
        "weak": guesses["right_at_most"] > _STRONG,
        "detections": [
            {
                "false_alarms": alarms,
                "detected_at_most": of_many(
                    detections_at_most(epsilon, delta, Decimal(alarms) / THOUSAND),
                    THOUSAND,
                ),
                "of": THOUSAND,
            }
            for alarms in FALSE_ALARMS
        ],
        "several": several,
    }


def _guesses(epsilon, delta):
    right = of_many(guesses_at_most(epsilon, delta), THOUSAND)
    return {"right_at_most": right, "by_chance": THOUSAND // 2, "of": THOUSAND}


def _two_digits_up(delta):
    """Round a delta up to two digits; one that has no more stays as it is."""
    if delta == 0:
        return 0.0
    places = 1 - Decimal(f"{delta:.1e}").adjusted()
    return min(round_up(Decimal(repr(float(delta))), places), 1.0)


def _costs(spent, kind):
    """Compute the cost of the fit at several deltas, one query, and two such fits."""
    delta, curve = float(spent.delta), spent.curve

    def cost(at, n_fits=1):
        costs = [(curve * n_fits).quiet_epsilon(at)] if at > 0 else []
        # What holds at a delta holds at every larger one, and k fits cost k times that.
        if n_fits * delta <= at:
            costs.append(n_fits * spent.epsilon)
        return round_up(min(costs), 3)

    deltas = sorted({*DELTAS, delta}, reverse=True)
    of_curve = round_up(curve.quiet_epsilon(delta), 3) if delta else None
    stated = cost(delta)
    one = None
    if kind in ASKING:
        at = delta or DELTAS[1]
        share = (curve * (1 / spent.n_queries)).quiet_epsilon(at)
        one = {"epsilon": round_up(share, 3), "delta": at}
    return {
        "at": [
            {"delta": at, "epsilon": cost(at), "stated": at == delta} for at in deltas
        ],
        "beside_the_curve": of_curve is not None and stated < of_curve,
        "one_question": one,
        "two_fits": {"epsilon": cost(delta, 2), "delta": delta},
    }


def _assumptions(spent, steps, figures):
    assumptions = list(spent.assumptions)
    frozen = any(
        isinstance(part, FrozenEstimator)
        for _, step in steps
        if hasattr(step, "get_params")
        for part in (step, *step.get_params().values())
    )
    if frozen:
        assumptions.append(FROZEN_IS_PUBLIC)
    if figures is not None and figures["public"]:
        assumptions.append(QUALITY_ROWS_PUBLIC)
    return list(dict.fromkeys(assumptions))


def _kind_of(spent):
    """Tell what was fitted, from its statement: a published one has nothing else."""
    if spent.release != "answers":
        return {"sum": "sums", "model": "learner", "search": "search"}[spent.release]
    if spent.relation == "add-remove":
        return "neighbours"
    return "parties" if spent.unit == "party" else "teachers"


def _model_of(learner):
    """Return what predicts, out of whatever holds it."""
    for name in ("best_estimator_", "student_", "network_"):
        if hasattr(learner, name):
            return _model_of(getattr(learner, name))
    if isinstance(learner, ContiguousClasses):
        return _model_of(learner.estimator)
    return learner


def _name_of(model):
    if isinstance(model, Pipeline):
        names = ", ".join(_name_of(_model_of(step)) for _, step in model.steps)
        return f"Pipeline({names})"
    return type(model).__name__


def _versions(learner, model):
    return learner.card["versions"] if has_card(learner) else versions_of(model)
