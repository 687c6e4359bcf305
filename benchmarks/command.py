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

        def table(name):
            if name not in tables:
                raise argparse.ArgumentTypeError(
                    f"{name!r} is none of the tables {', '.join(tables)}"
                )
            return name

        parser.add_argument(
            "tables",
            nargs="*",
            type=table,
            default=[*tables],
            metavar="table",
            help=f"all by default; one or more of {', '.join(tables)}",
        )
    return parser
