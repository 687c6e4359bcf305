"""Command ``add``: the total privacy cost of several published models."""

import argparse
import json
import textwrap
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np

from sklearn_pate._aggregation._fit_plan import WIDTH
from sklearn_pate._cli._options import Parser, number
from sklearn_pate.accounting._profile import compose_profiles
from sklearn_pate.accounting._statement import PrivacySpent, write_epsilon
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.publication._card_check import checked_statement
from sklearn_pate.publication._model_file import LARGEST_CARD, printable, read_file
from sklearn_pate.publication._privacy_card import check_card, parse_card

DESCRIPTION = """\
Add up the privacy costs of models that were fitted on the same private data, from
their cards: the .json files that clf.publish().save("model.skops") wrote. The cost on
each card is computed again from its mechanism. No model is read.
"""
EPILOG = """\
examples:
  %(prog)s first.json second.json

  for programs, at another delta:
    %(prog)s first.json second.json --delta 1e-6 --json

The total is the smaller of two epsilons: that of the sum of the Renyi curves, and that
of the composed privacy profiles. It holds if the noise and the number of queries of
each fit were chosen beforehand. Where they were chosen in view of an earlier model, a
PrivacyLedger keeps the total within a budget.
"""
NAMES = {"delta": "--delta"}


def add_to(parser: Parser) -> None:
    """Add the description and the options of the command to its parser."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "cards", nargs="+", metavar="CARD", help="the card of a model, a .json file"
    )
    parser.add_argument(
        "--delta",
        type=number,
        metavar="D",
        help="probability mass that epsilon does not cover (default: the largest delta "
        "on the cards)",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.set_defaults(run=run, parser=parser, names=NAMES)


def run(given: argparse.Namespace) -> int:
    """Write the total of several cards."""
    if len(given.cards) < 2:
        raise ValueError("add needs at least two cards; name the others, too.")
    statements = _statements(given.cards)
    delta = given.delta
    if delta is None:
        delta = max(spent.delta for spent in statements)
    epsilon = _total(statements, delta)
    if not np.isfinite(epsilon):
        raise ValueError(
            f"delta={delta!r} is smaller than the cards resolve; name a larger one."
        )
    unit, neighbours = statements[0].unit, statements[0].neighbours
    if given.json:
        facts = {
            "epsilon": epsilon,
            "delta": delta,
            "unit": unit,
            "relation": statements[0].relation,
            "neighbours": neighbours,
            "cards": [
                {"card": path, "epsilon": spent.epsilon, "delta": spent.delta}
                for path, spent in zip(given.cards, statements, strict=True)
            ],
        }
        print(json.dumps(facts, indent=2, allow_nan=False))
        return 0
    for path, spent in zip(given.cards, statements, strict=True):
        print(f"{path}: epsilon={write_epsilon(spent.epsilon)}, delta={spent.delta:g}")
    total = (
        f"Together, {counted(len(statements), 'model')} "
        f"{'is' if len(statements) == 1 else 'are'} (epsilon="
        f"{write_epsilon(epsilon)}, delta={delta:g})-differentially private. "
        f"Neighbouring data sets differ by one change: {neighbours}. It is assumed "
        "that all models were fitted on the same private data, with noise and numbers "
        "of queries that were chosen beforehand, and that nothing else was released "
        "about these data; the assumptions of each card hold, too."
    )
    print("\n" + textwrap.fill(total, WIDTH))
    return 0


def _statements(paths: Sequence[str]) -> list[PrivacySpent]:
    """Read the statements on cards, if their costs add up."""
    statements: list[PrivacySpent] = []
    models: dict[str, str] = {}
    for path in paths:
        spent, model = _read(path)
        if model in models:
            raise ValueError(
                f"{path} is the card of the same model as {models[model]}; name each "
                "model once."
            )
        for first in statements[:1]:
            if (first.unit, first.relation) != (spent.unit, spent.relation):
                raise ValueError(
                    f"{path} protects unit={spent.unit!r} with relation="
                    f"{spent.relation!r}, and {paths[0]} unit={first.unit!r} with "
                    f"relation={first.relation!r}; such costs do not add up."
                )
        models[model] = path
        statements.append(spent)
    return statements


def _read(path: str) -> tuple[PrivacySpent, str]:
    """Read the statement on a card and the sha256 of its model."""
    text = read_file(Path(path), "the privacy card", LARGEST_CARD)
    card = parse_card(text, Path(path))
    model = card.pop("sha256")
    check_card(card, path)
    try:
        spent = checked_statement(card)
    except Exception as error:
        raise ValueError(f"{path} contradicts itself: {printable(error)}.") from error
    if np.isinf(spent.epsilon):
        raise ValueError(
            f"{path} has no privacy guarantee, as its noise was seeded; neither has a "
            "total with it."
        )
    return spent, model


def _total(statements: Sequence[PrivacySpent], delta: float) -> float:
    """Return the smallest known epsilon of all fits together."""
    curve = reduce(add, (spent.curve for spent in statements))
    if delta == 0:
        return curve.pure_epsilon
    profile = compose_profiles(spent.profile for spent in statements)
    return min(
        curve.pure_epsilon, curve.quiet_epsilon(delta), profile.epsilon_at(delta)
    )
