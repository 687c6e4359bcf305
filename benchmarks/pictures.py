"""Draw the figures of docs/benchmarks/ from the result files."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.learners.page import by_learner
from benchmarks.record import ROOT, command, load

PICTURES = ROOT / "docs" / "pictures"
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]  # Okabe and Ito's


def mnist_noise():
    """Figures 2 and 3 of the 2017 paper: labels under noise, and gaps."""
    rows = load("images")["noise"]["rows"]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8.5, 3.4), width_ratios=(2, 1), layout="constrained"
    )
    for row, color, marker in zip(rows, COLORS, "os^", strict=False):
        left.semilogx(
            row["gamma"],
            100 * np.array(row["label_accuracy"]),
            color=color,
            marker=marker,
            markersize=4,
            label=f"{row['n_teachers']} teachers",
        )
    left.set(
        xlabel="gamma (1 / scale of the Laplace noise, in votes)",
        ylabel="labels right, %",
        ylim=(0, 102),
    )
    left.axvline(0.05, color="0.6", linewidth=0.8, linestyle=":")
    left.text(0.052, 4, "scale 20", color="0.35", fontsize=8)
    left.legend(frameon=False, loc="lower right")
    places = np.arange(len(rows))
    right.bar(places, [100 * row["gap"] for row in rows], color=COLORS[: len(rows)])
    right.set(
        xlabel="teachers",
        ylabel="mean gap, % of the teachers",
        xticks=places,
        xticklabels=[row["n_teachers"] for row in rows],
        ylim=(0, 100),
    )
    return figure


def mnist_queries():
    """Accuracy against the number of queries, for each strategy."""
    rows = load("images")["queries"]["rows"]
    students = dict.fromkeys(row["student"] for row in rows)
    titles = {
        "logistic": "student on answered rows only",
        "graph, discriminant": "student on all public rows",
    }
    figure, axes = plt.subplots(
        1, len(students), figsize=(8.5, 3.6), sharey=True, layout="constrained"
    )
    strategies = list(dict.fromkeys(row["query_strategy"] for row in rows))
    for ax, student in zip(axes, students, strict=True):
        for strategy in strategies:
            chosen = [
                row
                for row in rows
                if (row["student"], row["query_strategy"]) == (student, strategy)
            ]
            if not chosen:
                continue
            place = strategies.index(strategy)
            ax.errorbar(
                [row["n_queries"] for row in chosen],
                [100 * row["accuracy"]["mean"] for row in chosen],
                yerr=[100 * row["accuracy"]["std"] for row in chosen],
                color=COLORS[place],
                marker="os^D"[place],
                markersize=4,
                capsize=2,
                label=strategy,
            )
        ax.set(xscale="log", xlabel="queries", title=titles[student])
        numbers = sorted({row["n_queries"] for row in rows})
        ax.set_xticks(numbers, [str(n) for n in numbers])
        ax.minorticks_off()
        ax.legend(frameon=False, loc="lower right")
    axes[0].set_ylabel("accuracy on held-out rows, %")
    return figure


LEARNERS = {
    "PATE, votes, hand-picked": ("#0072b2", "-", "o"),
    "Private-kNN": ("#56b4e9", "-", "s"),
    "PETDL": ("#009e73", "-", "^"),
    "output perturbation": ("#999999", "--", "v"),
    "objective perturbation": ("#e69f00", "--", "D"),
    "Gaussian objective perturbation": ("#d55e00", "--", "P"),
    "DP-SGD, linear": ("#cc79a7", "-.", "X"),
    "DP-SGD, network": ("#882255", "-.", "*"),
    "diffprivlib, logistic": ("#000000", ":", "."),
}


def _curves(name):
    """Return epsilons, means and deviations of each private learner."""
    for learner, rows in by_learner(name).items():
        if None not in rows:
            targets = sorted(rows)
            scores = [rows[one]["score"] for one in targets]
            yield learner, targets, *_moments(scores)


def _moments(scores):
    return [np.array([one[name] for one in scores]) for name in ("mean", "std")]


def private_learners():
    """Accuracy against epsilon: all learners on all data."""
    panels = {
        "adult": ("Adult", "accuracy, %", (74, 86)),
        "kddcup99": ("KDDCup99, normal or attack", "accuracy, %", (94, 100)),
        "diabetes": ("Diabetes, readmitted within 30 days", "AUC, %", (48, 68)),
        "mnist": ("MNIST", "accuracy, %", (70, 100)),
    }
    figure, axes = plt.subplots(2, 2, figsize=(9.5, 8), layout="constrained")
    for ax, (table, shown) in zip(axes.flat, panels.items(), strict=True):
        title, ylabel, ylim = shown
        lines = [*_curves(table)]
        if table == "mnist":
            rows = load("dpsgd")["mnist"]["rows"]
            scores = [row["accuracy"] for row in rows]
            targets = [row["target"] for row in rows]
            lines.append(("DP-SGD, network", targets, *_moments(scores)))
        for learner, epsilons, means, deviations in lines:
            _draw_line(ax, learner, LEARNERS[learner], epsilons, means, deviations)
        ceiling = by_learner(table)["not private, logistic"][None]["score"]["mean"]
        ax.axhline(100 * ceiling, color="0.5", linewidth=0.8)
        ax.text(0.1, 100 * ceiling, "not private, logistic", fontsize=7, va="bottom")
        ax.set(xscale="log", title=title, ylabel=ylabel, ylim=ylim)
        ax.set_xticks([0.1, 0.5, 1, 2, 8], ["0.1", "0.5", "1", "2", "8"])
        ax.minorticks_off()
    for ax in axes[1]:
        ax.set_xlabel("publishable epsilon, for each learner's own relation")
    handles = {}
    for ax in axes.flat:
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return figure


def _draw_line(ax, label, style, places, means, deviations):
    """Draw scores in percent, with their deviations."""
    color, line, marker = style
    ax.errorbar(
        places,
        100 * means,
        yerr=100 * deviations,
        color=color,
        linestyle=line,
        marker=marker,
        markersize=5,
        capsize=2,
        label=label,
    )


SIZES = {
    "DPNewton": ("#0072b2", "-", "o"),
    "PATE, mean scores of boosting": ("#56b4e9", "-", "s"),
    "PATE, votes of boosting": ("#009e73", "-", "^"),
    "Gaussian objective perturbation": ("#d55e00", "--", "P"),
    "DP-SGD, linear": ("#cc79a7", "-.", "X"),
    "teachers' plurality, not private": ("0.45", ":", "^"),
    "not private, logistic": ("0.45", ":", "x"),
    "not private, boosting": ("#000000", ":", "."),
}


def sizes():
    """Accuracy against the number of private rows."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
    titles = {"adult": "Adult", "nonlinear": "500,000 nonlinear rows"}
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        found = load("sizes")[name]["rows"]
        for learner, style in SIZES.items():
            rows = [row for row in found if row["learner"] == learner]
            means, deviations = _moments([row["accuracy"] for row in rows])
            numbers = [row["n_rows"] for row in rows]
            _draw_line(ax, learner, style, numbers, means, deviations)
        numbers = sorted({row["n_rows"] for row in found})
        ax.set(xscale="log", xlabel="private rows", ylabel="accuracy, %", title=title)
        ax.set_xticks(numbers, [f"{n:,}" for n in numbers])
        ax.minorticks_off()
    handles = ax.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False)
    return figure


METHODS = {None: "not private", "output": "output", "objective": "objective"}
METHODS["gaussian"] = "Gaussian objective (add/remove, delta 1e-6)"


def _errors(ax, rows, against):
    for place, (method, name) in enumerate(METHODS.items()):
        chosen = [row for row in rows if row["method"] == method]
        errors = [100 * row["error"]["mean"] for row in chosen]
        if against == "epsilon" and method is None:
            ax.axhline(errors[0], color="0.5", label=name)
            continue
        ax.errorbar(
            [row[against] for row in chosen],
            errors,
            yerr=[100 * row["error"]["std"] for row in chosen],
            color=["0.5", *COLORS][place],
            marker="xos^"[place],
            markersize=4,
            capsize=2,
            label=name,
        )
    ax.set(xscale="log", yscale="log")
    low, high = ax.get_ylim()
    low = max(low, min(row["error"]["mean"] for row in rows) * 70)
    ticks = (15, 20, 30, 40) if high < 10 * low else (0.2, 0.5, 1, 2, 5, 10, 20, 50)
    ticks = [tick for tick in ticks if low < tick < high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_ylim(low, high)
    values = sorted({row[against] for row in rows if row[against]})
    values = values[:: 1 + len(values) // 8]  # at most eight labels
    labels = [f"{one:g}" if one < 1000 else f"{one // 1000}k" for one in values]
    ax.set_xticks(values, labels, fontsize=8)
    ax.minorticks_off()


def erm_errors():
    """Figures 2 to 5 of Chaudhuri, Monteleoni and Sarwate (2011), logistic loss."""
    results = load("erm")
    panels = [
        (
            "Adult",
            [row for row in results["epsilon"]["rows"] if row["data"] == "Adult"],
        ),
        (
            "KDDCup99",
            [row for row in results["epsilon"]["rows"] if row["data"] == "KDDCup99"],
        ),
        (
            "KDDCup99 at 0.05",
            [row for row in results["size"]["rows"] if row["epsilon"] in (None, 0.05)],
        ),
    ]
    figure, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained")
    for line, loss in zip(axes, ("logistic", "Huber SVM"), strict=True):
        for ax, (title, rows) in zip(line, panels, strict=True):
            against = "epsilon" if ax is not line[-1] else "n_rows"
            _errors(ax, [row for row in rows if row["loss"] == loss], against)
            ax.set(title=f"{title}, {loss}", xlabel=against.replace("n_", ""))
        line[0].set_ylabel("test error, %")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False)
    return figure


OUTCOMES = {
    "DPNewton": ("#0072b2", "-", "o"),
    "PATE, mean scores": ("#56b4e9", "-", "s"),
    "PATE, votes": ("#009e73", "-", "^"),
}


def outcomes():
    """R squared and concordance against epsilon, and coverage of sets."""
    results = load("outcomes")
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
    panels = {
        "days": ("r2", "R², days in hospital", ("ridge", "boosting")),
        "flchain": ("concordance", "concordance, days until death", ("Cox",)),
    }
    for ax, (name, (score, ylabel, others)) in zip(axes, panels.items(), strict=False):
        rows = results[name]["rows"]
        for learner, (color, line, marker) in OUTCOMES.items():
            of = [row for row in rows if row["learner"] == learner]
            ax.errorbar(
                [row["epsilon"] for row in of],
                [row[score]["mean"] for row in of],
                yerr=[row[score]["std"] for row in of],
                color=color,
                linestyle=line,
                marker=marker,
                capsize=2,
                label=learner,
            )
        for row in rows:
            kind = row["learner"].removeprefix("not private, ")
            if kind in others:
                ax.axhline(row[score]["mean"], color="0.5", linestyle=":", linewidth=1)
                ax.text(
                    2, row[score]["mean"], kind, fontsize=8, ha="right", va="bottom"
                )
        ax.set(xscale="log", xlabel="epsilon", ylabel=ylabel)
        ax.set_xticks([0.25, 0.5, 1, 2], ["0.25", "0.5", "1", "2"])
        ax.minorticks_off()
    axes[0].legend(frameon=False, fontsize=8)
    rows = results["coverage"]["rows"]
    for place, row in enumerate(rows):
        values = row["covered"]["values"]
        low, high = np.quantile(values, [0.025, 0.975])
        mean = row["covered"]["mean"]
        around = [[mean - low], [high - mean]]
        axes[2].errorbar(
            [mean], [place], xerr=around, fmt="o", color=COLORS[0], capsize=3
        )
    axes[2].axvline(results["coverage"]["coverage"], color="0.5", linestyle=":")
    names = [f"{row['data']}, {row['n_rows']:,}" for row in rows]
    axes[2].set_yticks(range(len(rows)), names, fontsize=8)
    axes[2].set(xlabel="share covered", xlim=(0.85, 1), ylim=(len(rows) - 0.5, -0.5))
    return figure


FIGURES = {
    "mnist_noise": mnist_noise,
    "mnist_queries": mnist_queries,
    "private_learners": private_learners,
    "erm_errors": erm_errors,
    "sizes": sizes,
    "outcomes": outcomes,
}


def main():
    """Draw the named figures, or all."""
    mpl.use("Agg")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in command(__doc__, FIGURES).parse_args().tables:
        path = PICTURES / f"{name}.png"
        FIGURES[name]().savefig(path, dpi=150)
        print(f"wrote {path}")
