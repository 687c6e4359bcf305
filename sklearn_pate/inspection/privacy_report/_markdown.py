"""A privacy report as Markdown."""

import re
from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any

from sklearn_pate.inspection.privacy_report._blocks import (
    Bullets,
    Checks,
    Picture,
    Signatures,
    Sources,
    Table,
    Text,
)
from sklearn_pate.inspection.privacy_report._data_flow import data_flow_lines
from sklearn_pate.inspection.privacy_report._guarantee import conclusion_of
from sklearn_pate.inspection.privacy_report._sections import (
    banner_of,
    may_be_published,
    sections_of,
)

__all__ = ["to_markdown"]

# Characters that start markup; underscores inside words do not.
_SPECIAL = re.compile(r"([\\`*\[\]<>|&~#]|(?<!\w)_|_(?!\w))")


def to_markdown(facts: dict[str, Any]) -> str:
    """Write a report as CommonMark with the tables and check boxes of GitHub."""
    parts = [f"# {_escaped(facts['title'])}"]
    banner = banner_of(facts)
    if banner is not None:
        parts.insert(0, f"> **{_escaped(banner)}**")
    parts += [
        f"Written on {facts['date']}. {may_be_published(facts)}",
        f"**{_escaped(conclusion_of(facts))}**",
    ]
    for section in sections_of(facts):
        parts += [f"## {section.title}", *map(_render, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


@singledispatch
def _render(block: Any) -> str:
    raise TypeError(block)


@_render.register
def _(block: Text) -> str:
    text = _escaped(block.text)
    return f"> **{text}**" if block.is_warning else text


@_render.register
def _(block: Bullets) -> str:
    return "\n".join(f"- {_item(*one)}" for one in block.items)


@_render.register
def _(block: Checks) -> str:
    return "\n".join(
        f"- [ ] **{_escaped(name)}.** {_escaped(text)}".rstrip()
        for name, text in block.items
    )


def _item(name: str, text: str) -> str:
    name = _escaped(name)
    return f"**{name}.** {_escaped(text)}" if text else name


@_render.register
def _(block: Table) -> str:
    return f"{_escaped(block.caption)}:\n\n{_table(block.head, block.rows)}"


@_render.register
def _(block: Signatures) -> str:
    return _table(
        ("Role", "Name", "Date", "Signature"),
        [(role, "", "", "") for role in block.roles],
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


@_render.register
def _(block: Picture) -> str:
    lines = [f"1. {_escaped(line)}" for line in data_flow_lines(block.steps)]
    return "\n".join([_escaped(block.caption), "", *lines])


@_render.register
def _(block: Sources) -> str:
    return "\n".join(f"- {_escaped(text)} <{link}>" for text, link in block.items)
