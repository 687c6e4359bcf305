"""Formulas as MathML, made at build time: browsers draw it without any JavaScript."""

import re
from importlib.resources import files
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from fontTools import subset
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
# The bar of |x|, which browsers would otherwise space like a relation.
BAR = '<mo stretchy="false">|</mo>'
TIGHT_BAR = '<mo stretchy="false" lspace="0" rspace="0">|</mo>'
# Characters of formulas: Latin, Greek, operators, arrows, brackets; italic and script.
CHARACTERS = (
    *((0x20, 0x7E), (0xA0, 0xFF), (0x391, 0x3F6), (0x2010, 0x2064), (0x2100, 0x214F)),
    *((0x2190, 0x2194), (0x2200, 0x22FF), (0x2308, 0x230B), (0x27E8, 0x27E9)),
    *((0x1D434, 0x1D467), (0x1D49C, 0x1D4CF), (0x1D6A8, 0x1D71B)),
)


def adapt(formula):
    """Raise primes, and put space behind ln: the reader of LaTeX does neither."""
    spaced = re.sub(r"\\ln (?=[A-Za-z]|\\(?![Bb]ig))", r"\\ln\\, ", formula)
    return re.sub("'+", lambda found: "^{" + r"\prime " * len(found[0]) + "}", spaced)


def write_formula(writer, node):
    """Write a formula of a page; warn about LaTeX that is not understood."""
    is_block = isinstance(node, nodes.math_block)
    try:
        formula = tex2mathml(adapt(node.astext()), as_block=is_block)
    except MathError as error:
        LOGGER.warning("%s in %s", error, node.astext(), location=node)
        formula = writer.encode(node.astext())
    formula = formula.replace(BAR, TIGHT_BAR)
    tag = "div" if is_block else "span"
    writer.body.append(f'<{tag} class="formula">{formula}</{tag}>')
    raise nodes.SkipNode


def write_font(app, exception):
    """Write the font of formulas, for systems without a mathematical one."""
    if exception or app.builder.format != "html":
        return
    options = subset.Options(flavor="woff", layout_features=["*"], name_IDs=["*"])
    source = files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"
    font = subset.load_font(str(source), options)
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=[i for a, b in CHARACTERS for i in range(a, b + 1)])
    chosen.subset(font)
    path = Path(app.outdir, "_static", "formulas.woff")
    subset.save_font(font, str(path), options)


def setup(app):
    """Add the renderer ``mathml``, for ``html_math_renderer``, and its font."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
