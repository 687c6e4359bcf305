"""Options, and their errors, that the commands share."""

import argparse
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from sklearn_pate.mechanisms import ConfidentGNMax

__all__ = [
    "MECHANISMS",
    "Parser",
    "add_mechanism",
    "auto_or_whole_number",
    "check_outputs",
    "chosen_mechanism",
    "list_of_texts",
    "number",
    "plain_warnings",
    "whole_number",
]

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


def auto_or_whole_number(text: str) -> int | str:
    """Parse the number of teachers or of queries."""
    return text if text == "auto" else whole_number(text)


def list_of_texts(text: str) -> list[str]:
    """Parse texts that are separated by commas."""
    return [one.strip() for one in text.split(",")]


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
    parser: argparse.ArgumentParser,
    others: Sequence[str] = (),
    about_others: str = "",
    *,
    threshold: float = 0.8,
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
        "number with a decimal point, at most 1.0, is a share of the teachers "
        f"(default: {threshold})",
    )


def chosen_mechanism(given: argparse.Namespace) -> str | ConfidentGNMax:
    """Return the mechanism that the options of `add_mechanism` choose."""
    if given.threshold is None:
        return given.mechanism
    if given.mechanism != "confident":
        raise ValueError(
            f"threshold={given.threshold!r} applies to mechanism=confident only, "
            f"not to mechanism={given.mechanism}; leave it out."
        )
    return ConfidentGNMax(threshold=given.threshold)


def check_outputs(paths: Sequence[Path], *, overwrite: bool | None) -> None:
    """Check that files can be written, before work is done for them.

    None refuses files that exist without a way to replace them.
    """
    for path in paths:
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"There is no folder {path.parent} for {path}; create it first."
            )
        if path.exists() and not overwrite:
            advice = "" if overwrite is None else ", or add --overwrite to replace it"
            raise FileExistsError(
                f"{path} exists already; choose another path{advice}."
            )


@contextmanager
def plain_warnings(parser: argparse.ArgumentParser) -> Iterator[None]:
    """Write warnings to stderr as the command's own words, without a line of code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        print(f"{parser.prog}: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
