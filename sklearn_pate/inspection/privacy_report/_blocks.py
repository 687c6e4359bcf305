"""What a privacy report is written in: blocks that every format renders."""

from typing import NamedTuple

from sklearn_pate.inspection.privacy_report._data_flow import Station

__all__ = [
    "Bullets",
    "Checks",
    "Picture",
    "Section",
    "Signatures",
    "Sources",
    "Table",
    "Text",
]


class Text(NamedTuple):
    """A paragraph.

    Parameters
    ----------
    text : str
        One or more sentences.

    warns : bool
        Whether it is to stand out.
    """

    text: str
    warns: bool = False


class Bullets(NamedTuple):
    """A list.

    Parameters
    ----------
    items : tuple of (str, str)
        What each is about, and what there is to say.
    """

    items: tuple[tuple[str, str], ...]


class Checks(NamedTuple):
    """A list of what somebody has to confirm.

    Parameters
    ----------
    items : tuple of (str, str)
        What is confirmed, and what to ask.
    """

    items: tuple[tuple[str, str], ...]


class Table(NamedTuple):
    """A table, whose first column names its rows.

    Parameters
    ----------
    caption : str
        What it shows.

    head : tuple of str
        Names of the columns.

    rows : tuple of tuple of str
        As long as `head`.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Signatures(NamedTuple):
    """Lines to sign.

    Parameters
    ----------
    roles : tuple of str
        Who signs.
    """

    roles: tuple[str, ...]


class Picture(NamedTuple):
    """The picture of what goes where.

    Parameters
    ----------
    stations : list of Station
        Its boxes.

    caption : str
        What it shows.
    """

    stations: list[Station]
    caption: str


class Sources(NamedTuple):
    """Papers.

    Parameters
    ----------
    items : tuple of (str, str)
        Each with its address.
    """

    items: tuple[tuple[str, str], ...]


class Section(NamedTuple):
    """A part of the report.

    Parameters
    ----------
    title : str
        Its heading.

    blocks : list
        What is in it.
    """

    title: str
    blocks: list[Text | Bullets | Checks | Table | Signatures | Picture | Sources]
