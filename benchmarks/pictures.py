"""Draw the pictures of README.md from the result files."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from record import load

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
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
    """Accuracy against the number of questions, for each strategy."""
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
        ax.set(xscale="log", xlabel="questions", title=titles[student])
        asked = sorted({row["n_queries"] for row in rows})
        ax.set_xticks(asked, [str(n) for n in asked])
        ax.minorticks_off()
        ax.legend(frameon=False, loc="lower right")
    axes[0].set_ylabel("accuracy on held-out rows, %")
    return figure


def main():
    """Draw them all."""
    mpl.use("Agg")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for draw in (mnist_noise, mnist_queries):
        path = PICTURES / f"{draw.__name__}.png"
        draw().savefig(path, dpi=150)
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
