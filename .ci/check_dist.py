"""Check what `make dist` built: what is in it, and that it works without a checkout.

The wheel is built from the source distribution, so that a wheel with every file of the
package, byte by byte, says the same of both.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "sklearn_pate"
# What setuptools adds to a source distribution, beside the egg-info.
ADDED = {"PKG-INFO"}


def main():
    """Check the two files in dist/; exit with a message at the first fault."""
    [wheel] = (ROOT / "dist").glob("*.whl")
    [sdist] = (ROOT / "dist").glob("*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
    with tempfile.TemporaryDirectory() as folder:
        build_again([wheel, sdist], Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        use(wheel, Path(folder))


def check_wheel(wheel):
    """Exit unless a wheel holds the package, its metadata and nothing else.

    Parameters
    ----------
    wheel : Path
        Built from the checkout.
    """
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    info = "-".join(wheel.name.split("-")[:2]) + ".dist-info/"
    metadata = {name.removeprefix(info) for name in found if name.startswith(info)}
    missing = {"METADATA", "entry_points.txt", "licenses/LICENSE"} - metadata
    if missing:
        raise SystemExit(f"{wheel.name} lacks {sorted(missing)} in its metadata.")
    compare(wheel, {n: data for n, data in found.items() if not n.startswith(info)})


def check_sdist(sdist):
    """Exit unless a source distribution holds every file that git tracks, and no other.

    Parameters
    ----------
    sdist : Path
        Built from the checkout.
    """
    found = {}
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            if member.isfile():
                _, _, name = member.name.partition("/")
                found[name] = archive.extractfile(member).read()
    git = ["git", "-C", str(ROOT), "ls-files", "-z"]
    tracked = {*subprocess.check_output(git, text=True).split("\0")} - {""}
    held = {name for name in found if not name.startswith(f"{PACKAGE}.egg-info/")}
    for names, does in (
        (tracked - held, "lacks"),
        (held - tracked - ADDED, "holds"),
    ):
        if names:
            raise SystemExit(f"{sdist.name} {does} {sorted(names)}; see MANIFEST.in.")
    compare(sdist, {n: d for n, d in found.items() if n.startswith(f"{PACKAGE}/")})


def build_again(built, folder):
    """Exit unless a second build has the same bytes.

    Parameters
    ----------
    built : list of Path
        Files of the first build, with SOURCE_DATE_EPOCH as it is now.

    folder : Path
        Where the second build is written.
    """
    run(
        [sys.executable, "-m", "build", "--quiet", "--outdir", str(folder), str(ROOT)],
        folder,
    )
    for path in built:
        if path.read_bytes() != (folder / path.name).read_bytes():
            raise SystemExit(f"A second build of {path.name} has other bytes.")
    print("A second build has the same bytes.")


def compare(archive, found):
    """Exit unless an archive holds the files of the package as they are.

    Parameters
    ----------
    archive : Path
        Its name is told.

    found : dict of str to bytes
        What is in it, by path.
    """
    wanted = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in (ROOT / PACKAGE).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    changed = {name for name in wanted.keys() & found if wanted[name] != found[name]}
    for names, does, remedy in (
        (wanted.keys() - found, "lacks", "name them in package-data of pyproject.toml"),
        (found.keys() - wanted, "holds", "leave out what is not the package"),
        (changed, "has another version of", "build it again"),
    ):
        if names:
            raise SystemExit(f"{archive.name} {does} {sorted(names)}; {remedy}.")
    print(f"{archive.name} has the {len(wanted)} files of the package.")


def use(wheel, folder):
    """Install a wheel with its core dependencies alone, and use it.

    Parameters
    ----------
    wheel : Path
        What to install.

    folder : Path
        Empty, and outside of the checkout.
    """
    venv.create(folder / "venv")
    programs = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    pip += ["--python", str(programs / "python")]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    run([*pip, "install", "--quiet", "--no-compile", *constraints, str(wheel)], folder)
    run([*pip, "check"], folder)
    python = [str(programs / "python"), "-I", "-W", "error"]
    run([*python, str(ROOT / ".ci" / "smoke.py")], folder)
    run([*python, "-m", PACKAGE, "--version"], folder)
    run([str(programs / "sklearn-pate"), "--help"], folder)


def run(command, folder, **variables):
    """Run a command in a folder; exit with its status if it fails.

    Parameters
    ----------
    command : list of str
        The program and its arguments.

    folder : Path
        Where.

    **variables : str
        Further variables of the environment.
    """
    print("$", *command, flush=True)
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
