"""Noise that hides nothing
========================

"Private deep learning with teacher ensembles" (Sun et al. 2019) adds noise to the loss
of the student. A number that is added to a loss is gone from its gradient: the student
does not depend on it, and whoever can guess the data can check the guess. First that is
attacked, then noise on what teachers say, as PETDLClassifier adds it::

    python examples/petdl_noisy_loss.py
    python examples/petdl_noisy_loss.py --picture attack.png
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PrivacyLeakWarning, PublicData
from sklearn_pate.baselines import PETDLClassifier
from sklearn_pate.inspection.audits._statistics import bound_from_guesses

# Table 1 of the paper, for MNIST and 4 teachers.
CLAIMED_EPSILON, CLAIMED_ACCURACY = 1.21, 0.9933
N_FITS = 20

PAPER = {"mode": "paper", "epsilon": None, "noise_scale": 1.0, "clipping_bound": 10.0}
SOUND = {"mode": "sound", "student": GaussianNB()}


def fit(world, X_public, **parameters):
    """Fit with 4 teachers; anybody may know this random_state."""
    petdl = PETDLClassifier(
        GaussianNB(var_smoothing=0.1),
        n_teachers=4,
        batch_size=32,
        image_shape=(8, 8),
        compression=2,
        distillation_epochs=4,
        random_state=0,
        **parameters,
    )
    return petdl.fit(*world, X_public=PublicData(X_public))


def attack(publish, suspected):
    """Let a coin choose the data of each fit, and guess it from what is published."""
    coins = np.random.default_rng().integers(2, size=N_FITS)
    seen = np.array([publish(coin) for coin in coins])
    # -1 or 1 is what the first or the second data set would give, but for the noise.
    direction = suspected[1] - suspected[0]
    middle = (suspected[0] + suspected[1]) / 2
    scores = 2 * np.sum((seen - middle) * direction, axis=(1, 2)) / np.sum(direction**2)
    n_right = int(np.count_nonzero((scores > 0) == coins))
    epsilon = bound_from_guesses(
        n_right, n_guesses=N_FITS, n_canaries=N_FITS, delta=1e-5, confidence=0.95
    )
    print(f"  {n_right} of {N_FITS} guesses were right, and with 95% confidence")
    print(f"  epsilon is at least {epsilon:.2f}, where {CLAIMED_EPSILON} is claimed")
    return coins, scores


def draw(attacks, path):
    """Draw what the attacker saw of each fit."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for axis, (title, (coins, scores)) in zip(axes, attacks.items(), strict=True):
        axis.scatter(range(N_FITS), scores, c=np.where(coins, "#cc5522", "#2277cc"))
        axis.axhline(0, color="#999999")
        axis.set(title=title, xlabel="fit", ylabel="attacker's score")
    figure.suptitle("Two data sets, by colour; the attacker guesses by the line")
    figure.savefig(path, dpi=120)
    print(f"\ndrew {path}")


def main():
    """Compare students, and attack them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--picture", help="file for a picture (needs matplotlib)")
    picture = parser.parse_args().picture

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=300, random_state=0)
    X, X_public, y, _ = train_test_split(X, y, test_size=400, random_state=0)
    # Two neighbouring data sets, one with somebody else in row 0.
    worlds = [(X, y), (np.vstack([X[1], X[1:]]), np.append(y[1], y[1:]))]

    # What the fits warn of is what is shown here.
    warnings.simplefilter("ignore", PrivacyLeakWarning)

    def of_paper(world):
        return fit(worlds[world], X_public, **PAPER).predict_proba(X_test)

    students = [of_paper(0) for _ in range(3)]
    accuracy = np.mean(students[0].argmax(axis=1) == y_test)
    same = all(np.array_equal(student, students[0]) for student in students)
    suspected = students[0], of_paper(1)
    print(f"Noise on the loss: a student with an accuracy of {accuracy:.3f}")
    print(f"  after other noise, it is the same to the last bit: {same}")
    print(f"  with somebody else in row 0, another: {not np.array_equal(*suspected)}")
    print("An attacker knows all rows but row 0, and is shown the student:")
    first = attack(of_paper, suspected)
    print(f"  by the paper, at an accuracy of {CLAIMED_ACCURACY:.2%} on MNIST")

    def of_sound(world, **noise):
        noise = {"epsilon": CLAIMED_EPSILON} | noise
        return fit(worlds[world], X_public, **SOUND, **noise).released_

    print("\nNoise on what the teachers say, and the same attacker, shown all of it:")
    quiet = {"epsilon": None, "noise_scale": 1e-3}
    second = attack(of_sound, [of_sound(world, **quiet) for world in (0, 1)])
    print("  and proved; a student of 4 teachers hears as little as the attacker")
    if picture:
        draw({"noise on the loss": first, "noise on the sum": second}, picture)


if __name__ == "__main__":
    main()
