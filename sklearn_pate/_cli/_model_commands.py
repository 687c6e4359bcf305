"""Commands ``plan``, ``measure``, ``report``, ``add`` and ``ledger``."""

import argparse
import json
import textwrap
import zipfile
from collections.abc import Sequence
from dataclasses import fields
from functools import reduce
from io import BytesIO
from operator import add
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_pate._cli._options import (
    TABLE,
    check_is_file,
    check_own_files,
    chosen_mechanism,
    open_ledger,
    plain_warnings,
)
from sklearn_pate._cli._tables import (
    check_labels,
    labels_like,
    named_columns,
    read_rows,
    subgroups_like,
)
from sklearn_pate._inputs._file_content import check_can_write, strict_json
from sklearn_pate._pate import PATEClassifier
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate.accounting._profile import compose_profiles
from sklearn_pate.accounting._statement import PrivacySpent, write_epsilon
from sklearn_pate.accounting._value_checks import (
    WIDTH,
    capitalised,
    counted,
    fact_lines,
    printable,
)
from sklearn_pate.inspection import PrivacyReport, plan
from sklearn_pate.learners import DPNewtonClassifier
from sklearn_pate.metrics import PrivateMetrics, private_metrics
from sklearn_pate.publication import Deployment, PublishedClassifier
from sklearn_pate.publication._model_file import (
    LARGEST_CARD,
    paths_of,
    read_file,
    read_index,
    read_pair,
)
from sklearn_pate.publication._privacy_card import (
    check_card,
    checked_statements,
    parse_card,
)
from sklearn_pate.publication._published import WRAPPERS
from sklearn_pate.students import GraphSelfTrainingClassifier


def run_plan(given: argparse.Namespace) -> None:
    """Print a plan."""
    prior = given.class_prior
    budget: dict[str, Any] = {
        "epsilon": given.epsilon,
        "delta": given.delta,
        "privacy_unit": given.unit,
    }
    if given.domain is not None:
        domain = _read_json("domain", given.domain)
        budget["synthetic"] = PrivateMarginals(domain, share=given.share)
    learner: PATEClassifier | DPNewtonClassifier
    n_rows = given.rows
    if given.learner == "newton":
        _check_newton(given)
        learner = DPNewtonClassifier(**budget)
        if given.unit == "group":
            learner, n_rows = learner.set_params(n_groups=n_rows), None
    else:
        few_answers = given.student == "semi-supervised"
        learner = PATEClassifier(
            student=GraphSelfTrainingClassifier() if few_answers else None,
            n_teachers=given.teachers,
            n_queries=given.queries,
            mechanism=chosen_mechanism(given),
            **budget,
        )
    planned = plan(
        learner,
        n_rows=n_rows,
        n_classes=given.classes,
        class_prior=prior[0] if prior and len(prior) == 1 else prior,
        margins=given.margins,
    )
    print(json.dumps(planned.to_dict(), indent=2) if given.json else planned)


def _check_newton(given: argparse.Namespace) -> None:
    """Raise for options that DPNewtonClassifier does not have, or needs."""
    for name in TABLE["command"]["plan"]["of_pate"]:
        if getattr(given, name) != given.parser.get_default(name):
            raise ValueError(
                f"learner='newton' does not use --{name.replace('_', '-')}; leave it "
                "out."
            )
    if given.rows is None:
        raise ValueError(
            "learner='newton' needs the number of rows or groups; pass --rows."
        )


def _read_json(name: str, path: str) -> Any:
    """Read the file that an option names as strict JSON."""
    check_is_file(name, path)
    try:
        return strict_json(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(
            f"{name}={path!r} cannot be read: {error}; correct the file."
        ) from None


def run_measure(given: argparse.Namespace) -> None:
    """Measure a published model on private rows, and print or write the metrics."""
    if given.output is not None:
        check_own_files(
            [given.output], [*paths_of(given.model), given.rows, given.ledger]
        )
        check_can_write([given.output], overwrite=given.overwrite)
    model = PublishedClassifier.load(given.model, trusted=given.trust)
    if model.privacy_spent_.unit == "group" and given.group is None:
        raise ValueError(
            "The model protects groups; pass --group with the column of group ids."
        )
    ledger = open_ledger(given.ledger)
    others = named_columns(given, getattr(model, "feature_names_in_", ()))
    X, columns = read_rows(given.rows, model, others)
    y = labels_like(columns[given.label], model.classes_.tolist())
    check_labels(y, model.classes_, given.rows, given.label)
    with plain_warnings(given.parser):
        # The privacy is spent on the next line.
        metrics = private_metrics(
            model,
            X,
            y,
            epsilon=given.epsilon,
            delta=given.delta,
            groups=columns.get(given.group),
            subgroups=subgroups_like(columns, given.subgroup, given.subgroup_values),
            subgroup_values=given.subgroup_values,
            ledger=ledger,
            random_state=0,  # so that a ledger knows the call again
        )
    if given.output is not None:
        metrics.save(given.output, overwrite=given.overwrite)
    print(metrics)
    of_subgroups = {} if given.subgroup is None else metrics.by_subgroup
    for value, one in of_subgroups.items():
        print(f"\n{given.subgroup} {value}\n{one}")
    print(f"\n{metrics.privacy_spent_}")
    if given.output is not None:
        print(f"\nWritten: {given.output}. It may be published.")


def run_ledger(given: argparse.Namespace) -> None:
    """Print what is spent and left of a budget, and all entries."""
    print(open_ledger(given.ledger))


def run_report(given: argparse.Namespace) -> None:
    """Write a report; an internal one only with ``--internal``."""
    _check_quality(given)
    report = PrivacyReport.from_estimator(
        read_released(given.model),
        title=given.title,
        quality=None if given.quality is None else _quality(given.quality),
        evaluated_on=given.evaluated_on,
        quality_is_public=given.quality_is_public,
        metrics=None if given.metrics is None else PrivateMetrics.load(given.metrics),
        ledger=open_ledger(given.ledger),
        model_file=given.model,
        deployment=None if given.deployment is None else _deployment(given.deployment),
    )
    if report.internal and not given.internal:
        reasons = " and ".join(report.to_dict()["internal_because"])
        raise ValueError(
            f"This report must not be published, because {reasons}; add --internal to "
            "write it for the data holder, or leave this content out."
        )
    if given.output is None:
        print(_wrapped(report.to_markdown()))
        return
    _, card = paths_of(given.model)
    if Path(given.output).resolve() == card.resolve():
        raise ValueError(
            f"path={given.output!r} is the card of the model; choose another file."
        )
    report.save(given.output, internal=given.internal, overwrite=given.overwrite)
    print(f"{given.output} is written.")
    if missing := report.to_dict()["to_fill_in"]:
        draft = (
            "It is a draft. Add these fields to the file of --deployment, and "
            "quality by --metrics: "
        )
        print(textwrap.fill(f"{draft}{', '.join(missing)}.", WIDTH))


def _check_quality(given: argparse.Namespace) -> None:
    """Raise unless figures and the rows they were computed on come together."""
    has_rows = given.evaluated_on is not None or given.quality_is_public is not None
    if given.quality is None and has_rows:
        raise ValueError(
            "--evaluated-on, --public-rows and --private-rows describe figures of "
            "quality; add such a figure, for example --quality accuracy=0.84."
        )
    if given.quality is not None and given.evaluated_on is None:
        raise ValueError(
            "--quality needs --evaluated-on; describe the rows that the quality was "
            "computed on."
        )
    if given.quality is not None and given.quality_is_public is None:
        raise ValueError(
            "--quality needs --public-rows, if the rows it was computed on and their "
            "labels are public, or else --private-rows; add one of them."
        )


def _wrapped(markdown: str) -> str:
    """Wrap the paragraphs and lists of a Markdown text."""
    lines = []
    for line in markdown.splitlines():
        if line.startswith(("|", "#", "    ")) or not line:
            lines.append(line)
            continue
        indent = {"- ": "  ", "> ": "> "}.get(line[:2], "")
        lines += textwrap.wrap(
            line,
            WIDTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _deployment(path: str) -> Deployment:
    """Read the fields of a deployment from a JSON file."""
    given = _read_json("deployment", path)
    known = [one.name for one in fields(Deployment)]
    if not isinstance(given, dict) or not given.keys() <= {*known}:
        raise ValueError(
            f"deployment={path!r} must hold one JSON object with fields among {known}."
        )
    return Deployment(**given)


def _quality(figures: list[tuple[tuple[str, ...], float]]) -> dict[str, Any]:
    """Join the scores of one name, each of a subpopulation."""
    quality: dict[str, Any] = {}
    for names, value in figures:
        inner = quality.setdefault(names[0], {}) if names[1:] else quality
        if not isinstance(inner, dict) or names[-1] in inner:
            raise ValueError(
                f"quality has {names[0]!r} more than once; give each figure a "
                "different name."
            )
        inner[names[-1]] = value
    return quality


class _NotLoaded(ClassifierMixin, BaseEstimator):
    """Stand-in for the student, which a report does not need."""

    module = ""  # of a network, which is not built from weights

    def predict(self, X: Any) -> NoReturn:
        raise TypeError("Only the statement of this model was read, not its student.")


def read_released(path: str) -> PublishedClassifier:
    """Read the statement of a released model, without its student.

    Hashes, the copy of the card and the cost are checked as in
    :meth:`PublishedClassifier.load`. Of the model file, a zip archive, only the card
    and the class of the student are read. No type that the file names is imported, so
    that none has to be trusted, and skops is not needed.
    """
    model, card, (model_path, card_path) = read_pair(path)
    try:
        with zipfile.ZipFile(BytesIO(model)) as archive:
            index = json.loads(read_index(archive, len(model)))["content"]
        student = index["student"]
        while student["__class__"] in [one.__name__ for one in WRAPPERS]:
            student = student["content"]["content"]["estimator_"]
        name, module = student["__class__"], student["__module__"]
        parts = {
            "student": type(name, (_NotLoaded,), {"__module__": module})(),
            "classes": np.array(card["classes"], dtype=object),
        }
        released = PublishedClassifier._from_parts(parts, card)
    except Exception as error:
        raise ValueError(
            f"{model_path} or {card_path} is damaged: its statement cannot be read "
            f"({type(error).__name__}: {printable(error)}). Get both files again."
        ) from error
    released._take_statement(card_path)
    return released


def run_add(given: argparse.Namespace) -> None:
    """Write the total of several cards."""
    if len(given.cards) < 2:
        raise ValueError("add needs at least two cards; pass the other cards, too.")
    named = _statements(given.cards)
    statements = [spent for _, spent in named]
    first, delta = statements[0], given.delta
    if delta is None:
        delta = max(spent.delta for spent in statements)
    epsilon = _total(statements, delta)
    if not np.isfinite(epsilon):
        raise ValueError(
            f"delta={delta!r} is too small for the precision of the cards; choose a "
            "larger delta."
        )
    if given.json:
        facts = {
            "epsilon": epsilon,
            "delta": delta,
            **{
                name: getattr(first, name)
                for name in ("unit", "relation", "neighbours")
            },
            "cards": [
                {"card": path, "epsilon": spent.epsilon, "delta": spent.delta}
                for path, spent in named
            ],
        }
        print(json.dumps(facts, indent=2, allow_nan=False))
        return
    for path, spent in named:
        print(f"{path}: epsilon={write_epsilon(spent.epsilon)}, delta={spent.delta:g}")
    total = TABLE["command"]["add"]["total"]
    words = {
        "models": counted(len(given.cards), "model"),
        "metrics": "" if [*given.cards] == [*dict(named)] else ", with their metrics,",
        "epsilon": write_epsilon(epsilon),
        "delta": delta,
        "neighbours": capitalised(first.neighbours),
    }
    texts = {name: [one.format(**words) for one in total[name]] for name in total}
    print("\n".join(["", *fact_lines(texts)]))


def _statements(paths: Sequence[str]) -> list[tuple[str, PrivacySpent]]:
    """Read the statements on cards and their names, if their costs add up."""
    statements: list[tuple[str, PrivacySpent]] = []
    models: dict[str, str] = {}
    for path in paths:
        card = parse_card(
            read_file(Path(path), "the privacy card", LARGEST_CARD), Path(path)
        )
        model = card.pop("sha256")
        check_card(card, path)
        try:
            spent, _, metrics = checked_statements(card)
        except Exception as error:
            raise ValueError(
                f"{path} is inconsistent: {printable(error)}. Ask its publisher for a "
                "new file."
            ) from error
        if np.isinf(spent.epsilon):
            raise ValueError(
                f"{path} has no privacy guarantee, as its noise was seeded, and a "
                "total with it would have none; leave it out."
            )
        if model in models:
            raise ValueError(
                f"{path} is the card of the same model as {models[model]}; pass each "
                "model once."
            )
        models[model] = path
        name = path if metrics is None else f"{path}, with metrics"
        statements.append((name, spent))
        _, first = statements[0]
        if (first.unit, first.relation) != (spent.unit, spent.relation):
            raise ValueError(
                f"{path} protects unit={spent.unit!r} with "
                f"relation={spent.relation!r}, but {paths[0]} protects "
                f"unit={first.unit!r} with relation={first.relation!r}. Such costs do "
                "not add up; pass only cards with the same unit and relation."
            )
    return statements


def _total(statements: Sequence[PrivacySpent], delta: float) -> float:
    """Return the smallest known epsilon of all fits together."""
    curve = reduce(add, (spent.curve for spent in statements))
    if delta == 0:
        return curve.pure_epsilon
    profile = compose_profiles(spent.profile for spent in statements)
    return min(
        curve.pure_epsilon, curve.quiet_epsilon(delta), profile.epsilon_at(delta)
    )
