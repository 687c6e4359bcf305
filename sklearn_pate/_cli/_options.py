"""Options of commands: their table, the types of their values, and errors."""

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._value_checks import read_table
from sklearn_pate.mechanisms import ConfidentGNMax
from sklearn_pate.publication._model_file import paths_of

#: Texts of the program and of its commands, with their options.
TABLE = read_table("sklearn_pate._cli", "commands.toml")


class _Noted(argparse.Action):
    """Value of an option; `options_given` has the names of those that were given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        namespace.__dict__.setdefault("options_given", set()).add(self.dest)
        setattr(namespace, self.dest, values)


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
        # argparse reads "-1,3" as another option, not as the value of --classes.
        message = re.sub(
            r"(--[\w-]+): expected one argument$",
            "\\g<0>; write a value that starts with a minus as \\1=...",
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


def add_options(parser: argparse.ArgumentParser, command: Mapping[str, Any]) -> None:
    """Add the description and the options of a command to its parser."""
    parser.description, parser.epilog = command["description"], command["epilog"]
    names: dict[str, str] = {}
    one_of_two = None
    for name, own in command["options"].items():
        option = TABLE["shared"].get(name, {}) | own
        flags = option.pop("flags", [f"--{name}"])
        names |= dict.fromkeys(option.pop("parameters", ()), f"--{name}")
        if "type" in option:
            option["type"] = _TYPES[option["type"]]
        option.setdefault("action", _Noted)
        if option.pop("one_of_two", False):
            one_of_two = one_of_two or parser.add_mutually_exclusive_group()
            one_of_two.add_argument(*flags, **option)
        else:
            parser.add_argument(*flags, **option)
    parser.set_defaults(parser=parser, names=names)


def _parsed(kind: Callable[[str], Any], what: str, example: str, text: str) -> Any:
    """Parse a value; the library checks its range."""
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not {what}; write {example}, for example"
        ) from None


_count = partial(_parsed, int, "a whole number", "100")
_number = partial(_parsed, float, "a number", "0.5")


def _texts(text: str) -> list[str]:
    """Parse texts that are separated by commas."""
    texts = [one.strip() for one in text.split(",")]
    if not all(texts):
        raise argparse.ArgumentTypeError(
            f"{text!r} has nothing before or behind a comma; leave the comma out"
        )
    return texts


def _labels(text: str) -> list[Any]:
    """Parse labels: whole numbers if all of them are, text otherwise."""
    labels = _texts(text)
    try:
        return [int(label) for label in labels]
    except ValueError:
        return labels


def _figure(text: str) -> tuple[tuple[str, ...], float]:
    """Parse the names and the value of a score."""
    *names, value = (part.strip() for part in text.split("="))
    if len(names) not in (1, 2) or not all(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=VALUE; write accuracy=0.84, for example"
        )
    return tuple(names), _number(value)


def _model(text: str) -> str:
    """Parse the path of a model."""
    try:
        paths_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("path=")) from None
    return text


def _page(text: str) -> Path:
    """Parse the path of a report."""
    path = Path(text)
    if path.suffix not in (".html", ".md"):
        raise argparse.ArgumentTypeError(f"{text!r} must end in .html or .md")
    return path


# Types of values, by their names in the table.
_TYPES: dict[str, Callable[[str], Any]] = {
    "count": _count,
    "count or auto": lambda text: text if text == "auto" else _count(text),
    "figure": _figure,
    "labels": _labels,
    "model": _model,
    "number": _number,
    "page": _page,
    "path": Path,
    "texts": _texts,
    "votes or share": lambda text: int(text) if text.isdecimal() else _number(text),
}


def chosen_mechanism(given: argparse.Namespace) -> str | ConfidentGNMax:
    """Return the mechanism that --mechanism and --threshold choose."""
    if given.threshold is None:
        return given.mechanism
    if given.mechanism != "confident":
        raise ValueError(
            f"threshold={given.threshold!r} applies to mechanism=confident only, "
            f"not to mechanism={given.mechanism}; leave it out."
        )
    return ConfidentGNMax(threshold=given.threshold)


def check_is_file(name: str, path: str | Path) -> None:
    """Raise unless an option names a file."""
    if not Path(path).is_file():
        raise ValueError(f"{name}={str(path)!r} is not a file; correct the path.")


def check_own_files(outputs: Iterable[str | Path], inputs: Iterable[Any]) -> None:
    """Raise if a command would write one of the files that it reads."""
    read = {Path(path).resolve() for path in inputs if path is not None}
    for path in outputs:
        if Path(path).resolve() in read:
            raise ValueError(
                f"{path} is a file that this command reads; choose another output."
            )


def open_ledger(path: str | None) -> PrivacyLedger | None:
    """Open the ledger that an option names."""
    if path is None:
        return None
    check_is_file("ledger", path)
    return PrivacyLedger(path)


@contextmanager
def plain_warnings(parser: argparse.ArgumentParser) -> Iterator[None]:
    """Write warnings to stderr as the command's own words, without a line of code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        print(f"{parser.prog}: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
