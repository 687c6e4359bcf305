"""The command line: plans, reports, and fits of sites that share no row."""

import io
import os
import sys
from collections.abc import Sequence

from sklearn_pate import __version__
from sklearn_pate._cli._model_commands import (
    run_add,
    run_ledger,
    run_measure,
    run_plan,
    run_report,
)
from sklearn_pate._cli._options import TABLE, Parser, add_options
from sklearn_pate._cli._site_commands import run_fit_votes, run_study, run_vote
from sklearn_pate._cli._sum_commands import run_collect, run_join, run_reply
from sklearn_pate.exceptions import BudgetExceededError

__all__ = ["main"]

# Exit codes of a process that SIGPIPE or SIGINT ends.
BROKEN_PIPE, INTERRUPTED = 128 + 13, 128 + 2
_COMMANDS = {
    "plan": run_plan,
    "measure": run_measure,
    "report": run_report,
    "add": run_add,
    "ledger": run_ledger,
    "study": run_study,
    "join": run_join,
    "reply": run_reply,
    "collect": run_collect,
    "vote": run_vote,
    "fit-votes": run_fit_votes,
}


def main(arguments: Sequence[str] | None = None, program: str = "sklearn-pate") -> int:
    """Run one command, and return its exit code.

    Raises SystemExit with code 2 for invalid input, and 0 after help or version.
    """
    for stream in sys.stdout, sys.stderr:
        if isinstance(stream, io.TextIOWrapper):
            # What was paid for is shown, also where the terminal lacks a character.
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            _run(arguments, program)
        finally:
            sys.stdout.flush()  # so that a closed pipe raises here
    except BrokenPipeError:
        # At exit, Python writes the rest, which must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print(f"{program}: interrupted; run the same command again.", file=sys.stderr)
        return INTERRUPTED
    return 0


def _run(arguments: Sequence[str] | None, program: str) -> None:
    """Parse the arguments, and run the command."""
    texts = {name: TABLE[name] for name in ("description", "epilog")}
    parser = Parser(prog=program, **texts)
    parser.add_argument(
        "--version", action="version", version=f"sklearn-pate {__version__}"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, run in _COMMANDS.items():
        command = commands.add_parser(name, help=TABLE["command"][name]["help"])
        add_options(command, TABLE["command"][name])
        command.set_defaults(run=run)
    given = parser.parse_args(arguments)
    try:
        given.run(given)
    except BrokenPipeError:
        raise
    except (BudgetExceededError, ImportError, OSError, ValueError) as error:
        given.parser.refuse(error, given.names)
