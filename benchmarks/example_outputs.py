"""Output of examples that the site does not run: results/example_outputs.json.

quickstart              the demo; half a minute
hospital_readmission    patients as the unit, on Diabetes; a minute
mnist_pate_g            a network as student, on MNIST; some minutes, and needs torch

The pages of these examples show what is stored here, and the pictures that examples
draw into ``docs/pictures``.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.record import ROOT, command, save

PICTURES = Path("docs") / "pictures"
#: Examples with their options.
EXAMPLES = {
    "quickstart": ["--folder", "demo"],
    "hospital_readmission": ["--picture", str(PICTURES / "hospital_readmission.png")],
    "mnist_pate_g": ["--picture", str(PICTURES / "mnist_pate_g.png")],
}


def run(name):
    """Run an example; return its command and what it prints."""
    line = [f"examples/{name}.py", *EXAMPLES[name]]
    done = subprocess.run(
        [sys.executable, "-u", *line],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # the phases of fits
        text=True,
        check=True,
    )
    # Warnings name the file, in this checkout.
    output = done.stdout.replace(f"{ROOT.resolve()}/", "")
    return {"command": " ".join(["python", *line]), "output": output}


def main():
    """Run the named examples, or all."""
    for name in command(__doc__, EXAMPLES).parse_args().tables:
        row = run(name)
        if name == "quickstart":
            drawn = ROOT / "demo" / "accuracy.png"
            (ROOT / PICTURES / "quickstart.png").write_bytes(drawn.read_bytes())
        save("example_outputs", name, [row])
