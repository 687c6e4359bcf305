"""What pyproject.toml cannot state: links of README.md, times in a source distribution.

On a package index, relative links lead nowhere. GitHub has pages of files at /blob/,
and the files themselves, such as pictures, at /raw/.
"""

import gzip
import os
import re
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist

# Address of the repository's files, with a slash at its end. Without it, links stay.
HOME = os.environ.get("README_HOME", "")
README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")


class SourceDistribution(sdist):
    """Archive of equal bytes in each build with the same SOURCE_DATE_EPOCH."""

    def make_archive(self, base_name, kind, base_dir=None, **options):
        """Write the archive; without SOURCE_DATE_EPOCH, let setuptools write it."""
        if kind != "gztar" or "SOURCE_DATE_EPOCH" not in os.environ:
            return super().make_archive(base_name, kind, base_dir=base_dir, **options)
        time = int(os.environ["SOURCE_DATE_EPOCH"])

        def same_each_time(member):
            member.mtime = time
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            return member

        path = f"{base_name}.tar.gz"
        with (
            gzip.GzipFile(path, "wb", mtime=time) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=same_each_time)
        return path


linked = re.sub(r"\]\((?!https?:|#)", f"]({HOME}", README)
pictures = HOME.replace("/blob/", "/raw/")

setup(
    cmdclass={"sdist": SourceDistribution},
    long_description=re.sub(r'src="(?!https?:)', f'src="{pictures}', linked),
    long_description_content_type="text/markdown",
)
