"""Fits and metrics over several sites, whose sums nobody sees without noise."""

import base64
import copy
import hashlib
import json
import math
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, NoReturn, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from sklearn_pate._aggregation._entry import WITHOUT_CONSEQUENCE
from sklearn_pate._estimators._fingerprints import fingerprint, model_fingerprint
from sklearn_pate._inputs._containers import as_table
from sklearn_pate._inputs._features import in_short
from sklearn_pate._inputs._file_content import (
    check_can_write,
    digest_of_rows,
    strict_json,
    write_files,
)
from sklearn_pate._inputs._labels import PublicData, check_classes, public_table
from sklearn_pate._pate import PATEClassifier
from sklearn_pate._private import PrivateClassifier
from sklearn_pate.accounting._ledger import PrivacyLedger, Release
from sklearn_pate.accounting._sites import SharedRelease, SiteEntry, sharing
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._value_checks import (
    check_count,
    counted,
    fact_lines,
    printable,
)
from sklearn_pate.distributed._masks import SiteKey
from sklearn_pate.exceptions import PrivacyUtilityWarning
from sklearn_pate.learners._newton import DPNewtonClassifier
from sklearn_pate.mechanisms._noisy_sum import MOST_NUMBERS, MOST_SITES
from sklearn_pate.mechanisms._plurality import Response
from sklearn_pate.metrics import private_metrics

_FORMAT_VERSION = 1
# Parameters of a study that its file has.
_GIVEN = ("sites", "n_rows", "n_colluding", "measure")
# Arguments of `private_metrics` that sites have in common.
_OF_MEASURE = {"epsilon", "delta", "subgroup_values", "bins", "class_prior"}
# Hexadecimal digits of a fingerprint: two studies with equal ones take 2^96 tries.
_DIGITS = 48
# Relative difference of features that the arithmetic of another machine explains.
_ROUNDING = 1e-6
# No sum is as large.
_LARGEST_SUM = 2**56


class _Stopped(BaseException):
    """End of a fit at its next sum. No code of a fit may catch it as an error."""

    def __init__(self, result: Any = None) -> None:
        self.result = result


@dataclass(frozen=True)
class _Sums:
    """Released noisy sums of one round, one line for each number of a draw."""

    numbers: NDArray[np.int64]
    sums: NDArray[np.int64]

    def to_dict(self) -> dict[str, Any]:
        return {"numbers": _packed(self.numbers), "sums": _packed(self.sums)}

    @classmethod
    def from_dict(cls, values: dict[str, str]) -> Self:
        numbers = _unpacked(values["numbers"], "<i8")
        sums = _unpacked(values["sums"], "<i8").reshape(len(numbers), -1)
        return cls(numbers, sums)


class _Replay:
    """Entry of a fit whose noisy sums so far are released ones."""

    def __init__(self, rounds: Sequence[_Sums]) -> None:
        self._rounds = rounds

    def stored(self) -> dict[int, Release]:
        """Return the released sums; an answer is the class of most noisy votes."""
        return {
            int(number): Release(int(line.argmax()), line)
            for one in self._rounds
            for number, line in zip(one.numbers, one.sums, strict=True)
        }

    def open(self, n_new: int) -> int:
        """Stop, as the next sum is to be computed at the sites."""
        raise _Stopped


class Study:
    """Fit, or measurement, over several sites, and all that they agree on.

    Each site sends masked sums of its rows with its part of the noise. Masks cancel in
    the sum over all sites. So the collector of the replies sees noisy sums only, which
    the privacy statement covers. The statement also covers what the collector sees if
    up to `n_colluding` sites work together with it.

    Parameters
    ----------
    estimator : DPNewtonClassifier or PATEClassifier, or a fitted model
        Unfitted private classifier with `classes` and an integer `random_state`. A
        PATEClassifier has ``mechanism="histogram"``, or "scores". With `measure`, the
        published model that is measured.

    X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
            (n_public, n_features)
        Public rows. All sites must have exactly these rows.

    sites : sequence of str
        Names of the sites, at least two.

    n_rows : int, default=None
        Number of rows of all sites together, which is public, where rows are the unit
        of privacy. A wrong number makes predictions worse, not less private.

    n_colluding : int, default=None
        Number of sites whose noise does not count, as they may work with the collector,
        read the model, or leave their noise out. At least 1, as each site knows its own
        noise. With None, one less than half of the sites, rounded up. The noise is
        larger by ``sqrt(n_sites / (n_sites - n_colluding))`` than in a fit on all rows.

    measure : dict, default=None
        Arguments of :func:`~sklearn_pate.metrics.private_metrics`, such as
        ``{"epsilon": 0.5}``, to measure `estimator` on the rows of all sites.

    Attributes
    ----------
    privacy_spent : PrivacySpent
        Privacy statement of the whole study, before any private row is read.

    n_sums : int
        Number of noisy sums, or of queries with a noisy histogram.

    Raises
    ------
    ValueError
        If a parameter cannot be used.

    Notes
    -----
    Masks are from Bonawitz et al. (2017), "Practical secure aggregation for
    privacy-preserving machine learning", without a way to go on if a site drops out.
    The noise is from Kairouz, Liu, Steinke (2021), "The distributed discrete Gaussian
    mechanism for federated learning with secure aggregation". Each site is charged the
    whole cost before its first reply. Proofs: :doc:`/proofs/sites`.

    Examples
    --------
    Two sites and their collector in one process:

    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate import DPNewtonClassifier, PrivacyLedger, PublicData
    >>> from sklearn_pate.distributed import Collector, Site, Study
    >>> X, y = make_blobs(9000, centers=2, cluster_std=3.0, random_state=0)
    >>> newton = DPNewtonClassifier(classes=[0, 1], random_state=0)
    >>> public = PublicData(X[8000:8500])
    >>> study = Study(newton, public, sites=["north", "south"], n_rows=8000)
    >>> folder, sites = TemporaryDirectory(), {}
    >>> for name, rows in {"north": slice(5000), "south": slice(5000, 8000)}.items():
    ...     path = f"{folder.name}/{name}.sqlite"
    ...     ledger = PrivacyLedger(path, epsilon=1.0, delta=1e-5)
    ...     sites[name] = Site(study, name, X[rows], y[rows], ledger=ledger)
    >>> public_keys = {name: site.public_key for name, site in sites.items()}
    >>> collector = Collector(study, public_keys)
    >>> agreed = collector.fingerprint  # compared by phone
    >>> while (request := collector.request()) is not None:
    ...     collector.add([site.reply(request, agreed) for site in sites.values()])
    >>> model = collector.result()
    >>> bool(model.score(X[8500:], y[8500:]) > 0.6)
    True
    >>> folder.cleanup()
    """

    def __init__(
        self,
        estimator: Any,
        X_public: Any,
        *,
        sites: Sequence[str],
        n_rows: int | None = None,
        n_colluding: int | None = None,
        measure: dict[str, Any] | None = None,
    ) -> None:
        self.sites = check_sites(sites)
        n_sites = len(self.sites)
        check_count("len(sites)", n_sites, 2, MOST_SITES)
        if n_colluding is None:
            n_colluding = max(1, math.ceil(n_sites / 2) - 1)
        check_count("n_colluding", n_colluding, 1, n_sites - 1)
        check_count("n_rows", n_rows, also=(None,))
        if X_public is None:
            raise ValueError("X_public is None; pass the public rows of the study.")
        self.estimator = estimator
        self.n_rows = None if n_rows is None else int(n_rows)
        self.n_colluding = int(n_colluding)
        self.measure = measure
        # Copies: what sites agreed on does not change afterwards.
        self.X_public = copy.deepcopy(as_table(public_table(X_public), "X_public"))
        if measure is None:
            self._check_estimator()
            self.estimator = clone(estimator)
        else:
            self.measure = _checked_measure(measure)
        self.privacy_spent, self.n_sums, features = self._planned()
        wanted = None if measure is not None else self.estimator.epsilon
        if wanted is not None and self.privacy_spent.epsilon > wanted * (1 + 1e-9):
            raise ValueError(
                f"epsilon={wanted!r} is too large for noise that sites draw together, "
                f"with which the study would cost {self.privacy_spent.epsilon:.4g}; "
                "lower epsilon."
            )
        n_numbers = self.n_sums * len(self._made_up()["y"])
        if n_numbers > MOST_NUMBERS:
            raise ValueError(
                f"The study has {n_numbers} numbers, more than {MOST_NUMBERS}; use "
                "fewer queries."
            )
        self._content = self._described(features)

    def _check_estimator(self) -> None:
        """Raise ValueError unless all sites can run this fit alike."""
        estimator = self.estimator
        if not isinstance(estimator, (DPNewtonClassifier, PATEClassifier)):
            raise ValueError(
                f"estimator={in_short(estimator)} cannot be fitted over sites; pass a "
                "DPNewtonClassifier or a PATEClassifier, or measure= for a model."
            )
        if any(
            isinstance(one, PrivateClassifier)
            for one in estimator.get_params().values()
        ):
            raise ValueError(
                "estimator has a private classifier as a parameter, whose own release "
                "the sites cannot compute; use classifiers without noise."
            )
        if estimator.classes is None:
            raise ValueError(
                "estimator has classes=None, but no site sees all labels; set classes "
                "to all labels that may occur."
            )
        check_classes(estimator.classes)
        if not isinstance(estimator.random_state, Integral):
            raise ValueError(
                f"estimator has random_state={estimator.random_state!r}; set an "
                "integer, so that all sites make the same choices."
            )
        if (estimator.privacy_unit == "row") != (self.n_rows is not None):
            raise ValueError(
                f"n_rows={self.n_rows}, but privacy_unit={estimator.privacy_unit!r}; "
                "pass the number of rows of all sites if rows are the unit, and leave "
                "it out for groups, as it is then not public."
            )
        for name, why in (
            ("public_size", "public rows are the same at all sites"),
            ("synthetic", "rows are drawn from counts of all private rows"),
            ("ledger", "each site passes its own ledger"),
        ):
            if getattr(estimator, name) is not None:
                raise ValueError(
                    f"estimator has {name}={in_short(getattr(estimator, name))}, but "
                    f"{why}; set {name}=None."
                )

    def _planned(
        self, rows: Mapping[str, Any] | None = None
    ) -> tuple[PrivacySpent, int, Any]:
        """Plan the release, on made-up rows where there are none.

        Returns the statement, the number of sums and the features of public rows.
        """

        def open_entry(*stated: Any) -> NoReturn:
            raise _Stopped(stated)

        try:
            self._run(self._shared(open_entry, has_rows=rows is not None), rows)
        except _Stopped as stopped:
            spent, n_sums, _, features = stopped.result
            return spent, n_sums, features
        raise AssertionError("no entry was opened")

    def _shared(self, open_entry: Any, *, has_rows: bool = False) -> SharedRelease:
        return SharedRelease(
            len(self.sites), self.n_colluding, self.n_rows, has_rows, open_entry
        )

    def _run(self, shared: SharedRelease, rows: Mapping[str, Any] | None = None) -> Any:
        """Run the fit or the measurement on rows, or on made-up ones."""
        given = dict(self._made_up() if rows is None else rows)
        X, y = given.pop("X"), given.pop("y")
        with sharing(shared), warnings.catch_warnings():
            if rows is not None:  # what public numbers show is told with the study
                warnings.simplefilter("ignore", PrivacyUtilityWarning)
            if self.measure is None:
                public = PublicData(self.X_public)
                return clone(self.estimator).fit(X, y, X_public=public, **given)
            # Equal rows of each group in all rounds.
            given |= self.measure | {"random_state": 0}
            return private_metrics(self.estimator, X, y, **given)

    def _made_up(self) -> dict[str, Any]:
        """Return a public row of each class, for checks of a fit without rows."""
        y: Any
        if self.measure is None:
            y = np.asarray(self.estimator.classes)
        elif (kind := getattr(self.estimator, "_kind", None)) is None:
            y = np.asarray(self.estimator.classes_)
        else:
            of_time = [("event", bool), ("time", float)]
            y = np.zeros(1, dtype=of_time if kind == "time" else float)
        numbers = np.arange(len(y))
        X = _safe_indexing(self.X_public, numbers % self.X_public.shape[0])
        rows = {"X": X, "y": y}
        if self.n_rows is None:
            rows["groups"] = numbers
        if values := (self.measure or {}).get("subgroup_values"):
            rows["subgroups"] = [values[0]] * len(y)
        return rows

    def _described(self, features: Any) -> dict[str, Any]:
        """Return all that the sites agree on, as plain values."""
        task: Any = model_fingerprint(self.estimator)
        if self.measure is None:
            # Each site may choose what does not change the sums.
            parameters = self.estimator.get_params(deep=False)
            kept = sorted(parameters.keys() - WITHOUT_CONSEQUENCE)
            of_fit = [type(self.estimator), *((one, parameters[one]) for one in kept)]
            task = model_fingerprint(of_fit)
        spent = self.privacy_spent
        return {
            "format": "sklearn_pate study of sums",
            "format_version": _FORMAT_VERSION,
            "version": sys.modules["sklearn_pate"].__version__,
            **{name: getattr(self, name) for name in _GIVEN},
            "estimator": task,
            "public_rows": digest_of_rows(self.X_public),
            "statement": spent.in_one_line(),
            "unit": spent.unit,
            "mechanism": spent.mechanism,
            "n_sums": self.n_sums,
            "features": _summary(features),
        }

    @property
    def digest(self) -> bytes:
        """SHA-256 of all that the sites agree on, but for their keys."""
        return hashlib.sha256(_canonical(self._content)).digest()

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the study to a file, which may be public.

        Parameters
        ----------
        path : str or path-like
            Path of the file, such as "study.json".

        overwrite : bool, default=False
            Replace an existing file.

        Raises
        ------
        FileExistsError
            If the file exists and `overwrite` is False.
        """
        check_can_write([Path(path)], overwrite=overwrite)
        text = json.dumps(self._content, indent=2) + "\n"
        write_files({Path(path): text.encode()})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        estimator: Any,
        X_public: Any,
    ) -> Self:
        """Read a study, and check that everything here is what was agreed on.

        Parameters
        ----------
        path : str or path-like
            Path of the file that :meth:`save` wrote.

        estimator, X_public : object
            As for the study that was saved.

        Returns
        -------
        study : Study
            Study with the same digest at all sites.

        Raises
        ------
        ValueError
            If the file is not a study, or the estimator, the public rows, the noise or
            the features of the public rows differ from the study.
        """
        content = read_fields(Path(path).read_bytes(), "study of sums", str(path))
        try:
            given = {name: content[name] for name in _GIVEN}
            features = np.asarray(content["features"], dtype=np.float64)
        except (KeyError, TypeError, ValueError):
            raise _damaged(str(path)) from None
        study = cls(estimator, X_public, **given)
        own = study._content
        alike = np.asarray(own["features"])
        for name in sorted(own.keys() | content.keys()):
            if name != "features" and own.get(name) != content.get(name):
                raise ValueError(
                    f"{name} differs from the study in {path}: "
                    f"{printable(str(own.get(name))[:80])} is not "
                    f"{printable(str(content.get(name))[:80])}. Ask for the files of "
                    "the study again."
                )
        if alike.shape != features.shape or not np.allclose(
            alike, features, rtol=_ROUNDING, atol=_ROUNDING
        ):
            raise ValueError(
                "This machine computes other features from X_public than the study in "
                f"{path} has, so that its sums would not fit; install the same "
                "versions of numpy, scipy and scikit-learn as the other sites."
            )
        study._content = content
        return study

    def fingerprint(self, public_keys: Mapping[str, str]) -> str:
        """Return the fingerprint of the study and of all keys.

        Parameters
        ----------
        public_keys : dict
            Public key of each site, in hexadecimal digits.

        Returns
        -------
        fingerprint : str
            48 hexadecimal digits, which the sites compare by phone.
        """
        digits = hashlib.sha256(self.digest + _canonical(dict(public_keys))).hexdigest()
        return " ".join(digits[at : at + 4] for at in range(0, _DIGITS, 4))

    def __str__(self) -> str:
        """Describe the study and its privacy cost."""
        facts: dict[str, str | list[str]] = {
            "sites": ", ".join(self.sites),
            "noise": f"{self._shared(None).wider:.2f} times that of a fit on all rows "
            f"in one place, as {counted(self.n_colluding, 'site')} may work with the "
            "collector",
            "sums": str(self.n_sums),
        }
        return "\n".join([*fact_lines(facts), str(self.privacy_spent)])

    def __repr__(self) -> str:
        return f"Study({in_short(self.estimator)}, sites={self.sites})"


class Site:
    """Site of a study, with its private rows.

    Parameters
    ----------
    study : Study
        The study.

    name : str
        Name of this site in the study.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows of this site. Call ``estimator.check_data`` first.

    y : array-like of shape (n_rows,)
        Labels, or outcomes to measure.

    groups : array-like of shape (n_rows,), default=None
        Group id of each row, if groups are the unit of privacy.

    subgroups : array-like of shape (n_rows,), default=None
        Subgroup of each row, for metrics by subgroup.

    ledger : PrivacyLedger
        Privacy budget of this site's rows. Its file also keeps the replies, so that no
        round is answered twice. The file must never be restored from a backup.

    Attributes
    ----------
    public_key : str
        Public key for this study, in hexadecimal digits.

    Raises
    ------
    ValueError
        If a parameter cannot be used.

    ImportError
        If the package cryptography is not installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from sklearn_pate import DPNewtonClassifier, PrivacyLedger
    >>> from sklearn_pate.distributed import Site, Study
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(3000, 2)), rng.normal(size=(500, 2))
    >>> newton = DPNewtonClassifier(classes=[0, 1], random_state=0)
    >>> study = Study(newton, X_public, sites=["north", "south"], n_rows=8000)
    >>> folder = TemporaryDirectory()
    >>> ledger = PrivacyLedger(f"{folder.name}/north.sqlite", epsilon=1.0, delta=1e-5)
    >>> site = Site(study, "north", X, X[:, 0] > 0, ledger=ledger)
    >>> len(site.public_key)
    64
    >>> folder.cleanup()
    """

    def __init__(
        self,
        study: Study,
        name: str,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        subgroups: Any = None,
        ledger: PrivacyLedger,
    ) -> None:
        check_site(name, study.sites)
        if not isinstance(ledger, PrivacyLedger):
            raise ValueError(
                f"ledger={ledger!r} must be a PrivacyLedger, which keeps the replies."
            )
        if hasattr(X, "__dask_graph__"):
            raise ValueError("X is a dask collection; pass X.compute().")
        rows = {"X": X, "y": y, "groups": groups, "subgroups": subgroups}
        rows = {key: values for key, values in rows.items() if values is not None}
        wanted = study._made_up().keys()
        if rows.keys() != wanted:
            raise ValueError(
                f"A site of this study has {', '.join(wanted)}, but this one got "
                f"{', '.join(rows)}; pass these and no other columns."
            )
        if study.n_rows is not None and as_table(X).shape[0] > study.n_rows:
            raise ValueError(
                f"X has more rows than n_rows={study.n_rows} of all sites; compare the "
                "rows with the study."
            )
        self.study = study
        self.name = name
        self._rows = rows
        self._ledger = ledger
        self._key = SiteKey(ledger.key, study.digest, name)
        # What the fit refuses is told before any site is charged.
        study._planned(self._rows)

    @property
    def public_key(self) -> str:
        """Public key of this site for the study."""
        return self._key.public

    def reply(self, request: bytes, fingerprint: str) -> bytes:
        """Answer a request of the collector.

        The first reply charges the ledger the cost of the whole study. A reply is
        stored before it is returned, and the same request gets the same reply.

        Parameters
        ----------
        request : bytes
            Request, as :meth:`Collector.request` returns it.

        fingerprint : str
            Fingerprint of the study that the sites compared, without the collector.

        Returns
        -------
        reply : bytes
            Masked sums, for the collector.

        Raises
        ------
        ValueError
            If the request is not the next one of this study, if the round was answered
            to another request, or the fingerprint is another one.

        BudgetExceededError
            If the cost of the study exceeds the budget of the ledger. Nothing was
            charged.

        LedgerError
            If the file of the ledger cannot be read or written.
        """
        asked = self._asked(request)
        if _digits(fingerprint) != _digits(self.study.fingerprint(asked.public_keys)):
            raise ValueError(
                f"fingerprint={fingerprint!r} is not that of the request, "
                f"{self.study.fingerprint(asked.public_keys)}. Compare it with the "
                "other sites by phone: the collector may have replaced a key."
            )
        # Raises for a key that cannot be used, before anything is charged.
        self._masks(asked, 0)
        shared = self.study._shared(partial(self._open, asked), has_rows=True)
        try:
            self.study._run(shared, self._rows)
        except _Stopped as stopped:
            values = {"site": self.name, "request": asked.digest.hex()}
            return written("reply", self.study, values | stopped.result.to_dict())
        raise ValueError("The request has all sums of the study already.")

    def _asked(self, request: bytes) -> "_Request":
        """Read a request, or raise ValueError if it has another key of this site."""
        asked = _Request.read(request, self.study)
        if asked.public_keys[self.name] != self.public_key:
            raise ValueError(
                f"The request has another public key of {self.name} than this ledger "
                "has; use the ledger that this site joined with."
            )
        return asked

    def _masks(self, asked: "_Request", n_numbers: int) -> NDArray[np.uint64]:
        """Return the masks of this site for a request."""
        return self._key.masks(
            asked.public_keys, self.name, self.study.digest, asked.digest, n_numbers
        )

    def _open(
        self,
        asked: "_Request",
        spent: PrivacySpent,
        n_sums: int,
        private: Any,
        features: Any,
    ) -> "_SiteReplay":
        """Open the entry of this site, or stop with the reply that it has."""
        stated = self.study.privacy_spent
        if (spent.to_dict(), n_sums) != (stated.to_dict(), self.study.n_sums):
            raise ValueError(
                "The statement of this fit is not that of the study; use the same "
                "version of this package for both."
            )
        study, key = self.study.digest.hex(), self._ledger.key
        entry = SiteEntry.of_statement(
            self._ledger,
            spent,
            n_sums,
            description=f"study of {len(self.study.sites)} sites, {spent.mechanism}",
            dataset=fingerprint(key, "data", str(joblib.hash(private))),
            fit=fingerprint(key, "study", study, self.name),
            remedy=lambda: "The whole cost is charged before the first reply.",
        )
        entry.check_rows()
        replies = [
            _Reply.of_record(np.asarray(one.histogram))
            for _, one in sorted(entry.stored().items())
        ]
        number = len(asked.rounds)
        if number < len(replies) and replies[number].request == asked.digest:
            raise _Stopped(replies[number])
        if number < len(replies):
            raise ValueError(
                f"Sum {number + 1} was sent for another request already, and is sent "
                "once; ask the collector for the request that it sent first."
            )
        # What counts is which sums were sent, not what others were said to be.
        if [one.numbers.tolist() for one in asked.rounds] != [
            one.numbers.tolist() for one in replies
        ]:
            raise ValueError(
                "The request has other sums than this site has replied to; ask the "
                "collector for the requests in their order."
            )
        n_sent = sum(len(one.masked) for one in replies)
        return _SiteReplay(self, asked, entry, n_sent)


class _SiteReplay(_Replay):
    """Entry of a fit at a site, which stops with the reply to a request."""

    def __init__(
        self, site: Site, asked: "_Request", entry: SiteEntry, n_sent: int
    ) -> None:
        super().__init__(asked.rounds)
        #: Number of numbers that were sent before.
        self._n_sent = n_sent
        self._site = site
        self._asked = asked
        self._entry = entry

    def open(self, n_new: int) -> int:
        """Record the whole cost on disk, unless it is recorded."""
        n_sent = sum(len(one.numbers) for one in self._asked.rounds)
        if n_sent + n_new > self._site.study.n_sums:
            raise ValueError("The request asks for more sums than the study has.")
        return self._entry.open(n_new)

    def keep(self, numbers: NDArray[np.intp], drawn: Response) -> NoReturn:
        """Mask the noisy sums of this site, store them, and stop with the reply."""
        asked, site = self._asked, self._site
        sums = np.asarray(drawn.histograms, dtype=np.int64)
        # The last number is 0 at each site, and shows that all masks cancel.
        vector = np.append(sums.ravel(), 0)
        if self._n_sent + len(vector) > MOST_NUMBERS:
            raise ValueError(
                f"The study would release more than {MOST_NUMBERS} numbers; use fewer "
                "queries or coordinates."
            )
        masked = vector.view(np.uint64) + site._masks(asked, len(vector))
        reply = _Reply(asked.digest, np.asarray(numbers, dtype=np.int64), masked)
        number = len(asked.rounds)
        record = Response(np.array([-1]), 1, reply.to_record()[np.newaxis])
        kept = self._entry.keep(np.array([number]), record)[number]
        # Another process may have stored a reply first: that one is sent.
        reply = _Reply.of_record(np.asarray(kept.histogram))
        if reply.request != asked.digest:
            raise ValueError("Another request was answered at the same time.")
        raise _Stopped(reply)


@dataclass(frozen=True)
class _Request:
    """Request of the collector: what was released so far."""

    public_keys: dict[str, str]
    rounds: list[_Sums]
    #: SHA-256 of the bytes.
    digest: bytes

    @classmethod
    def read(cls, content: bytes, study: Study) -> Self:
        """Read a request of a study, or raise ValueError."""
        values = read_fields(content, "request", "The request", study)
        try:
            public_keys = dict(values["public_keys"])
            rounds = [_Sums.from_dict(one) for one in values["released"]]
        except (KeyError, TypeError, ValueError):
            raise _damaged("The request") from None
        check_keys(public_keys, study)
        for one in rounds:
            if np.any((one.sums > _LARGEST_SUM) | (one.sums < -_LARGEST_SUM)):
                raise _damaged("The request")
        return cls(public_keys, rounds, hashlib.sha256(content).digest())


@dataclass(frozen=True)
class _Reply:
    """Masked sums of one site."""

    request: bytes
    numbers: NDArray[np.int64]
    masked: NDArray[np.uint64]

    def to_record(self) -> NDArray[np.int64]:
        """Write the reply as whole numbers, for the ledger."""
        request = np.frombuffer(self.request, dtype="<i8")
        numbers = [len(self.numbers), *self.numbers]
        return np.concatenate([request, numbers, self.masked.view(np.int64)])

    @classmethod
    def of_record(cls, record: NDArray[np.int64]) -> Self:
        """Read what `to_record` wrote."""
        request, (size,), rest = np.split(record, [4, 5])
        numbers, masked = np.split(rest, [size])
        return cls(request.astype("<i8").tobytes(), numbers, masked.view(np.uint64))

    def to_dict(self) -> dict[str, Any]:
        return {"numbers": _packed(self.numbers), "masked": _packed(self.masked)}


class Collector:
    """Collector of the replies of all sites, who sees noisy sums only.

    Parameters
    ----------
    study : Study
        The study.

    public_keys : dict
        Public key of each site, as :attr:`Site.public_key` has it.

    Attributes
    ----------
    fingerprint : str
        Fingerprint of the study and all keys, which the sites compare by phone.

    Raises
    ------
    ValueError
        If a key is missing or cannot be used.

    Examples
    --------
    The keys of two sites, as their `public_key` has them:

    >>> import numpy as np
    >>> from sklearn_pate import DPNewtonClassifier
    >>> from sklearn_pate.distributed import Collector, Study
    >>> X_public = np.random.default_rng(0).normal(size=(500, 2))
    >>> newton = DPNewtonClassifier(classes=[0, 1], random_state=0)
    >>> study = Study(newton, X_public, sites=["north", "south"], n_rows=8000)
    >>> collector = Collector(study, {"north": 64 * "a", "south": 64 * "b"})
    >>> len(collector.request()) < 1000
    True
    """

    def __init__(self, study: Study, public_keys: Mapping[str, str]) -> None:
        self.study = study
        self._public_keys = dict(public_keys)
        check_keys(self._public_keys, study)
        self._rounds: list[_Sums] = []

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the study and all keys."""
        return self.study.fingerprint(self._public_keys)

    @property
    def n_sums(self) -> int:
        """Number of sums that were released so far."""
        return sum(len(one.numbers) for one in self._rounds)

    def request(self) -> bytes | None:
        """Return the next request to all sites, None if all sums are known.

        Returns
        -------
        request : bytes or None
            Request, which may be public. All sites get the same bytes.
        """
        if self.n_sums >= self.study.n_sums:
            return None
        values = {
            "public_keys": self._public_keys,
            "released": [one.to_dict() for one in self._rounds],
        }
        return written("request", self.study, values)

    @classmethod
    def of_request(cls, study: Study, request: bytes) -> Self:
        """Return the collector that sent a request, to go on in another process.

        Parameters
        ----------
        study : Study
            The study.

        request : bytes
            The last request.

        Returns
        -------
        collector : Collector
            Collector that waits for replies to this request.

        Raises
        ------
        ValueError
            If the request is of another study.
        """
        asked = _Request.read(request, study)
        collector = cls(study, asked.public_keys)
        collector._rounds = asked.rounds
        return collector

    def add(self, replies: Iterable[bytes]) -> None:
        """Add up the replies of all sites to the last request.

        Parameters
        ----------
        replies : iterable of bytes
            One reply of each site, in any order.

        Raises
        ------
        ValueError
            If a site is missing or occurs twice, or a reply is to another request.
            Nothing is released in this case.
        """
        request = self.request()
        if request is None:
            raise ValueError("All sums of the study are known; call result().")
        expected = hashlib.sha256(request).hexdigest()
        found: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
        for content in replies:
            values = read_fields(content, "reply", "A reply", self.study)
            try:
                site = str(values["site"])
                numbers = _unpacked(values["numbers"], "<i8")
                masked = _unpacked(values["masked"], "<u8")
                same_request = values["request"] == expected
                masked[1:].reshape(len(numbers), -1)
            except (KeyError, TypeError, ValueError):
                raise _damaged("A reply") from None
            if site not in self.study.sites or site in found:
                raise ValueError(
                    f"A reply is from {printable(site)!r}, which is not in the study "
                    "or replied twice; pass one reply of each site."
                )
            if not same_request:
                raise ValueError(
                    f"The reply of {site} is to another request; send the site this "
                    "request."
                )
            found[site] = numbers, masked
        missing = [site for site in self.study.sites if site not in found]
        if missing:
            raise ValueError(
                f"No reply of {', '.join(missing)}: without it, the masks of the "
                "others do not cancel. Wait for it, or begin a new study without it."
            )
        numbers, first = found[self.study.sites[0]]
        for site, (its_numbers, its_masked) in found.items():
            if (
                not np.array_equal(its_numbers, numbers)
                or its_masked.shape != first.shape
            ):
                raise ValueError(
                    f"{site} and {self.study.sites[0]} answered other queries, as "
                    "their versions of numpy or scikit-learn differ; begin a new study "
                    "with the same versions, or with query_strategy='random'."
                )
        total = np.zeros_like(first)
        for _, masked in found.values():
            total = total + masked
        sums = total.view(np.int64)[:-1]
        if total[-1] != 0 or np.any((sums > _LARGEST_SUM) | (sums < -_LARGEST_SUM)):
            raise ValueError(
                "The masks of the replies do not cancel: a reply was changed, or is "
                "from another ledger. Nothing can be read from them."
            )
        one = _Sums(numbers, sums.reshape(len(numbers), -1))
        self._rounds = [*self._rounds, one]

    def result(self) -> Any:
        """Return the fitted classifier, or the metrics.

        Returns
        -------
        result : DPNewtonClassifier, PATEClassifier, PrivateMetrics or OutcomeMetrics
            May be published, with its ``privacy_spent_`` as privacy statement.

        Raises
        ------
        ValueError
            If sums are missing.
        """
        if self.n_sums < self.study.n_sums:
            raise ValueError(
                f"The collector has {self.n_sums} of "
                f"{counted(self.study.n_sums, 'sum')}; send the next request to the "
                "sites first."
            )
        replay = _Replay(self._rounds)
        try:
            fitted = self.study._run(self.study._shared(lambda *_: replay))
        except _Stopped:
            raise ValueError(
                "The released sums are not those that the study asks for; begin with "
                "the first request again."
            ) from None
        # A copy lacks what is about the made-up rows, such as problems in them.
        return copy.copy(fitted)

    def __repr__(self) -> str:
        return f"Collector({self.study!r}, n_sums={self.n_sums})"


def _checked_measure(measure: Any) -> dict[str, Any]:
    """Return arguments of `private_metrics` as plain values, or raise ValueError."""
    try:
        checked: dict[str, Any] = json.loads(_canonical(measure))
        if "epsilon" in checked and checked.keys() <= _OF_MEASURE:
            return checked
    except (AttributeError, TypeError, ValueError):
        pass
    raise ValueError(
        f"measure={measure!r} must have epsilon, and no other arguments of "
        f"private_metrics than {sorted(_OF_MEASURE)}, as numbers, texts and lists."
    )


def check_sites(sites: Any) -> list[str]:
    """Return the names of sites, or raise ValueError."""
    if isinstance(sites, str) or not all(
        isinstance(site, str) and site.isprintable() and site.strip() for site in sites
    ):
        raise ValueError(f"sites={sites!r} must be a list of names.")
    if not 1 <= len(sites) == len(set(sites)):
        raise ValueError(
            f"sites={sites!r} must name at least one site, and no site twice."
        )
    return [*sites]


def check_site(site: str, sites: list[str]) -> None:
    """Raise ValueError if a site does not take part in a study."""
    if site not in sites:
        raise ValueError(
            f"site={site!r} is not one of the sites of the study ({', '.join(sites)}); "
            "correct the name."
        )


def check_keys(public_keys: Mapping[str, Any], study: Study) -> None:
    """Raise ValueError unless each site of a study has a key of its own."""
    missing = [site for site in study.sites if site not in public_keys]
    if missing or len(public_keys) != len(study.sites):
        raise ValueError(
            "public_keys must have one key of each site of the study; "
            + (f"{', '.join(missing)} lacks one." if missing else "leave others out.")
        )
    keys = [*public_keys.values()]
    for key in keys:
        if not isinstance(key, str) or len(key) != 64 or key.strip("0123456789abcdef"):
            raise ValueError(
                "public_keys must be of 64 hexadecimal digits, as public_key of a site "
                "has them."
            )
    if len({*keys}) < len(keys):
        raise ValueError("Two sites have one key; each needs a ledger of its own.")


def _summary(features: NDArray[np.float64] | None) -> list[float]:
    """Return one number of each column, which tells other features apart."""
    if features is None:
        return []
    weights = np.random.RandomState(0).normal(size=len(features)) / len(features)
    return [float(f"{one:.9g}") for one in weights @ features]


def _packed(values: NDArray[Any]) -> str:
    content = values.astype(values.dtype.newbyteorder("<"))
    return base64.b64encode(content.tobytes()).decode()


def _unpacked(text: str, kind: str) -> NDArray[Any]:
    values = np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
    return values.astype(kind[1:])


def _canonical(values: Any) -> bytes:
    return json.dumps(values, sort_keys=True, allow_nan=False).encode()


def written(kind: str, study: Study, values: dict[str, Any]) -> bytes:
    """Write a request or a reply."""
    head = {
        "format": f"sklearn_pate {kind}",
        "format_version": _FORMAT_VERSION,
        "study": study.digest.hex(),
    }
    return _canonical(head | values) + b"\n"


def read_fields(
    content: bytes, kind: str, name: str, study: Study | None = None
) -> dict[str, Any]:
    """Read the fields of a file of a kind, or raise ValueError."""
    try:
        values = strict_json(content)
        version = values["format_version"]
        is_kind = values["format"] == f"sklearn_pate {kind}"
    except (KeyError, TypeError, ValueError):
        is_kind = False
    if not is_kind:
        raise ValueError(f"{name} is not a {kind}; pass the file as it was written.")
    if version != _FORMAT_VERSION:
        raise ValueError(
            f"{name} has format {printable(str(version))}, and this version reads "
            f"format {_FORMAT_VERSION}; install the version of sklearn-pate that wrote "
            "it."
        )
    if study is not None and values.get("study") != study.digest.hex():
        raise ValueError(f"{name} is of another study; ask for that of this study.")
    return values


def _damaged(name: str) -> ValueError:
    return ValueError(f"{name} was cut off or changed; ask for it again.")


def _digits(fingerprint: str) -> str:
    return "".join(str(fingerprint).split()).lower()
