"""What all commands share: how options are read, and how errors are told."""

import argparse
import re
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["MECHANISMS", "Parser", "add_mechanism", "number", "whole_number"]

#: Those that answer without a student.
MECHANISMS = ("gnmax", "lnmax", "gumbel", "permute-and-flip", "confident")


class Parser(argparse.ArgumentParser):
    """An argument parser that keeps the line breaks of its texts.

    Its errors are one line, without the usage in front.

    Parameters
    ----------
    **options : Any
        As for :class:`argparse.ArgumentParser`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        """Say what cannot be read, and leave with code 2.

        Parameters
        ----------
        message : str
            From argparse.
        """
        # To argparse, "-1,3" is another option, and not the value of --counts.
        message = re.sub(
            r"(--[\w-]+): expected one argument$",
            r"\g<0>; one that starts with a minus is written \1=...",
            message.removesuffix("."),
        )
        self.exit(2, f'{self.prog}: {message}; see "{self.prog} --help"\n')

    def refuse(self, error: Exception, names: Mapping[str, str]) -> NoReturn:
        """Say what cannot work, and leave with code 2.

        Parameters
        ----------
        error : Exception
            From the library. It names parameters: ``n_queries=0 must be ...``.

        names : mapping of str to str
            The option of each parameter: ``--queries`` of ``n_queries``. The message
            names these: ``--queries 0 must be ...``.
        """
        message = " ".join(str(error).split())
        for name, option in names.items():
            message = re.sub(rf"\b{name}=True\b", option, message)
            message = re.sub(rf"\b{name}='([^\s',;]+)'", rf"{option} \1", message)
            message = re.sub(rf"\b{name}=", f"{option} ", message)
            if "_" in name:  # no word of a sentence
                message = re.sub(rf"\b{name}\b", option, message)
        self.exit(2, f"{self.prog}: {message}\n")


def whole_number(text: str) -> int:
    """Read a whole number.

    Parameters
    ----------
    text : str
        As typed.

    Returns
    -------
    value : int
        Of any size.

    Raises
    ------
    ArgumentTypeError
        If it is none.
    """
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no whole number; write 100, say"
        ) from None


def number(text: str) -> float:
    """Read a number.

    Parameters
    ----------
    text : str
        As typed.

    Returns
    -------
    value : float
        Perhaps out of range, which the library knows.

    Raises
    ------
    ArgumentTypeError
        If it is none.
    """
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number; write 0.5, say"
        ) from None


def votes_or_share(text: str) -> float:
    """Read a threshold: votes if it is a whole number, else a share of the teachers.

    Parameters
    ----------
    text : str
        As typed.

    Returns
    -------
    threshold : int or float
        As :class:`~sklearn_pate.mechanisms.ConfidentGNMax` takes it.

    Raises
    ------
    ArgumentTypeError
        If it is no number.
    """
    return int(text) if text.isdecimal() else number(text)


def add_mechanism(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a mechanism.

    Parameters
    ----------
    parser : ArgumentParser
        Of a command.
    """
    parser.add_argument(
        "--mechanism",
        choices=MECHANISMS,
        default="gnmax",
        metavar="NAME",
        help="how queries are answered: gnmax (Gaussian noise, the default), lnmax "
        "(Laplace), gumbel (the exponential mechanism), permute-and-flip, or confident "
        "(gnmax, where a noisy check says that teachers agree)",
    )
    parser.add_argument(
        "--threshold",
        type=votes_or_share,
        metavar="VOTES",
        help="for confident: votes that the largest count must reach, up to noise; a "
        "number with a decimal point, of at most 1.0, is a share of the teachers",
    )
