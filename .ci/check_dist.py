"""Check what `make dist` built: what is in it, and that it works without a checkout.

The wheel is built from the source distribution, so that a wheel with every file of the
package, byte by byte, says the same of both.
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "sklearn_pate"
# What a source distribution may hold beside the package.
BESIDE = {
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    f"{PACKAGE}.egg-info",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tests",
}


def main():
    """Check the two files in dist/; exit with a message at the first fault."""
    [wheel] = (ROOT / "dist").glob("*.whl")
    [sdist] = (ROOT / "dist").glob("*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
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
    """Exit unless a source distribution holds the package, and no more than it may.

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
    top = {name.partition("/")[0] for name in found}
    strangers = top - BESIDE - {PACKAGE}
    if strangers:
        raise SystemExit(f"{sdist.name} holds {sorted(strangers)}; leave them out.")
    compare(sdist, {n: d for n, d in found.items() if n.startswith(f"{PACKAGE}/")})


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


def run(command, folder):
    """Run a command in a folder; exit with its status if it fails.

    Parameters
    ----------
    command : list of str
        The program and its arguments.

    folder : Path
        Where.
    """
    print("$", *command, flush=True)
    done = subprocess.run(command, cwd=folder, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
