"""Tables of docs/papers.md: the paper of 2017, PATE and PATE-G."""

from paper_rows import (
    IMPOSSIBLE,
    NEEDS_SVHN,
    NOT_MEASURED,
    NOT_REPRODUCED,
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
from record import load
from reporting import decimals, percent, spread


def _votes_2017(data, gamma, n_queries):
    results = load("accounting")["published_votes"]
    return only(results, paper=2017, data=data, gamma=gamma, n_queries=n_queries)


def rows_2017_analysis():
    """Theorems of the 2017 paper, and epsilons of its students."""
    results = load("accounting")["published_votes"]
    source, tests = command_of(results), "tests/accounting/test_bounds.py"
    rows = [
        Row(
            "PATE: teachers on disjoint sets, noisy pluralities, a student",
            "an algorithm",
            "`PATEClassifier`",
            REPRODUCED,
            "tests/test_classifier.py",
        ),
        Row(
            "any classifier can be a teacher",
            "networks, forests",
            "any scikit-learn classifier; each learns in isolation",
            REPRODUCED,
            "tests/test_common.py",
        ),
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
    first = only(own, n_queries=100)["paper_epsilon"]["mean"]
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
            "its parameters do not depend on private data here; its cost is corrected",
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
            remark="[other models](benchmarks/images.md) were",
        ),
        Row(
            "MNIST, mean of 250 teachers",
            "83.86",
            percent(many["mean_accuracy"]),
            accuracy_verdict(83.86, 100 * many["mean_accuracy"]),
            command_of(noise),
            "images are moved in training",
        ),
        Row(
            "MNIST, 250 teachers, noisy labels at scale 20",
            "93.18",
            percent(many["scale_20"]),
            accuracy_verdict(93.18, 100 * many["scale_20"]["mean"]),
            command_of(noise),
            "images are moved in training",
        ),
        Row(
            "gap between the first two classes, first version",
            "below 20 % of the teachers",
            gaps + " (10, 100, 250 teachers; MNIST)",
            NOT_REPRODUCED,
            command_of(noise),
            "the final version says the opposite",
        ),
        Row(
            "gap, final version",
            "above 60 % of the teachers",
            gaps + " (10, 100, 250 teachers; MNIST)",
            REPRODUCED
            if min(r["gap"] for r in noise["rows"]) > 0.6
            else NOT_REPRODUCED,
            command_of(noise),
            "the number is lost in that text, and taken from the survey",
        ),
        Row(
            "many teachers are needed under noise (Figure 2)",
            "a figure",
            f"{at_20} % right at scale 20 (10, 100, 250 teachers; MNIST)",
            REPRODUCED,
            command_of(noise),
        ),
    ]
    for n_queries, accuracy, epsilon in ((100, 98.00, 2.04), (1000, 98.10, 8.03)):
        row = only(students, n_queries=n_queries)
        ours = student_figures(row, "paper_epsilon")
        rows.append(
            Row(
                f"MNIST, student of {n_queries} answers",
                f"{accuracy:.2f} at {epsilon}",
                f"{percent(row['accuracy'])} at "
                f"{decimals(2)(row['paper_epsilon'])} by the same bound",
                student_verdict((accuracy, epsilon), ours),
                command_of(students),
                f"the GAN gets answers spread over a graph; "
                f"{decimals(2)(row['epsilon'])} for all votes",
            )
        )
    ablation = load("images")["ablation"]
    alone = only(ablation, setting="student: GAN")
    rows.append(
        Row(
            "MNIST, GAN without a graph, 100 answers",
            "98.00 at 2.04",
            f"{percent(alone['accuracy'])} at {decimals(2)(alone['epsilon'])} for all "
            "votes",
            student_verdict((98.00, 2.04), student_figures(alone)),
            command_of(ablation),
            "1000 linear teachers on a representation, GNMax",
        )
    )
    plurality, student = many["plurality"], only(students, n_queries=100)["accuracy"]
    rows.append(
        Row(
            "the student is more accurate than the plurality without noise",
            "yes",
            f"{percent(student)} against {percent(plurality)} (MNIST, 100 answers)",
            REPRODUCED if student["mean"] > plurality else NOT_REPRODUCED,
            command_of(students),
        )
    )
    svhn = load("images")["svhn"]
    near = percent(only(svhn, target=8.0, student="logistic")["accuracy"])
    for claim, printed, remark in (
        ("SVHN, one network on all rows", "92.80", NEEDS_SVHN),
        ("SVHN, mean of 250 teachers", "83.18", NEEDS_SVHN),
        ("SVHN, 250 teachers, noisy labels at scale 20", "87.79", NEEDS_SVHN),
        ("SVHN, student of 500 answers", "82.72 at 5.04", NEEDS_SVHN),
        (
            "SVHN, student of 1000 answers",
            "90.66 at 8.19",
            f"{NEEDS_SVHN}; on grey test digits {near} at 8.00 for all votes, by "
            f"`{command_of(svhn)}`",
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
        return percent(only(siamese, n_answers=100, way=way)["right"]["1"])

    by_labels = labels("labels")
    return [
        Row(
            "distillation, 50 teachers, SVHN, no noise: a small gain",
            "a figure",
            f"with noise, on MNIST: {soft['logistic']} by answers, "
            f"{soft['distilled']} and {soft['distilled, T = 5']} at $T = 1$ and 5",
            NOT_MEASURED,
            command_of(distillation),
            "other data, and with noise: there, soft labels lose",
        ),
        Row(
            "pairs of the same image: no confident matches of classes",
            "no gain",
            f"{labels('pairs: same image')} % of labels right, {by_labels} by "
            "cross-entropy",
            REPRODUCED,
            command_of(siamese),
            "MNIST, 100 answers",
        ),
        Row(
            "pairs of the same label: too complicated to save queries",
            "no gain",
            f"{labels('pairs: same label')} % of labels right, {by_labels} by "
            "cross-entropy",
            REPRODUCED,
            command_of(siamese),
            "MNIST, 100 answers",
        ),
        Row(
            "queries chosen by binary experts",
            "+1.5 to +2.5 points",
            experts,
            REPRODUCED if min(of_experts) >= 1.5 else NOT_REPRODUCED,
            command_of(queries),
            f"{setting} and has about 2200 queries",
        ),
        Row(
            "the rows of which the student is least sure first",
            "+4 to +10 points",
            unsure,
            REPRODUCED if min(of_unsure) >= 4 else NOT_REPRODUCED,
            command_of(queries),
            f"{setting}. Teachers disagree on such rows: fewer answers are right",
        ),
    ]


def rows_2017_tables():
    """Adult and Diabetes, Appendix C of the final version."""
    adult, votes = load("tabular")["adult_2017"], load("accounting")["published_votes"]
    balanced = load("tabular")["diabetes_balanced"]
    [row] = adult["rows"]
    on_published = _votes_2017("Adult", 0.05, 500)
    apart = percent(
        only(balanced, balancing="drop others, split by patient")["accuracy"]
    )
    copied = percent(
        only(balanced, balancing="repeat the readmitted, then split by row")["accuracy"]
    )
    features = "which 13 of 14 features is not known"
    selection = "the balanced selection is not published"
    return [
        Row(
            "Adult, forest without privacy",
            "85",
            percent(row["not_private"]),
            accuracy_verdict(85, 100 * row["not_private"]["mean"]),
            command_of(adult),
            features,
        ),
        Row(
            "Adult, student of 500 answers",
            "83",
            percent(row["accuracy"]),
            accuracy_verdict(83, 100 * row["accuracy"]["mean"]),
            command_of(adult),
            features,
        ),
        Row(
            "Adult, epsilon by Theorem 3, own forests",
            "2.66",
            spread(row["epsilon_2017"]),
            epsilon_verdict(2.66, row["epsilon_2017"]["mean"]),
            command_of(adult),
            f"{row['publishable_epsilon']:.2f} for all votes",
        ),
        Row(
            "Adult, the same on votes published in 2018",
            "2.66",
            f"{on_published['reproduced']:.2f}",
            epsilon_verdict(2.66, on_published["reproduced"]),
            command_of(votes),
            "the votes of 2017 are not published",
        ),
        Row(
            "Diabetes, forest without privacy",
            "93.81",
            f"{apart} with patients apart; {copied} with copies of training rows",
            IMPOSSIBLE,
            command_of(balanced),
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
    return claims_table(rows_2017_analysis())


def papers_2017_images():
    """MNIST and SVHN in the 2017 paper."""
    return claims_table(rows_2017_mnist_svhn())


def papers_2017_queries():
    """Appendix on fewer queries of the 2017 paper."""
    return claims_table(rows_2017_queries())


def papers_2017_tables():
    """Appendix on Adult and Diabetes of the 2017 paper."""
    return claims_table(rows_2017_tables())
