"""The tables on PETDL."""

from record import load
from reporting import markdown, number, percent, source

# What the paper reports in its Table 1 beside its own figures, as (accuracy, epsilon).
OTHERS = [
    ("2019 paper's table: DP-SGD (2016)", "", (97.0, 8.0), None, (73.0, 8.0)),
    ("2019 paper's table: PATE (2017)", "", (98.1, 8.03), (90.77, 8.19), None),
    ("2019 paper's table: PATE (2018)", "", (98.5, 1.97), (91.6, 4.96), None),
]
# Its Table 3 for MNIST: thousands of parameters, seconds, accuracy.
SIZES = [
    ("2019 paper: teacher", "157.1", "99.21"),
    ("2019 paper: student", "23.0", "99.33"),
    ("2019 paper: smaller student", "13.2", "99.23"),
]


def _petdl(table):
    results = load("petdl")[table]
    n_shuffles = len(results["rows"][0]["accuracy"]["values"])
    return results, f"{source(results)} Shuffles of the test rows: {n_shuffles}."


def petdl_reachable():
    """Say which claims are within reach."""
    results = load("petdl")["reachable"]
    rows = [
        [
            row["data"],
            str(row["n_teachers"]),
            number(row["claimed_accuracy"]),
            number(row["claimed_epsilon"]),
            number(row["noise_scale"], 1),
            number(100 * row["right"], 0),
            number(row["needed_epsilon"], 1),
            str(row["needed_teachers"]),
        ]
        for row in results["rows"]
    ]
    header = [
        "data",
        "teachers",
        "claimed accuracy, %",
        "claimed epsilon",
        "noise that this epsilon takes, in teachers",
        "labels right at best, %",
        "epsilon for 99 % right",
        "teachers for 99 % right",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def petdl_claims():
    """Repeat the paper's Tables 1 and 2, beside what was measured here."""
    results, note = _petdl("main")
    claims = load("petdl")["reachable"]["rows"]
    rows = [_claim(*one) for one in OTHERS]
    for start, variant in zip(range(0, len(claims), 3), _VARIANTS, strict=True):
        by_data = claims[start : start + 3]
        pairs = [(one["claimed_accuracy"], one["claimed_epsilon"]) for one in by_data]
        name = f"2019 paper: PETDL{variant}, noise on the loss"
        rows.append(_claim(name, str(by_data[0]["n_teachers"]), *pairs))
    mnist = [row for row in results["rows"] if row["epsilon"]["mean"] < _SMALL]
    svhn = load("petdl")["svhn"]["rows"]
    for row in (*mnist, *svhn):
        measured = f"{percent(row['accuracy'])} at {number(row['epsilon']['mean'])}"
        is_mnist = row["data"] == "MNIST"
        rows.append(
            [
                f"{row['method']}, {_TEACHERS[row['teacher']]}",
                str(row["n_teachers"]),
                measured if is_mnist else "",
                "" if is_mnist else measured,
                "not measured",
            ]
        )
    header = [
        "",
        "teachers",
        "MNIST, % at epsilon",
        "SVHN, % at epsilon (measured: derived grey)",
        "CIFAR-10, % at epsilon",
    ]
    n_svhn = len(svhn[0]["accuracy"]["values"])
    return f"{markdown(header, rows)}\n\n{note[:-1]}; of SVHN: {n_svhn}."


_VARIANTS = ("", "", ", biased shards", " weighted, biased shards")
_TEACHERS = {
    "network": "networks on pixels",
    "discriminant": "linear discriminants on a representation",
    "biased": "networks on biased shards",
}
# Of the paper's order, on MNIST.
_SMALL = 2


def _claim(name, n_teachers, *pairs):
    return [
        name,
        n_teachers,
        *(f"{one[0]:.2f} at {one[1]:.2f}" if one else "" for one in pairs),
    ]


def petdl_noise_on_loss():
    """Attack what the paper wrote."""
    results = load("petdl")["noise_on_loss"]
    rows = [
        [
            f"{_TEACHERS[row['teacher']]}{', weighted' if row['weighted'] else ''}",
            str(row["n_teachers"]),
            number(row["claimed_epsilon"]),
            f"{row['right']} of {row['guesses']}",
            number(row["epsilon_at_least"]),
        ]
        for row in results["rows"]
    ]
    header = [
        f"noise on the loss, {results['rows'][0]['data']}",
        "teachers",
        "claimed epsilon",
        "right guesses",
        "epsilon is at least (95 %)",
    ]
    return f"{markdown(header, rows)}\n\n{source(results)}"


def petdl_main():
    """Show accuracy by the number of teachers and epsilon."""
    results, note = _petdl("main")
    cells = {
        (row["n_teachers"], _target(row)): row
        for row in results["rows"]
        if row["teacher"] == "network" and row["method"] == "PETDL"
    }
    epsilons = sorted({epsilon for _, epsilon in cells})
    rows = [
        [
            str(n_teachers),
            percent(cells[n_teachers, epsilons[0]]["teachers"]),
            *(
                percent(cells[n_teachers, epsilon]["accuracy"])
                if (n_teachers, epsilon) in cells
                else ""
                for epsilon in epsilons
            ),
        ]
        for n_teachers in sorted({n for n, _ in cells})
    ]
    header = [
        "teachers",
        "a teacher alone, %",
        *(f"student at epsilon {epsilon:g}, %" for epsilon in epsilons),
    ]
    return f"{markdown(header, rows)}\n\n{note}"


def _target(row):
    """Epsilon that the noise was calibrated to, which it stays below by a little."""
    return round(row["epsilon"]["mean"], 2)


def petdl_weighted():
    """Show what weights change on biased shards."""
    results, note = _petdl("weighted")
    rows = [
        [
            "yes" if row["weighted"] else "no",
            str(row["n_teachers"]),
            number(row["epsilon"]["mean"]),
            percent(row["teachers"]),
            percent(row["right_without_noise"]),
            percent(row["lead"]),
            percent(row["labels_right"]),
            percent(row["accuracy"]),
        ]
        for row in results["rows"]
    ]
    header = [
        "weighted",
        "teachers",
        "publishable epsilon",
        "a teacher alone, %",
        "labels right without noise, %",
        "their lead, % of teachers",
        "labels right, %",
        "accuracy, %",
    ]
    return f"{markdown(header, rows)}\n\n{note}"


def petdl_hints():
    """Show what hints change."""
    results, note = _petdl("hints")
    rows = [
        [
            str(row["distillation_epochs"]),
            str(row["hint_epochs"]),
            number(row["noise_scale"]["mean"], 1),
            percent(row["labels_right"]),
            percent(row["accuracy"]),
        ]
        for row in results["rows"]
    ]
    header = [
        "distillation epochs",
        "hint epochs",
        "noise, in teachers",
        "labels right, %",
        "accuracy, %",
    ]
    return f"{markdown(header, rows)}\n\n{note}"


def petdl_sizes():
    """Show students of several sizes."""
    results = load("petdl")["sizes"]
    rows = [[name, size, "", accuracy] for name, size, accuracy in SIZES]
    for row in results["rows"]:
        name = "one of 250 teachers"
        if row["network"] == "student":
            name = f"student, compression {row['compression']}"
        rows.append(
            [
                name,
                number(row["n_parameters"] / 1000, 1),
                number(row["microseconds_a_row"], 0),
                percent(row["accuracy"]),
            ]
        )
    header = ["", "thousand parameters", "time a row, microseconds", "accuracy, %"]
    return f"{markdown(header, rows)}\n\n{source(results)}"


PETDL_TABLES = (
    petdl_claims,
    petdl_noise_on_loss,
    petdl_reachable,
    petdl_main,
    petdl_weighted,
    petdl_hints,
    petdl_sizes,
)
