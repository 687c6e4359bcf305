"""VATClassifier on MNIST at a thousand answers. Writes results/vat.json.

9000 of the test images are public; a thousand of them have an answer, of which 1 % are
wrong. VAT with its defaults also learns from the other 8000. It is compared with the
same network on the answered images only, for the same number of steps and for a sixth
of them, and with FixMatch with its defaults. All are scored on the other 1000 test
images. Every finished run is stored in ``benchmarks/work``.
"""

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from command import command
from dpsgd import load_pixels
from record import save
from runs import Runs, summaries

from sklearn_pate.students import FixMatchClassifier, VATClassifier

WORK = Path(__file__).parent / "work"
MNIST = SimpleNamespace(name="MNIST")
SEEDS = (0, 1, 2)
N_PUBLIC, N_ANSWERS, N_WRONG = 9000, 1000, 10
# An epoch has 70 batches on all rows, and 31 on the answered rows.
ALONE = {"adversarial_weight": 0, "entropy_weight": 0, "batch_size": 32}
#: Use of images without an answer, and the student.
STUDENTS = {
    "VAT": (True, VATClassifier()),
    "answers alone": (False, VATClassifier(**ALONE, max_epochs=90)),
    "answers alone, fewer steps": (False, VATClassifier(**ALONE, max_epochs=15)),
    "FixMatch": (True, FixMatchClassifier()),
}


def answered(seed):
    """Return public images, their answers (-1 for none), test images and digits."""
    X, y = load_pixels("test")
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(X))
    public, held_out = order[:N_PUBLIC], order[N_PUBLIC:]
    answers = np.full(N_PUBLIC, -1)
    answers[:N_ANSWERS] = y[public[:N_ANSWERS]]
    wrong = rng.choice(N_ANSWERS, N_WRONG, replace=False)
    answers[wrong] = (answers[wrong] + rng.randint(1, 10, N_WRONG)) % 10
    return X[public], answers, X[held_out], y[held_out]


def run(images, setting, seed, key):
    """Train a student; return the key and the results."""
    X, answers, X_test, y_test = answered(seed)
    sees_all, student = STUDENTS[setting]
    rows = slice(None) if sees_all else slice(N_ANSWERS)
    student.set_params(image_shape=(28, 28), random_state=seed)
    start = time.process_time()
    student.fit(X[rows], answers[rows])
    return key, {
        "cpu_seconds": time.process_time() - start,
        "accuracy": float(student.score(X_test, y_test)),
    }


def main():
    """Make the missing runs, and write the table."""
    command(__doc__).parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "vat-runs.jsonl", run)
    rows = [
        {"student": name, **summaries(results)}
        for name, results in zip(STUDENTS, runs(MNIST, STUDENTS, SEEDS), strict=True)
    ]
    packages = ("torch", "skorch")
    save("vat", "mnist", rows, packages=packages, seeds=list(SEEDS))


if __name__ == "__main__":
    main()
