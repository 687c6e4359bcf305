"""``audit``: try to show that a mechanism leaks more than it claims."""

import argparse
import json
import textwrap
from dataclasses import asdict
from typing import Any

from sklearn_pate._base._parameters import as_mechanism
from sklearn_pate._base._terminal import WIDTH, fact_lines, write_lower_bound
from sklearn_pate._cli._options import add_mechanism, number, whole_number
from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.inspection import AuditResult, audit_mechanism
from sklearn_pate.mechanisms import Mechanism

__all__ = ["add_to"]

DESCRIPTION = """\
Try to contradict the cost of a mechanism. Made-up votes are asked about thousands of
times, with one teacher's vote moved and without, through the same code and the same
noise as in a fit. An event that is likelier with the vote moved than the claimed
epsilon allows contradicts the claim.
"""
EPILOG = """\
examples:
  twenty queries to GNMax, in some seconds:
    %(prog)s

  Laplace noise, three classes, more trials:
    %(prog)s --mechanism lnmax --gamma 0.1 --counts 30,30,5 --trials 50000

exit codes:
  0  the claim was not contradicted; that is no proof, see the threat model
  1  the claim was contradicted
  2  an option cannot work

Only made-up votes may be used without a second thought: what an audit says about the
votes of a real fit is as sensitive as they are.
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
# Enough noise that twenty queries have a cost worth an audit.
NOISE = {
    "gnmax": {"sigma": 5.0},
    "lnmax": {"gamma": 0.2},
    "gumbel": {"c": 0.2},
    "permute-and-flip": {"c": 0.1},
    "confident": {"threshold": 0.5, "sigma_threshold": 8.0, "sigma": 5.0},
}


def add_to(commands: Any) -> None:
    """Add the command.

    Parameters
    ----------
    commands : argparse action
        What ``add_subparsers`` returns.
    """
    parser = commands.add_parser(
        "audit",
        help="does a mechanism leak more than it claims?",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    add_mechanism(parser)
    parser.add_argument(
        "--sigma",
        type=number,
        metavar="VOTES",
        help="for gnmax and confident: scale of the noise, in votes (default: 5)",
    )
    parser.add_argument(
        "--sigma-threshold",
        type=number,
        metavar="VOTES",
        help="for confident: scale of the noise of the check, in votes (default: 8)",
    )
    parser.add_argument(
        "--gamma",
        type=number,
        metavar="X",
        help="for lnmax: inverse scale of the noise, in 1/votes (default: 0.2)",
    )
    parser.add_argument(
        "--c",
        type=number,
        metavar="X",
        help="for gumbel and permute-and-flip: inverse scale of the noise, in 1/votes "
        "(default: 0.2 and 0.1)",
    )
    parser.add_argument(
        "--counts",
        type=_votes,
        metavar="N,N,...",
        default=[10, 10],
        help="votes for each class (default: 10,10, a tie, where one vote counts most)",
    )
    parser.add_argument(
        "--neighbour",
        type=_votes,
        metavar="N,N,...",
        help="the same with one vote moved, cast or withdrawn (default: one vote of "
        "the first of the most-voted classes moves to the next class)",
    )
    parser.add_argument(
        "--queries",
        type=whole_number,
        metavar="N",
        default=20,
        help="queries of one trial; the claim is the cost of all of them (default: 20)",
    )
    parser.add_argument(
        "--trials",
        type=whole_number,
        metavar="N",
        default=20_000,
        help="trials at each of the two votes; more show rarer events (default: 20000)",
    )
    parser.add_argument(
        "--delta",
        type=number,
        metavar="X",
        default=0.01,
        help="the probability that epsilon does not cover. A claim holds for every "
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
    parser.set_defaults(run=run, parser=parser, names=NAMES)


def run(given: argparse.Namespace) -> int:
    """Audit a mechanism, and print what was claimed and what was shown.

    Parameters
    ----------
    given : Namespace
        The options.

    Returns
    -------
    code : int
        1 if the claim is contradicted, else 0.

    Raises
    ------
    ValueError
        If an option cannot work.
    """
    mechanism = _mechanism(given)
    neighbour = given.neighbour or _one_vote_moved(given.counts)
    if len(neighbour) != len(given.counts):
        raise ValueError(
            f"neighbour={neighbour} has {len(neighbour)} classes and "
            f"counts={given.counts} has {len(given.counts)}; write votes for the same "
            "classes."
        )
    result = audit_mechanism(
        mechanism,
        given.counts,
        neighbour,
        n_queries=given.queries,
        n_trials=given.trials,
        delta=given.delta,
        confidence=given.confidence,
    )
    asked = {
        "mechanism": mechanism.in_one_line(),
        "counts": given.counts,
        "neighbour": neighbour,
        "n_queries": given.queries,
        "n_trials": given.trials,
    }
    if given.json:
        verdict = {"contradicted": result.contradicted}
        print(json.dumps(asked | asdict(result) | verdict, indent=2))
    else:
        print(_in_words(asked, result))
    return int(result.contradicted)


def _mechanism(given: argparse.Namespace) -> Mechanism:
    """Build the mechanism with the noise that was asked for."""
    noise = dict(NOISE[given.mechanism])
    for name in sorted(set().union(*NOISE.values())):
        value = getattr(given, name)
        if value is None:
            continue
        if name not in noise:
            fitting = " and ".join(NAMES[one] for one in noise)
            raise ValueError(
                f"{name}={value!r} does not go with mechanism={given.mechanism}, which "
                f"is set by {fitting}; leave it out."
            )
        noise[name] = value
    return as_mechanism(given.mechanism, "answers").set_params(**noise)


def _one_vote_moved(counts):
    """Return the votes after one of the largest count went to the next class."""
    moved = list(counts)
    largest = moved.index(max(moved))
    moved[largest] -= 1
    moved[(largest + 1) % len(moved)] += 1
    return moved


def _in_words(asked: dict[str, Any], result: AuditResult) -> str:
    facts = {
        "mechanism": asked["mechanism"],
        "asked": f"{asked['n_queries']} queries a trial, {asked['n_trials']} trials "
        f"with votes {asked['counts']} and as many with {asked['neighbour']}",
        "claimed": f"epsilon is at most {write_epsilon(result.epsilon_claimed)}, at "
        f"delta={result.delta:g}",
        "shown": f"epsilon is at least {write_lower_bound(result.epsilon_lower)}, with "
        f"confidence {result.confidence:g}",
        "evidence": result.evidence,
        "exact": f"these votes cost {result.exact_share:.3g} times what is claimed for "
        "all votes, at the Renyi order where that is most",
    }
    if result.cost_is_wrong:
        verdict = (
            "CONTRADICTED: these votes cost more than is claimed for all votes, by the "
            "law that the mechanism states itself. Do not release what it answered, "
            "and report this."
        )
    elif result.contradicted:
        chance = 1 - result.confidence
        verdict = (
            "CONTRADICTED: the mechanism leaks more than it claims, but for a chance "
            f"of {chance:.1g}. Do not release what it answered, and report this."
        )
    else:
        verdict = (
            "Not contradicted: what was shown is within the claim. That is no proof: "
            "other votes, or more trials, may show more."
        )
    return "\n".join([*fact_lines(facts), "", *textwrap.wrap(verdict, WIDTH)])


def _votes(text: str) -> list[int]:
    parts = text.split(",")
    if len(parts) < 2 or not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of votes for two classes or more; write 130,120, say"
        )
    return [int(part) for part in parts]
