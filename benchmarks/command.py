"""Command lines of the benchmarks."""

import argparse


def command(doc, tables=()):
    """Return a parser with the docstring of a script as its help.

    It takes names of `tables` if there are any, and means all of them without a name.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if tables:
        parser.add_argument(
            "tables",
            nargs="*",
            # A default is compared with the choices, too.
            choices=[*tables, [*tables]],
            default=[*tables],
            metavar="table",
            help=f"all by default; one or more of {', '.join(tables)}",
        )
    return parser
