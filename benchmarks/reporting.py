"""Markdown tables of result files."""


def table(results, columns, *, rows=None, note=""):
    """Format a table with the conditions of its measurement.

    ``columns`` maps a heading to the name of a value in a row, to a pair of name and
    format, or to a function that gets the row. ``rows`` replaces the rows of the
    results; a list among them has finished cells.
    """
    rows = results["rows"] if rows is None else rows
    cells = [
        row if isinstance(row, list) else [_cell(row, one) for one in columns.values()]
        for row in rows
    ]
    return f"{markdown(columns, cells)}\n\n{source(results)}{note}"


def _cell(row, column):
    if callable(column):
        return column(row)
    name, write = (column, str) if isinstance(column, str) else column
    value = row.get(name)
    return "" if value is None else write(value)


def cross_table(rows, title, line, column, cell, heading):
    """Format a table with a line and a column for each value of `line` and of `column`.

    A row with column None fills all cells of its line.
    """
    lines = {}
    for row in rows:
        lines.setdefault(line(row), {})[column(row)] = cell(row)
    columns = sorted({one for cells in lines.values() for one in cells} - {None})
    return markdown(
        [title, *map(heading, columns)],
        [
            [name, *(cells.get(one, cells.get(None, "")) for one in columns)]
            for name, cells in lines.items()
        ],
    )


def markdown(header, rows, rule="--:"):
    """Format a table; the first column is text, the others are numbers by default."""
    rules = ["---"] + [rule] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rules, *rows])


def source(results):
    """Describe command, date and duration of a measurement."""
    n_seeds = len(results.get("seeds", ()))
    seeds = f", {n_seeds} seed{'s' * (n_seeds > 1)}" if n_seeds else ""
    return f"`{results['command']}`, {results['date']}{seeds}{_duration(results)}."


def _duration(results):
    # Runs may be stored and resumed, so that their own times come first.
    runs = [
        row.get("cpu_seconds", row.get("seconds"))
        for row in results["rows"]
        if isinstance(row, dict)
    ]
    minutes = sum(sum(one["values"]) for one in runs if isinstance(one, dict)) / 60
    if minutes:
        return f", fits of {_hours(minutes)} together"
    return f", {_hours(results['minutes'])}" if "minutes" in results else ""


def _hours(minutes):
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.0f} h"


def decimals(n):
    """Return a format of a number, or of the mean of a summary, with n decimals."""

    def write(value):
        return f"{value['mean'] if isinstance(value, dict) else value:.{n}f}"

    return write


def percent(value, digits=1):
    """Format a share, or the summary of one with its standard deviation, in percent."""
    return _with_spread(value, 100, digits)


def area(value):
    """Format the area under a ROC curve."""
    return _with_spread(value, 1, 3)


def spread(value):
    """Format a mean with its standard deviation."""
    return _with_spread(value, 1, 2)


def _with_spread(value, unit, digits):
    if not isinstance(value, dict):
        return f"{unit * value:.{digits}f}"
    text = f"{unit * value['mean']:.{digits}f}"
    if len(value["values"]) > 1:
        text += f" ± {unit * value['std']:.{digits}f}"
    return text
