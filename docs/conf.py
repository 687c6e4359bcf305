"""Sphinx configuration of the site, built by ``make docs``."""

import json
import re
import sys
import tomllib
import zlib
from pathlib import Path

import sklearn_pate

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))  # for guide_pictures, gallery_order and mathml

import guide_pictures  # noqa: E402

guide_pictures.main()


def write_outputs(folder, stored):
    """Write what the examples printed that are not run here."""
    folder.mkdir(exist_ok=True)
    for name, table in json.loads(stored.read_text()).items():
        [row] = table["rows"]
        when = f"# {table['date']}, {table['machine']}, {60 * table['minutes']:.0f} s"
        text = f"{when}\n$ {row['command']}\n{row['output']}"
        (folder / f"{name}.txt").write_text(text)


def write_names(folder, pages):
    """Write a table of the names on each page of the API, with their summaries."""
    for page in pages:
        lines = []
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule::"):
                lines += [line, "", ".. autosummary::", "   :nosignatures:", ""]
            elif re.fullmatch(r"   \w[\w.]*", line):  # a name in a table
                lines.append(line)
        (folder / f"names_{page.stem}.txt").write_text("\n".join(lines) + "\n")


RESULTS = DOCS.parent / "benchmarks" / "results"
write_outputs(DOCS / "outputs", RESULTS / "example_outputs.json")
write_names(DOCS / "outputs", (DOCS / "api").glob("*.rst"))


def write_inventory(library, names, path):
    """Write names of another library in the format of intersphinx."""
    lines = [
        f"{name} py:{kind} 1 {names['page'].format(name)}#$ -"
        for kind in ("class", "function")
        for name in names[kind]
    ]
    head = f"# Sphinx inventory version 2\n# Project: {library}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    path.write_bytes(head.encode() + zlib.compress("\n".join(lines).encode()))


intersphinx_mapping = {}
for library, names in tomllib.loads((DOCS / "inventories.toml").read_text()).items():
    stored = DOCS / "outputs" / f"{library}.inv"
    write_inventory(library, names, stored)
    intersphinx_mapping[library] = (names["home"], str(stored))

project = "sklearn_pate"
author = "The sklearn_pate developers"
project_copyright = f"2026, {author}"
version = release = sklearn_pate.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["build"]
templates_path = ["_templates"]
nitpicky = True  # a broken reference within the site is a warning
nitpick_ignore_regex = [("py:.*", r"torch\..*")]
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output are not copied

# Pages

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_space = False  # "$ command" is no formula
myst_dmath_allow_digits = False
html_math_renderer = "mathml"
myst_heading_anchors = 3
# Other links are file names, which work in the repository too.
myst_url_schemes = ("http", "https")

# API

autosummary_generate = True
autodoc_typehints = "none"  # docstrings have the types
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False

# Gallery

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    # The others need data that are not inside scikit-learn, and are not run.
    "filename_pattern": "/plot_",
    "parallel": True,  # as many as --jobs
    # Unchanged scripts run again, as the package may have changed.
    "run_stale_examples": True,
    "default_thumb_file": str(DOCS / "pictures" / "private_learners.png"),
    "thumbnail_size": (800, 560),
    "within_subsection_order": "gallery_order.GalleryOrder",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("sklearn_pate",),
    "reference_url": {"sklearn_pate": None},
    "show_memory": False,
    "write_computation_times": False,  # its page would load scripts of the network
    "remove_config_comments": True,
}

# HTML

html_theme = "pydata_sphinx_theme"
html_title = f"sklearn_pate {release}"
html_static_path = ["_static"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"*": []}  # no sidebar on pages outside of sections
html_theme_options = {
    "logo": {"text": "sklearn_pate", "alt_text": "sklearn_pate, start page"},
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
