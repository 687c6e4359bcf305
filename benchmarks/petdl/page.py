"""Tables of docs/benchmarks/petdl.md."""

from benchmarks.record import load
from benchmarks.reporting import decimals, percent, source, table

# Table 1 of the paper, other methods: accuracy in % and epsilon on three data sets.
OTHERS = [
    ("paper: DP-SGD (2016)", (97.0, 8.0), None, (73.0, 8.0)),
    ("paper: PATE (2017)", (98.1, 8.03), (90.77, 8.19), None),
    ("paper: PATE (2018)", (98.5, 1.97), (91.6, 4.96), None),
]
_TEACHERS = {
    "network": "networks",
    "discriminant": "linear discriminants",
    "biased": "networks, biased shards",
}
# Learners of image_recipe.py.
_ON_CIFAR10 = {
    "PETDL": "PETDL, 250 linear discriminants",
    "DPNewton": "DPNewton",
}
_SMALL = 2  # epsilons of the order of the paper's, on MNIST
_MANY = 250  # teachers on MNIST; papers.md has fewer


def petdl_claims():
    """Other methods of the paper's Table 1, and measurements."""
    results = load("petdl")
    main = [
        row
        for row in results["main"]["rows"]
        if row["epsilon"]["mean"] < _SMALL and row["n_teachers"] >= _MANY
    ]
    svhn = results["svhn"]["rows"]
    measured = {}
    for row in [*main, *results["pate"]["rows"], *svhn]:
        name = f"{row['method']}, {row['n_teachers']} {_TEACHERS[row['teacher']]}"
        data = "MNIST" if row["data"] == "MNIST" else "SVHN"
        measured.setdefault(name, {}).setdefault(data, []).append(_figures(row))
    for learner, name in _ON_CIFAR10.items():
        measured.setdefault(name, {})["CIFAR-10"] = _on_cifar10(learner)
    data_sets = ("MNIST", "SVHN", "CIFAR-10")
    lines = [_claim(*one) for one in OTHERS] + [
        [name, *("; ".join(found.get(data, ())) for data in data_sets)]
        for name, found in measured.items()
    ]
    n_shuffles, n_of_svhn = (
        len(rows[0]["accuracy"]["values"]) for rows in (main, svhn)
    )
    note = (
        f" Test rows were shuffled {n_shuffles} times, and {n_of_svhn} times for SVHN. "
        f"PATE: {source(results['pate'])}"
    )
    return table(results["main"], ["", *data_sets], rows=lines, note=note)


def _figures(row):
    return f"{percent(row['accuracy'])} at {decimals(2)(row['epsilon'])}"


def _on_cifar10(learner):
    """Return accuracy at each epsilon of the paper's order."""
    return [
        _figures(row)
        for row in load("image_recipe")["cifar10"]["rows"]
        if row["learner"] == learner and row["target"] in (2.5, 5.5)
    ]


def _claim(name, *pairs):
    return [name, *(f"{one[0]:.2f} at {one[1]:.2f}" if one else "" for one in pairs)]


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
