"""Commands ``join``, ``reply`` and ``collect``, and the study of sums over sites."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_pate._cli._options import check_is_file, check_own_files, plain_warnings
from sklearn_pate._cli._tables import (
    check_labels,
    labels_like,
    named_columns,
    read_estimator,
    read_private,
    read_public,
    read_rows,
    subgroups_like,
)
from sklearn_pate._inputs._file_content import check_can_write, write_files
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.distributed import Collector, Site, Study
from sklearn_pate.distributed._masks import SiteKey
from sklearn_pate.distributed._study import check_site, read_fields, written
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.publication import PublishedClassifier
from sklearn_pate.publication._model_file import paths_of


def run_study_of_sums(given: argparse.Namespace) -> None:
    """Write a study of sums that nobody sees."""
    check_can_write([given.output], overwrite=None)
    model = _read_estimator(given.estimator)
    measure = None
    if isinstance(model, PublishedClassifier):
        if model.privacy_spent_.unit == "group" and given.rows is not None:
            raise ValueError("The model protects groups; leave --rows out.")
        measure = {"epsilon": given.epsilon, "delta": given.delta}
    else:
        for name in {"epsilon", "delta"} & given.options_given:
            raise ValueError(
                f"--{name} is for a model to measure; set {name} in {given.estimator}."
            )
    with plain_warnings(given.parser):
        study = Study(
            model,
            read_public(given.public),
            sites=given.sites,
            n_rows=given.rows,
            n_colluding=given.colluding,
            measure=measure,
        )
    study.save(given.output)
    print(f"{study}\n\nWritten: {given.output}. This file may be published.")


def run_join(given: argparse.Namespace) -> None:
    """Write the public key of a site, and create its ledger."""
    check_own_files([given.output], [given.ledger, *_files_of_study(given)])
    check_can_write([given.output], overwrite=given.overwrite)
    study = _load_study(given)
    check_site(given.site, study.sites)
    budget = {"epsilon": given.epsilon, "delta": given.delta}
    if Path(given.ledger).is_file() and not budget.keys() & given.options_given:
        budget = {}
    ledger = PrivacyLedger(given.ledger, **budget)
    key = SiteKey(ledger.key, study.digest, given.site).public
    values = {"site": given.site, "public_key": key}
    write_files({given.output: written("join", study, values)})
    print(
        f"{given.output}: the public key of {given.site}. Send it to the collector.\n"
        f"{given.ledger}: the privacy budget of these rows, and beside it the secret "
        "key. Never restore them from a backup."
    )


def run_reply(given: argparse.Namespace) -> None:
    """Write the masked sums of a site, in reply to a request."""
    check_own_files(
        [given.output],
        [given.ledger, given.data, given.request, *_files_of_study(given)],
    )
    check_can_write([given.output], overwrite=given.overwrite)
    check_is_file("ledger", given.ledger)
    study = _load_study(given)
    model = study.estimator
    others = named_columns(given, study.X_public.columns)
    if study.measure is None:
        X, columns = read_private(given.data, study.X_public, others)
        classes = np.asarray(model.classes).tolist()
    else:
        X, columns = read_rows(given.data, model, others)
        classes = model.classes_.tolist()
    y, groups = labels_like(columns[given.label], classes), columns.get(given.group)
    check_labels(y, classes, given.data, given.label)
    values = (study.measure or {}).get("subgroup_values")
    request = given.request.read_bytes()
    with plain_warnings(given.parser):
        site = Site(
            study,
            given.site,
            X,
            y,
            groups=groups,
            subgroups=subgroups_like(columns, given.subgroup, values),
            ledger=PrivacyLedger(given.ledger),
        )
        if given.fingerprint:
            write_files({given.output: site.reply(request, given.fingerprint)})
            print(f"{given.output}: masked sums. Send this file to the collector.")
            return
        site._asked(request)  # another ledger is told of before sites compare
    print(f"{study}\n")
    if study.measure is None:
        print(model.check_data(X, y, X_public=study.X_public, groups=groups))
    print(
        "\nNothing was computed or charged. Compare the fingerprint with the other "
        "sites by phone, and pass it by --fingerprint:\n"
        f"{Collector.of_request(study, request).fingerprint}"
    )


def run_collect(given: argparse.Namespace) -> None:
    """Add up the replies, and write the next request, or the result."""
    study = _load_study(given)
    is_measured = study.measure is not None
    written_files = [Path(given.output)] if is_measured else paths_of(given.output)
    if is_measured and given.report:
        raise ValueError(
            "The study measures a model; leave --report out, and pass the metrics to "
            "the command report."
        )
    outputs = [*written_files, *([given.report] if given.report else [])]
    check_own_files(outputs, [*given.files, *_files_of_study(given)])
    check_can_write(outputs, overwrite=given.overwrite)
    contents = [path.read_bytes() for path in given.files]
    sent = 0
    while _request_path(given.output, sent + 1).is_file():
        sent += 1
    with plain_warnings(given.parser):
        if sent == 0:
            joined = [read_fields(one, "join", "A file", study) for one in contents]
            keys = {str(one["site"]): one["public_key"] for one in joined}
            collector = Collector(study, keys)
        else:
            last = _request_path(given.output, sent).read_bytes()
            collector = Collector.of_request(study, last)
            collector.add(contents)
        request = collector.request()
        if request is not None:
            path = _request_path(given.output, sent + 1)
            write_files({path: request})
            left = study.n_sums - collector.n_sums
            print(
                f"{path}: send this file to all sites, and run this command again with "
                f"their replies. {counted(left, 'sum')} of {study.n_sums} missing.\n"
                f"Fingerprint: {collector.fingerprint}\nThe sites compare it by "
                "phone, without the collector, and pass it with their replies."
            )
            return
        result = collector.result()
    spent = result.privacy_spent_
    if is_measured:
        result.save(given.output, overwrite=given.overwrite)
    else:
        save_released(result.publish(), given)
    print(f"{spent}\n\nWritten: {', '.join(map(str, outputs))}.")


def save_released(released: PublishedClassifier, given: argparse.Namespace) -> None:
    """Write a model with its card, and the report if it is asked for."""
    released.save(given.output, overwrite=given.overwrite)
    if given.report:
        report = PrivacyReport.from_estimator(released, model_file=given.output)
        report.save(given.report, overwrite=given.overwrite)


def _request_path(output: str, number: int) -> Path:
    """Return the path of a request, beside the result."""
    path = Path(output)
    return path.with_name(f"{path.stem}-{number}.request")


def _files_of_study(given: argparse.Namespace) -> list[Path]:
    """List the files that describe a study."""
    return [given.study, given.estimator, given.public]


def _load_study(given: argparse.Namespace) -> Study:
    """Read the study, and compare model and public rows with it."""
    with plain_warnings(given.parser):
        model = _read_estimator(given.estimator)
        return Study.load(given.study, model, read_public(given.public))


def _read_estimator(path: Path) -> Any:
    """Read an estimator to fit, or a published model to measure."""
    if path.suffix == ".skops":
        return PublishedClassifier.load(path)
    return read_estimator(path, "estimator")
