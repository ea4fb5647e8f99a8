"""All tables, charts and rankings of a comparison in one zip file."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial

import pandas as pd

import rankdash
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, speaking
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.text import csv_bytes
from rankdash.core.metrics import parse_measure
from rankdash.core.study.leaderboard import ranked_names, standings, usual_axis
from rankdash.core.study.study import Study
from rankdash.core.study.systems import MACHINES
from rankdash.core.words.columns import records
from rankdash.features import offered
from rankdash.features.cost.report import money_files
from rankdash.features.overview import report_systems
from rankdash.features.overview.charts import segments
from rankdash.features.report import charts_images, report_exports
from rankdash.features.report.report_exports import triplet_lines
from rankdash.features.report.report_formats import numbered, shown_ranking, slug
from rankdash.kit.drawing.changes import changes
from rankdash.kit.drawing.draw import Drawing
from rankdash.kit.drawing.style import INKS
from rankdash.kit.html.tables import (
    ZipPart,
    compact_latex,
    compact_markdown,
    english,
    latex,
    markdown,
    markdown_safe,
    plain_markdown,
    qrels_bytes,
    run_bytes,
)

FORMAT = 1
"""Version of the manifest; raised if a reader of an older version could misread it."""

MANIFEST = "manifest.json"
_TOO_OLD = datetime(1980, 1, 1, tzinfo=UTC)


@dataclass
class _Packed:
    files: dict[str, bytes] = field(default_factory=dict)
    listed: list[dict[str, object]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)

    def add(self, name: str, what: str, content: bytes) -> None:
        self.files[name] = content
        digest = hashlib.sha256(content).hexdigest()
        self.listed.append({"name": name, "what": what, "bytes": len(content), "sha256": digest})

    def leave_out(self, name: str, what: str, why: RankdashError) -> None:
        self.left_out.append({"name": name, "what": what, "why": error_text(why)})


def bundle(
    study: Study, made: datetime, *, first: Sequence[ZipPart] = (), pictures: bool = True
) -> bytes:
    """Return the zip, with charts in the current language and everything else in English.

    made: time, UTC. first: other parts to add before the tables, such as the report, which has its
        own language.
    pictures: draw the charts, which starts a browser.
    """
    packed, named = _Packed(), english(study)
    with speaking("en"):
        made_of = (tables, money_files, trec_files, lost_files, training_files)
        for part in (*first, *(part for files in made_of for part in files(named))):
            try:
                packed.add(part.name, part.what, part.make())
            except RankdashError as error:
                packed.leave_out(part.name, part.what, error)
    if pictures:
        _add_figures(packed, study)
    with speaking("en"):
        content = _manifest(named, made, packed)
    manifest = json.dumps(content, ensure_ascii=False, indent=2)
    return zipped({MANIFEST: manifest.encode("utf-8", "replace"), **packed.files}, made)


def tables(study: Study) -> Iterable[ZipPart]:
    """Return the comparison and the queries for a text, a paper, a spreadsheet and a program."""
    return (
        ZipPart(
            "summary.md",
            _("The leaderboard, systems × metrics, then each metric with verdict; Markdown."),
            lambda: _text(_markdown(study)),
        ),
        ZipPart(
            "summary.tex",
            _("Systems × metrics for a paper, best in bold; LaTeX with booktabs."),
            lambda: _text(compact_latex(study.comparison, ranked_names(study))),
        ),
        ZipPart(
            "comparison.tex",
            _("Each metric with intervals, p, helped and hurt; LaTeX with booktabs."),
            lambda: _text(latex(study.comparison, ranked_names(study))),
        ),
        ZipPart(
            "comparison.csv",
            _("Each metric and system with interval, p, helped, same, hurt; unrounded."),
            lambda: comparison_csv(study),
        ),
        ZipPart(
            "queries.csv",
            _("Every query and system, for a spreadsheet."),
            lambda: report_exports.queries_csv(study),
        ),
        ZipPart(
            "queries.parquet",
            _("Every query and system, with exact numbers and types."),
            lambda: report_exports.queries_parquet(study),
        ),
        ZipPart(
            "queries.json",
            _(
                "Every query and system, with a description of each column; null if there is no "
                "value."
            ),
            lambda: report_exports.queries_json(study),
        ),
    )


def trec_files(study: Study) -> list[ZipPart]:
    """Return the current labels, and the ranking of each system as it was compared."""

    def ranked(system: str) -> Callable[[], bytes]:
        return lambda: run_bytes(shown_ranking(study, system), slug(study.name(system)))

    labels = ZipPart(
        "trec/qrels.txt", _("The labels, for trec_eval."), lambda: qrels_bytes(study.dataset.qrels)
    )
    return [
        labels,
        *(
            ZipPart(
                run_file(study, system),
                _("Ranking of {name}.", name=study.name(system)),
                ranked(system),
            )
            for system in study.chosen
        ),
    ]


def lost_files(study: Study) -> list[ZipPart]:
    """Return the queries without a result of each system that has any, as `verify --timings`
    reads them."""
    return [
        ZipPart(
            f"trec/{numbered(study, system)}.csv",
            _("The queries of {name} without a result.", name=study.name(system)),
            partial(_lost, study, system),
        )
        for system in study.chosen
        if study.excluded(system)
    ]


def _lost(study: Study, system: str) -> bytes:
    rows = [
        {"query_id": query, "state": state, "reason": "", "latency_ms": None}
        for query, state in study.excluded(system).items()
    ]
    return csv_bytes(pd.DataFrame(rows))


def training_files(study: Study) -> list[ZipPart]:
    """Return the hard negatives of each system."""
    return [
        ZipPart(
            f"training/{numbered(study, system)}.jsonl",
            _("Hard negatives of {name}, to train with.", name=study.name(system)),
            partial(triplet_lines, study, system),
        )
        for system in study.chosen
    ]


def run_file(study: Study, system: str) -> str:
    """Return the file name of a system's ranking in the zip; a number makes it unique."""
    return f"trec/{numbered(study, system)}.run"


def comparison_csv(study: Study) -> bytes:
    """Return the rows of the comparison with the name of each system."""
    frame = pd.DataFrame(records(study.comparison))
    frame.insert(2, "name", [study.name(system) for system in frame["system"]])
    return csv_bytes(frame)


def _markdown(study: Study) -> Iterator[str]:
    yield f"## {markdown_safe(study.dataset.name)}\n\n"
    axis, names = usual_axis(standings(study)), ranked_names(study)
    yield from plain_markdown(report_systems.lines(study, axis))
    yield (
        "".join(f"\n{markdown_safe(each)}\n" for each in report_systems.legend(study, axis)) + "\n"
    )
    yield from compact_markdown(study.comparison, names)
    yield "\n"
    yield from markdown(study.comparison, names)


def _text(pieces: Iterable[str]) -> bytes:
    return "".join(pieces).encode("utf-8", "replace")


def _add_figures(packed: _Packed, study: Study) -> None:
    charts = drawings(study)
    inked = {name: chart.draw(INKS["light"]) for name, chart in charts.items()}
    try:
        for file, content in charts_images.drawn(inked).items():
            name = file.rpartition(".")[0]
            packed.add(f"figures/{file}", f"{_whose(study, name)}{charts[name].alt}", content)
    except RankdashError as error:
        packed.leave_out("figures/", _("The charts as SVG and PNG."), error)


def _whose(study: Study, chart: str) -> str:
    """Return the challenger's name with a colon, for a chart named by its position ("changes-2");
    "" for a chart of all systems."""
    place = re.search(r"-(\d+)", chart)
    return f"{study.name(study.challengers[int(place[1]) - 1])}: " if place else ""


def _manifest(study: Study, made: datetime, packed: _Packed) -> dict[str, object]:
    data = study.dataset
    return {
        "format": "rankdash export",
        "format_version": FORMAT,
        "rankdash": rankdash.__version__,
        "made_utc": made.astimezone(UTC).isoformat(timespec="seconds"),
        "data_set": {
            "id": data.id,
            "name": data.name,
            "queries": len(data.queries),
            "documents": len(data.documents),
            "labels": len(data.qrels),
            "first_stage": data.first_stage,
            "corrected_labels": study.corrections,
            "labels_reversed_at": None if study.check is None else study.check.reversed_at,
        },
        "baseline": study.baseline,
        "systems": [_system(study, system) for system in study.chosen],
        "metric": study.spec,
        "metrics": {spec: parse_measure(spec).title for spec in study.specs},
        "conventions": study.conventions.as_dict(),
        "statistics": study.statistics.as_dict(),
        "money": _money(study),
        "query_columns": report_exports.meanings(study),
        "files": packed.listed,
        "left_out": packed.left_out,
    }


def _system(study: Study, system: str) -> dict[str, object]:
    titles: dict[str, object] = {
        "id": system,
        "name": study.name(system),
        "role": "baseline" if system == study.baseline else "challenger",
        "file": run_file(study, system),
    }
    run = study.run(system)
    if run is None:
        return titles
    states = run.queries["state"].value_counts()
    return {
        **titles,
        "reranker": run.reranker,
        "settings": _plain(run.settings),
        "machine": _plain(run.machine),
        "depth": run.depth,
        "created": run.created,
        "unknown_tokens": _plain(study.unknown_tokens(system)),
        "queries": {str(state): int(n) for state, n in states.items()},
    }


def _money(study: Study) -> dict[str, object] | None:
    money = study.money
    if money is None:
        return None
    return {
        "currency": money.currency,
        "assumptions": asdict(money.assumptions),
        "value_set": money.valued,
        "example_values": money.example,
        "machines": MACHINES[money.shared],
        "prices": {system: _plain(asdict(price)) for system, price in money.prices.items()},
    }


def _plain(value: object) -> object:
    """Return a value for JSON: NaN and infinities as null, unknown types as text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def zipped(files: Mapping[str, bytes], made: datetime) -> bytes:
    """Return a zip archive of path → content. made: the time of its entries, UTC."""
    out = io.BytesIO()
    moment = max(made.astimezone(UTC), _TOO_OLD).timetuple()[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return out.getvalue()


# Charts of a comparison by name.


_OF_STUDY = {
    "systems": "overview.charts:systems",
    "cutoffs": "overview.charts:cutoffs",
    "headroom": "overview.charts:headroom",
    "latency": "latency.charts:latency",
    "cost": "cost.charts_worth:worth",
}
_OF_CHALLENGER = {
    "judge": "judge.charts:three_ways",
    "judge-curve": "judge.charts:label_curve",
}
"""Name → address of a chart."""


def drawings(study: Study) -> dict[str, Drawing]:
    """Return name, such as "systems" or "changes-2" (of the second challenger) → chart, for all
    charts."""
    by_name = {name: offered(chart)(study) for name, chart in _OF_STUDY.items()}
    for place, challenger in enumerate(study.challengers, start=1):
        by_name[f"changes-{place}"] = changes(study, challenger)
        for name, chart in _OF_CHALLENGER.items():
            by_name[f"{name}-{place}"] = offered(chart)(study, challenger)
        for part, drawn in enumerate(segments(study, challenger), start=1):
            by_name[f"segments-{place}-{part}"] = drawn
    return {name: drawn for name, drawn in by_name.items() if drawn is not None}
