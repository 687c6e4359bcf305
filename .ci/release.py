"""Prepare a release: `make release VERSION=0.1.0 README_HOME=https://.../`.

It commits the version and the date, builds and checks the files in dist/, runs the
quick tests from the source distribution, and prints what is left for a person with the
keys. A failure leaves the tree as it was, without dist/. With a version that ends in
".dev0", only the version is written and committed.
"""

import datetime
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from check_dist import run
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parent.parent
CHANGELOG = "CHANGELOG.md"
CITATION = "CITATION.cff"
# Files with a line such as `version: 0.1.0`.
VERSIONED = ["sklearn_pate/__init__.py", CITATION, "recipe/recipe.yaml"]
LINE = r'(?m)^( *(?:version: |__version__ = "))([^\s"$]+)("?)$'
# What the first release adds to files.
DONE_ONCE = {
    "pyproject.toml": "[project.urls]",
    CITATION: "repository-code: ",
    "README.md": "pip install 'sklearn-pate[",
}
LEFT = """\
dist/ has the files of {version}. What is left, in this order:

  git push origin {branch}
      and wait until the workflow has passed; if it fails, upload nothing:
      git revert HEAD, correct the fault, and make the release again
  git tag --annotate v{version} --message "Release {version}"
  git push origin v{version}
  {python} -m twine upload dist/*
  make release VERSION={following}
  git push origin {branch}
"""


def main():
    """Prepare the release whose version is the only argument."""
    try:
        version = Version(sys.argv[1])
    except (IndexError, InvalidVersion):
        raise SystemExit("Give a version: make release VERSION=0.1.0") from None
    check(version)
    before = git("rev-parse", "HEAD")
    try:
        write(version)
        if not version.is_devrelease:
            # make installs the package again, as the commit changed the version.
            run(["make", "dist"], ROOT)
            test_source_distribution()
    except BaseException:
        git("reset", "--hard", "--quiet", before)
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        print("The release failed; all files are as they were.", file=sys.stderr)
        raise
    if not version.is_devrelease:
        python = Path(sys.executable)
        if python.is_relative_to(ROOT):
            python = python.relative_to(ROOT)
        following = f"{version.major}.{version.minor + 1}.0.dev0"
        branch = git("branch", "--show-current")
        print(LEFT.format(**locals()))


def check(version):
    """Exit unless a version can be released from here.

    Parameters
    ----------
    version : Version
        The version.
    """
    found = re.search(LINE, (ROOT / VERSIONED[0]).read_text(encoding="utf-8"))
    current = Version(found[2])
    home = os.environ.get("README_HOME", "")
    releases = current.is_devrelease and version.base_version == current.base_version
    follows = version.is_devrelease and not current.is_devrelease and version > current
    if git("status", "--porcelain"):
        raise SystemExit("Commit or remove first what `git status` shows.")
    if not (follows or (releases and str(version) == version.base_version)):
        raise SystemExit(f"{version} is not the version after {current}.")
    if follows:
        return
    branch = git("branch", "--show-current")
    if not re.fullmatch(r"main|\d+\.\d+\.x", branch):
        raise SystemExit("Release from main, or from a branch such as 0.1.x.")
    for name, text in DONE_ONCE.items():
        if text not in (ROOT / name).read_text(encoding="utf-8"):
            raise SystemExit(
                f"{name} has no {text}: CONTRIBUTING.md says what is done once before "
                "the first release."
            )
    if git("tag", "--list", f"v{version}"):
        raise SystemExit(f"The tag v{version} exists.")
    if not re.fullmatch(r"https://.+/", home):
        raise SystemExit(
            "Give README_HOME=https://.../, the address of the repository's files: on "
            "a package index, the links of README.md lead nowhere without it."
        )


def write(version):
    """Write a version, and its line in the changelog, and commit them.

    Parameters
    ----------
    version : Version
        The version.
    """
    for name in VERSIONED:
        replace(name, LINE, rf"\g<1>{version}\g<3>")
    section = f"## {version.base_version} (unreleased)"
    if version.is_devrelease:
        replace(CHANGELOG, r"\A# Changelog\n", rf"\g<0>\n{section}\n")
        replace(CITATION, r"(?m)^date-released: .*\n", "")
        message = f"Development of {version.base_version}"
    else:
        today = datetime.date.today().isoformat()
        replace(CHANGELOG, re.escape(section), f"## {version} ({today})")
        replace(CITATION, r"(?m)^version: .*\n", rf"\g<0>date-released: {today}\n")
        message = f"Release {version}"
    git("commit", "--quiet", "--message", message, "--", *VERSIONED, CHANGELOG)
    print(git("show", "--stat", "--format=%h %s"), flush=True)


def replace(name, pattern, new):
    """Replace a text that a file has once; exit if it has not.

    Parameters
    ----------
    name : str
        Path of the file in the repository.

    pattern, new : str
        As in `re.sub`.
    """
    path = ROOT / name
    text, n_found = re.subn(pattern, new, path.read_text(encoding="utf-8"))
    if n_found != 1:
        raise SystemExit(
            f"{name} has {n_found} times what matches {pattern}, not once."
        )
    path.write_text(text, encoding="utf-8")


def test_source_distribution():
    """Run the quick tests in the unpacked source distribution."""
    [sdist] = (ROOT / "dist").glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        [unpacked] = Path(folder).iterdir()
        pytest = [sys.executable, "-m", "pytest", "--fast", "--quiet"]
        options = ["--numprocesses", "2", "--dist", "worksteal"]
        run([*pytest, *options], unpacked, PYTHONPATH=str(unpacked))


def git(*arguments):
    """Run git in the repository.

    Parameters
    ----------
    *arguments : str
        Its arguments.

    Returns
    -------
    output : str
        What git printed.
    """
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.check_output(command, text=True).strip()


if __name__ == "__main__":
    main()
