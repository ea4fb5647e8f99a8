"""Side files of every kind and their readers; equal for equal seeds."""

import io
import random
import re
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from rankdash.app.command import main
from rankdash.core.base.errors import DataError
from rankdash.core.readers import Source
from rankdash.core.readers.loading import examine
from rankdash.core.readers.rated import read_judged, read_rated, read_timings
from rankdash.core.runs.combining import complete, merge
from rankdash.core.runs.results import QueryResult, ResultsFile
from rankdash.core.sampling.label_plan import Additive, LabelPlan, pool_of
from rankdash.core.value import assumptions
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.prices import SHIPPED, parse_prices, shipped, to_json
from rankdash.core.value.targets import Goals, Targets
from rankdash.core.value.targets import shipped as shipped_targets
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.features.judge.asking import JudgedPair
from rankdash.features.judge.command_run import GradesFile
from rankdash.features.judge.judge import Answer, Judge
from rankdash.features.label.trail import read_plan, write_answers, write_plan
from rankdash.features.report.command import read_money
from rankdash.kit.commands.arguments import REFUSED
from tests import documented
from tests.fuzz.mutated import changed
from tests.lists import ranking
from tests.stored import keep_lists, keep_rows

QUERIES = [f"q{at}" for at in range(4)]
DOCUMENTS = [f"d{at}" for at in range(6)]
TIME = "2026-11-01T10:00:00+00:00"
SETTINGS = """metrics = ["ndcg@10", "mrr"]
seed = 3

[gate]
min_gain = 0.01
max_hurt = 0.2

[report]
sections = ["systems"]
"""


def _each(line: str) -> str:
    """Return a line for each query and document."""
    return "".join(
        line.format(query=query, doc=doc, at=at, label=at % 3, rank=at + 1, draw=1 + at + 6 * place)
        for place, query in enumerate(QUERIES)
        for at, doc in enumerate(DOCUMENTS)
    )


RUN = _each("{query} Q0 {doc} {rank} -{at} bm25\n")
ROWS = "query_id,query,doc_id,document,label\n" + _each(
    "{query},how to return {at},{doc},text {at} of {doc},{label}\n"
)
RATED = "query_id,doc_id,label,rater,time\n" + _each(
    "{query},{doc},{label},anna,2026-11-01T10:00:0{at}Z\n"
)
DRAWN = "query_id,doc_id,label,draw,probability\n" + _each(
    "{query},{doc},{label},{draw},0.{rank}\n"
)
TIMINGS = "query_id,state,reason,latency_ms\n" + "".join(
    f"{query},done,,{at * 1.5}\n" for at, query in enumerate(QUERIES)
)
WISH = {"data": "x", "settings": {"top": 10}}


def command(*typed: object) -> None:
    """Run a command and discard its output. Raises DataError if it refuses a file."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        refused = main(list(map(str, typed))) == REFUSED
    assert "This is a bug in rankdash" not in said.getvalue()
    if refused:
        raise DataError("{said}", said=said.getvalue())


@dataclass(frozen=True)
class SideFile:
    """A kind of file. name: of the file. content: valid content, or a function that writes it.
    read: a function that reads a file of this name in an empty folder."""

    name: str
    content: bytes | str | Callable[[Path], object]
    read: Callable[[Path], object]


def _plan(file: Path) -> None:
    lists = {"old": DOCUMENTS, "new": DOCUMENTS[::-1]}
    pool = pool_of({name: ranking(**dict.fromkeys(QUERIES, own)) for name, own in lists.items()}, 6)
    plan = LabelPlan.make(pool, Additive.of("dcg@3", top=2.0, threshold=1.0), seed=1)
    drawn = plan.order[:8]
    ids = {"query_id": pool.query_ids[pool.query[drawn]], "doc_id": pool.doc_ids[drawn]}
    labels = [0.0, 1.0, 2.0, np.nan, 1.0, 0.0, 1.0, 2.0]
    answers = pd.DataFrame(ids).assign(label=labels, rater="anna", time=TIME)
    file.write_bytes(write_plan(plan) + write_answers(answers))


def _read_plan(file: Path) -> None:
    read_plan(file.read_bytes(), file.name)
    command("label", "status", file, "--json")


def _judge() -> Judge:
    return Judge({"base_url": "http://127.0.0.1:1/v1", "model": "m", "key_variable": "none"})


def _grades(file: Path) -> None:
    grades = GradesFile.open(file, "m", _judge())
    answers = [(doc, Answer(at % 3, "because")) for at, doc in enumerate(DOCUMENTS)]
    grades.add([JudgedPair(query, *each, each[1:]) for query in QUERIES for each in answers])
    grades.close(())
    # A fixed time, so that equal seeds give equal files.
    file.write_text(re.sub(r'20\d\d-[^",]+', TIME, file.read_text()))


def read_grades(file: Path) -> None:
    GradesFile.open(file, "m", _judge())
    read_judged(Source(file.name, file.read_bytes()))


def _read_drawn(file: Path) -> None:
    examine([Source(file.name, file.read_bytes())])
    run = file.with_name("run.trec")
    run.write_text(RUN)
    command("evaluate", "--qrels", file, "--run", run, "--metrics", "ndcg@3", "--format", "json")


def _shard(file: Path) -> None:
    rows = file.with_name("rows.csv")
    rows.write_text(ROWS)
    command("rerank", "--data", rows, "--reranker", "bm25", "--shard", "1/1", "--out", file)


def _read_shard(file: Path) -> None:
    merge(complete([file]), io.BytesIO())
    command("merge", file, "--out", file.with_name("merged.trec"))


def _results(file: Path) -> None:
    results = ResultsFile(file, WISH)
    results.begin({"runtime": "onnx", "device": "cpu"})
    results.add(
        QueryResult(query, "done", np.arange(3), np.arange(3) / 2, latency_ms=1.5)
        for query in QUERIES
    )


def _workspace(file: Path) -> None:
    workspace = Workspace(file.with_name("before"))
    made = keep_rows(workspace, ROWS, "rows")
    lists = [(query, DOCUMENTS, [9.0 - at for at in range(6)]) for query in QUERIES]
    keep_lists(workspace, made, lists, "run")
    with file.open("wb") as target:
        archive.export(workspace, target, "1")


def _read_workspace(file: Path) -> None:
    workspace = Workspace(file.with_name("home"))
    with file.open("rb") as source:
        import_workspace.bring_in(workspace, source, file.name)


def _read_settings(file: Path) -> None:
    (file.parent / "qrels.tsv").write_text("q0 0 d0 1\n")
    (file.parent / "run.trec").write_text(RUN)
    with chdir(file.parent):
        command("evaluate", "--qrels", "qrels.tsv", "--run", "run.trec", "--format", "json")


def _prices(file: Path) -> object:
    return parse_prices(file.read_bytes(), file.name)


def _profile(file: Path) -> object:
    return Goals.of(str(file)).profile


def _text(read: Callable[[str], object]) -> Callable[[Path], object]:
    return lambda file: read(file.read_text("utf-8", "replace"))


def _source(read: Callable[[Source], object]) -> Callable[[Path], object]:
    return lambda file: read(Source(file.name, file.read_bytes()))


def _first_toml(page: str) -> str:
    return documented.code(documented.text_of(documented.DOCS / page), "toml")[0]


PROFILE = next(iter(shipped_targets().profiles.values()))
SCENARIOS = assumptions.write_scenarios({"now": Assumptions()})
SIDE_FILES = {
    "prices": SideFile("prices.toml", SHIPPED.read_bytes(), _prices),
    "prices as JSON": SideFile("prices.json", to_json(shipped()[:3]), _prices),
    "profile": SideFile("mine.toml", _first_toml("metrics.md"), _profile),
    "profile as JSON": SideFile("mine.json", PROFILE.to_json(), _profile),
    "targets": SideFile("targets.json", shipped_targets().to_json(), _text(Targets.from_json)),
    "targets as TOML": SideFile(
        *("targets.toml", SHIPPED.with_name("targets.toml").read_bytes()),
        _text(Targets.from_toml),
    ),
    "scenarios": SideFile("scenarios.json", SCENARIOS, _text(assumptions.read_scenarios)),
    "assumptions": SideFile(
        *("money.toml", _first_toml("cost.md")),
        lambda file: read_money(file, {"run": "bi"}),
    ),
    "settings": SideFile("rankdash.toml", SETTINGS, _read_settings),
    "label plan": SideFile("plan.jsonl", _plan, _read_plan),
    "grades": SideFile("grades.csv", _grades, read_grades),
    "grades as JSON": SideFile("grades.jsonl", _grades, read_grades),
    "labels of raters": SideFile("rated.csv", RATED, _source(read_rated)),
    "labels that were drawn": SideFile("drawn.csv", DRAWN, _read_drawn),
    "timings": SideFile("timings.csv", TIMINGS, _source(read_timings)),
    "shard": SideFile("shard", _shard, _read_shard),
    "results": SideFile("results", _results, lambda file: ResultsFile(file, WISH)),
    "workspace": SideFile("workspace.zip", _workspace, _read_workspace),
}


@cache
def whole(kind: str) -> bytes:
    """Return the unchanged file of a kind."""
    each = SIDE_FILES[kind]
    if not callable(each.content):
        return each.content.encode() if isinstance(each.content, str) else each.content
    with TemporaryDirectory() as folder:
        file = Path(folder) / each.name
        each.content(file)
        return file.read_bytes()


def mutated(kind: str, seed: int) -> bytes:
    """Return the file of a kind with some of its bytes changed."""
    return changed(whole(kind), random.Random(f"{kind} {seed}"))


def read(kind: str, content: bytes) -> None:
    """Read a file of the kind in a folder that is removed afterwards."""
    each = SIDE_FILES[kind]
    with TemporaryDirectory() as folder:
        file = Path(folder) / each.name
        file.write_bytes(content)
        each.read(file)
