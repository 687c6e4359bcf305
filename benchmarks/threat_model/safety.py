"""Tests of noise and ledger. Writes results/safety.json.

noise    a million draws of each sampler at scales from 0.1 to 1000: time, and the
         p-value of a chi-square test against the exact distribution
kills    500 fits killed (kill -9) in 4 processes that share a ledger
"""

import tempfile
import time

import numpy as np

from benchmarks.record import command, save
from sklearn_pate.mechanisms._noise import NoiseSource
from tests.accounting import kills as killed_fits
from tests.mechanisms.laws import goodness_of_fit

N_DRAWS = 10**6
N_KILLS = 500
SCALES = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


def noise():
    """Measure and test the samplers."""
    distributions = {
        "discrete Gaussian": (
            lambda source, scale: source.discrete_gaussian(scale, N_DRAWS),
            lambda z, scale: -((z / scale) ** 2) / 2,
        ),
        "discrete Laplace": (
            lambda source, scale: source.discrete_laplace(1 / scale, N_DRAWS),
            lambda z, scale: -np.abs(z) / scale,
        ),
    }
    rows = []
    for name, (draw, log_weight) in distributions.items():
        for scale in SCALES:
            source = NoiseSource()
            started = time.perf_counter()
            draws = draw(source, scale)
            seconds = time.perf_counter() - started
            p_value = goodness_of_fit(
                draws,
                lambda z, scale=scale, log_weight=log_weight: log_weight(z, scale),
                scale,
            )
            rows.append(
                {
                    "distribution": name,
                    "scale": scale,
                    "seconds": seconds,
                    "p_value": p_value,
                }
            )
            print(rows[-1], flush=True)
    return rows


def kills():
    """Kill fits, and search for missing entries of the ledger."""
    with tempfile.TemporaryDirectory() as folder:
        found = killed_fits.run(folder, N_KILLS)
    print(found)
    return [found]


def main():
    """Measure the named tables, or all."""
    sections = {"noise": noise, "kills": kills}
    for name in command(__doc__, sections).parse_args().tables:
        save("safety", name, sections[name]())
