"""Sections of a report, with their sources."""

from typing import Any

from sklearn_pate.accounting._assumptions import ROW_BY_ROW
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.inspection.report._blocks import (
    Block,
    Bullets,
    Checks,
    Picture,
    Section,
    Signatures,
    Sources,
    Table,
    Text,
    flow_of,
)
from sklearn_pate.inspection.report._guarantee import (
    at_most,
    attackers_section,
    deployment_section,
    epsilon_text,
    evidence_section,
    fields_section,
    guarantee_sections,
    number_text,
)

_PROOFS = (
    'The proofs are on the page "Privacy cost of an answer" of the documentation of '
    "sklearn_pate"
)
#: Sections of that page.
_PROOFS_OF = {
    "teachers": "Exact cost of adaptive answers",
    "parties": "Exact cost of adaptive answers",
    "neighbours": "Exact cost of adaptive answers",
    "scores": "Mean scores",
    "newton": "Noisy Newton steps",
}
_PROFILE = (
    (
        "Balle, Barthe, Gaboardi (2018). Privacy amplification by subsampling: tight "
        "analyses via couplings and divergences. (Privacy profiles; guesses.)",
        "https://arxiv.org/abs/1807.01647",
    ),
    (
        "Dong, Roth, Su (2022). Gaussian differential privacy. (False alarms and "
        "detections; Gaussian noise.)",
        "https://arxiv.org/abs/1905.02383",
    ),
    (
        "Vadhan (2017). The complexity of differential privacy. (Several rows "
        "together.)",
        "https://doi.org/10.1007/978-3-319-57048-8_7",
    ),
)
_RENYI = (
    (
        "Mironov (2017). Renyi differential privacy.",
        "https://arxiv.org/abs/1702.07476",
    ),
    (
        "Canonne, Kamath, Steinke (2020). The discrete Gaussian for differential "
        "privacy. (Noise in whole numbers; from Renyi curves to epsilon.)",
        "https://arxiv.org/abs/2004.00010",
    ),
    (
        "Asoodeh, Liao, Calmon, Kosut, Sankar (2021). Three variants of differential "
        "privacy: lossless conversion and applications. (From Renyi curves to privacy "
        "profiles.)",
        "https://arxiv.org/abs/2008.06529",
    ),
)
_PATE = (
    (
        "Papernot, Abadi, Erlingsson, Goodfellow, Talwar (2017). Semi-supervised "
        "knowledge transfer for deep learning from private training data.",
        "https://arxiv.org/abs/1610.05755",
    ),
    (
        "Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson (2018). Scalable "
        "private learning with PATE.",
        "https://arxiv.org/abs/1802.08908",
    ),
)
_OF_KIND: dict[str, tuple[tuple[str, str], ...]] = {
    "teachers": _PATE,
    "parties": _PATE,
    "scores": (
        (
            "Nissim, Raskhodnikova, Smith (2007). Smooth sensitivity and sampling in "
            "private data analysis.",
            "https://doi.org/10.1145/1250790.1250803",
        ),
        (
            "Biswas, Dong, Kamath, Ullman (2020). CoinPress: practical private mean "
            "and covariance estimation.",
            "https://arxiv.org/abs/2006.06618",
        ),
    ),
    "newton": (
        (
            "Ganesh, Haghifam, Steinke, Thakurta (2023). Faster differentially private "
            "convex optimization via second-order methods.",
            "https://arxiv.org/abs/2305.13209",
        ),
        (
            "Amid, Ganesh, Mathews, Ramaswamy, Song, Steinke, Suriyakumar, Thakkar, "
            "Thakurta (2022). Public data-assisted mirror descent for private model "
            "training.",
            "https://arxiv.org/abs/2112.00193",
        ),
    ),
    "sums": (),
    "neighbours": (
        (
            "Zhu, Yu, Chandraker, Wang (2020). Private-kNN: practical differential "
            "privacy for computer vision.",
            "https://openaccess.thecvf.com/content_CVPR_2020/html/"
            "Zhu_Private-kNN_Practical_Differential_Privacy_for_Computer_Vision_"
            "CVPR_2020_paper.html",
        ),
        (
            "Mironov, Talwar, Zhang (2019). Renyi differential privacy of the sampled "
            "Gaussian mechanism.",
            "https://arxiv.org/abs/1908.10530",
        ),
    ),
    "counts": (
        (
            "Vaidya, Shafiq, Basu, Hong (2013). Differentially private naive Bayes "
            "classification.",
            "https://doi.org/10.1109/WI-IAT.2013.80",
        ),
    ),
    "search": (
        (
            "Liu, Talwar (2019). Private selection from private candidates.",
            "https://arxiv.org/abs/1811.07971",
        ),
        (
            "Papernot, Steinke (2022). Hyperparameter tuning with Renyi differential "
            "privacy.",
            "https://arxiv.org/abs/2110.03620",
        ),
    ),
    "steps": (
        (
            "Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang (2016). Deep "
            "learning with differential privacy.",
            "https://arxiv.org/abs/1607.00133",
        ),
        (
            "Zhu, Dong, Wang (2022). Optimal accounting of differential privacy via "
            "characteristic function.",
            "https://arxiv.org/abs/2106.08567",
        ),
    ),
    "objective": (
        (
            "Chaudhuri, Monteleoni, Sarwate (2011). Differentially private empirical "
            "risk minimization.",
            "https://arxiv.org/abs/0912.0071",
        ),
        (
            "Redberg, Koskela, Wang (2023). Improving the privacy and practicality of "
            "objective perturbation for differentially private linear learners.",
            "https://arxiv.org/abs/2401.00583",
        ),
    ),
}
_METHODS = {
    "teachers": (
        "Each of many teachers is trained on rows that no other teacher gets, and "
        "votes on public rows. One {unit} reaches one teacher only, and so changes at "
        "most one vote per query. Noise added to the vote counts hides this change. "
        "The student is trained on the noisy answers, and on no private row."
    ),
    "parties": (
        "Each party labels the public rows: these are its votes. Noise added to the "
        "vote counts hides the votes of any one party. The student is trained on the "
        "noisy answers alone."
    ),
    "scores": (
        "Each of many teachers is trained on rows that no other teacher gets. Its "
        "class probabilities are written as a score model: coefficients, of bounded "
        "length, of features that public rows alone determine. Noise added to the sum "
        "of all coefficients, in two steps, hides those of any one teacher. The "
        "student is the mean score model, or is trained on it."
    ),
    "newton": (
        "The model is a logistic regression on features that public rows alone "
        "determine. In each of three steps, each {unit} contributes one vector of "
        "bounded length: its gradient at the coefficients released so far. Noise "
        "added to the sum of all vectors hides any one of them. Private rows "
        "are used in no other way."
    ),
    "sums": (
        "Each of many teachers is trained on rows that no other teacher gets, and "
        "computes a vector of bounded length about public rows. Noise added to the sum "
        "of all vectors, once, hides any one of them. The student is trained on the "
        "noisy sum."
    ),
    "neighbours": (
        "For each query about a public row, a new secret sample of the private rows is "
        "drawn, and the nearest of them vote. Noise is added to the vote counts. The "
        "student is trained on the noisy answers alone."
    ),
    "counts": (
        "For each column, the rows of each class are counted by their value, or by a "
        "range of values, which were declared beforehand. Each {unit} is in at most "
        "one count per column, and noise added to all counts, also to those of 0, "
        "hides it. The model is computed from the noisy counts alone."
    ),
    "learner": (
        "The model is trained on the private rows. The change that one row can make is "
        "bounded, and noise hides it."
    ),
    "search": (
        "A secret number of private fits is made, each with settings drawn at random, "
        "and scored with noise on rows that it was not trained on. The best fit is "
        "published, and nothing about the others."
    ),
}
_COUNTS = (
    "First, the values in each of {columns} are counted, one of each {unit}, "
    "and each count gets noise. Rows are drawn from the noisy counts: these are the "
    "public rows from here on. "
)
_COUNTED = {"parties": "Parties", "neighbours": "Neighbours that vote"}


def sources_of(facts: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """List references and their addresses for the mechanism of a fit."""
    kind = facts["kind"]
    if kind == "learner":
        codes = {one["code"] for one in facts["assumptions"]}
        kind = "steps" if ROW_BY_ROW.code in codes else "objective"
    return (*_PROFILE, *_RENYI, *_OF_KIND[kind])


def sections_of(facts: dict[str, Any]) -> list[Section]:
    """Write all sections in order, as plain text that is not escaped yet."""
    sections = guarantee_sections(facts)
    if facts["deployment"] or facts["to_fill_in"]:
        sections.append(deployment_section(facts))
    has_evidence = facts["quality"] is not None or "audits" in facts["deployment"]
    if facts["private"] or has_evidence:
        sections.append(evidence_section(facts))
    return [*sections, _assumptions(facts), *_appendix(facts)]


def _appendix(facts: dict[str, Any]) -> list[Section]:
    """Write the sections for readers who check the statement."""
    text = "For readers who check the statement. Nothing below has to be signed."
    sections = [Section("Appendix", [Text(text)], starts_page=True), _method(facts)]
    if facts["private"]:
        sections.append(attackers_section(facts))
    if facts["costs"] is not None:
        sections.append(_costs(facts))
    if facts["private"]:
        sections.append(fields_section(facts))
    sections.append(_parameters(facts))
    if facts["ledger"] is not None:
        sections.append(_ledger(facts["ledger"]))
    packages = Table(
        "Packages", ("Package", "Version"), tuple(facts["versions"].items())
    )
    proofs = _PROOFS
    if facts["kind"] in _PROOFS_OF:
        proofs += f', in its section "{_PROOFS_OF[facts["kind"]]}"'
    return [
        *sections,
        Section("Versions", [packages]),
        Section("References", [Text(f"{proofs}."), Sources(sources_of(facts))]),
    ]


def banner_of(facts: dict[str, Any]) -> str | None:
    """Write the warning at the top of an internal report."""
    if not facts["internal"]:
        return None
    why = ", and ".join(facts["internal_because"])
    return f"INTERNAL: do not publish this page. No privacy statement covers it: {why}."


def may_be_published(facts: dict[str, Any]) -> str:
    """Write the sentence about publication of page and model."""
    if facts["internal"]:
        return "For the data holder only."
    if facts["private"]:
        return "May be published with the model."
    return "This page may be published. The model may not."


def _assumptions(facts: dict[str, Any]) -> Section:
    if not facts["private"]:
        text = "There is no guarantee. Assumptions of this fit:"
        items = tuple((one["sentence"], "") for one in facts["assumptions"])
        return Section("Assumptions", [Text(text), Bullets(items)])
    text = (
        "The guarantee depends on facts that the software cannot check. A person who "
        "knows the data has to confirm each of them:"
    )
    items = tuple((one["sentence"], one["question"]) for one in facts["assumptions"])
    blocks: list[Block] = [Text(text), Checks(items)]
    file = facts["model_file"]
    if file is not None:
        date = facts["published"]
        when = "" if date is None else f", published on {date}"
        text = (
            f"The signatures apply to the model in {file['name']}{when}, and to no "
            f"other. The sha256 of this file is {file['sha256']}."
        )
        blocks.append(Text(text))
    roles = ("Data holder", "Data protection")
    return Section("Assumptions to sign", [*blocks, Signatures(roles)])


def _method(facts: dict[str, Any]) -> Section:
    kind, unit = facts["kind"], facts["unit"]
    steps = flow_of(
        kind,
        unit=unit,
        n_teachers=facts["n_teachers"],
        n_queries=facts["n_queries"],
        n_tables=facts["n_tables"],
        mechanism=facts["mechanism"],
        model=facts["model"],
    )
    caption = "Data flow. Private data stay with the data holder."
    method = _METHODS[kind] if facts["n_tables"] is None else _COUNTS + _METHODS[kind]
    columns = counted(facts["n_tables"], "column")
    text = Text(method.format(unit=unit, columns=columns))
    if not facts["private"]:
        text = Text("Despite the steps shown, there is no guarantee.", is_warning=True)
    return Section("Method", [text, Picture(steps, caption)])


def _costs(facts: dict[str, Any]) -> Section:
    costs = facts["costs"]
    rows = tuple(
        (
            f"{one['epsilon']:.3f}",
            number_text(one["delta"]),
            "as stated" if one["stated"] else "",
        )
        for one in costs["pairs"]
    )
    text = (
        "The privacy profile of a fit is delta as a function of epsilon: the smaller "
        "epsilon, the larger delta. All pairs hold at once. Delta at epsilon 0 is the "
        "most by which one {unit} can change the probability of any result."
    ).format(unit=facts["unit"])
    table = Table("Privacy profile of this fit", ("epsilon", "delta", "Note"), rows)
    blocks: list[Block] = [Text(text), table]
    one = costs["one_query"]
    if one is not None:
        text = (
            "An equal share of this cost, for one of "
            f"{counted(facts['n_queries'], 'query')}, "
            f"is at most epsilon={one['epsilon']:.3f} at "
            f"delta={number_text(one['delta'])}. Epsilon grows more slowly than the "
            "number of queries."
        )
        blocks.append(Text(text))
    return Section("Privacy cost", blocks)


def _parameters(facts: dict[str, Any]) -> Section:
    alone = facts["not_covered"] and facts["epsilon"] is not None
    of_what = ", of the classifier without the steps in front of it" if alone else ""
    file = facts["model_file"] or {"name": None, "sha256": None}
    named = {
        "Model file": file["name"],
        "sha256 of the model file": file["sha256"],
        "Published on": facts["published"],
        "Classifier": facts["classifier"],
        "Predicting model": facts["model"],
        "Mechanism": facts["mechanism"],
        _COUNTED.get(facts["kind"], "Teachers"): facts["n_teachers"],
        "Queries": facts["n_queries"],
        "Columns that are counted": facts["n_tables"],
        "Unit": facts["unit"],
        "Neighbour relation": facts["relation"],
        "epsilon": epsilon_text(facts) + of_what,
        "delta": number_text(facts["delta"]),
        "Classes": facts["n_classes"],
        "Features": facts["n_features"],
    }
    rows = tuple((name, str(one)) for name, one in named.items() if one is not None)
    table = Table("Parameters of the fit", ("Name", "Value"), rows)
    return Section("Parameters", [table])


def _ledger(ledger: dict[str, Any]) -> Section:
    entries = ledger["entries"]
    text = (
        "All releases charged to this ledger, now and later, are together "
        f"(epsilon={number_text(ledger['epsilon'])}, "
        f"delta={number_text(ledger['delta'])})-differentially private, even if each "
        "was chosen in view of the earlier ones. An attacker who has all of them "
        f"guesses correctly in {at_most(ledger['guesses'])} cases. "
        f"{ledger['spent']:.2%} of this budget is spent, in "
        f"{counted(len(entries), 'entry')}. Check that "
        "this fit is among them: this page does not."
    )
    blocks: list[Block] = [Text(text)]
    if entries:
        head = ("Entry", "Time (UTC)", "User", "Description", "Data, fit")
        rows = tuple(
            (
                str(one["number"]),
                one["time"],
                one["who"],
                one["what"],
                ", ".join(filter(None, (one["dataset"], one["fit"]))),
                f"{one['epsilon']:.3f} ({number_text(one['delta'])})",
                f"{one['share']:.2%}",
            )
            for one in entries
        )
        caption = f"Entries since {ledger['created']} (UTC)"
        blocks.append(Table(caption, (*head, "epsilon (delta)", "Share"), rows))
    return Section("Privacy ledger", blocks)
