"""Blocks of a privacy report, which every format renders."""

from typing import NamedTuple, TypeAlias

from sklearn_pate.inspection.privacy_report._data_flow import Step

__all__ = [
    "Block",
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
    """Paragraph, highlighted if it is a warning."""

    text: str
    is_warning: bool = False


class Bullets(NamedTuple):
    """List of (subject, text) pairs; a text may be empty."""

    items: tuple[tuple[str, str], ...]


class Checks(NamedTuple):
    """Check list of (statement to confirm, question) pairs."""

    items: tuple[tuple[str, str], ...]


class Table(NamedTuple):
    """Table whose first column holds the names of its rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Signatures(NamedTuple):
    """Lines to sign, one per role."""

    roles: tuple[str, ...]


class Picture(NamedTuple):
    """Picture of the data flow."""

    steps: list[Step]
    caption: str


class Sources(NamedTuple):
    """List of (reference, address) pairs."""

    items: tuple[tuple[str, str], ...]


Block: TypeAlias = Text | Bullets | Checks | Table | Signatures | Picture | Sources


class Section(NamedTuple):
    """Titled part of the report, on a new printed page if it starts one."""

    title: str
    blocks: list[Block]
    starts_page: bool = False
