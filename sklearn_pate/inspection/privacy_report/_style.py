"""Style sheet of a privacy report, for light and dark screens, phones and paper."""

__all__ = ["DARK", "INTERNAL_STYLE", "LIGHT", "STYLE"]

LIGHT = {
    "page": "#ffffff",
    "ink": "#1b1f24",
    "soft": "#57606a",
    "line": "#b6bec8",
    "stripe": "#f3f5f8",
    "link": "#0b57d0",
    "plain": "#e6eef9",
    "plain-ink": "#12294a",
    "bad": "#fdecd8",
    "bad-ink": "#5a3200",
    "banner": "#8b1a1a",
    "banner-ink": "#ffffff",
}
DARK = {
    "page": "#14171a",
    "ink": "#e6e8ea",
    "soft": "#a6adb5",
    "line": "#4d565f",
    "stripe": "#1f2429",
    "link": "#8ab4f8",
    "plain": "#1a2c45",
    "plain-ink": "#d6e4f8",
    "bad": "#402a0e",
    "bad-ink": "#ffdfb3",
    "banner": "#b3261e",
    "banner-ink": "#ffffff",
}


def _variables(palette: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in palette.items())


STYLE = f"""\
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:0 auto;padding:1.5rem 1.25rem 3rem;max-width:50rem;background:var(--page);
color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;
overflow-wrap:break-word}}
h1{{font-size:1.7rem;line-height:1.25;margin:.5rem 0}}
h2{{font-size:1.2rem;line-height:1.3;margin:2.2rem 0 .6rem;padding-top:.6rem;
border-top:1px solid var(--line)}}
p{{margin:.6rem 0}}
.meta,caption,figcaption{{color:var(--soft)}}
.banner{{margin:0 0 1rem;padding:.8rem 1rem;background:var(--banner);
color:var(--banner-ink);border-radius:4px}}
.conclusion{{font-size:1.1rem;padding:.8rem 1rem;border-radius:4px}}
.plain{{background:var(--plain);color:var(--plain-ink)}}
.bad,.warning{{background:var(--bad);color:var(--bad-ink)}}
.warning{{padding:.6rem 1rem;border-radius:4px}}
.gauge{{height:1.4rem;border:1px solid var(--ink);border-radius:4px}}
.gauge div{{height:100%;background:var(--soft)}}
.ends{{display:flex;justify-content:space-between;margin:.2rem 0;color:var(--soft)}}
.scroll{{overflow-x:auto;margin:1rem 0}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
caption{{text-align:left;padding-bottom:.3rem}}
th,td{{text-align:left;vertical-align:top;padding:.3rem 1.2rem .3rem 0;
border-bottom:1px solid var(--line)}}
th{{font-weight:400}}
td:only-of-type{{overflow-wrap:anywhere}}
thead th{{font-weight:600;vertical-align:bottom}}
ul{{padding-left:1.2rem}}
li{{margin:.35rem 0}}
.checks{{list-style:none;padding:0}}
.checks li{{display:flex;gap:.7rem;margin:.6rem 0}}
.box{{flex:none;width:1rem;height:1rem;margin-top:.25rem;border:1.5px solid var(--ink)}}
.signatures{{width:100%}}
.signatures th:not(:last-child){{width:24%}}
.signatures tbody th,.signatures tbody td{{height:3.2rem;vertical-align:bottom}}
figure{{margin:1rem 0}}
figcaption{{margin-top:.4rem}}
.number{{white-space:nowrap}}
a{{color:var(--link)}}
@media (max-width:700px){{
th,td{{padding-right:.8rem}}
}}
@media print{{
@page{{size:A4;margin:12mm 15mm}}
html{{font-size:9pt}}
body{{max-width:none;padding:0;line-height:1.3}}
h2{{break-after:avoid;margin:.7rem 0 .3rem;padding-top:.3rem}}
p{{margin:.3rem 0}}
ul,.checks li,.scroll,figure{{margin-top:.3rem;margin-bottom:.3rem}}
li{{margin:.15rem 0}}
.signatures tbody th,.signatures tbody td{{height:2.6rem}}
p,li,tr,figure,table{{break-inside:avoid}}
th,td{{padding-top:.06rem;padding-bottom:.06rem}}
tbody th{{width:9rem}}
.signatures,.scroll:has(.signatures){{break-before:avoid}}
.long{{break-inside:auto}}
.new-page{{break-before:page}}
caption{{break-after:avoid}}
.banner,.conclusion,.warning{{border:1.5px solid}}
.banner,.conclusion,.warning,.gauge div{{print-color-adjust:exact;
-webkit-print-color-adjust:exact}}
.scroll{{overflow:visible}}
.scroll td{{overflow-wrap:anywhere;padding-right:.6rem}}
.scroll th{{padding-right:.6rem}}
a{{color:inherit}}
}}
"""

# A line on every printed page, in browsers that print text in margins.
INTERNAL_STYLE = """\
@media print{@page{@top-center{content:"INTERNAL: do not publish";font-weight:bold}}}
"""
