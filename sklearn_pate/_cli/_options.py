"""Options, and their errors, that the commands share."""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

__all__ = ["MECHANISMS", "Parser", "add_mechanism", "number", "whole_number"]

#: Mechanisms that answer without a student.
MECHANISMS = ("gnmax", "lnmax", "gumbel", "permute-and-flip", "confident")


class Parser(argparse.ArgumentParser):
    """Argument parser that keeps line breaks, and whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 for arguments that cannot be parsed."""
        # argparse reads "-1,3" as another option, not as the value of --counts.
        message = re.sub(
            r"(--[\w-]+): expected one argument$",
            r"\g<0>; one that starts with a minus is written \1=...",
            message.removesuffix("."),
        )
        self.exit(2, f'{self.prog}: {message}; see "{self.prog} --help"\n')

    def refuse(self, error: Exception, names: Mapping[str, str]) -> NoReturn:
        """Exit with code 2 for values that the library refuses.

        `names` has the option of each parameter: ``n_queries=0 must be ...`` becomes
        ``--queries 0 must be ...``.
        """
        message = " ".join(str(error).split())
        for name, option in names.items():
            message = re.sub(rf"\b{name}=True\b", option, message)
            message = re.sub(rf"\b{name}='([^\s',;]+)'", rf"{option} \1", message)
            message = re.sub(rf"\b{name}=", f"{option} ", message)
            if "_" in name:  # otherwise it may be a word of the sentence
                message = re.sub(rf"\b{name}\b", option, message)
        self.exit(2, f"{self.prog}: {message}\n")


def whole_number(text: str) -> int:
    """Parse a whole number of any size."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number; write 100, for example"
        ) from None


def number(text: str) -> float:
    """Parse a number; the library checks its range."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number; write 0.5, for example"
        ) from None


def votes_or_share(text: str) -> float:
    """Parse a threshold: a whole number of votes, or a share of the teachers."""
    return int(text) if text.isdecimal() else number(text)


def add_mechanism(
    parser: argparse.ArgumentParser, others: Sequence[str] = (), about_others: str = ""
) -> None:
    """Add the options that choose a mechanism; the first of others is the default."""
    by_default = "" if others else ", the default"
    parser.add_argument(
        "--mechanism",
        choices=(*others, *MECHANISMS),
        default=others[0] if others else "gnmax",
        metavar="NAME",
        help=f"{about_others}gnmax (Gaussian noise{by_default}), "
        "lnmax (Laplace), gumbel (the exponential mechanism), permute-and-flip, or "
        "confident (gnmax, after a noisy check that teachers agree)",
    )
    parser.add_argument(
        "--threshold",
        type=votes_or_share,
        metavar="VOTES",
        help="for confident: votes that the largest count must reach, before noise; a "
        "number with a decimal point, at most 1.0, is a share of the teachers",
    )
