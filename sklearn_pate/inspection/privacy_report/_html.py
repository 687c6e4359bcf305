"""A privacy report as one self-contained HTML page."""

import re
from functools import singledispatch
from html import escape
from typing import Any

from sklearn_pate.inspection.privacy_report._blocks import (
    Bullets,
    Checks,
    Picture,
    Section,
    Signatures,
    Sources,
    Table,
    Text,
)
from sklearn_pate.inspection.privacy_report._data_flow import draw_data_flow
from sklearn_pate.inspection.privacy_report._guarantee import conclusion_of
from sklearn_pate.inspection.privacy_report._sections import (
    banner_of,
    may_be_published,
    sections_of,
)
from sklearn_pate.inspection.privacy_report._style import INTERNAL_STYLE, STYLE

__all__ = ["to_html"]

_EXPONENT = re.compile(r"(?:delta=)?\d[\d.]*e-\d+")
_SHORT = 12  # rows of a table that is printed without a page break


def to_html(facts: dict[str, Any]) -> str:
    """Write a report as HTML5 with its style and picture, and without scripts."""
    banner, title = banner_of(facts), escape(facts["title"])
    shown, style = "", STYLE
    if banner is not None:
        shown = f'<p class="banner"><strong>{escape(banner)}</strong></p>\n'
        # Browsers show it on the tab and name printed files by it.
        title = f"INTERNAL: {title}"
        style += INTERNAL_STYLE
    kind = "plain" if facts["private"] and not facts["promise"]["weak"] else "bad"
    gauge = _gauge(facts["promise"]["guesses"]) if facts["private"] else ""
    sections = "\n".join(map(_section, sections_of(facts)))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
{shown}<h1>{escape(facts["title"])}</h1>
<p class="meta">Written on <time datetime="{facts["date"]}">{facts["date"]}</time>. \
{escape(may_be_published(facts))}</p>
<p class="conclusion {kind}">{escape(conclusion_of(facts))}</p>
{gauge}</header>
<main>
{sections}
</main>
</body>
</html>
"""


def _gauge(guesses: dict[str, int]) -> str:
    """Draw a limit between chance and certainty."""
    right, chance, of = guesses["right_at_most"], guesses["by_chance"], guesses["of"]
    share = 100 * (right - chance) / (of - chance)
    return (
        f'<div class="gauge" role="img" aria-label="Correct guesses: at most {right}, '
        f'between {chance} and {of}"><div style="width:{share:.1f}%"></div></div>\n'
        f'<p class="ends"><span>{chance}: without the publication</span>'
        f"<span>{of}: always correct</span></p>\n"
    )


def _section(section: Section) -> str:
    kind = ' class="new-page"' if section.starts_page else ""
    blocks = "\n".join(map(_render, section.blocks))
    return f"<section{kind}>\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>"


@singledispatch
def _render(block: Any) -> str:
    raise TypeError(block)


@_render.register
def _(block: Text) -> str:
    kind = ' class="warning"' if block.is_warning else ""
    return f"<p{kind}>{_words(block.text)}</p>"


@_render.register
def _(block: Bullets) -> str:
    items = "\n".join(f"<li>{_item(*one)}</li>" for one in block.items)
    return f"<ul>\n{items}\n</ul>"


@_render.register
def _(block: Checks) -> str:
    items = "\n".join(
        f'<li><span class="box" role="img" aria-label="to be confirmed"></span>'
        f"<div><strong>{_words(name)}.</strong> {_words(text)}</div></li>"
        for name, text in block.items
    )
    return f'<ul class="checks">\n{items}\n</ul>'


def _item(name: str, text: str) -> str:
    return f"<strong>{_words(name)}.</strong> {_words(text)}" if text else _words(name)


def _words(text: str) -> str:
    """Escape a text, and keep numbers such as 1e-05 on one line."""
    return _EXPONENT.sub(r'<span class="number">\g<0></span>', escape(text))


@_render.register
def _(block: Table) -> str:
    caption = escape(block.caption)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in block.head)
    rows = "\n".join(_row(*row) for row in block.rows)
    kind = ' class="long"' if len(block.rows) > _SHORT else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">\n'
        f"<table{kind}>\n<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(name: str, *values: str) -> str:
    cells = "".join(f"<td>{escape(value)}</td>" for value in values)
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'


@_render.register
def _(block: Signatures) -> str:
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("Role", "Name", "Date", "Signature")
    )
    rows = "\n".join(_row(role, "", "", "") for role in block.roles)
    return (
        '<div class="scroll" role="region" tabindex="0" aria-label="Confirmed by">\n'
        '<table class="signatures">\n<caption>Confirmed by</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n"
        "</div>"
    )


@_render.register
def _(block: Picture) -> str:
    return (
        f"<figure>\n{draw_data_flow(block.steps)}\n"
        f"<figcaption>{escape(block.caption)}</figcaption>\n</figure>"
    )


@_render.register
def _(block: Sources) -> str:
    items = "\n".join(
        f'<li>{escape(text)} <a href="{escape(link)}" target="_blank" '
        f'rel="noopener noreferrer">{escape(link.removeprefix("https://"))}</a></li>'
        for text, link in block.items
    )
    return f'<ul class="sources">\n{items}\n</ul>'
