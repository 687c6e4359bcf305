"""The HTML page is self-contained and accessible, and agrees with other formats."""

import re
from html import escape
from itertools import pairwise

import pytest

from sklearn_pate import PrivacyLedger
from tests.inspection.report.reported import (
    Page,
    Stated,
    every_format,
    linear,
    markdown_tables,
    pate,
    report_on,
    seeded,
    srcdoc,
)
from tests.private import (
    FLOW_STYLE,
    KINDS,
    NEIGHBOURS,
    STYLE,
    capitalised,
    data_flow_lines,
    draw_data_flow,
    flow_of,
)

NASTY = "<script>alert(\"1\")</script> & [link](x) | `code` *bold* _it_ \\ 'end'"
SIZED = {"n_teachers": 20, "n_queries": 40}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "rows.sqlite"
    ledger = PrivacyLedger(path, epsilon=8, delta=1e-5)
    spent = pate().privacy_spent_
    ledger.charge(
        spent.curve,
        delta=1e-5,
        unit="row",
        relation="replace-one",
        description=NASTY,
    )
    figures = {"quality": {NASTY: 0.8125}, "evaluated_on": NASTY}
    return {
        "teachers": report_on(pate(), title=NASTY),
        "pure": report_on(linear()),
        "weak": report_on(Stated(epsilon=20.0)),
        "seeded": report_on(seeded()),
        "public figures": report_on(pate(), **figures, quality_is_public=True),
        "internal": report_on(
            pate(), title=NASTY, **figures, quality_is_public=False, ledger=ledger
        ),
    } | {
        (unit, relation): report_on(
            Stated(unit=unit, relation=relation, release="answers", **SIZED)
        )
        for unit, relation in NEIGHBOURS
    }


NAMES = (
    *("teachers", "pure", "weak", "seeded", "public figures", "internal"),
    *NEIGHBOURS,
)


@pytest.fixture(params=NAMES)
def report(reports, request):
    return reports[request.param]


# The page.


@pytest.mark.slow
def test_the_page_is_one_tree_in_english_for_any_width(report):
    text = report.to_html()
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>\n")
    assert page.find("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in page.find("meta")
    assert any(
        one.get("name") == "viewport" and "width=device-width" in one["content"]
        for one in page.find("meta")
    )
    ids = [attrs["id"] for _, attrs, _ in page.elements if "id" in attrs]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_headings_skip_no_level(report):
    levels = [level for level, _ in Page(report.to_html()).headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= one + 1 for one, later in pairwise(levels))


def test_it_loads_nothing_and_runs_nothing(report):
    text = report.to_html()
    page = Page(text)
    tags = {tag for tag, _, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    for tag, attrs, _ in page.elements:
        assert not any(name.startswith("on") for name in attrs)
        assert not set(attrs) & {"src", "srcset", "data", "background", "xlink:href"}
        if "href" in attrs:
            assert tag == "a"
            assert attrs["href"].startswith("https://")
            assert attrs["rel"] == "noopener noreferrer"
    assert not re.search(r"url\(|@import", text)


def test_every_picture_has_words(report):
    page = Page(report.to_html())
    ids = {attrs["id"] for _, attrs, _ in page.elements if "id" in attrs}
    images = [attrs for _, attrs, _ in page.elements if attrs.get("role") == "img"]
    assert images
    assert all(attrs["role"] == "img" for attrs in page.find("svg"))
    for attrs in images:
        label = attrs.get("aria-label") or attrs["aria-labelledby"]
        assert attrs.get("aria-label") or set(label.split()) <= ids


def test_tables_have_captions_scrolls_and_named_rows_and_columns(report):
    page = Page(report.to_html())
    assert len(page.find("caption")) == len(page.find("table")) == len(page.tables)
    assert all(attrs["scope"] in ("row", "col") for attrs in page.find("th"))
    for table in page.tables:
        head, *rows = table
        assert all(head)
        assert all(len(row) == len(head) for row in rows)
    for tag, _, parents in page.elements:
        if tag == "table":
            assert parents[-1] == "div"
    assert ".scroll{overflow-x:auto" in report.to_html()
    assert "min-width" not in report.to_html()  # lines to sign fit on a phone


def test_words_of_the_user_are_words_in_every_format(reports):
    report = reports["internal"]
    page = Page(report.to_html())
    assert (1, NASTY) in page.headings
    assert "".join(page.text).count(NASTY) >= 4  # title, heading, rows, figures
    assert "<script" not in report.to_html()
    text = report.to_markdown()
    assert "<script" not in text.replace(r"\<script", "")
    for special in ("[link]", "`code`", "*bold*", " _it_"):
        assert special not in text
    assert any(NASTY in row for table in markdown_tables(text) for row in table)
    assert report.to_dict()["title"] == NASTY


def test_every_line_of_an_assumption_is_there_with_a_box():
    clf = pate()
    report = report_on(clf)
    page = Page(report.to_html())
    boxes = [one for one in page.find("span") if one.get("class") == "box"]
    assert len(boxes) == len(clf.privacy_spent_.assumptions)
    for assumption in clf.privacy_spent_.assumptions:
        assert escape(capitalised(assumption.sentence)) in report.to_html()
        assert f"- [ ] **{capitalised(assumption.sentence)}.**" in report.to_markdown()
    [lines] = [table for table in page.tables if table[0][-1] == "Signature"]
    assert lines[0] == ["Role", "Name", "Date", "Signature"]
    assert all(row[1:] == ["", "", ""] for row in lines[1:])


# One report in several formats.


def test_markdown_has_the_tables_of_the_page(report):
    page = Page(report.to_html())
    assert markdown_tables(report.to_markdown()) == page.tables


def test_the_page_has_the_figures_of_the_dictionary(report):
    facts = report.to_dict()
    shown = {tuple(row) for table in Page(report.to_html()).tables for row in table}
    if facts["promise"] is None:
        assert not any(row[0] == "False alarms allowed, of 1000" for row in shown)
        return
    for one in facts["promise"]["detections"]:
        assert (str(one["false_alarms"]), str(one["detected_at_most"])) in shown
    for one in facts["promise"]["several"]:
        right = str(one["guesses"]["right_at_most"])
        numbers = [
            row for row in shown if len(row) == 4 and row[0] == f"{one['units']}"
        ]
        assert [row[3] for row in numbers] == [right]
        if one["delta"] < 1:
            assert float(numbers[0][1]) == one["epsilon"]
            assert float(numbers[0][2]) == one["delta"]
        else:
            assert numbers[0][1] == "no guarantee"
    pairs = {row[:2] for row in shown if row[2:] in [("",), ("as stated",)]}
    assert {(float(epsilon), float(delta)) for epsilon, delta in pairs} == {
        (one["epsilon"], one["delta"]) for one in facts["costs"]["pairs"]
    }


def test_a_notebook_shows_the_page_apart_from_itself(report):
    frame = report._repr_html_()
    assert srcdoc(frame) == report.to_html()
    [attrs] = Page(frame).find("iframe")
    assert attrs["title"] == "Privacy report"
    assert "allow-scripts" not in attrs["sandbox"]


def test_formats_agree_on_what_is_internal(report):
    texts = every_format(report)
    assert "INTERNAL" not in texts.pop("json")  # it has the field "internal"
    assert {"INTERNAL" in text for text in texts.values()} == {report.internal}


# The picture.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbers", [{}, SIZED | {"mechanism": "GNMax(sigma=12)"}])
def test_a_picture_holds_its_boxes_and_its_words(kind, numbers):
    steps = flow_of(kind, **numbers)
    page = Page(draw_data_flow(steps))
    [svg] = page.find("svg")
    _, _, width, height = map(float, svg["viewbox"].split())
    for box in page.find("rect"):
        assert 0 <= float(box["x"]) <= float(box["x"]) + float(box["width"]) <= width
        assert 0 <= float(box["y"]) <= float(box["y"]) + float(box["height"]) <= height
    words = "".join(page.text)
    for step, line in zip(steps, data_flow_lines(steps), strict=True):
        assert step.title in words
        assert f"{step.title}: {step.text}." in line
        assert line in words
    if "mechanism" in numbers:
        assert "GNMax(" in words
    zones = [step.zone for step in steps]
    assert zones == sorted(zones, key=["private", "noise", "public"].index)


def test_long_names_stay_in_their_boxes():
    long = "ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=40)"
    model = "GraphSelfTrainingClassifierWithAVeryLongNameIndeed"
    svg = draw_data_flow(flow_of("teachers", mechanism=long, model=model))
    lines = re.findall(r'<text x="20" y="\d+">([^<]*)<', svg)
    width = float(re.search(r'class="flow-box" x="10" y="\d+" width="(\d+)"', svg)[1])
    assert max(map(len, lines)) * 13 * 0.53 <= width - 20
    joined = "".join(lines).replace(" ", "")
    assert long.replace(" ", "") in joined
    assert model in joined


# Colours.


def luminance(colour):
    if len(colour) == 4:
        colour = "#" + "".join(2 * digit for digit in colour[1:])
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear_parts = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return sum(
        weight * part
        for weight, part in zip((0.2126, 0.7152, 0.0722), linear_parts, strict=True)
    )


def contrast(one, other):
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(place):
    declared = re.findall(r":root\{([^}]*--page[^}]*)\}", STYLE)
    palette = dict(re.findall(r"--([\w-]+):(#\w+);", declared[place]))
    assert len(declared) == 2
    for ink in ("ink", "soft", "link"):
        assert contrast(palette[ink], palette["page"]) >= 4.5
    for box in ("plain", "bad", "banner"):
        assert contrast(palette[f"{box}-ink"], palette[box]) >= 4.5


def test_text_stands_out_in_the_picture():
    light, dark = FLOW_STYLE.split("@media")
    for style in (light, dark):
        ink = re.search(r"\.flow text\{fill:(#\w+)", style)[1]
        for fill in re.findall(
            r"\.flow-(?:private|noise|public|box)\{fill:(#\w+)", style
        ):
            assert contrast(ink, fill) >= 4.5
