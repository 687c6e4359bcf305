"""Tables of docs/papers.md: claims of the papers, figures measured here, verdicts."""

from collections import Counter
from dataclasses import dataclass

from record import load
from reporting import decimals, percent, spread

REPRODUCED = "reproduced"
BETTER = "better"
NOT_REPRODUCED = "not reproduced"
VOID = "void"
NOT_MEASURED = "not measured"
IMPOSSIBLE = "cannot be measured here"
VERDICTS = (REPRODUCED, BETTER, NOT_REPRODUCED, VOID, NOT_MEASURED, IMPOSSIBLE)
#: Largest difference of a figure that is reproduced.
EPSILON_SHARE = 0.02
POINTS = 1.0
_SVHN = "needs the official training files of SVHN, which are not at hand"


@dataclass(frozen=True)
class Row:
    """A claim of a paper: what it prints, what was measured here, and the verdict."""

    claim: str
    printed: str
    here: str
    verdict: str
    source: str = ""
    remark: str = ""

    def __post_init__(self):
        if self.verdict not in VERDICTS:
            raise ValueError(f"{self.verdict!r} is none of {VERDICTS}.")

    def cells(self):
        """Return the cells of a line of the table."""
        source = f"`{self.source}`" if self.source else ""
        verdict = f"**{self.verdict}**"
        return [self.claim, self.printed, self.here, verdict, source, self.remark]


def epsilon_verdict(printed, measured):
    """Judge an epsilon by its bound on the same kind of votes."""
    close = abs(measured - printed) <= EPSILON_SHARE * printed
    return REPRODUCED if close else NOT_REPRODUCED


def accuracy_verdict(printed, measured):
    """Judge an accuracy in percent."""
    if abs(measured - printed) <= POINTS:
        return REPRODUCED
    return BETTER if measured > printed else NOT_REPRODUCED


def _command(results):
    return results["command"].removeprefix("python ")


def _table(rows):
    header = ["claim", "printed", "here", "verdict", "measured by", "remark"]
    lines = [header, ["---"] * len(header), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _only(results, **values):
    """Return the only row of a table with these values."""
    [row] = [
        row
        for row in results["rows"]
        if all(row.get(name) == value for name, value in values.items())
    ]
    return row


# ------------------------------------------------------------------------------ 2017


def _votes_2017(data, gamma, n_queries):
    results = load("accounting")["published_votes"]
    return _only(results, paper=2017, data=data, gamma=gamma, n_queries=n_queries)


def rows_2017_analysis():
    """Theorems of the 2017 paper, and epsilons of its students."""
    results = load("accounting")["published_votes"]
    source, tests = _command(results), "tests/accounting/test_bounds.py"
    rows = [
        Row(
            "an answer of LNMax is $2 \\gamma$-private",
            "$2 \\gamma$",
            "proved for whole-number noise",
            REPRODUCED,
            tests,
        ),
        Row(
            "data-dependent moments, first version, Theorem 1",
            "for every $q$",
            "no bound without the condition $q < 1 / (1 + e^{2 \\gamma})$",
            VOID,
            tests,
            "the final version has the condition",
        ),
        Row(
            "data-dependent moments, final version, Theorem 3",
            "for small $q$",
            "`bounds.laplace_2017`",
            REPRODUCED,
            tests,
        ),
        Row(
            "Lemma 4: probability that the plurality loses",
            "sum over classes",
            "part of `bounds.laplace_2017`",
            REPRODUCED,
            tests,
            "the first version prints 0 in place of the plurality $j^*$",
        ),
    ]
    for data, n_queries, printed, slack in (
        ("SVHN", 1000, 26, 1),
        ("MNIST", 100, 5.80, 0.005),
    ):
        ours = _votes_2017(data, 0.05, n_queries)["strong_composition"]
        rows.append(
            Row(
                f"strong composition, {n_queries} queries, $\\gamma = 0.05$",
                f"about {printed:g}",
                f"{ours:.2f}",
                REPRODUCED if abs(ours - printed) < slack else NOT_REPRODUCED,
                source,
            )
        )
    for data, gamma, n_queries, remark in (
        ("MNIST", 0.05, 100, ""),
        (
            "MNIST",
            0.05,
            1000,
            "on votes that the 2018 paper published; those of 2017 are not published",
        ),
        ("SVHN", 0.1, 500, "at noise of scale 10; the text says 20"),
        ("SVHN", 0.1, 1000, "at noise of scale 10; the text says 20"),
    ):
        row = _votes_2017(data, gamma, n_queries)
        rows.append(
            Row(
                f"{data}, {n_queries} queries: epsilon by Theorem 3",
                f"{row['printed']:.2f}",
                f"{row['reproduced']:.2f}",
                epsilon_verdict(row["printed"], row["reproduced"]),
                source,
                remark,
            )
        )
    scale_20 = [_votes_2017("SVHN", 0.05, n)["reproduced"] for n in (500, 1000)]
    guarantees = [
        _votes_2017(*key)["tight"]
        for key in (("MNIST", 0.05, 100), ("MNIST", 0.05, 1000))
    ]
    guarantees += [_votes_2017("SVHN", 0.1, n)["tight"] for n in (500, 1000)]

    def noise(data, gamma, sizes):
        found = [_votes_2017(data, gamma, n)["sanitized"]["std"] for n in sizes]
        return ", ".join(f"{one:.2f}" for one in found)

    own = load("images")["pate_g"]
    first = _only(own, n_queries=100)["paper_epsilon"]["mean"]
    rows += [
        Row(
            "SVHN: noise of scale 20",
            "5.04; 8.19",
            "; ".join(f"{one:.2f}" for one in scale_20) + " at scale 20",
            NOT_REPRODUCED,
            source,
            "the figures are those of scale 10",
        ),
        Row(
            "these are bounds of differential privacy",
            "2.04; 8.03; 5.04; 8.19",
            "; ".join(f"{one:.2f}" for one in guarantees) + " for all votes",
            VOID,
            source,
            "the printed ones depend on votes, and the paper says so",
        ),
        Row(
            "MNIST, first version, Appendix A: epsilon",
            "1.9",
            f"{_votes_2017('MNIST', 0.05, 100)['reproduced']:.2f}; "
            f"{first:.2f} with own networks",
            NOT_REPRODUCED,
            source,
            "the same paper prints 2.04",
        ),
        Row(
            "scale of the noise of a sanitised epsilon",
            "below 0.5 (MNIST), 1.0 (SVHN)",
            f"{noise('MNIST', 0.05, (100, 1000))} (MNIST, 100 and 1000 queries); "
            f"{noise('SVHN', 0.1, (500, 1000))} (SVHN, 500 and 1000, scale 10); "
            f"{noise('SVHN', 0.05, (500, 1000))} (scale 20)",
            NOT_REPRODUCED,
            source,
            "its parameters are public numbers here, and its cost is corrected",
        ),
    ]
    return rows


def rows_2017_mnist_svhn():
    """Teachers and students of the 2017 paper on images."""
    noise, students = load("images")["noise"], load("images")["pate_g"]
    by_teachers = {row["n_teachers"]: row for row in noise["rows"]}
    many = by_teachers[250]
    gaps = "; ".join(f"{percent(row['gap'])} %" for row in noise["rows"])
    at_20 = "; ".join(percent(row["scale_20"]["mean"]) for row in noise["rows"])
    rows = [
        Row(
            "MNIST, one network on all rows",
            "99.18",
            "",
            NOT_MEASURED,
            remark="other models without privacy are in [Benchmarks](benchmarks.md#images)",
        ),
        Row(
            "MNIST, mean of 250 teachers",
            "83.86",
            percent(many["mean_accuracy"]),
            accuracy_verdict(83.86, 100 * many["mean_accuracy"]),
            _command(noise),
            "images are moved in training",
        ),
        Row(
            "MNIST, 250 teachers, noisy labels at scale 20",
            "93.18",
            percent(many["scale_20"]),
            accuracy_verdict(93.18, 100 * many["scale_20"]["mean"]),
            _command(noise),
            "images are moved in training",
        ),
        Row(
            "gap between the first two classes, first version",
            "below 20 % of the teachers",
            gaps + " (10, 100, 250 teachers; MNIST)",
            NOT_REPRODUCED,
            _command(noise),
            "the final version says the opposite",
        ),
        Row(
            "gap, final version",
            "above 60 % of the teachers",
            gaps + " (10, 100, 250 teachers; MNIST)",
            REPRODUCED
            if min(r["gap"] for r in noise["rows"]) > 0.6
            else NOT_REPRODUCED,
            _command(noise),
            "the number is lost in that text, and taken from the survey",
        ),
        Row(
            "many teachers are needed under noise (Figure 2)",
            "a figure",
            f"{at_20} % right at scale 20 (10, 100, 250 teachers; MNIST)",
            REPRODUCED,
            _command(noise),
        ),
    ]
    for n_queries, accuracy, epsilon in ((100, 98.00, 2.04), (1000, 98.10, 8.03)):
        row = _only(students, n_queries=n_queries)
        ours = 100 * row["accuracy"]["mean"]
        is_better = ours >= accuracy and row["paper_epsilon"]["mean"] < 0.98 * epsilon
        rows.append(
            Row(
                f"MNIST, student of {n_queries} answers",
                f"{accuracy:.2f} at {epsilon}",
                f"{percent(row['accuracy'])} at "
                f"{decimals(2)(row['paper_epsilon'])} by the same bound",
                BETTER if is_better else accuracy_verdict(accuracy, ours),
                _command(students),
                f"the GAN gets answers spread over a graph; "
                f"{decimals(2)(row['epsilon'])} for all votes",
            )
        )
    plurality, student = many["plurality"], _only(students, n_queries=100)["accuracy"]
    rows.append(
        Row(
            "the student is more accurate than the plurality without noise",
            "yes",
            f"{percent(student)} against {percent(plurality)} (MNIST, 100 answers)",
            REPRODUCED if student["mean"] > plurality else NOT_REPRODUCED,
            _command(students),
        )
    )
    svhn = load("images")["svhn"]
    near = percent(_only(svhn, target=8.0, student="logistic")["accuracy"])
    for claim, printed, remark in (
        ("SVHN, one network on all rows", "92.80", _SVHN),
        ("SVHN, mean of 250 teachers", "83.18", _SVHN),
        ("SVHN, 250 teachers, noisy labels at scale 20", "87.79", _SVHN),
        ("SVHN, student of 500 answers", "82.72 at 5.04", _SVHN),
        (
            "SVHN, student of 1000 answers",
            "90.66 at 8.19",
            f"{_SVHN}; on grey test digits {near} at 8.00 for all votes, by "
            f"`{_command(svhn)}`",
        ),
    ):
        rows.append(Row(claim, printed, "", IMPOSSIBLE, remark=remark))
    return rows


def rows_2017_queries():
    """Ways to need fewer queries: distillation, pairs, experts, uncertainty."""
    queries = load("images")["queries"]
    distillation = load("images")["distillation"]
    siamese = load("siamese")["student"]
    sizes = (50, 100, 300, 1000)

    def accuracies(strategy):
        return {
            row["n_queries"]: 100 * row["accuracy"]["mean"]
            for row in queries["rows"]
            if (row["student"], row["query_strategy"]) == ("logistic", strategy)
        }

    random = accuracies("random")

    def gains(strategy):
        ours = accuracies(strategy)
        shared = [n for n in sizes if n in ours]
        found = [ours[n] - random[n] for n in shared]
        text = "; ".join(f"{one:+.1f}" for one in found)
        which = ", ".join(map(str, shared))
        return f"{text} points at {which} queries", found

    unsure, of_unsure = gains("uncertainty")
    experts, of_experts = gains("experts")
    soft = {
        row["student"]: percent(row["accuracy"])
        for row in distillation["rows"]
        if row["n_queries"] == 1000
    }
    setting = "MNIST, scale 20, logistic student; the paper does not name its data"

    def labels(way):
        return percent(_only(siamese, n_answers=100, way=way)["right"]["1"])

    by_labels = labels("labels")
    return [
        Row(
            "distillation, 50 teachers, SVHN, no noise: a small gain",
            "a figure",
            f"with noise, on MNIST: {soft['logistic']} by answers, "
            f"{soft['distilled']} and {soft['distilled, T = 5']} at $T = 1$ and 5",
            NOT_MEASURED,
            _command(distillation),
            "other data, and with noise: there, soft labels lose",
        ),
        Row(
            "pairs of the same image: no confident matches of classes",
            "no gain",
            f"{labels('pairs: same image')} % of labels right, {by_labels} by "
            "cross-entropy",
            REPRODUCED,
            _command(siamese),
            "MNIST, 100 answers",
        ),
        Row(
            "pairs of the same label: too complicated to save queries",
            "no gain",
            f"{labels('pairs: same label')} % of labels right, {by_labels} by "
            "cross-entropy",
            REPRODUCED,
            _command(siamese),
            "MNIST, 100 answers",
        ),
        Row(
            "queries chosen by binary experts",
            "+1.5 to +2.5 points",
            experts,
            REPRODUCED if min(of_experts) >= 1.5 else NOT_REPRODUCED,
            _command(queries),
            f"{setting} and has about 2200 queries",
        ),
        Row(
            "the rows of which the student is least sure first",
            "+4 to +10 points",
            unsure,
            REPRODUCED if min(of_unsure) >= 4 else NOT_REPRODUCED,
            _command(queries),
            f"{setting}. Teachers disagree on such rows, so that fewer answers are right",
        ),
    ]


def rows_2017_tables():
    """Adult and Diabetes, Appendix C of the final version."""
    adult, votes = load("tabular")["adult_2017"], load("accounting")["published_votes"]
    balanced = load("tabular")["diabetes_balanced"]
    [row] = adult["rows"]
    on_published = _votes_2017("Adult", 0.05, 500)
    apart = percent(
        _only(balanced, balancing="drop others, split by patient")["accuracy"]
    )
    copied = percent(
        _only(balanced, balancing="repeat the readmitted, then split by row")[
            "accuracy"
        ]
    )
    features = "which 13 of 14 features is not known"
    selection = "the balanced selection is not published"
    return [
        Row(
            "Adult, forest without privacy",
            "85",
            percent(row["not_private"]),
            accuracy_verdict(85, 100 * row["not_private"]["mean"]),
            _command(adult),
            features,
        ),
        Row(
            "Adult, student of 500 answers",
            "83",
            percent(row["accuracy"]),
            accuracy_verdict(83, 100 * row["accuracy"]["mean"]),
            _command(adult),
            features,
        ),
        Row(
            "Adult, epsilon by Theorem 3, own forests",
            "2.66",
            spread(row["epsilon_2017"]),
            epsilon_verdict(2.66, row["epsilon_2017"]["mean"]),
            _command(adult),
            f"{row['publishable_epsilon']:.2f} for all votes",
        ),
        Row(
            "Adult, the same on votes published in 2018",
            "2.66",
            f"{on_published['reproduced']:.2f}",
            epsilon_verdict(2.66, on_published["reproduced"]),
            _command(votes),
            "the votes of 2017 are not published",
        ),
        Row(
            "Diabetes, forest without privacy",
            "93.81",
            f"{apart} with patients apart; {copied} with copies of training rows",
            IMPOSSIBLE,
            _command(balanced),
            selection,
        ),
        Row(
            "Diabetes, student",
            "93.94 at 1.44",
            "",
            IMPOSSIBLE,
            remark=selection,
        ),
    ]


def papers_2017_analysis():
    """Privacy analysis of the 2017 paper."""
    return _table(rows_2017_analysis())


def papers_2017_images():
    """MNIST and SVHN in the 2017 paper."""
    return _table(rows_2017_mnist_svhn())


def papers_2017_queries():
    """Appendix on fewer queries of the 2017 paper."""
    return _table(rows_2017_queries())


def papers_2017_tables():
    """Appendix on Adult and Diabetes of the 2017 paper."""
    return _table(rows_2017_tables())


# ------------------------------------------------------------------------------ 2018


def rows_2018():
    """Mechanisms and epsilons of the 2018 paper."""
    votes = load("accounting")["published_votes"]
    worst = load("accounting")["worst_case"]
    mechanisms = load("accounting")["default_mechanism"]
    ours = load("images")["ours"]
    rows = []
    for row in votes["rows"]:
        if row["paper"] != 2018:
            continue
        parameters = (row["threshold"], row["sigma_threshold"], row["sigma"])
        limit = row.get("max_answers")
        guarantee = row["tight_capped" if limit else "tight"]
        of = f"with at most {limit} answers" if limit else "with all answers"
        rows.append(
            Row(
                f"{row['data']}, Confident-GNMax "
                f"{', '.join(f'{one:g}' for one in parameters)}, "
                f"{row['n_queries']} queries: epsilon by Theorem 6",
                f"{row['printed']:.2f}",
                f"{row['reproduced']:.2f}",
                epsilon_verdict(row["printed"], row["reproduced"]),
                _command(votes),
                f"exactly {row['exact']:.2f} at these votes; {guarantee:.2f} for all "
                f"votes {of}",
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
    bound = _only(worst, sigma=40.0, n_answers=286)
    best = min(ours["rows"], key=lambda row: row["target"])
    return [
        Row(
            "GNMax, data-independent cost",
            "$a / \\sigma^2$",
            f"about $0.64\\, a / \\sigma^2$: epsilon {bound['tight']:.2f} in place of "
            f"{bound['classical']:.2f} (286 answers, $\\sigma = 40$)",
            BETTER,
            _command(worst),
            "the same mechanism and the same answers",
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
            "yes",
            f"in {n_lower} of {len(compared)} comparisons, for all votes",
            REPRODUCED if n_lower > len(compared) / 2 else NOT_REPRODUCED,
            _command(mechanisms),
        ),
        Row(
            "cost of a checked answer: cost times probability of answering",
            "an expectation",
            "no upper bound; `ConfidentGNMax` counts all answers that may be given",
            VOID,
            "tests/mechanisms/test_mechanisms.py",
        ),
        Row(
            "Renyi cost of a release with noise by smooth sensitivity",
            "a formula",
            "no upper bound; the exact cost is used",
            VOID,
            remark="[proof](proofs/local-cost.md#what-can-be-released-about-it)",
        ),
        *rows,
        Row(
            "MNIST, student by virtual adversarial training",
            "98.5 at 1.97",
            f"{percent(best['accuracy'])} at {decimals(2)(best['epsilon'])} for all "
            "votes",
            BETTER
            if best["accuracy"]["mean"] > 0.985 and best["epsilon"]["mean"] < 1.97
            else accuracy_verdict(98.5, 100 * best["accuracy"]["mean"]),
            _command(ours),
            "1000 linear teachers, GNMax, FixMatch on a graph in its place",
        ),
        Row(
            "SVHN, student by virtual adversarial training",
            "91.6 at 4.96",
            "",
            IMPOSSIBLE,
            remark=_SVHN,
        ),
        Row(
            "Glyph: Confident-GNMax and Interactive-GNMax",
            "a table",
            "",
            IMPOSSIBLE,
            remark="the data set is not public",
        ),
        Row(
            "Interactive-GNMax saves privacy cost",
            "a table",
            "",
            NOT_MEASURED,
            remark="implemented, with a cost for all votes: `InteractiveGNMax`",
        ),
    ]


def papers_2018():
    """Mechanisms and figures of the 2018 paper."""
    return _table(rows_2018())


# ------------------------------------------------------------------------------ 2019


def rows_2019_claims():
    """Tables 1 and 2 of the 2019 paper."""
    reachable, attack = load("petdl")["reachable"], load("petdl")["noise_on_loss"]
    main = load("petdl")["main"]
    names = ("", "", ", biased shards", ", biased shards, weighted")
    rows = []
    for i, row in enumerate(reachable["rows"]):
        variant, n_teachers = names[i // 3], row["n_teachers"]
        here = f"at most {percent(row['right'], 0)} % right labels at this epsilon"
        source = reachable
        if row["data"] == "MNIST":
            found = attack["rows"][i // 3]
            n_right, n_guesses = found["right"], found["guesses"]
            here += (
                f"; refuted: {n_right} of {n_guesses} guesses right, so epsilon is at "
                f"least {found['epsilon_at_least']:.2f}"
            )
            source = attack
        rows.append(
            Row(
                f"{row['data']}, {n_teachers} teachers{variant}",
                f"{row['claimed_accuracy']:.2f} at {row['claimed_epsilon']:.2f}",
                here,
                VOID,
                _command(source),
            )
        )
    valid = _only(main, teacher="network", n_teachers=4, epsilon=_near(main, 4, 1.5))
    rows.append(
        Row(
            "Theorem 2: noise on the loss is differentially private",
            "$(\\varepsilon, \\delta)$",
            "the gradient does not depend on the noise; with noise on the sum, 4 "
            f"teachers give {percent(valid['accuracy'])} % at 1.50 on MNIST",
            VOID,
            _command(main),
        )
    )
    return rows


def _near(results, n_teachers, epsilon):
    """Return the stored summary of the epsilon nearest to the given one."""
    found = [
        row["epsilon"]
        for row in results["rows"]
        if row["teacher"] == "network" and row["n_teachers"] == n_teachers
    ]
    return min(found, key=lambda one: abs(one["mean"] - epsilon))


def rows_2019_baselines():
    """Other methods in Table 1 of the 2019 paper."""
    dpsgd, recipe = load("dpsgd")["mnist"], load("image_recipe")["cifar10"]
    mnist = _only(dpsgd, target=8.0)
    cifar = _only(recipe, learner="DP-SGD, linear", target=8.0)
    newton = _only(recipe, learner="DPNewton", target=8.0)
    return [
        Row(
            "DP-SGD, MNIST",
            "97.00 at 8.00",
            f"{percent(mnist['accuracy'])} at {decimals(2)(mnist['epsilon'])}",
            accuracy_verdict(97, 100 * mnist["accuracy"]["mean"]),
            _command(dpsgd),
            "a convolutional network without public images",
        ),
        Row(
            "DP-SGD, CIFAR-10",
            "73.00 at 8.00",
            f"{percent(cifar['accuracy'])} at 8.00 for replacing an image; DPNewton "
            f"{percent(newton['accuracy'])}",
            accuracy_verdict(73, 100 * cifar["accuracy"]["mean"]),
            _command(recipe),
            "a linear map on components of public images; there, 71.1 % is reached "
            "without privacy"
            if percent(
                _only(recipe, learner="not private, logistic")["accuracy"]
            ).startswith("71.1")
            else "a linear map on components of public images",
        ),
        Row(
            "DP-SGD adds noise to the loss",
            "text",
            "the paper of 2016 adds noise to clipped gradients",
            VOID,
        ),
        Row(
            "PATE of 2017, SVHN",
            "90.77 at 8.19",
            "the paper of 2017 prints 90.66",
            NOT_REPRODUCED,
            remark="a wrong quotation",
        ),
    ]


def rows_2019_effects():
    """Effects of parameters in the 2019 paper, with a valid guarantee here."""
    main, sizes = load("petdl")["main"], load("petdl")["sizes"]
    hints, weighted = load("petdl")["hints"], load("petdl")["weighted"]
    pate = load("petdl")["pate"]

    def network(n_teachers, epsilon):
        chosen = _near(main, n_teachers, epsilon)
        return _only(main, teacher="network", n_teachers=n_teachers, epsilon=chosen)

    def points(results, name, **values):
        """Return the difference that a setting makes, in points of accuracy."""
        pairs = {}
        for row in results["rows"]:
            if all(row.get(key) == value for key, value in values.items()):
                pairs[bool(row[name])] = 100 * row["accuracy"]["mean"]
        return pairs[True] - pairs[False]

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
            f"{against} (PETDL against PATE, MNIST)",
            NOT_REPRODUCED,
            _command(pate),
            "the same teachers and numbers of queries, valid guarantees",
        ),
        Row(
            "accuracy rises with epsilon",
            "figures",
            f"{budget} at 1.5, 5 and 25 (50 teachers, MNIST)",
            REPRODUCED,
            _command(main),
        ),
        Row(
            "more teachers are better",
            "figures",
            f"{teachers} at 1.5 with 4, 10, 50 and 250 (MNIST)",
            REPRODUCED,
            _command(main),
        ),
        Row(
            "the student is more accurate than its teachers on MNIST",
            "99.33 against 99.21",
            f"{percent(many['accuracy'])} against {percent(many['teachers'])} with 250; "
            f"{percent(four['accuracy'])} against {percent(four['teachers'])} with 4",
            NOT_REPRODUCED,
            _command(main),
            "at epsilon 1.5; true for 250 teachers, false for the paper's 4",
        ),
        Row(
            "hints help after few epochs, and make no difference after many",
            "figures",
            "; ".join(f"{one:+.1f}" for one in by_epochs)
            + " points after 1, 3 and 10 epochs",
            REPRODUCED
            if by_epochs[0] > 0 and max(map(abs, by_epochs[1:])) <= POINTS
            else NOT_REPRODUCED,
            _command(hints),
            "250 teachers, MNIST",
        ),
        Row(
            "weights by confidence help on biased shards",
            "+1.43 points on MNIST",
            "; ".join(f"{one:+.1f}" for one in of_weights)
            + " points (10 teachers at 1.17 and 25; 100 at 1.5)",
            REPRODUCED if min(of_weights) >= 1 else NOT_REPRODUCED,
            _command(weighted),
        ),
        Row(
            "accuracy falls with compression",
            "figures",
            f"{by_size} (MNIST)",
            REPRODUCED,
            _command(sizes),
        ),
        Row(
            "MNIST, teacher, 157.1 thousand parameters",
            "99.21",
            f"{percent(four['teachers'])} with {teacher['n_parameters'] / 1000:.1f}",
            accuracy_verdict(99.21, 100 * four["teachers"]["mean"]),
            _command(main),
            "four teachers of 15,000 images; fewer epochs",
        ),
        *(
            Row(
                f"MNIST, {name}, {size} thousand parameters",
                f"{printed:.2f}",
                f"{percent(row['accuracy'])} with {row['n_parameters'] / 1000:.1f}",
                accuracy_verdict(printed, 100 * row["accuracy"]["mean"]),
                _command(sizes),
                "250 teachers, epsilon 1.5 for all votes",
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
                IMPOSSIBLE if data == "SVHN" else NOT_MEASURED,
                remark=_SVHN if data == "SVHN" else "no such network was trained",
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
            "times of these networks",
            "1.157 to 9.293 s",
            "",
            NOT_MEASURED,
            remark="another machine, and the number of rows is not stated",
        ),
        Row(
            "batch size and noise scale",
            "figures",
            "",
            NOT_MEASURED,
            remark="figures without numbers",
        ),
    ]


def papers_2019_claims():
    """Tables 1 and 2 of the 2019 paper."""
    return _table(rows_2019_claims())


def papers_2019_baselines():
    """Other methods in Table 1 of the 2019 paper."""
    return _table(rows_2019_baselines())


def papers_2019_effects():
    """Figures and Table 3 of the 2019 paper."""
    return _table(rows_2019_effects())


# ---------------------------------------------------------------------------- survey


def rows_survey():
    """Claims of the survey about DP-ERM, DP-SGD and PATE."""
    epsilon, size = load("erm")["epsilon"], load("erm")["size"]
    tuning, dpsgd = load("private_search")["tuning"], load("dpsgd")["mnist"]
    limits = load("image_recipe")["limits"]

    def errors(results):
        return {
            (
                row["data"],
                row["loss"],
                row["method"],
                row["epsilon"],
                row["n_rows"],
            ): row["error"]["mean"]
            for row in results["rows"]
        }

    def lower(results):
        """Count where objective perturbation has the lower error."""
        found = errors(results)
        pairs = [
            (error, found[(*key[:2], "output", *key[3:])])
            for key, error in found.items()
            if key[2] == "objective"
        ]
        return sum(one < other for one, other in pairs), len(pairs)

    def falls(results, name, first, last):
        """Count private learners whose error is lower at the last value."""
        found = errors(results)
        place = {"epsilon": 3, "n_rows": 4}[name]
        pairs = [
            (error, found[(*key[:place], last, *key[place + 1 :])])
            for key, error in found.items()
            if key[place] == first and key[2] is not None
        ]
        return f"in {sum(two < one for one, two in pairs)} of {len(pairs)} cases"

    by_epsilon, by_size = lower(epsilon), lower(size)
    two, eight = _only(dpsgd, target=2.0), _only(dpsgd, target=8.0)
    single = {row["way"]: row for row in tuning["rows"] if _is_adult_at_1(row)}
    disjoint = single["disjoint"]
    teachers = "; ".join(
        percent(row["plurality"]["mean"])
        for row in limits["rows"]
        if row["representation"] == "components"
    )
    verdict = REPRODUCED if by_epsilon[0] > 0.9 * by_epsilon[1] else NOT_REPRODUCED
    return [
        Row(
            "output and objective perturbation",
            "algorithms",
            "`DPLogisticRegression`, `DPLinearSVC`",
            REPRODUCED,
            "tests/learners/test_dp_linear.py",
        ),
        Row(
            "Adult, KDDCup99: objective perturbation has lower errors",
            "Figures 2 and 3",
            f"in {by_epsilon[0]} of {by_epsilon[1]} settings",
            verdict,
            _command(epsilon),
            "fixed regularisation, 20 seeds",
        ),
        Row(
            "Adult, KDDCup99: errors rise as epsilon falls",
            "Figures 2 and 3",
            f"{falls(epsilon, 'epsilon', 0.01, 1.0)}, from 0.01 to 1",
            REPRODUCED,
            _command(epsilon),
            "two data sets, two losses, three methods",
        ),
        Row(
            "KDDCup99: errors fall with the number of rows",
            "Figures 4 and 5",
            f"{falls(size, 'n_rows', 2_000, 60_000)}, from 2,000 to 60,000 rows",
            REPRODUCED,
            _command(size),
            "two losses, three methods, two epsilons",
        ),
        Row(
            "KDDCup99: objective perturbation consistently has lower errors",
            "Figures 4 and 5",
            f"in {by_size[0]} of {by_size[1]} settings",
            REPRODUCED if by_size[0] == by_size[1] else NOT_REPRODUCED,
            _command(size),
            "5 seeds: many differences are within their standard deviations",
        ),
        Row(
            "errors by regularisation, epsilon 0.1",
            "Tables 1 and 2",
            "",
            NOT_MEASURED,
            remark="pictures; here the regularisation follows a fixed rule",
        ),
        Row(
            "kernel methods",
            "an algorithm",
            "",
            NOT_MEASURED,
            remark="`RBFSampler` in front of a linear learner",
        ),
        Row(
            "private tuning on disjoint parts",
            "an algorithm",
            f"{percent(disjoint['accuracy'])} on Adult at epsilon 1; "
            f"{percent(single['one fit']['accuracy'])} by a fixed rule, without tuning",
            REPRODUCED,
            _command(tuning),
            "with permute-and-flip in place of the exponential mechanism",
        ),
        Row(
            "DP-SGD, MNIST",
            "95 at 2",
            f"{percent(two['accuracy'])} at {decimals(2)(two['epsilon'])}",
            accuracy_verdict(95, 100 * two["accuracy"]["mean"]),
            _command(dpsgd),
        ),
        Row(
            "the moments accountant is tight",
            "text",
            f"{decimals(2)(eight['epsilon'])} in place of "
            f"{decimals(2)(eight['rdp_epsilon'])} by moments",
            BETTER,
            _command(dpsgd),
            "the same noise, by composed privacy losses",
        ),
        Row(
            "DP-SGD: noise scale, clipping, lot size",
            "figures",
            "",
            NOT_MEASURED,
        ),
        Row(
            "more teachers cost less, up to a limit",
            "text",
            f"{teachers} % right pluralities with 10, 50 and 250 teachers",
            REPRODUCED,
            _command(limits),
            "SVHN, first 16,419 test digits: teachers of 37 images are too weak",
        ),
    ]


def _is_adult_at_1(row):
    return row["data"] == "Adult" and row["target"] == 1.0


def papers_survey():
    """Claims of the survey."""
    return _table(rows_survey())


# --------------------------------------------------------------------------- verdicts

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
    papers_2017_tables,
    papers_2018,
    papers_2019_claims,
    papers_2019_baselines,
    papers_2019_effects,
    papers_survey,
)
