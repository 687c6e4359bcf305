"""Tables of docs/benchmarks/petdl.md."""

from benchmarks.record import load
from benchmarks.reporting import decimals, percent, source, table

# Table 1 of the paper, other methods: accuracy in % and epsilon on three data sets.
OTHERS = [
    ("2019 paper's table: DP-SGD (2016)", "", (97.0, 8.0), None, (73.0, 8.0)),
    ("2019 paper's table: PATE (2017)", "", (98.1, 8.03), (90.77, 8.19), None),
    ("2019 paper's table: PATE (2018)", "", (98.5, 1.97), (91.6, 4.96), None),
]
_TEACHERS = {
    "network": "networks on pixels",
    "discriminant": "linear discriminants on a representation",
    "biased": "networks on biased shards",
}
_METHODS = {"PETDL": "PETDL", "PATE": "PATE, votes"}
# Learners of image_recipe.py, and their numbers of teachers.
_ON_CIFAR10 = {
    "PETDL": ("PETDL, linear discriminants", "250"),
    "DPNewton": ("DPNewton", ""),
}
_SMALL = 2  # epsilons of the order of the paper's, on MNIST
_MANY = 250  # teachers on MNIST; papers.md has fewer


def petdl_claims():
    """Other methods of the paper's Table 1, and measurements."""
    lines = [_claim(*one) for one in OTHERS]
    results = load("petdl")
    main = [
        row
        for row in results["main"]["rows"]
        if row["epsilon"]["mean"] < _SMALL and row["n_teachers"] >= _MANY
    ]
    svhn = results["svhn"]["rows"]
    for row in [*main, *results["pate"]["rows"], *svhn]:
        measured = f"{percent(row['accuracy'])} at {decimals(2)(row['epsilon'])}"
        cells = [measured, ""] if row["data"] == "MNIST" else ["", measured]
        name = f"{_METHODS[row['method']]}, {_TEACHERS[row['teacher']]}"
        lines.append([name, str(row["n_teachers"]), *cells, ""])
    lines += [
        [f"{title}, components of public images", n_teachers, "", "", measured]
        for learner, (title, n_teachers) in _ON_CIFAR10.items()
        for measured in _on_cifar10(learner)
    ]
    columns = [
        "",
        "teachers",
        "MNIST, % at epsilon",
        "SVHN, % at epsilon (measured: derived grey)",
        "CIFAR-10, % at epsilon",
    ]
    n_shuffles, n_of_svhn = (
        len(rows[0]["accuracy"]["values"]) for rows in (main, svhn)
    )
    note = (
        f" Shuffles of the test rows: {n_shuffles}; of SVHN: {n_of_svhn}. "
        f"PATE: {source(results['pate'])}"
    )
    return table(results["main"], columns, rows=lines, note=note)


def _on_cifar10(learner):
    """Return accuracy at each epsilon of the paper's order."""
    return [
        f"{percent(row['accuracy'])} at {decimals(2)(row['epsilon'])}"
        for row in load("image_recipe")["cifar10"]["rows"]
        if row["learner"] == learner and row["target"] in (2.5, 5.5)
    ]


def _claim(name, n_teachers, *pairs):
    cells = [f"{one[0]:.2f} at {one[1]:.2f}" if one else "" for one in pairs]
    return [name, n_teachers, *cells]


def petdl_noise_on_loss():
    """Attack on the method of the paper."""
    results = load("petdl")["noise_on_loss"]
    columns = {
        f"noise on the loss, {results['rows'][0]['data']}": lambda row: (
            f"{_TEACHERS[row['teacher']]}{', weighted' if row['weighted'] else ''}"
        ),
        "teachers": "n_teachers",
        "claimed epsilon": ("claimed_epsilon", decimals(2)),
        "right guesses": lambda row: f"{row['right']} of {row['guesses']}",
        "epsilon is at least (95 %)": ("epsilon_at_least", decimals(2)),
    }
    return table(results, columns)


PETDL_TABLES = (
    petdl_claims,
    petdl_noise_on_loss,
)
