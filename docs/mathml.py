"""Formulas as MathML, made at build time: browsers draw it without any JavaScript."""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def write_formula(writer, node):
    """Write a formula of a page; warn about LaTeX that is not understood."""
    is_block = isinstance(node, nodes.math_block)
    try:
        formula = tex2mathml(node.astext(), as_block=is_block)
    except MathError as error:
        LOGGER.warning("%s in %s", error, node.astext(), location=node)
        formula = writer.encode(node.astext())
    tag = "div" if is_block else "span"
    writer.body.append(f'<{tag} class="formula">{formula}</{tag}>')
    raise nodes.SkipNode


def setup(app):
    """Add the renderer ``mathml``, for ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
