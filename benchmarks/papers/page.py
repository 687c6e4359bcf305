"""Tables of docs/papers.md and docs/guide/papers.md."""

from collections import Counter

from benchmarks.papers.claims import VERDICTS
from benchmarks.papers.claims_2017 import (
    papers_2017_analysis,
    papers_2017_images,
    papers_2017_queries,
    papers_2017_tables,
    papers_2017_unsure,
    rows_2017_analysis,
    rows_2017_mnist_svhn,
    rows_2017_queries,
    rows_2017_tables,
)
from benchmarks.papers.claims_2018_2019 import (
    papers_2018,
    papers_2019_baselines,
    papers_2019_claims,
    papers_2019_effects,
    rows_2018,
    rows_2019_baselines,
    rows_2019_claims,
    rows_2019_effects,
)
from benchmarks.papers.claims_survey import papers_survey, rows_survey
from benchmarks.record import load

PAPERS = {
    "2017, PATE and PATE-G": (
        rows_2017_analysis,
        rows_2017_mnist_svhn,
        rows_2017_queries,
        rows_2017_tables,
    ),
    "2018, Scalable PATE": (rows_2018,),
    "2019, PETDL": (rows_2019_claims, rows_2019_baselines, rows_2019_effects),
    "survey": (rows_survey,),
}


def papers_verdicts():
    """Count the rows by paper and verdict."""
    counts = {
        name: Counter(row.verdict for rows in tables for row in rows())
        for name, tables in PAPERS.items()
    }
    counts["all"] = sum(counts.values(), Counter())
    header = ["rows", *VERDICTS, "all"]
    lines = [header, ["---"] + ["--:"] * (len(header) - 1)]
    for name, found in counts.items():
        numbers = [*(found[one] for one in VERDICTS), sum(found.values())]
        lines.append([name, *map(str, numbers)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def guide_papers():
    """Minutes from a clone to the results of the guide page."""
    total, lines = (
        0.0,
        [["", "seconds", "minutes since the clone"], ["---", "--:", "--:"]],
    )
    for table in ("install", "blocks"):
        for row in load("guide_papers")[table]["rows"]:
            total += row["seconds"]
            lines.append([row["section"], f"{row['seconds']:.0f}", f"{total / 60:.1f}"])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    blocks = load("guide_papers")["blocks"]
    return f"{text}\n\n`{blocks['command']}`, {blocks['date']}."


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
