"""The command line: plans, reports, and fits of sites that share no row."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from sklearn_pate import __version__
from sklearn_pate._cli._options import Parser

__all__ = ["main"]

DESCRIPTION = """\
Plan private learning with PATE, report on released models and add up their costs,
and fit one model for several sites that share no row.
Only the command vote reads private rows, and fit-votes the votes of teachers.
"""
EPILOG = """\
examples:
  %(prog)s plan --rows 30000 --queries 100
  %(prog)s report model.skops -o report.html
  %(prog)s add first.json second.json

  five hospitals: one runs study, each runs vote, one runs fit-votes
    %(prog)s study --public public.csv --classes no,yes --teachers 20 \\
        --sites north,south,east,west,centre
    %(prog)s vote --study study.json --key study.key --site north \\
        --data north.csv --public public.csv --label readmitted --group patient \\
        --teacher teacher.py -o north.votes
    %(prog)s fit-votes *.votes --study study.json --public public.csv \\
        -o model.skops

"%(prog)s COMMAND --help" explains the options of each command.

exit codes:
  0  done
  2  an option or a file is invalid; the reason is written to stderr
  141  the reader of the output, such as "head", stopped before its end
"""
# Exit code of a process that SIGPIPE ends.
BROKEN_PIPE = 128 + 13
# Commands, and their help; the module of a command is imported when it is given.
_COMMANDS = {
    "plan": "teachers, noise, epsilon and label accuracy, before any data are read",
    "report": "the privacy report of a released model",
    "add": "the total cost of several published models",
    "study": "what sites that share no row agree on, and their key",
    "vote": "the votes of one site, whose rows stay there",
    "fit-votes": "a student of the votes of all sites, and its card",
}


def main(arguments: Sequence[str] | None = None, program: str = "sklearn-pate") -> int:
    """Run one command, and return its exit code.

    Raises SystemExit with code 2 for invalid input, and 0 after help or version.
    """
    try:
        try:
            return _run(arguments, program)
        finally:
            sys.stdout.flush()  # so that a closed pipe raises here
    except BrokenPipeError:
        # At exit, Python writes the rest, which must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _run(arguments: Sequence[str] | None, program: str) -> int:
    """Parse the arguments, and run the command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = Parser(prog=program, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "--version", action="version", version=f"sklearn-pate {__version__}"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, about in _COMMANDS.items():
        command = commands.add_parser(name, help=about)
        if name in arguments:
            module = f"{__name__}._{name.replace('-', '_')}_command"
            import_module(module).add_to(command)
    given = parser.parse_args(arguments)
    try:
        return given.run(given)
    except BrokenPipeError:
        raise
    except (ImportError, OSError, ValueError) as error:
        parser_of_command: Parser = given.parser
        parser_of_command.refuse(error, given.names)
