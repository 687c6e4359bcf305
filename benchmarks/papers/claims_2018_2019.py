"""Tables of docs/papers.md: the papers of 2018 and 2019."""

from benchmarks.papers.claims import (
    BETTER,
    NEEDS_SVHN,
    NOT_MEASURED,
    NOT_REPRODUCED,
    POINTS,
    REPRODUCED,
    VOID,
    Row,
    accuracy_verdict,
    claims_table,
    command_of,
    epsilon_verdict,
    only,
    student_figures,
    student_verdict,
)
from benchmarks.record import load
from benchmarks.reporting import decimals, markdown, percent


@claims_table
def papers_2018():
    """Mechanisms and epsilons of the 2018 paper."""
    votes = load("accounting")["published_votes"]
    worst = load("accounting")["worst_case"]
    mechanisms = load("accounting")["default_mechanism"]
    ours = load("images")["ours"]
    agreement = load("paper_students")["teachers"]
    interactive = load("paper_students")["interactive"]
    confident, saving = interactive["rows"]
    agreed = "; ".join(
        f"{percent(row['right_answered'])} against {percent(row['right_refused'])} "
        f"({row['data']})"
        for row in agreement["rows"]
    )
    rows = []
    for row in votes["rows"]:
        if row["paper"] != 2018:
            continue
        parameters = (row["threshold"], row["sigma_threshold"], row["sigma"])
        rows.append(
            Row(
                f"{row['data']}, Confident-GNMax "
                f"{', '.join(f'{one:g}' for one in parameters)}, "
                f"{row['n_queries']} queries: bound",
                f"{row['printed']:.2f}",
                f"{row['reproduced']:.2f}",
                epsilon_verdict(row["printed"], row["reproduced"]),
                command_of(votes),
            )
        )
    pairs = {}
    for row in mechanisms["rows"]:
        key = row["data"], row["agreement"]
        pairs.setdefault(key, {})[row["mechanism"]] = row.get("worst_case")
    compared = [
        (one["GNMax"], one["LNMax"])
        for one in pairs.values()
        if None not in (one["GNMax"], one["LNMax"])
    ]
    n_lower = sum(gaussian < laplace for gaussian, laplace in compared)
    bound = only(worst, sigma=40.0, n_answers=286)
    best = min(ours["rows"], key=lambda row: row["target"])
    return [
        Row(
            "GNMax, data-independent cost",
            "$a / \\sigma^2$",
            f"about $0.64\\, a / \\sigma^2$: epsilon {bound['tight']:.2f}, not "
            f"{bound['classical']:.2f}",
            BETTER,
            command_of(worst),
            "286 answers, scale 40",
        ),
        Row(
            "Algorithm 1: Confident-GNMax",
            "an algorithm",
            "`ConfidentGNMax`",
            REPRODUCED,
            "tests/mechanisms/test_threshold_checks.py",
        ),
        Row(
            "Algorithm 2: Interactive-GNMax",
            "an algorithm",
            "`InteractiveGNMax`",
            REPRODUCED,
            "tests/mechanisms/test_threshold_checks.py",
        ),
        Row(
            "GNMax, Theorem 6 and Propositions 7 and 10",
            "a bound by $q$",
            "`bounds.gaussian_2018`",
            REPRODUCED,
            "tests/accounting/test_bounds.py",
        ),
        Row(
            "Gaussian noise costs less than Laplace noise at equal agreement",
            "",
            f"in {n_lower} of {len(compared)} comparisons",
            REPRODUCED if n_lower > len(compared) / 2 else NOT_REPRODUCED,
            command_of(mechanisms),
            "all votes",
        ),
        Row(
            "cost of a checked query: its expectation",
            "",
            "no upper bound; `ConfidentGNMax` counts all possible answers",
            VOID,
            remark="[fault](proofs/faults.md#faults-that-the-tests-detect)",
        ),
        Row(
            "cost of a release with smooth sensitivity",
            "",
            "no upper bound; here, the exact cost",
            VOID,
            remark="[proof](proofs/local-cost.md#what-can-be-released-about-it)",
        ),
        *rows,
        Row(
            "MNIST, student by virtual adversarial training",
            "98.5 at 1.97",
            f"{percent(best['accuracy'])} at {decimals(2)(best['epsilon'])}",
            student_verdict((98.5, 1.97), student_figures(best)),
            command_of(ours),
            "all votes; 1000 linear teachers, GNMax, FixMatch on a graph",
        ),
        Row(
            "SVHN, student by virtual adversarial training",
            "91.6 at 4.96",
            "",
            NOT_MEASURED,
            remark=NEEDS_SVHN,
        ),
        Row(
            "Glyph: Confident-GNMax and Interactive-GNMax",
            "a table",
            "",
            NOT_MEASURED,
            remark="the data set is not public",
        ),
        Row(
            "Interactive-GNMax saves privacy cost",
            "",
            "; ".join(
                f"{row['mechanism']}: {percent(row['accuracy'])} at "
                f"{decimals(2)(row['epsilon'])}"
                for row in interactive["rows"]
            ),
            REPRODUCED
            if saving["epsilon"]["mean"] < confident["epsilon"]["mean"]
            and saving["accuracy"]["mean"] >= confident["accuracy"]["mean"] - 0.01
            else NOT_REPRODUCED,
            command_of(interactive),
            "the cost of as many answers as were given, which may not be published; "
            "MNIST, 640 queries, published votes",
        ),
        Row(
            "answers on which teachers agree are more often right",
            "",
            f"{agreed}",
            REPRODUCED
            if all(
                row["right_answered"] > row["right_refused"]
                for row in agreement["rows"]
            )
            else NOT_REPRODUCED,
            command_of(agreement),
            "right pluralities, answered against refused queries",
        ),
    ]


def papers_2019_claims():
    """Tables 1 and 2 of the 2019 paper, with a line for each variant."""
    lines = {}
    for row in _rows_of_claims():
        data, _, variant = row.claim.partition(", ")
        if variant:
            lines.setdefault(variant, {})[data] = f"{row.printed} ({row.here})"
    names = ("MNIST", "SVHN", "CIFAR-10")
    cells = [[variant, *map(found.get, names)] for variant, found in lines.items()]
    return markdown(["void claims", *names], cells, rule="---")


def _rows_of_claims():
    """Return the claims of Tables 1 and 2, and Theorem 2."""
    reachable, attack = load("petdl")["reachable"], load("petdl")["noise_on_loss"]
    main = load("petdl")["main"]
    names = ("", "", ", biased shards", ", biased shards, weighted")
    rows = []
    for i, row in enumerate(reachable["rows"]):
        variant, n_teachers = names[i // 3], row["n_teachers"]
        here = percent(row["right"], 0)
        source = reachable
        if row["data"] == "MNIST":
            source = attack
        rows.append(
            Row(
                f"{row['data']}, {n_teachers} teachers{variant}",
                f"{row['claimed_accuracy']:.2f} at {row['claimed_epsilon']:.2f}",
                here,
                VOID,
                command_of(source),
            )
        )
    valid = only(main, teacher="network", n_teachers=4, epsilon=_near(main, 4, 1.5))
    rows.append(
        Row(
            "Theorem 2: noise on the loss is differentially private",
            "$(\\varepsilon, \\delta)$",
            "the gradient does not depend on the noise; with noise on the sum, 4 "
            f"teachers give {percent(valid['accuracy'])} % at 1.50",
            VOID,
            command_of(main),
        )
    )
    return rows


papers_2019_claims.rows = _rows_of_claims  # type: ignore[attr-defined]


def _near(results, n_teachers, epsilon):
    """Return the stored summary of the epsilon nearest to the given one."""
    found = [
        row["epsilon"]
        for row in results["rows"]
        if row["teacher"] == "network" and row["n_teachers"] == n_teachers
    ]
    return min(found, key=lambda one: abs(one["mean"] - epsilon))


@claims_table
def papers_2019_baselines():
    """Other methods in Table 1 of the 2019 paper."""
    dpsgd, recipe = load("dpsgd")["mnist"], load("image_recipe")["cifar10"]
    mnist = only(dpsgd, target=8.0)
    cifar = only(recipe, learner="DP-SGD, linear", target=8.0)
    newton = only(recipe, learner="DPNewton", target=8.0)
    return [
        Row(
            "DP-SGD, MNIST",
            "97.00 at 8.00",
            f"{percent(mnist['accuracy'])} at {decimals(2)(mnist['epsilon'])}",
            accuracy_verdict(97, 100 * mnist["accuracy"]["mean"]),
            command_of(dpsgd),
        ),
        Row(
            "DP-SGD, CIFAR-10",
            "73.00 at 8.00",
            f"{percent(cifar['accuracy'])} at 8.00; DPNewton: "
            f"{percent(newton['accuracy'])}; without privacy: "
            + percent(only(recipe, learner="not private, logistic")["accuracy"]),
            accuracy_verdict(73, 100 * cifar["accuracy"]["mean"]),
            command_of(recipe),
            "replacing an image; linear map on components of public images",
        ),
        Row(
            "DP-SGD adds noise to the loss",
            "",
            "the 2016 paper adds noise to clipped gradients",
            VOID,
        ),
        Row(
            "PATE of 2017, SVHN",
            "90.77 at 8.19",
            "the 2017 paper prints 90.66",
            NOT_REPRODUCED,
        ),
    ]


@claims_table
def papers_2019_effects():
    """Effects of parameters in the 2019 paper, with a valid guarantee here."""
    main, sizes = load("petdl")["main"], load("petdl")["sizes"]
    hints, weighted = load("petdl")["hints"], load("petdl")["weighted"]
    pate = load("petdl")["pate"]

    def network(n_teachers, epsilon):
        chosen = _near(main, n_teachers, epsilon)
        return only(main, teacher="network", n_teachers=n_teachers, epsilon=chosen)

    def points(results, name, **values):
        """Return the difference that a setting makes, in points of accuracy."""
        pairs = {}
        for row in results["rows"]:
            if all(row.get(key) == value for key, value in values.items()):
                pairs[bool(row[name])] = 100 * row["accuracy"]["mean"]
        return pairs[True] - pairs[False]

    def beside_teachers(row):
        return f"{percent(row['accuracy'])} against {percent(row['teachers'])}"

    by_epochs = [
        points(hints, "hint_epochs", distillation_epochs=n) for n in (1, 3, 10)
    ]
    of_weights = []
    for i in range(0, len(weighted["rows"]), 2):
        without, with_weights = weighted["rows"][i : i + 2]
        of_weights.append(
            100 * (with_weights["accuracy"]["mean"] - without["accuracy"]["mean"])
        )
    teacher, *students = sizes["rows"]
    four = network(4, 1.5)
    linear = [row for row in main["rows"] if row["teacher"] == "discriminant"]
    against = "; ".join(
        f"{percent(one['accuracy'])} against {percent(other['accuracy'])} at "
        f"{decimals(2)(other['epsilon'])}"
        for one, other in zip(linear, pate["rows"], strict=True)
    )
    budget = "; ".join(
        percent(network(50, e)["accuracy"]["mean"]) for e in (1.5, 5, 25)
    )
    teachers = "; ".join(
        percent(network(n, 1.5)["accuracy"]["mean"]) for n in (4, 10, 50, 250)
    )
    by_size = "; ".join(percent(row["accuracy"]["mean"]) for row in students)
    many = network(250, 1.5)
    middle, small = students[1], students[2]
    return [
        Row(
            "PETDL is more accurate than PATE",
            "in all rows",
            f"{against}",
            NOT_REPRODUCED,
            command_of(pate),
            "MNIST; as many teachers and queries",
        ),
        Row(
            "one query for a batch of public rows",
            "an algorithm",
            "`PETDLClassifier(batches=Clusters(...))`",
            REPRODUCED,
            "tests/learners/test_petdl.py",
            "all rows of a batch get one label",
        ),
        Row(
            "accuracy rises with epsilon",
            "",
            f"{budget} at 1.5, 5, 25 (MNIST, 50 teachers)",
            REPRODUCED,
            command_of(main),
        ),
        Row(
            "more teachers are better",
            "",
            f"{teachers} at 1.5 with 4, 10, 50, 250 (MNIST)",
            REPRODUCED,
            command_of(main),
        ),
        Row(
            "MNIST: student more accurate than teachers",
            "99.33 against 99.21",
            f"{beside_teachers(many)} with 250 teachers; "
            f"{beside_teachers(four)} with the paper's 4",
            NOT_REPRODUCED,
            command_of(main),
            "epsilon 1.5",
        ),
        Row(
            "MNIST: hints improve the student",
            "",
            "; ".join(f"{one:+.1f}" for one in by_epochs) + " after 1, 3, 10 epochs",
            REPRODUCED if min(by_epochs) > 0 else NOT_REPRODUCED,
            command_of(hints),
            "MNIST, 250 teachers",
        ),
        Row(
            "MNIST: weights help on biased shards",
            "+1.43",
            "; ".join(f"{one:+.1f}" for one in of_weights)
            + " (10 teachers at 1.17 and 25; 100 at 1.5)",
            REPRODUCED if min(of_weights) >= 1 else NOT_REPRODUCED,
            command_of(weighted),
        ),
        Row(
            "accuracy falls with compression",
            "",
            f"{by_size} (MNIST)",
            REPRODUCED,
            command_of(sizes),
        ),
        Row(
            "MNIST, teacher, 157.1 thousand parameters",
            "99.21",
            f"{percent(four['teachers'])} with {teacher['n_parameters'] / 1000:.1f}",
            accuracy_verdict(99.21, 100 * four["teachers"]["mean"]),
            command_of(main),
            "fewer epochs",
        ),
        *(
            Row(
                f"MNIST, {name}, {size} thousand parameters",
                f"{printed:.2f}",
                f"{percent(row['accuracy'])} with {row['n_parameters'] / 1000:.1f}",
                accuracy_verdict(printed, 100 * row["accuracy"]["mean"]),
                command_of(sizes),
                "250 teachers, epsilon 1.5",
            )
            for name, size, printed, row in (
                ("student", "23.0", 99.33, middle),
                ("smaller student", "13.2", 99.23, small),
            )
        ),
        *(
            Row(
                f"{data}, {name}, {size} million parameters",
                printed,
                "",
                NOT_MEASURED,
                remark=NEEDS_SVHN if data == "SVHN" else "no such network was trained",
            )
            for data, name, size, printed in (
                ("CIFAR-10", "teacher", "1.43", "77.66"),
                ("CIFAR-10", "student", "0.37", "76.81"),
                ("CIFAR-10", "smaller student", "0.17", "72.20"),
                ("SVHN", "teacher", "1.43", "94.68"),
                ("SVHN", "student", "0.37", "95.35"),
                ("SVHN", "smaller student", "0.09", "94.02"),
            )
        ),
        Row(
            "MNIST, smaller networks predict faster",
            "2.021; 1.230; 1.157 s",
            "; ".join(
                f"{row['microseconds_per_row']:.0f}" for row in (teacher, middle, small)
            )
            + " microseconds a row",
            REPRODUCED,
            command_of(sizes),
        ),
        *_rows_of_components(),
    ]


def _rows_of_components():
    """Effects on components of images, with linear teachers in place of networks."""
    results = load("petdl")["components"]
    remark = "reduced"

    def swept(data, varied, **values):
        return [
            row
            for row in results["rows"]
            if (row["data"], row["varied"]) == (data, varied)
            and all(row[name] == value for name, value in values.items())
        ]

    def row_of(claim, here, holds, printed=""):
        verdict = REPRODUCED if holds else NOT_REPRODUCED
        return Row(claim, printed, here, verdict, command_of(results), remark)

    def means(rows):
        return [100 * row["accuracy"]["mean"] for row in rows]

    def listed(values):
        return "; ".join(f"{one:.1f}" for one in values)

    def teachers(rows):
        return 100 * rows[0]["teachers"]["mean"]

    def difference(rows, name):
        with_it, without = (
            [r for r in rows if bool(r[name]) == b] for b in (True, False)
        )
        return [a - b for a, b in zip(means(with_it), means(without), strict=True)]

    sizes = {data: swept(data, "batch_size") for data in ("MNIST", "CIFAR-10", "SVHN")}
    noises = {data: swept(data, "noise") for data in sizes}
    in_range = {
        "MNIST": [row for row in sizes["MNIST"] if row["batch_size"] <= 160],
        "SVHN": [row for row in sizes["SVHN"] if 32 <= row["batch_size"] <= 192],
    }
    rows = []
    by_size, by_noise = means(sizes["CIFAR-10"]), means(noises["CIFAR-10"])
    rows.append(
        row_of(
            "CIFAR-10: smaller batches are more accurate",
            f"{listed(by_size)} with batches of "
            f"{', '.join(str(row['batch_size']) for row in sizes['CIFAR-10'])}",
            by_size[0] > by_size[-1] + POINTS,
        )
    )
    for data, limits in (("MNIST", "up to 160"), ("SVHN", "of 32 to 192")):
        of_student, of_teachers = means(in_range[data]), teachers(in_range[data])
        rows.append(
            row_of(
                f"{data}: student more accurate than teachers, batches {limits}",
                f"{listed(of_student)} against {of_teachers:.1f}",
                min(of_student) > of_teachers,
            )
        )
    rows.append(
        row_of(
            "CIFAR-10: accuracy falls with noise",
            f"{listed(by_noise)} with noise of "
            f"{', '.join(format(row['noise'], 'g') for row in noises['CIFAR-10'])}",
            by_noise[0] > by_noise[-1] + POINTS,
        )
    )
    for data in ("MNIST", "SVHN"):
        of_student, of_teachers = means(noises[data]), teachers(noises[data])
        rows.append(
            row_of(
                f"{data}: student more accurate than teachers, any noise",
                f"{listed(of_student)} against {of_teachers:.1f}",
                min(of_student) > of_teachers,
            )
        )
    hints = difference(swept("CIFAR-10", "hint_epochs"), "hint_epochs")
    rows.append(
        row_of(
            "CIFAR-10: hints help after few epochs only",
            f"{'; '.join(f'{one:+.1f}' for one in hints)} after 1, 3, 10 epochs",
            hints[0] > POINTS and abs(hints[-1]) <= POINTS,
        )
    )
    for data, printed in (("CIFAR-10", "+9.09"), ("SVHN", "+0.84")):
        gains = difference(swept(data, "weighted"), "weighted")
        rows.append(
            row_of(
                f"{data}: weights help on biased shards",
                f"{'; '.join(f'{one:+.1f}' for one in gains)} at 2.5, 25, 100 with 10 "
                "teachers",
                min(gains) > 0,
                printed,
            )
        )
    return rows
