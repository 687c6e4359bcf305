"""Command ``audit``: test the claimed privacy cost of a mechanism."""

import argparse
import json
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sklearn_pate._aggregation._design import as_mechanism
from sklearn_pate._aggregation._fit_plan import WIDTH, fact_lines, write_lower_bound
from sklearn_pate._cli._options import (
    Parser,
    add_mechanism,
    number,
    read_mechanism,
    whole_number,
)
from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.inspection import AuditResult, audit_mechanism
from sklearn_pate.mechanisms import Mechanism

DESCRIPTION = """\
Try to contradict the claimed privacy cost of a mechanism. It answers thousands of
queries on artificial votes and on votes that differ in one teacher, by the same code
and with the same noise as in a fit. An event whose probabilities differ by more than
the claimed epsilon allows contradicts the claim.
"""
EPILOG = """\
examples:
  twenty queries to GNMax, in a few seconds:
    %(prog)s

  Laplace noise, three classes, more trials:
    %(prog)s --mechanism lnmax --gamma 0.1 --counts 30,30,5 --trials 50000

  a mechanism of your own, from the line mechanism = MyMechanism(...) in a file:
    %(prog)s --file my_mechanism.py

exit codes:
  0  the claim was not contradicted, which does not prove it; see the threat model
  1  the claim was contradicted
  2  an option is invalid

Use artificial votes: the result of an audit on the votes of a fit is as sensitive as
these votes.
"""
NAMES = {
    "n_queries": "--queries",
    "n_trials": "--trials",
    "counts": "--counts",
    "neighbour": "--neighbour",
    "delta": "--delta",
    "confidence": "--confidence",
    "mechanism": "--mechanism",
    "threshold": "--threshold",
    "sigma_threshold": "--sigma-threshold",
    "sigma": "--sigma",
    "gamma": "--gamma",
    "c": "--c",
}
# Noise for which twenty queries have a cost that an audit can test.
NOISE = {
    "gnmax": {"sigma": 5.0},
    "lnmax": {"gamma": 0.2},
    "gumbel": {"c": 0.2},
    "permute-and-flip": {"c": 0.1},
    "confident": {"threshold": 0.5, "sigma_threshold": 8.0, "sigma": 5.0},
}


def add_to(parser: Parser) -> None:
    """Add the description and the options of the command to its parser."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    add_mechanism(parser, threshold=NOISE["confident"]["threshold"])
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="Python file, which is executed, with a mechanism of your own: its "
        "variable named mechanism; in place of --mechanism and noise",
    )
    parser.add_argument(
        "--sigma",
        type=number,
        metavar="VOTES",
        help="for gnmax and confident: noise scale, in votes (default: 5)",
    )
    parser.add_argument(
        "--sigma-threshold",
        type=number,
        metavar="VOTES",
        help="for confident: noise scale of the check, in votes (default: 8)",
    )
    parser.add_argument(
        "--gamma",
        type=number,
        metavar="X",
        help="for lnmax: inverse noise scale, in 1/votes (default: 0.2)",
    )
    parser.add_argument(
        "--c",
        type=number,
        metavar="X",
        help="for gumbel and permute-and-flip: inverse noise scale, in 1/votes "
        "(default: 0.2 and 0.1)",
    )
    parser.add_argument(
        "--counts",
        type=_votes,
        metavar="N,N,...",
        default=[10, 10],
        help="votes for each class (default: 10,10, where one vote matters most)",
    )
    parser.add_argument(
        "--neighbour",
        type=_votes,
        metavar="N,N,...",
        help="the same votes with one moved, added or removed (default: one vote moves "
        "from the first of the most-voted classes to the next class)",
    )
    parser.add_argument(
        "--queries",
        type=whole_number,
        metavar="N",
        default=20,
        help="queries of a trial; the claim is the cost of all of them (default: 20)",
    )
    parser.add_argument(
        "--trials",
        type=whole_number,
        metavar="N",
        default=20_000,
        help="trials for each vote vector; more show rarer events (default: 20000)",
    )
    parser.add_argument(
        "--delta",
        type=number,
        metavar="X",
        default=0.01,
        help="probability mass that epsilon does not cover; a claim holds for every "
        "delta, and an audit is sharper at a large one (default: 0.01)",
    )
    parser.add_argument(
        "--confidence",
        type=number,
        metavar="X",
        default=0.9999,
        help="probability that a true claim is not contradicted (default: 0.9999)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    # None, as a file has a mechanism of its own.
    parser.set_defaults(run=run, parser=parser, names=NAMES, mechanism=None)


def run(given: argparse.Namespace) -> int:
    """Audit a mechanism and print the result; return 1 for a contradicted claim."""
    mechanism = _mechanism(given)
    neighbour = given.neighbour or _one_vote_moved(given.counts)
    if len(neighbour) != len(given.counts):
        raise ValueError(
            f"neighbour={neighbour} has {len(neighbour)} classes and "
            f"counts={given.counts} has {len(given.counts)}; pass votes for the same "
            "classes."
        )
    try:
        result = audit_mechanism(
            mechanism,
            given.counts,
            neighbour,
            n_queries=given.queries,
            n_trials=given.trials,
            delta=given.delta,
            confidence=given.confidence,
        )
    except ValueError:
        raise
    except Exception as error:
        if given.file is None:
            raise
        # Not status 1, which means that the claim was contradicted.
        raise ValueError(
            f"The mechanism of {given.file} failed with {type(error).__name__}: "
            f"{error}."
        ) from error
    setting = {
        "mechanism": mechanism.in_one_line(),
        "counts": given.counts,
        "neighbour": neighbour,
        "n_queries": given.queries,
        "n_trials": given.trials,
    }
    if given.json:
        contradicted = {"contradicted": result.contradicted}
        print(json.dumps(setting | asdict(result) | contradicted, indent=2))
    else:
        print(_as_text(setting, result))
    return int(result.contradicted)


def _mechanism(given: argparse.Namespace) -> Mechanism:
    """Build the mechanism with the given noise, or read it from a file."""
    names = ["mechanism", *sorted(set().union(*NOISE.values()))]
    options = {
        name: value for name in names if (value := getattr(given, name)) is not None
    }
    if given.file is not None:
        for name, value in options.items():
            raise ValueError(
                f"{name}={value} does not apply to a mechanism of a file, which sets "
                "its noise; leave it out."
            )
        return read_mechanism(given.file)
    name = options.pop("mechanism", "gnmax")
    noise = NOISE[name]
    for other in options.keys() - noise.keys():
        taken = " and ".join(NAMES[one] for one in noise)
        raise ValueError(
            f"{other}={options[other]!r} does not apply to mechanism={name}, which "
            f"takes {taken}; leave it out."
        )
    return as_mechanism(name).set_params(**noise | options)


def _one_vote_moved(counts: list[int]) -> list[int]:
    """Move one vote of the largest count to the next class."""
    moved = list(counts)
    largest = moved.index(max(moved))
    moved[largest] -= 1
    moved[(largest + 1) % len(moved)] += 1
    return moved


def _as_text(setting: dict[str, Any], result: AuditResult) -> str:
    """Describe an audit and its result, for a terminal."""
    facts = {
        "mechanism": setting["mechanism"],
        "trials": f"{setting['n_trials']} with votes {setting['counts']} and as many "
        f"with votes {setting['neighbour']}, of "
        f"{counted(setting['n_queries'], 'query')} each",
        "claimed": f"epsilon is at most {write_epsilon(result.epsilon_claimed)}, at "
        f"delta={result.delta:g}",
        "shown": f"epsilon is at least {write_lower_bound(result.epsilon_lower)}, with "
        f"confidence {result.confidence:g}",
        "evidence": result.evidence,
        "exact": "not known, as the mechanism states no distribution of its answers; "
        "--queries 1 makes the trials more sensitive"
        if result.exact_share is None
        else f"these votes cost {result.exact_share:.3g} times the claim, at the "
        "Renyi order where this ratio is largest",
    }
    if result.cost_is_wrong:
        conclusion = (
            "CONTRADICTED: these votes cost more than the claim, by the mechanism's "
            "own probabilities. Do not release its answers, and report this."
        )
    elif result.answers_follow_law is False:
        conclusion = (
            "CONTRADICTED: the answers do not have the distribution that the mechanism "
            "states, from which the exact cost is computed. Correct one of them."
        )
    elif result.contradicted:
        error = 1 - result.confidence
        conclusion = (
            "CONTRADICTED: the mechanism leaks more than it claims; the probability of "
            f"error is {error:.1g}. Do not release its answers, and report this."
        )
    else:
        conclusion = (
            "Not contradicted. This does not prove the claim: other votes, or more "
            "trials, may show more."
        )
    return "\n".join([*fact_lines(facts), "", *textwrap.wrap(conclusion, WIDTH)])


def _votes(text: str) -> list[int]:
    """Parse the votes for each class."""
    parts = text.split(",")
    if len(parts) < 2 or not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of votes for two classes or more; write 130,120, "
            "for example"
        )
    return [int(part) for part in parts]
