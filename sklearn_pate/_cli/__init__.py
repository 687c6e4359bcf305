"""The command line: plan a fit, report on a released model, audit a mechanism."""

import os
import sys
from collections.abc import Sequence

from sklearn_pate import __version__
from sklearn_pate._cli import _audit_command, _plan_command, _report_command
from sklearn_pate._cli._options import Parser

__all__ = ["main"]

DESCRIPTION = """\
Learn from sensitive data without giving anyone away: what can be done without a
line of Python. None of these commands reads private data.
"""
EPILOG = """\
examples:
  %(prog)s plan --rows 30000 --queries 100
  %(prog)s report model.skops -o report.html
  %(prog)s audit

"%(prog)s COMMAND --help" explains the options of each command.

exit codes:
  0  done
  1  an audit contradicted what a mechanism claims
  2  an option or a file cannot work; one sentence says why
  141  whoever read the output, such as "head", stopped before its end
"""
# What a shell calls the end by a closed pipe. 1, as Python has it, is for audits.
BROKEN_PIPE = 128 + 13


def main(arguments: Sequence[str] | None = None, program: str = "sklearn-pate") -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows the name of the program; None takes what it was started with.

    program : str, default="sklearn-pate"
        How it was started, for its help.

    Returns
    -------
    code : int
        0, 1 for an audit that contradicts a claim, or 141 if the output was not read
        to its end.

    Raises
    ------
    SystemExit
        With code 2 and one sentence on stderr for bad input, and with code 0 after the
        help or the version was printed.
    """
    try:
        try:
            return _run(arguments, program)
        finally:
            sys.stdout.flush()  # here, a closed pipe can still be told
    except BrokenPipeError:
        # Python writes what is left when it ends, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _run(arguments: Sequence[str] | None, program: str) -> int:
    parser = Parser(prog=program, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "--version", action="version", version=f"sklearn-pate {__version__}"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (_plan_command, _report_command, _audit_command):
        command.add_to(commands)
    given = parser.parse_args(arguments)
    try:
        return given.run(given)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        asked: Parser = given.parser
        asked.refuse(error, given.names)
