"""Tables of docs/papers.md, and a sentence of docs/guide/papers.md."""

from collections import Counter

from benchmarks.papers.claims import VERDICTS
from benchmarks.papers.claims_2017 import (
    CASES,
    gain_in_points,
    papers_2017_analysis,
    papers_2017_images,
    papers_2017_queries,
    papers_2017_tables,
)
from benchmarks.papers.claims_2018_2019 import (
    papers_2018,
    papers_2019_baselines,
    papers_2019_claims,
    papers_2019_effects,
)
from benchmarks.papers.claims_survey import papers_survey
from benchmarks.record import load
from benchmarks.reporting import markdown, percent

PAPERS = {
    "2017, PATE and PATE-G": (
        papers_2017_analysis,
        papers_2017_images,
        papers_2017_queries,
        papers_2017_tables,
    ),
    "2018, Scalable PATE": (papers_2018,),
    "2019, PETDL": (papers_2019_claims, papers_2019_baselines, papers_2019_effects),
    "survey": (papers_survey,),
}


def papers_verdicts():
    """Count the rows by paper and verdict."""
    counts = {
        name: Counter(row.verdict for table in tables for row in table.rows())
        for name, tables in PAPERS.items()
    }
    counts["all"] = sum(counts.values(), Counter())
    lines = [
        [name, *(str(found[one]) for one in VERDICTS), str(found.total())]
        for name, found in counts.items()
    ]
    return markdown(["rows", *VERDICTS, "all"], lines)


def papers_2017_unsure():
    """Gain of a logistic student over random queries, by batches and labels."""
    results = load("paper_students")["queries"]
    names = {
        "least confident, 1 batch": "least confident, 1 batch",
        "least confident, 24 batches": "24 batches",
        "least margin, 4 batches": "least margin, 4 batches",
        "experts, 1 batch": "experts, 1 batch",
    }
    shown = [case for case in CASES if case[1] == "logistic"]
    lines = []
    for case in shown:
        found = {
            (row["queries"], row["labels"]): row
            for row in results["rows"]
            if (row["data"], row["student"], row["n_queries"]) == case
        }

        def both(name, write, found=found):
            rows = [found.get((name, labels)) for labels in ("true", "LNMax")]
            return "; ".join(write(row) for row in rows if row is not None)

        data, _, n_queries = case
        lines.append(
            [
                f"{data}, {n_queries}",
                both("random", lambda row: percent(row["accuracy"]["mean"])),
                *(
                    both(name, lambda row: gain_in_points(row["gain"]))
                    for name in names
                ),
            ]
        )
    return markdown(["data, queries", "random, %", *names.values()], lines)


def guide_papers():
    """Time from a clone to the results of the guide page."""
    results = load("guide_papers")
    rows = results["install"]["rows"] + results["blocks"]["rows"]
    minutes = sum(row["seconds"] for row in rows) / 60
    return (
        f"Clone, installation and code took {minutes:.1f} minutes on one core, "
        "without downloads."
    )


PAPER_TABLES = (
    papers_verdicts,
    papers_2017_analysis,
    papers_2017_images,
    papers_2017_queries,
    papers_2017_unsure,
    papers_2017_tables,
    papers_2018,
    papers_2019_claims,
    papers_2019_baselines,
    papers_2019_effects,
    papers_survey,
)
