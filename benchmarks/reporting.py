"""How figures are written in the tables."""


def percent(measured):
    """Format an accuracy: mean and, over several seeds, standard deviation."""
    return _with_spread(measured, 100, 1)


def area(measured):
    """Format an AUC."""
    return _with_spread(measured, 1, 3)


def _with_spread(measured, unit, digits):
    text = f"{unit * measured['mean']:.{digits}f}"
    if len(measured["values"]) > 1:
        text += f" ± {unit * measured['std']:.{digits}f}"
    return text


def markdown(header, rows):
    """Format a table; the first column is text, the others are numbers."""
    rule = ["---"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def source(results):
    """Say where the figures come from."""
    versions = ", ".join(f"{k} {v}" for k, v in results["versions"].items())
    seeds = f"; seeds {results['seeds']}" if "seeds" in results else ""
    return (
        f"Measured {results['date']}, Python {results['python']}, {versions}; "
        f"{results['machine']}{seeds}."
    )


def number(value, digits=2):
    """Format a number that may be missing."""
    return "" if value is None else f"{value:.{digits}f}"
