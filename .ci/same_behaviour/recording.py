"""Noise that is keyed by purpose and index, and records of what a fit does."""

import contextlib
import hashlib
import io
import json
import os
import pickle
import random
import secrets
import sqlite3
import time
import warnings
from collections import Counter

import joblib
import numpy as np
from sklearn.naive_bayes import GaussianNB

_FIELDS = [
    "classes_",
    "answers_",
    "queried_indices_",
    "histograms_",
    "soft_answers_",
    "marginals_",
    "public_indices_",
    "n_features_in_",
    "feature_names_in_",
    "best_params_",
    "released_",
    "batch_of_row_",
    "intercept_",
]
_EPSILONS = np.array([0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
_DELTAS = (1e-9, 1e-5, 1e-3)
_DRAWS = ("discrete_gaussian", "discrete_laplace", "bernoulli_exp", "index", "argmax")

#: What happened in the configuration that runs, in order.
EVENTS: list = []
#: Number of the draw, or of the storing, that a process is killed at.
KILL: dict[str, int] = {}
#: Rows that a teacher is tried on before any cost; fits on them are no event.
TRIED: list = []
_COUNTS: Counter = Counter()
_GENERATORS: list = []


class Killed(BaseException):
    """The end of a process."""


def note(kind, *facts):
    """Append an event, or kill the process before it."""
    if kind in KILL:
        KILL[kind] -= 1
        if KILL[kind] < 0:
            del KILL[kind]
            raise Killed(kind)
    EVENTS.append((kind, *facts))


class Teacher(GaussianNB):
    """Notes the rows and labels of each fit."""

    def fit(self, X, y, sample_weight=None):
        """Fit."""
        tried = any(np.isin(X, rows).all() for rows in TRIED)
        if not tried:
            note("teacher", len(X), joblib.hash([np.array(X), np.array(y)]))
        elif EVENTS[-1:] != [("tried",)]:
            EVENTS.append(("tried",))
        return super().fit(X, y, sample_weight)


def _generator(*key):
    """Return a generator for the next draw with that key."""
    _COUNTS[key] += 1
    digest = hashlib.sha256(repr((key, _COUNTS[key])).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16]))


def _plain(shape):
    """Return a shape as a tuple of int."""
    return tuple(np.atleast_1d(shape).tolist())


def _random_bytes(n=None):
    return _generator("bytes", n).bytes(32 if n is None else n)


def make_secrets_reproducible():
    """Replace the secret random numbers of the standard library; before any import."""
    secrets.token_bytes = _random_bytes
    secrets.token_hex = lambda n=None: _random_bytes(n).hex()
    random._urandom = _random_bytes

    class Connection(sqlite3.Connection):
        """Notes what is committed to a ledger."""

        noted: list = []  # noqa: RUF012

        def execute(self, sql, *values):
            first = sql.split(None, 1)[0].upper()
            if "INTO charges" in sql:
                self.noted = [*self.noted, ("charge",)]
            elif "UPDATE draws SET pending = 1" in sql:
                self.noted = [*self.noted, ("continue",)]
            done = super().execute(sql, *values)
            if first in ("BEGIN", "ROLLBACK"):
                self.noted = []
            elif first == "COMMIT":
                for one in self.noted:
                    note(*one)
            return done

        def executemany(self, sql, lines):
            lines = list(lines)
            if "INTO answers" in sql:
                note("store", len(lines))
            return super().executemany(sql, lines)

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **kwargs: connect(
        *args, **({"factory": Connection} | kwargs)
    )


def make_noise_reproducible(source, is_unseeded):
    """Key each draw of unseeded noise by its law, its scale and its number."""
    init, words = source.__init__, source.words

    def new_init(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self._is_keyed = is_unseeded(self, (*args, *kwargs.values()))

    def new_words(self, shape):
        if not self._is_keyed:
            return words(self, shape)
        if not _GENERATORS:
            note("noise", "words", _plain(shape))
        drawn = (_GENERATORS or [_generator("words", int(np.prod(shape)))])[-1]
        return np.frombuffer(drawn.bytes(8 * int(np.prod(shape))), "<u8").reshape(shape)

    def keyed(name, draw):
        def new_draw(self, scale, shape=None):
            arguments = (scale,) if shape is None else (scale, shape)
            if not self._is_keyed or _GENERATORS:
                return draw(self, *arguments)
            if name == "argmax":
                key = name, scale.shape[1]
            else:
                key = name, repr(float(scale))
                note("noise", *key, _plain(getattr(shape, "shape", shape)))
            _GENERATORS.append(_generator(*key))
            try:
                return draw(self, *arguments)
            finally:
                _GENERATORS.pop()

        return new_draw

    source.__init__, source.words = new_init, new_words
    for name in _DRAWS:
        setattr(source, name, keyed(name, getattr(source, name)))


@contextlib.contextmanager
def caught():
    """Collect the categories of warnings."""
    categories = []
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            yield categories
        finally:
            own = (one.category for one in raised)
            names = {
                one.__name__ for one in own if one.__module__.startswith("sklearn_pate")
            }
            categories += sorted(names)


def of_cost(curve, profile):
    """Record a curve and a profile."""
    record = {"orders": curve.orders, "curve": curve.values}
    record["pure_epsilon"] = float(getattr(curve, "pure_epsilon", np.inf))
    record["epsilons"] = [float(curve.quiet_epsilon(delta)) for delta in _DELTAS]
    if profile is not None:
        record["deltas"] = np.asarray(profile.delta_at(_EPSILONS))
        record["epsilons_of_profile"] = [profile.epsilon_at(one) for one in _DELTAS]
    return record


def of_statement(spent):
    """Record a privacy statement."""
    names = [
        "epsilon",
        "delta",
        "unit",
        "relation",
        "n_teachers",
        "n_queries",
        "n_tables",
        "mu",
    ]
    record = {name: getattr(spent, name) for name in names}
    record["assumptions"] = [one.code for one in spent.assumptions]
    return record | of_cost(spent.curve, spent.profile)


def of_ledger(ledger):
    """Record a ledger."""
    entries = [(one.epsilon, one.delta, one.share) for one in ledger.entries()]
    return {"entries": entries, "spent": ledger.spent}


class _Names(pickle.Unpickler):
    """Lists the names of all classes and functions of a pickle."""

    def __init__(self, *args):
        super().__init__(*args)
        self.names = set()

    def find_class(self, module, name):
        if module.startswith(("sklearn", "recording")):
            self.names.add(name)
        return super().find_class(module, name)


def of_fit(fitted, fresh, names):
    """Record all that a fit released, and what its pickle holds."""
    record = {name: getattr(fitted, name, None) for name in _FIELDS}
    record["coefficients"] = names.coefficients(fitted)
    record["noise"] = names.noise_of(fitted)
    record["spent"] = of_statement(fitted.privacy_spent_)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(fitted, method):
            record[method] = np.asarray(getattr(fitted, method)(fresh))
    analysis = getattr(fitted, "privacy_analysis_", None)
    if analysis is not None:
        record["votes"] = analysis.counts
        record["failures"] = [one for one, _ in analysis.teacher_failures]
        record["warned"] = [one for one, _ in analysis.teacher_warnings]
        record["n_problems"] = len(fitted.data_problems_)
    reader = _Names(io.BytesIO(pickle.dumps(fitted)))
    kept = vars(reader.load())
    known = reader.names - names.PARAMETERS
    record["pickled"] = sorted(names.CLASS_NAMES.get(one, one) for one in known)
    record["attributes"] = [
        one
        for one in sorted(kept)
        if one[-1] == "_" != one[0] and kept[one] is not None
    ]
    hidden = "privacy_analysis_", "public_indices_"
    record["sensitive"] = [one for one in hidden if one in kept]
    for name in names.not_compared(fitted):
        record.pop(name, None)
    return record


def of_refusal(call, ledger=None):
    """Record the error of a call, and what it spent."""
    record: dict = {"error": None}
    with caught() as record["warnings"]:
        try:
            call()
        except (Exception, Killed) as error:
            record["error"] = type(error).__name__
    if ledger is not None:
        record["ledger"] = of_ledger(ledger)
    return record


def of_command(arguments):
    """Run a command of the package in this process."""
    import runpy
    import sys

    import names

    kept, out = sys.argv, io.StringIO()
    sys.argv = ["sklearn_pate", *map(str, arguments)]
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_module("sklearn_pate", run_name="__main__")
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        sys.argv = kept
    text = out.getvalue()
    printed = json.loads(text) if text.startswith(("{", "[")) else {}
    return {"exit code": code, "numbers": names.numbers(printed), "any": bool(text)}


def run(name, configuration, folder):
    """Run one configuration from a clean state."""
    import sys
    import traceback

    EVENTS.clear()
    KILL.clear()
    TRIED.clear()
    _COUNTS.clear()
    _GENERATORS.clear()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    start, here = time.time(), os.getcwd()
    os.chdir(folder)
    try:
        with caught() as categories:
            record = configuration()
        record.setdefault("warnings", categories)
    except Exception:
        record = {"failed": traceback.format_exc()}
    finally:
        os.chdir(here)
    record.setdefault("events", list(EVENTS))
    record["seconds"] = time.time() - start
    return record
