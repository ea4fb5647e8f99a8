"""One HTML file that loads nothing: styles, charts and scripts are inside.

Its Content-Security-Policy forbids all requests, and all scripts except its own, which it lists by
hash, so that text from the data could not run even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from plotly.offline import get_plotlyjs, get_plotlyjs_version

from rankdash.core.base.errors import DataError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import paragraph
from rankdash.core.base.text import html_safe
from rankdash.core.study.costs import Choice, choices, hit_title
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.words.costs import MoneyContext, month
from rankdash.core.words.verdicts import interval
from rankdash.kit.drawing.draw import Chart, Drawing
from rankdash.kit.drawing.frontier import PHONE_STYLE
from rankdash.kit.drawing.style import FONT, INKS, Ink

_BRIEF = 16
# The row limit of a table that is not split between pages.
_KEPT_ROWS = 12

CHART_ENGINE = f"plotly.js {get_plotlyjs_version()}"


@dataclass(frozen=True)
class PageTable:
    """A table of texts without markup. numbers: the right-aligned columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()


class Page:
    """Builder of an HTML page. `chart` adds a chart and returns the element for the body."""

    def __init__(self, title: str, language: str) -> None:
        self._title = title
        self._language = language
        self._charts: list[Chart] = []

    def chart(self, chart: Chart) -> str:
        """Add a chart and return the HTML element in which it is drawn."""
        self._charts.append(chart)
        height = chart.light.layout.height or 400
        return (
            f'<div class="chart" role="img" style="min-height:{height:.0f}px" '
            f'aria-label="{html_safe(chart.alt)}"></div>'
        )

    def html(self, body: str) -> str:
        """Return the whole file. body: HTML, with all data in it escaped."""
        scripts = (get_plotlyjs(), _DRAW) if self._charts else (_DRAW,)
        figures = f'<script type="application/json" id="figures">{self._figures()}</script>'
        return self._file(body, _style("light dark"), scripts, figures)

    def picture(self, body: str, scale: float) -> str:
        """Return the page as on paper, scaled down, without scripts: charts are empty."""
        return self._file(body, f"{_style('light')}html{{zoom:{scale:g}}}", (), "")

    def _file(self, body: str, style: str, scripts: Sequence[str], data: str) -> str:
        allowed = " ".join(f"'{script_hash(script)}'" for script in scripts) or "'none'"
        policy = "; ".join(
            [
                "default-src 'none'",
                f"script-src {allowed}",
                "style-src 'unsafe-inline'",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
            ]
        )
        return "\n".join(
            [
                "<!DOCTYPE html>",
                f'<html lang="{html_safe(self._language)}">',
                '<head><meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
                '<meta name="referrer" content="no-referrer">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>{html_safe(self._title)}</title>",
                f"<style>{style}{PHONE_STYLE}</style></head>",
                f"<body><main>{body}</main>",
                data,
                *(f"<script>{script}</script>" for script in scripts),
                "</body></html>",
            ]
        )

    def _figures(self) -> str:
        drawn = [
            {ink: json.loads(getattr(chart, ink).to_json()) for ink in ("light", "dark")}
            for chart in self._charts
        ]
        # So that no text in a chart can end the element.
        return json.dumps(drawn, ensure_ascii=False).replace("<", "\\u003c")


def table(content: PageTable, caption: str = "") -> str:
    """Return the HTML of a table with escaped cells. A short table is not split between pages on
    paper."""

    def cell(place: int, text: str, tag: str) -> str:
        # Numbers must not wrap; only sentences and long ids may.
        kind = "brief" if len(text) <= _BRIEF else "long"
        kind = "number" if place in content.numbers else kind
        return f'<{tag} class="{kind}">{html_safe(text)}</{tag}>'

    def row(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(cell(place, text, tag) for place, text in enumerate(cells))}</tr>"

    sentence = f"<caption>{html_safe(caption)}</caption>" if caption else ""
    body = "".join(row(cells, "td") for cells in content.rows)
    head = f"<thead>{row(content.columns, 'th')}</thead>"
    kind = "wide kept" if len(content.rows) <= _KEPT_ROWS else "wide"
    hint = html_safe(_("Scroll sideways to see all columns →"))
    inside = f"<table>{sentence}{head}<tbody>{body}</tbody></table>"
    return f'<div class="{kind}" data-hint="{hint}">{inside}</div>'


def together(*parts: str) -> str:
    """Return HTML that is not split between pages."""
    return f'<div class="kept">{"".join(parts)}</div>'


def folded(summary: str, inside: str, *, printed: bool = False) -> str:
    """Return a part that opens on click. inside: HTML. printed: whether it is open on paper."""
    kind = " class=printed" if printed else ""
    return f"<details{kind}><summary>{html_safe(summary)}</summary>{inside}</details>"


def section(heading: str, inside: str, anchor: str = "") -> str:
    """Return a part with a heading; "" without content. inside: HTML. anchor: the target name for
    links."""
    if not inside:
        return ""
    name = f' id="{html_safe(anchor)}"' if anchor else ""
    return f"<section{name}><h2>{html_safe(heading)}</h2>{inside}</section>"


_STRONG = re.compile(r"\*\*(.+?)\*\*")


def prose(text: str, kind: str = "") -> str:
    """Return a paragraph; text between two pairs of asterisks is strong, all other markup is
    escaped. kind: its class."""
    of_kind = f' class="{kind}"' if kind else ""
    return f"<p{of_kind}>{_rich(text)}</p>"


def listed(texts: Sequence[str]) -> str:
    """Return a list of sentences, formatted as in `prose`; "" without sentences."""
    return f"<ul>{''.join(f'<li>{_rich(text)}</li>' for text in texts)}</ul>" if texts else ""


def _rich(text: str) -> str:
    return _STRONG.sub(r"<strong>\1</strong>", html_safe(text))


@cache
def script_hash(script: str) -> str:
    """Return the hash of a script for a Content-Security-Policy."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _style(schemes: str) -> str:
    """Return the style sheet. schemes: "light dark", or one of them."""
    light, dark = (_colours(INKS[name]) for name in ("light", "dark"))
    in_dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(dark)}}}}}"
    return (
        f":root{{color-scheme:{schemes};{_variables(light)}}}"
        f"{in_dark if 'dark' in schemes else ''}body{{font-family:{FONT}}}{_RULES}"
    )


def _colours(ink: Ink) -> Mapping[str, str]:
    return {
        "page": ink.background,
        "text": ink.text,
        "muted": ink.muted,
        "rule": ink.grid,
        "box": ink.hover,
    }


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


_RULES = """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font-size:15px;line-height:1.5}
main{max-width:1180px;margin:0 auto;padding:1.5rem 1.25rem 3rem}
h1{font-size:1.5rem;line-height:1.3;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2rem 0 .6rem}
h3{font-size:1rem;margin:0 0 .4rem;overflow-wrap:anywhere}
p{margin:.3rem 0;max-width:75ch;overflow-wrap:anywhere}
header p{max-width:none}
ul{margin:.3rem 0;padding-left:1.2rem}
.muted,caption,th{color:var(--muted)}
.wide{overflow-x:auto}
.wide.more::before{content:attr(data-hint);position:sticky;left:0;display:block;width:max-content;
font-size:.85rem;color:var(--muted)}
table{border-collapse:collapse;width:100%;font-size:.9rem}
caption{text-align:left;padding-bottom:.3rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--rule);
overflow-wrap:anywhere}
th{font-weight:600;overflow-wrap:normal}
.number{text-align:right;font-variant-numeric:tabular-nums}
.brief,td.number{white-space:nowrap}
.chart{width:100%;break-inside:avoid}
.lists{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:1rem}
.card{border:1px solid var(--rule);border-left-width:4px;border-radius:6px;padding:.5rem .7rem;
margin-bottom:.5rem;break-inside:avoid}
.card.relevant{border-left-color:currentColor}
.card b{font-variant-numeric:tabular-nums}
.card a{color:inherit}
.card p{font-size:.9rem;margin:.2rem 0}
.tag{display:inline-block;background:var(--box);border:1px solid var(--rule);border-radius:999px;
padding:0 .6rem;margin:0 .3rem .3rem 0}
.whole{white-space:pre-wrap;overflow-wrap:anywhere;max-width:75ch}
h4{font-size:.95rem;margin:1rem 0 .4rem}
section{scroll-margin-top:1rem}section p{max-width:95ch}section>h3,.kept>h3{margin-top:1.4rem}
.logo{float:right;max-height:56px;max-width:220px;margin-left:1rem}
.note{border-left:4px solid var(--rule);padding:.2rem .8rem;margin:1rem 0}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin:1rem 0;padding:.5rem 0;
border-top:1px solid var(--rule);border-bottom:1px solid var(--rule)}
nav a{color:inherit}
.verdict{border:1px solid var(--rule);border-radius:8px;padding:.9rem 1.1rem;margin-bottom:1rem}
.verdict p,.card p{max-width:none}
.verdict h4{margin:.9rem 0 .2rem}.verdict>h4:first-of-type{margin-top:.6rem}
.lead{font-size:1.35rem;font-weight:600;line-height:1.3;font-variant-numeric:tabular-nums}
.step{border-top:1px solid var(--rule);margin-top:.9rem}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:.6rem 1rem;
margin:.8rem 0}
.facts dt{color:var(--muted);font-size:.85rem}
.facts dd{margin:0}
.facts dd:not(.muted){font-size:1.15rem;font-weight:600;font-variant-numeric:tabular-nums}
.facts dd.muted{font-size:.8rem}
details{border-bottom:1px solid var(--rule);padding:.35rem 0}
summary{cursor:pointer;overflow-wrap:anywhere}
footer{margin-top:2.5rem;font-size:.85rem;color:var(--muted)}
@media screen and (max-width:640px){td.long{min-width:6.5rem}}
@page{margin:14mm 12mm}
@media print{html{font-size:11px}main{max-width:none;padding:0}body{font-size:1rem}
h2,h3,h4,summary,caption,p:has(+.wide),p:has(+.chart),p:has(+ul){break-after:avoid}
p,section p{max-width:none}thead{display:table-header-group}
tr,li,p,.facts,.kept{break-inside:avoid}.whole{break-inside:auto}.wide{overflow:visible}.wide.more::before{display:none}
nav{display:none}#decision:not(:last-of-type){break-after:page}.facts{grid-template-columns:repeat(3,1fr)}
.tight{zoom:.85}details.printed>summary{list-style:none}details.printed{border:0}
.chart .main-svg{max-width:100%}.lists{grid-template-columns:repeat(2,1fr)}}
"""

# Charts are drawn again when the reader changes between light and dark, and in light for paper;
# parts for paper are opened there.
_DRAW = """
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const places = document.querySelectorAll(".chart");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const draw = (ink, width) => places.forEach((place, at) => {
    const {data, layout} = structuredClone(figures[at][ink]);
    const size = width ? {width, autosize: false} : {autosize: true};
    Plotly.react(place, data, {...layout, ...size},
      {responsive: !width, displayModeBar: false, showTips: false});
  });
  const show = () => draw(dark.matches ? "dark" : "light");
  show();
  dark.addEventListener("change", show);
  // A table that is cut at the side says so.
  const hint = () => document.querySelectorAll(".wide").forEach((part) =>
    part.classList.toggle("more", part.scrollWidth > part.clientWidth));
  hint();
  window.addEventListener("resize", hint);
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.printed:not([open])")];
    opened.forEach((part) => { part.open = true; });
    draw("light", 680);
  });
  window.addEventListener("afterprint", () => {
    opened.forEach((part) => { part.open = false; });
    show();
  });
})();
"""


# The common input of all sections of a report: the page and the study.

DASH = "–"


class Draft:
    """Builder of a report: its page, its study, and parts that several sections use."""

    def __init__(self, page: Page, study: Study) -> None:
        self.page = page
        self.study = study

    def chart(self, drawing: Drawing | None) -> str:
        return "" if drawing is None else self.page.chart(drawing.in_both_inks())

    def titled(self, drawing: Drawing) -> str:
        """Return a chart under its title, not split between pages."""
        title = f"<h4>{html_safe(drawing.title)}</h4>" if drawing.title else ""
        return together(title, self.chart(drawing))

    def explained(self, title: str, *sentences: str) -> str:
        """Return a title with its explanation in sentences."""
        return _(
            "{part}: {value}", part=title, value=paragraph([each for each in sentences if each])
        )

    def against(self, challenger: str) -> str:
        """Return the names of the two compared systems as a phrase."""
        return _(
            "{system} against {baseline}",
            system=self.study.name(challenger),
            baseline=self.study.name(self.study.baseline),
        )

    @cached_property
    def choices(self) -> list[Choice]:
        """The options of the cost comparison, as from `costs.choices`."""
        return choices(self.study)

    def choice(self, challenger: str) -> Choice:
        return next(each for each in self.choices if each.system == challenger)

    @property
    def money(self) -> Money:
        return self.study.money or Money()

    @property
    def examples(self) -> list[str]:
        """The systems whose price is an example that comes with rankdash."""
        return [each.name for each in self.choices if each.example]

    @cached_property
    def context(self) -> MoneyContext:
        study = self.study
        return MoneyContext(
            currency=self.money.currency,
            metric=study.title,
            hit=hit_title(study),
            level=study.statistics.level,
            baseline=study.name(study.baseline),
            period=month(),
            safe=str,
        )


def as_table(content: PageTable) -> str:
    """Return a table that is folded on screen and open on paper."""
    return folded(_("As a table"), table(content), printed=True)


def filled(head: Sequence[str], rows: Sequence[Sequence[str]]) -> PageTable:
    """Return a table without columns that are empty in all rows."""
    used = [place for place in range(len(head)) if any(row[place] for row in rows)]
    return PageTable([head[at] for at in used], [[row[at] for at in used] for row in rows])


def with_interval(value: str, low: float, high: float) -> str:
    """Return a value with its interval, if it has one."""
    ends = interval(low, high)
    return value if ends == DASH else f"{value} ({ends})"


# The logo of a report: its type is detected from its content; a type that can contain scripts is
# refused.

LARGEST = 500_000
"""The size limit in bytes."""

_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def data_uri(content: bytes) -> str:
    """Return the picture as a data URI.

    Raises DataError if it is too large, or neither PNG, JPEG, GIF nor WebP. SVG is refused because
    it can contain scripts.
    """
    if len(content) > LARGEST:
        raise DataError(
            "The logo has {size:,} bytes; the limit is {most:,}.",
            remedy="Use a smaller file.",
            size=len(content),
            most=LARGEST,
        )
    kind = next((name for start, name in _STARTS.items() if content.startswith(start)), None)
    if kind is None and content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is None:
        raise DataError(
            "The logo is not a supported image.",
            remedy="Use a PNG, JPEG, GIF or WebP file.",
        )
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
