"""README.md for a package index, where relative links lead nowhere."""

import os
import re
from pathlib import Path

from setuptools import setup

# Address of the repository's files, with a slash at its end. Without it, links stay.
HOME = os.environ.get("README_HOME", "")
README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")

setup(
    long_description=re.sub(r'(\]\(|src=")(?!https?:|#)', rf"\g<1>{HOME}", README),
    long_description_content_type="text/markdown",
)
