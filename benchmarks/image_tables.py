"""Tables of benchmarks on images, and of networks as teachers."""

from record import load
from reporting import cross_table, decimals, percent, source, table

ACCURACY = {
    "accuracy, %": ("accuracy", percent),
    "right answers, %": ("answers_right", percent),
}


def _images(name, columns, first=()):
    results = load("images")[name]
    rows = [*first, *results["rows"]]
    return table(results, columns, rows=rows, note=_shuffles(results))


def _shuffles(results):
    n_shuffles = len(results["rows"][0]["accuracy"]["values"])
    return f" Shuffles of the test rows: {n_shuffles}."


def images_pate_g():
    """Comparison with the 2017 paper."""
    columns = {
        "student": lambda _: "GAN on answers spread over a graph",
        "queries": "n_queries",
        **ACCURACY,
        "epsilon by the 2017 bound (not publishable)": ("paper_epsilon", decimals(2)),
        "exact epsilon (not publishable)": ("exact_epsilon", decimals(2)),
        "publishable epsilon": ("epsilon", decimals(2)),
    }
    paper = [
        ["2017 paper: GAN on answers", "100", "98.00", "", "2.04", "", ""],
        ["2017 paper: GAN on answers", "1000", "98.10", "", "8.03", "", ""],
    ]
    return _images("pate_g", columns, paper)


def images_ours():
    """Accuracy at fixed publishable epsilon."""
    columns = {
        "publishable epsilon": ("epsilon", decimals(3)),
        "queries": "n_queries",
        **ACCURACY,
        "exact epsilon (not publishable)": ("exact_epsilon", decimals(2)),
    }
    return _images("ours", columns)


def images_ablation():
    """Effect of each part of the method."""
    columns = {
        "publishable epsilon 0.5": "setting",
        **ACCURACY,
        "answers": ("n_answered", decimals(0)),
    }
    return _images("ablation", columns)


def images_queries():
    """Comparison of query strategies."""
    results = load("images")["queries"]
    accuracy = cross_table(
        results["rows"],
        "student: queries",
        line=lambda row: f"{row['student']}: {row['query_strategy']}",
        column=lambda row: row["n_queries"],
        cell=lambda row: percent(row["accuracy"]),
        heading="{} queries".format,
    )
    return f"{accuracy}\n\n{source(results)}{_shuffles(results)}"


def images_distillation():
    """Comparison of histograms with answers at equal epsilon."""
    columns = {
        "release: student": lambda row: f"{row['release']}: {row['student']}",
        "queries": "n_queries",
        "accuracy, %": ("accuracy", percent),
        "right plurality, %": ("answers_right", percent),
    }
    return _images("distillation", columns)


def images_svhn():
    """Accuracy of the same method on SVHN."""
    columns = {
        "student": "student",
        "publishable epsilon": ("epsilon", decimals(2)),
        **ACCURACY,
    }
    return _images("svhn", columns)


def images_noise():
    """Accuracy of noisy labels, by the number of teachers."""
    paper = {250: "83.86 / 93.18"}
    columns = {
        "teachers": "n_teachers",
        "mean accuracy, %": ("mean_accuracy", percent),
        "gap, % of teachers": ("gap", percent),
        "right plurality, %": ("plurality", percent),
        "right answers with Laplace noise of scale 20, %": ("scale_20", percent),
        "2017 paper: mean / noisy": lambda row: paper.get(row["n_teachers"], ""),
    }
    return table(load("images")["noise"], columns)


def _learners(name):
    """Return accuracy of the learners, by epsilon for replacing an image."""
    results = load("image_recipe")[name]
    accuracy = cross_table(
        results["rows"],
        f"{results['rows'][0]['data']}, accuracy in %",
        line=lambda row: row["learner"],
        column=lambda row: row["target"],
        cell=lambda row: percent(row["accuracy"]),
        heading="epsilon {:.3g}".format,
    )
    most, fewest = (
        choose(len(row["accuracy"]["values"]) for row in results["rows"])
        for choose in (max, min)
    )
    note = f" Runs of DPNewton and without privacy: {most}, of the others: {fewest}."
    return f"{accuracy}\n\n{source(results)}{note}"


def recipe_mnist():
    """Learners on MNIST, on components of public images."""
    return _learners("mnist")


def recipe_svhn():
    """Learners on the colour digits of SVHN."""
    return _learners("svhn")


def recipe_svhn_grey():
    """Learners on the grey digits of SVHN."""
    return _learners("svhn-grey")


def recipe_cifar10():
    """Learners on CIFAR-10."""
    return _learners("cifar10")


def recipe_scattering():
    """Learners on scattering features of CIFAR-10."""
    return _learners("scattering")


def recipe_seconds():
    """CPU time of the representation and of the longest fit of each learner."""
    results = load("image_recipe")
    rows = []
    for name in ("mnist", "svhn", "cifar10"):
        longest = {}
        for row in results[name]["rows"]:
            learner, seconds = row["learner"], max(row["cpu_seconds"]["values"])
            longest[learner] = max(seconds, longest.get(learner, 0))
        shared = row["representation_seconds"]["mean"]
        rows += [
            (row["data"], line, seconds)
            for line, seconds in [("representation", shared), *longest.items()]
        ]
    seconds = cross_table(
        rows,
        "CPU seconds",
        line=lambda row: row[1],
        column=lambda row: row[0],
        cell=lambda row: decimals(0)(row[2]),
        heading=str,
    )
    return f"{seconds}\n\n{source(results['mnist'])}"


def recipe_network():
    """MNIST with a network as student."""
    results = load("image_recipe")["network"]
    columns = {
        "publishable epsilon": ("epsilon", decimals(2)),
        "accuracy, %": ("accuracy", percent),
        "DPNewton alone, %": ("of_function", percent),
        "right labels of public images, %": ("labels_right", percent),
        "representation, CPU s": ("representation_seconds", decimals(0)),
        "DPNewton and network, CPU s": ("cpu_seconds", decimals(0)),
    }
    return table(results, columns, note=_shuffles(results))


def _teachers(name):
    """Return figures of votes, by the number of teachers."""
    results = load("image_recipe")[name]
    columns = {
        "teachers": "n_teachers",
        "rows of each": ("rows_of_teacher", decimals(0)),
        "linear discriminants on": "representation",
        "mean accuracy, %": ("mean_accuracy", percent),
        "gap, % of teachers": ("gap", percent),
        "right plurality, %": ("plurality", percent),
    }
    return table(results, columns)


def recipe_limits():
    """Votes of teachers on the colour digits of SVHN."""
    return _teachers("limits")


def recipe_limits_grey():
    """Votes of teachers on the grey digits of SVHN."""
    return _teachers("limits-grey")


def siamese_teachers():
    """Comparison of teachers trained on pairs with teachers trained on labels."""
    columns = {
        "teachers": "n_teachers",
        "trained on": "way",
        "augmentation": lambda row: "yes" if row["augmented"] else "no",
        "mean accuracy, %": ("mean_accuracy", percent),
        "gap, % of teachers": ("gap", percent),
        "right plurality, %": ("plurality", percent),
        "right answers with Laplace noise of scale 20, %": ("scale_20", percent),
        "CPU seconds per teacher": ("cpu_seconds", decimals(2)),
    }
    return table(load("siamese")["teachers"], columns)


def siamese_student():
    """Right labels of images without an answer, by the confidence in them."""
    columns = {
        "answers": "n_answers",
        "trained on": "way",
        "right of the most confident tenth, %": lambda row: percent(
            row["right"]["0.1"]
        ),
        "of the most confident half, %": lambda row: percent(row["right"]["0.5"]),
        "of all, %": lambda row: percent(row["right"]["1"]),
    }
    return table(load("siamese")["student"], columns)


IMAGE_TABLES = (
    recipe_mnist,
    recipe_svhn,
    recipe_svhn_grey,
    recipe_cifar10,
    recipe_scattering,
    recipe_seconds,
    recipe_network,
    recipe_limits,
    recipe_limits_grey,
    images_pate_g,
    images_ours,
    images_ablation,
    images_noise,
    siamese_teachers,
    siamese_student,
    images_queries,
    images_distillation,
    images_svhn,
)
