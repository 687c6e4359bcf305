"""PATE-G on MNIST
===============

The student of the 2017 PATE paper is a generative adversarial network. The student
learns the classes from 100 noisy answers. From all public images, the student learns to
distinguish images from generated ones, so 100 answers are enough.

Each teacher is a nearest-neighbour classifier on 240 images. The representation of the
images is fitted on public images, and has no privacy cost. With networks as teachers,
the paper reports accuracy 0.980 at epsilon 2.04, a bound at the votes that were cast.
Run the script by::

    python examples/mnist_pate_g.py --picture queries.png  # some minutes, 12 MB

.. literalinclude:: /outputs/mnist_pate_g.txt
   :language: text

.. image:: /pictures/mnist_pate_g.png
"""

# sphinx_gallery_thumbnail_path = "pictures/mnist_pate_g.png"

import argparse
import time

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.datasets import fetch_mnist
from sklearn_pate.mechanisms import LNMax
from sklearn_pate.students import GANClassifier

N_PRIVATE, N_PUBLIC = 60_000, 9_000
N_TEACHERS, N_QUERIES = 250, 100
N_EPOCHS = 20


def draw(images, answers, true, path):
    """Draw the queries, sorted by answer, with wrong answers marked."""
    import matplotlib.pyplot as plt

    n_lines = -(-len(images) // 20)
    figure, axes = plt.subplots(
        n_lines, 20, figsize=(10, 0.7 * n_lines + 0.4), layout="constrained"
    )
    for axis in axes.flat:
        axis.axis("off")
    for axis, i in zip(axes.flat, np.argsort(answers, kind="stable"), strict=False):
        axis.imshow(images[i].reshape(28, 28), cmap="gray_r")
        wrong = answers[i] != true[i]
        title = f"{answers[i]}, not {true[i]}" if wrong else answers[i]
        axis.set_title(title, color="#d55e00" if wrong else "k", fontsize=8, pad=2)
    n_wrong = np.count_nonzero(answers != true)
    figure.suptitle(f"{len(images)} queries; {n_wrong} answers are wrong (in orange)")
    figure.savefig(path, dpi=120)
    print(f"\ndrew {path}")


def main():
    """Fit, compare with a student without unlabelled images, and print the costs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--picture", help="file for the queries (needs matplotlib)")
    picture = parser.parse_args().picture

    X, y = fetch_mnist(subset="train", return_X_y=True)
    X_rest, y_rest = fetch_mnist(subset="test", return_X_y=True)
    X, X_rest = X[:N_PRIVATE] / np.float32(255), X_rest / np.float32(255)
    X_public, X_test = X_rest[:N_PUBLIC], X_rest[-1000:]

    pate = PATEClassifier(
        KNeighborsClassifier(1),
        GANClassifier(image_shape=(28, 28), max_epochs=N_EPOCHS),
        n_teachers=N_TEACHERS,
        mechanism=LNMax(gamma=0.05),  # noise of scale 20, as in the paper
        vote="plain",  # for the most probable class, as in the paper
        n_queries=N_QUERIES,
        query_strategy="representative",
        representation=PCA(50),
        epsilon=None,
        classes=range(10),
        random_state=0,
    )
    start = time.perf_counter()
    pate.fit(X, y[:N_PRIVATE], X_public=PublicData(X_public))
    seconds = time.perf_counter() - start

    # Sensitive results are printed because this data set is public.
    analysis = pate.privacy_analysis_
    queried, answers, y_test = pate.queried_indices_, pate.answers_, y_rest[-1000:]
    y_queried = y_rest[queried]
    alone = LogisticRegression(max_iter=3000).fit(X_public[queried], answers)
    right = {
        "the teachers' plurality": analysis.plurality == y_queried,
        "their noisy answers": answers == y_queried,
        "a student of the answers alone": alone.predict(X_test) == y_test,
        "the student of all public images": pate.predict(X_test) == y_test,
    }
    print(f"{N_TEACHERS} teachers and a student in {seconds:.0f} s")
    print("\naccuracy")
    for name, which in right.items():
        print(f"  {which.mean():.3f}  {name}")
    print(f"\nepsilon at delta={pate.delta}")
    for name, epsilon in {  # rounded up
        "the paper's bound at these votes: sensitive": analysis.paper_epsilon,
        "the exact cost of these votes: sensitive": analysis.epsilon,
        "at any votes: may be published": pate.privacy_spent_.epsilon,
    }.items():
        print(f"  {np.ceil(1000 * epsilon) / 1000:.3f}  {name}")
    print()
    print(pate.privacy_spent_)
    if picture:
        draw(X_public[queried], answers, y_queried, picture)


if __name__ == "__main__":
    main()
