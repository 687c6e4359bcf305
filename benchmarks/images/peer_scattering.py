"""Scattering features of images, in an environment of their own.

kymatio 0.3.0 needs scipy below 1.15, so this script runs in a separate environment, and
imports nothing of this project::

    python -m venv .venv-scattering
    .venv-scattering/bin/python -m pip install kymatio==0.3.0 "scipy<1.15" torch

It reads images of shape (n, channels, height, width) from one file of numpy, and writes
the features of all channels, of two scales and eight angles, to another one::

    .venv-scattering/bin/python benchmarks/images/peer_scattering.py in.npy out.npy

The transform (Bruna, Mallat 2013) has no parameter that is learned from data.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from kymatio.torch import Scattering2D

AT_ONCE = 500


def main():
    """Transform the images of a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("images", type=Path)
    parser.add_argument("features", type=Path)
    given = parser.parse_args()
    images = np.load(given.images, mmap_mode="r")
    scattering = Scattering2D(J=2, shape=images.shape[2:])
    parts = []
    for start in range(0, len(images), AT_ONCE):
        pixels = torch.from_numpy(images[start : start + AT_ONCE] / np.float32(255))
        features = scattering(pixels.contiguous()).flatten(1)
        parts.append(features.numpy().astype(np.float16))
    np.save(given.features, np.concatenate(parts))


if __name__ == "__main__":
    main()
