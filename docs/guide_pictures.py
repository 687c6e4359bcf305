"""Pictures of the user guide, as SVG files in docs/_static/, which conf.py writes."""

import math
from pathlib import Path

from sklearn_pate import PATEClassifier
from sklearn_pate.inspection import plan
from sklearn_pate.inspection.report._sections import (
    WIDTH,
    Step,
    draw_data_flow,
    flow_of,
    svg_arrow,
    svg_picture,
    svg_text,
)
from sklearn_pate.mechanisms import GNMax

NEWTON = [
    Step(
        "public",
        "Public rows",
        "features are learned from public rows alone: the representation",
    ),
    Step("private", "Private rows", "described by the same features"),
    Step(
        "private",
        "Clipped vectors",
        "each row contributes its label in step 1, its gradient in steps 2 to 4, and "
        "its error in step 5",
    ),
    Step("noise", "Noise", "added to the sum of the vectors, in each of five steps"),
    Step("public", "Noisy sums", "one in each step: the only release"),
    Step(
        "public",
        "Newton steps",
        "coefficients from the noisy sums and the curvature of public rows",
    ),
    Step("public", "Model", "a logistic regression, used to predict"),
]


class Drawing:
    """Drawing in the style of the data flow of reports."""

    def __init__(self, title, description, height):
        self.title, self.description, self.height = title, description, height
        self.parts = []

    def rect(self, kind, x, y, width, height):
        """Draw a rectangle of a zone, a box, or a mark."""
        style = 'arrow" fill-opacity=".5' if kind == "half" else kind
        self.parts.append(
            f'<rect class="flow-{style}" x="{x}" y="{y}" width="{width}" '
            f'height="{height}" rx="{min(4, width // 8) if kind == "box" else 0}"/>'
        )

    def text(self, x, y, text, *, bold=False):
        """Write a line of text."""
        self.parts.append(svg_text(x, y, text, bold=bold))

    def box(self, x, y, width, title, lines):
        """Draw a box with a title and lines of text."""
        self.rect("box", x, y, width, 28 + 17 * len(lines))
        self.text(x + 10, y + 18, title, bold=True)
        for number, line in enumerate(lines, 1):
            self.text(x + 10, y + 18 + 17 * number, line)

    def arrow(self, x, top, bottom):
        """Draw an arrow down."""
        self.parts.append(svg_arrow(x, top, bottom))

    def svg(self):
        """Return the drawing as one SVG element with a text alternative."""
        return svg_picture(self.title, self.description, self.height, self.parts)


def groups():
    """Draw five rows of a patient in shards, with each unit of privacy."""
    drawing = Drawing(
        "Rows of a patient in shards",
        "With rows as the unit, five rows of a patient are in five shards, and five "
        "votes may change. With groups, all five rows are in one shard, and one vote "
        "may change.",
        266,
    )
    drawing.rect("private", 0, 0, WIDTH, drawing.height)
    for top, unit, in_shard, votes in (
        (0, "row", [1, 1, 1, 1, 1], "five votes on a query depend on the patient"),
        (120, "group", [0, 5, 0, 0, 0], "one vote on a query depends on the patient"),
    ):
        drawing.text(10, top + 22, f'privacy_unit="{unit}"', bold=True)
        for shard, n_rows in enumerate(in_shard):
            x = 10 + 86 * shard
            drawing.rect("box", x, top + 32, 76, 44)
            drawing.text(x + 8, top + 49, f"shard {shard + 1}")
            for row in range(5):
                kind = "arrow" if row < n_rows else "box"
                drawing.rect(kind, x + 8 + 13 * row, top + 57, 8, 12)
        drawing.text(10, top + 96, votes)
    drawing.rect("arrow", 10, 242, 8, 12)
    drawing.text(26, 252, "row of the patient")
    drawing.rect("box", 170, 242, 8, 12)
    drawing.text(186, 252, "row of another patient")
    return drawing.svg()


def hospitals():
    """Draw what each party of a study keeps and sends."""
    drawing = Drawing(
        "What each party sends",
        "Each hospital keeps its rows, and sends sums with a part of the noise and "
        "with masks. The collector adds them up: the masks cancel, and the noise "
        "stays. Noisy sums, the model, its card and the report are public.",
        416,
    )
    drawing.rect("private", 0, 0, WIDTH, 160)
    drawing.text(10, 18, "PRIVATE")
    for x, name in ((10, "Hospital North"), (225, "Hospital South")):
        lines = [
            "keeps its rows",
            "computes a sum of them",
            "adds a part of the noise",
            "adds masks",
        ]
        drawing.box(x, 26, 205, name, lines)
    drawing.rect("noise", 0, 160, WIDTH, 128)
    drawing.text(10, 178, "MECHANISM")
    for x in (10, 225):
        drawing.arrow(x + 102, 124, 208)
        drawing.text(x + 112, 196, "masked sum")
    lines = [
        "adds up the masked sums of all hospitals:",
        "masks cancel, the noise stays",
    ]
    drawing.box(10, 210, 420, "Collector", lines)
    drawing.rect("public", 0, 288, WIDTH, 128)
    drawing.text(10, 306, "PUBLIC")
    drawing.arrow(WIDTH // 2, 274, 312)
    drawing.box(
        10, 314, 420, "Noisy sum", ["of all rows: the only release, in each round"]
    )
    drawing.arrow(WIDTH // 2, 361, 377)
    drawing.box(10, 379, 420, "Model, card and report", [])
    return drawing.svg()


def landing():
    """Draw the fit of the landing page, with its numbers."""
    planned = plan(PATEClassifier(epsilon=1.0), n_rows=20_000, n_classes=2)
    rows, teachers, noise, released, _ = flow_of(
        "scores", n_teachers=planned.n_teachers
    )
    files = (
        "readmission.skops, the model, predicts for any patient; readmission.json has "
        "its privacy statement"
    )
    return draw_data_flow(
        [
            rows._replace(title="20,000 private rows"),
            teachers,
            noise._replace(title="Noise for epsilon 1"),
            released,
            Step("public", "Published files", files),
        ]
    )


def guesses():
    """Draw right guesses of an attacker without and with a release at epsilon 1."""
    numbers = {"n_queries": 50, "n_classes": 3}
    mechanism = GNMax().prepared(n_teachers=200, epsilon=1, **numbers)
    most = math.ceil(1000 * mechanism.cost(**numbers).profile.attack_accuracy())
    drawing = Drawing(
        "Right guesses of an attacker",
        f"Without the model, 500 of 1000 guesses are right. With a model at epsilon 1 "
        f"and delta 1e-5, at most {most} are right.",
        154,
    )
    drawing.rect("public", 0, 0, WIDTH, drawing.height)
    for top, what, right in (
        (0, "without the model: 500 of 1000 guesses are right", 500),
        (70, f"with the model: at most {most} of 1000 guesses are right", most),
    ):
        drawing.text(10, top + 24, what, bold=True)
        drawing.rect("box", 10, top + 34, 420, 24)
        drawing.rect("arrow", 10, top + 34, 210, 24)
        if right > 500:
            width = round(0.42 * (right - 500), 1)
            drawing.rect("half", 220, top + 34, width, 24)
    return drawing.svg()


def pictures():
    """Draw all pictures, by the names of their files."""
    return {
        # The report of a fit has the same picture, with numbers.
        "data-flow": draw_data_flow(flow_of("teachers", class_count=True)),
        "landing": landing(),
        "newton-flow": draw_data_flow(NEWTON),
        "groups": groups(),
        "guesses": guesses(),
        "hospitals": hospitals(),
    }


def main():
    """Write all pictures."""
    for name, picture in pictures().items():
        (Path(__file__).parent / "_static" / f"{name}.svg").write_text(picture)


if __name__ == "__main__":
    main()
