"""The tables on images, and on networks as teachers."""

from record import load
from reporting import markdown, number, percent, source


def _images(table):
    results = load("images")[table]
    return results, f"{source(results)} Shuffles of the test rows: {_count(results)}."


def _count(results):
    rows = results["rows"]
    first = rows[0].get("accuracy", rows[0].get("scale_20"))
    return str(len(first["values"]))


def _mean(measured, digits=2):
    return number(measured["mean"], digits) if measured else ""


def images_pate_g():
    """Compare with the 2017 paper."""
    results, note = _images("pate_g")
    rows = [
        ["2017 paper: GAN on answers", "100", "98.00", "", "2.04", "", ""],
        ["2017 paper: GAN on answers", "1000", "98.10", "", "8.03", "", ""],
    ]
    rows += [
        [
            "GAN on answers spread over a graph",
            str(row["n_queries"]),
            percent(row["accuracy"]),
            percent(row["answers_right"]),
            _mean(row["paper_epsilon"]),
            _mean(row["exact_epsilon"]),
            _mean(row["epsilon"]),
        ]
        for row in results["rows"]
    ]
    header = [
        "student",
        "queries",
        "accuracy, %",
        "answers right, %",
        "epsilon by the 2017 bound (not publishable)",
        "exact epsilon (not publishable)",
        "publishable epsilon",
    ]
    return f"{markdown(header, rows)}\n\n{note}"


def images_ours():
    """Show accuracy at fixed publishable epsilon."""
    results, note = _images("ours")
    rows = [
        [
            _mean(row["epsilon"], 3),
            str(row["n_queries"]),
            percent(row["accuracy"]),
            percent(row["answers_right"]),
            _mean(row["exact_epsilon"]),
        ]
        for row in results["rows"]
    ]
    header = [
        "publishable epsilon",
        "queries",
        "accuracy, %",
        "answers right, %",
        "exact epsilon (not publishable)",
    ]
    return f"{markdown(header, rows)}\n\n{note}"


def images_levers():
    """Show what each lever does."""
    results, note = _images("levers")
    rows = [
        [
            row["lever"],
            percent(row["accuracy"]),
            percent(row["answers_right"]),
            _mean(row["n_answered"], 0),
        ]
        for row in results["rows"]
    ]
    header = ["publishable epsilon 0.5", "accuracy, %", "answers right, %", "answers"]
    return f"{markdown(header, rows)}\n\n{note}"


def images_queries():
    """Compare query strategies."""
    results, note = _images("queries")
    asked = sorted({row["n_queries"] for row in results["rows"]})
    measured = {
        (row["student"], row["query_strategy"], row["n_queries"]): row
        for row in results["rows"]
    }
    kinds = dict.fromkeys(key[:2] for key in measured)
    rows = [
        [f"{student}: {strategy}"]
        + [
            percent(measured[key]["accuracy"]) if key in measured else ""
            for key in ((student, strategy, n) for n in asked)
        ]
        for student, strategy in kinds
    ]
    header = ["student: queries", *(f"{n} queries" for n in asked)]
    return f"{markdown(header, rows)}\n\n{note}"


def images_distillation():
    """Compare histograms with answers at equal epsilon."""
    results, note = _images("distillation")
    rows = [
        [
            f"{row['release']}: {row['student']}",
            str(row["n_queries"]),
            percent(row["accuracy"]),
            percent(row["answers_right"]),
        ]
        for row in results["rows"]
    ]
    header = ["release: student", "queries", "accuracy, %", "plurality right, %"]
    return f"{markdown(header, rows)}\n\n{note}"


def images_svhn():
    """Show the same pipeline on what there is of SVHN."""
    results, note = _images("svhn")
    rows = [
        [
            row["student"],
            _mean(row["epsilon"]),
            percent(row["accuracy"]),
            percent(row["answers_right"]),
        ]
        for row in results["rows"]
    ]
    header = ["student", "publishable epsilon", "accuracy, %", "answers right, %"]
    return f"{markdown(header, rows)}\n\n{note}"


def images_noise():
    """Show what teachers of three sizes say under noise."""
    results, note = _images("noise")
    paper = {250: ("83.86", "93.18")}
    rows = [
        [
            str(row["n_teachers"]),
            percent({"mean": row["mean_accuracy"], "values": []}),
            number(100 * row["gap"], 1),
            percent({"mean": row["plurality"], "values": []}),
            percent(row["scale_20"]),
            " / ".join(paper.get(row["n_teachers"], ("",))),
        ]
        for row in results["rows"]
    ]
    header = [
        "teachers",
        "mean accuracy, %",
        "gap, % of teachers",
        "plurality right, %",
        "right under Laplace noise of scale 20, %",
        "2017 paper: mean / noisy",
    ]
    return f"{markdown(header, rows)}\n\n{note.split(' Shuffles')[0]}"


def teachers():
    """Compare batched teachers with single ones."""
    results = load("teachers")["teachers"]
    rows = [
        [
            row["network"],
            str(row["n_teachers"]),
            number(row["one_by_one"], 1),
            number(row["at_once"], 1),
            number(row["ratio"], 2),
            " / ".join(
                number(100 * row[way], 1)
                for way in ("accuracy_one_by_one", "accuracy_at_once")
            ),
        ]
        for row in results["rows"]
    ]
    header = [
        "network",
        "teachers",
        "one by one, s",
        "at once, s",
        "times faster",
        "votes right, %",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def images_vat():
    """Compare VAT with the same network on the answers alone."""
    results = load("vat")["mnist"]
    rows = [
        [
            row["student"],
            percent(row["accuracy"]),
            number(row["cpu_seconds"]["mean"], 0),
        ]
        for row in results["rows"]
    ]
    header = ["student, 1000 answers", "accuracy, %", "CPU, s"]
    return f"{markdown(header, rows)}\n\n{source(results)}"


IMAGE_TABLES = (
    images_pate_g,
    images_ours,
    images_levers,
    images_vat,
    images_noise,
    images_queries,
    images_distillation,
    images_svhn,
    teachers,
)
