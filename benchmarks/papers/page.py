"""Tables of docs/papers.md and docs/guide/papers.md."""

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
from benchmarks.reporting import markdown, percent, source

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
    """Gain over random queries, by batches, criterion and labels."""
    results = load("paper_students")["queries"]
    names = {
        "least confident, 1 batch": "least confident, 1 batch",
        "least confident, 4 batches": "4 batches",
        "least confident, 24 batches": "24 batches",
        "least margin, 4 batches": "least margin, 4 batches",
        "experts, 1 batch": "experts, 1 batch",
    }
    shown = ("random", "least confident, 1 batch", "least confident, 24 batches")
    titles = {
        "true": "true",
        "LNMax": "LNMax",
        "GNMax": "GNMax",
        "plurality": "no noise",
    }
    lines = []
    for labels, title in titles.items():
        for data, student, n_queries in CASES:
            found = {
                row["queries"]: row
                for row in results["rows"]
                if (row["data"], row["student"], row["n_queries"], row["labels"])
                == (data, student, n_queries, labels)
            }
            if found:
                right = [
                    found[name]["right"]["mean"] for name in shown if name in found
                ]
                lines.append(
                    [
                        f"{title}; {data}, {student}, {n_queries}",
                        percent(found["random"]["accuracy"]["mean"]),
                        *(
                            gain_in_points(found[name]["gain"]) if name in found else ""
                            for name in names
                        ),
                        "" if labels == "true" else "; ".join(map(percent, right)),
                    ]
                )
    header = [
        "labels; data, student, queries",
        "random, %",
        *names.values(),
        "right labels, %: random; 1 batch; 24 batches",
    ]
    return markdown(header, lines)


def guide_papers():
    """Minutes from a clone to the results of the guide page."""
    results, total, lines = load("guide_papers"), 0.0, []
    for row in results["install"]["rows"] + results["blocks"]["rows"]:
        total += row["seconds"]
        lines.append([row["section"], f"{row['seconds']:.0f}", f"{total / 60:.1f}"])
    times = markdown(["", "seconds", "minutes since the clone"], lines)
    return f"{times}\n\n{source(results['blocks'])}"


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
