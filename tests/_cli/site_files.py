"""Files of five simulated sites, for tests of the commands study, vote, fit-votes."""

import numpy as np
import pandas as pd

SITES = ["north", "south", "east", "west", "centre"]
N_TEACHERS = 4
STUDY = ["--study", "study.json", "--public", "public.csv"]
TEACHER = """\
from sklearn.naive_bayes import GaussianNB

teacher = GaussianNB()
"""


def rows_of_a_site(seed, n_patients=80):
    """Rows of patients, of which some have two, with features, label and id."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), rng.integers(1, 3, n_patients))
    X = rng.normal(size=(len(patient), 2)).round(3)
    return pd.DataFrame(
        {
            "patient": [f"{seed}-{one}" for one in patient],
            "age": X[:, 0],
            "readmitted": np.where(X.sum(axis=1) > 0, "yes", "no"),
            "marker": X[:, 1],
        }
    ).sample(frac=1, random_state=seed)


def write_site_files(folder):
    """Write public rows, private rows of each site, and a teacher."""
    for seed, site in enumerate(SITES):
        rows_of_a_site(seed).to_csv(folder / f"{site}.csv", index=False)
    public = rows_of_a_site(99, 30)[["age", "marker"]]
    public.to_csv(folder / "public.csv", index=False)
    (folder / "teacher.py").write_text(TEACHER)


def study(*options):
    """Arguments that write a study; later ones replace earlier ones."""
    return [
        *["study", "--public", "public.csv", "--classes", "no,yes"],
        *["--teachers", str(N_TEACHERS), "--sites", ",".join(SITES), *options],
    ]


def vote(site, *options):
    """Arguments of the vote of a site; later ones replace earlier ones."""
    return [
        *["vote", *STUDY, "--key", "study.key", "--site", site, "--data"],
        *[f"{site}.csv", "--label", "readmitted", "--group", "patient"],
        *["--teacher", "teacher.py", "-o", f"{site}.votes", *options],
    ]


def without(arguments, option):
    """Arguments without an option and its value."""
    at = arguments.index(option)
    return arguments[:at] + arguments[at + 2 :]


def fit_votes(*options, sites=SITES):
    """Arguments of a fit on the votes of sites."""
    files = [f"{site}.votes" for site in sites]
    return [
        "fit-votes",
        *files,
        *STUDY,
        "--queries",
        "5",
        "-o",
        "model.skops",
        *options,
    ]
