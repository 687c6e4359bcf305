"""Tables of docs/benchmarks/images.md."""

from benchmarks.record import load
from benchmarks.reporting import decimals, markdown, percent, source, table

ACCURACY = {
    "accuracy, %": ("accuracy", percent),
    "right answers, %": ("answers_right", percent),
}


def _images(name, columns, shown=lambda _: True):
    results = load("images")[name]
    rows = [*filter(shown, results["rows"])]
    return table(results, columns, rows=rows, note=_shuffles(results))


def _shuffles(results):
    n_shuffles = len(results["rows"][0]["accuracy"]["values"])
    return f" Test rows were shuffled {n_shuffles} times."


def images_pate_g():
    """Accuracy and epsilons of the 2017 paper's experiment."""
    columns = {
        "queries": "n_queries",
        **ACCURACY,
        "epsilon by the 2017 bound (not publishable)": ("paper_epsilon", decimals(2)),
        "exact epsilon (not publishable)": ("exact_epsilon", decimals(2)),
        "publishable epsilon": ("epsilon", decimals(2)),
    }
    return _images("pate_g", columns)


def images_ours():
    """Accuracy at fixed publishable epsilon."""
    columns = {
        "publishable epsilon": ("epsilon", decimals(3)),
        "queries": "n_queries",
        **ACCURACY,
        "exact epsilon (not publishable)": ("exact_epsilon", decimals(2)),
    }
    return _images("ours", columns)


#: Settings of the ablation that no claim of a page needs.
_NOT_SHOWN = (
    "queries: 300",
    "queries: 1000",
    "student: GAN",
    "teachers: 250 networks",
    "mechanism: Laplace",
    "mechanism: Gumbel",
    "mechanism: Confident",
    "student: graph, GAN",
)


def images_ablation():
    """Effect of each part of the method."""
    columns = {
        "publishable epsilon 0.5": "setting",
        **ACCURACY,
    }
    return _images("ablation", columns, lambda row: row["setting"] not in _NOT_SHOWN)


def images_distillation():
    """Comparison of histograms with answers at equal epsilon."""
    columns = {
        "release: student": lambda row: f"{row['release']}: {row['student']}",
        "accuracy, %": ("accuracy", percent),
        "right plurality, %": ("answers_right", percent),
    }
    return _images("distillation", columns, _of_distillation)


def _of_distillation(row):
    return row["n_queries"] == 1000 and "T = " not in row["student"]


def images_svhn():
    """Accuracy of the same method on SVHN."""
    columns = {
        "student": "student",
        "publishable epsilon": ("epsilon", decimals(2)),
        **ACCURACY,
    }
    return _images("svhn", columns, lambda row: row["epsilon"]["mean"] > 5)


#: Data sets and epsilons of the comparison of learners; the result file has more.
_SHOWN = {"mnist": (0.1,), "svhn": (8.0,), "cifar10": (8.0,)}


def recipe():
    """Learners on components of public images, by epsilon for replacing an image."""
    results = load("image_recipe")
    columns, lines = ["accuracy in %"], {}
    for name, epsilons in _SHOWN.items():
        rows = results[name]["rows"]
        data = rows[0]["data"].partition(",")[0]
        for epsilon in epsilons:
            columns.append(f"{data}, epsilon {epsilon:g}")
            for row in rows:
                if row["target"] in (None, epsilon):
                    line = lines.setdefault(row["learner"], [])
                    line.append(percent(row["accuracy"]))
    table_of_learners = markdown(columns, [[one, *lines[one]] for one in lines])
    return f"{table_of_learners}\n\n{source(results['mnist'])}"


def recipe_network():
    """MNIST with a network as student."""
    results = load("image_recipe")["network"]
    columns = {
        "publishable epsilon": ("epsilon", decimals(2)),
        "accuracy, %": ("accuracy", percent),
        "DPNewton alone, %": ("of_function", percent),
    }
    return table(results, columns, note=_shuffles(results))


IMAGE_TABLES = (
    recipe,
    recipe_network,
    images_pate_g,
    images_ours,
    images_ablation,
    images_distillation,
    images_svhn,
)
