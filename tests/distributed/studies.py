"""Studies over three sites with simulated rows."""

import base64
import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PrivacyLedger
from sklearn_pate.distributed import Collector, Site, Study
from sklearn_pate.students import UncertaintyQueries

#: Marks of tests of studies: small, and so of little use.
OF_STUDIES = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::sklearn_pate.PrivacyUtilityWarning",
        "ignore::sklearn_pate.PublicDataWarning",
    ),
]

NAMES = ["north", "south", "east"]
PARTS = {"north": slice(0, 1500), "south": slice(1500, 2000), "east": slice(2000, 3000)}
NEWTON = DPNewtonClassifier(classes=[0, 1], random_state=0)
VOTES = PATEClassifier(
    GaussianNB(),
    mechanism="histogram",
    n_teachers=60,
    n_queries=100,
    classes=[0, 1],
    random_state=0,
)
#: A fit whose queries follow earlier answers.
IN_ROUNDS = clone(VOTES).set_params(query_strategy=UncertaintyQueries(), n_queries=80)


def study_of(rows, estimator=NEWTON, **changed):
    given = {"sites": NAMES, "n_rows": 3000} | changed
    return Study(estimator, rows[2], **given)


def ledger_at(folder, name, epsilon=1.0):
    return PrivacyLedger(folder / f"{name}.sqlite", epsilon=epsilon, delta=1e-5)


def sites_of(study, rows, folder, parts=PARTS, **columns):
    X, y, *_ = rows
    return {
        name: Site(
            study,
            name,
            X[part],
            y[part],
            ledger=ledger_at(folder, name),
            **{key: values[part] for key, values in columns.items()},
        )
        for name, part in parts.items()
    }


def collector_of(study, sites):
    keys = {name: site.public_key for name, site in sites.items()}
    return Collector(study, keys)


def one_round(collector, sites):
    """Send the next request to all sites, and add up their replies."""
    request = collector.request()
    collector.add([one.reply(request, collector.fingerprint) for one in sites.values()])
    return request


def run(study, sites):
    collector = collector_of(study, sites)
    while collector.request() is not None:
        one_round(collector, sites)
    return collector


def numbers_of(reply):
    """Return the masked numbers of a reply, but for the last, which is a check."""
    content = base64.b64decode(json.loads(reply)["masked"])
    return np.frombuffer(content, dtype="<u8")[:-1]


def other_history(collector, change):
    """Return the request of a collector after a change of what was released."""
    forged = Collector(collector.study, collector._public_keys)
    forged._rounds = change(list(collector._rounds))
    return forged.request()
