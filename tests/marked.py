"""A workspace with markup in every free text, and the detection of rendered markup.

No field is listed here. Each text of a workspace file, in JSON and in tables, is replaced if the
import accepts the change, and so is each text column of a table that no file contains. A new text
column is marked without a change here.
"""

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rankdash.core.base.errors import FormatError, StoreError
from rankdash.core.data.dataset import FirstStage
from rankdash.core.data.explanation import Explanation
from rankdash.core.data.measured import Measured, WithoutText
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.rerankers import create, kinds
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.value import assumptions
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.prices import shipped as shipped_prices
from rankdash.core.value.prices import to_json
from rankdash.core.value.targets import shipped as shipped_targets
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.checksums import keep_schema
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Owner, State
from rankdash.core.workspace.jobs.queue import Queue, Stage
from rankdash.core.workspace.notes import (
    Corrections,
    LabelNotes,
    LabelPlans,
    Notes,
    Pins,
    RunNotes,
)
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.core.workspace.workspace_file.archive import MANIFEST, Packer
from rankdash.features.judge.judge import Judge
from rankdash.features.queries.occlusion import LEVELS
from tests.store.builders import explain, grade, judge, submit
from tests.stored import keep_rows

QUERIES, DOCUMENTS = 16, 4
TURNED = "\u202e"
"""Writes what follows from right to left."""

_KINDS = (
    "![i]({url}/{n})",
    "<img src={url}/{n}>",
    "[l]({url}/{n})",
    '=HYPERLINK("{url}/{n}")',
    "$\\href{{{url}/{n}}}{{x}}$",
    ":red[hot]:material/bug_report:",
    f"\x07{TURNED}evil",
)
# Values of columns and settings that rankdash writes itself.
_WORDS = {
    *(*get_args(State), *get_args(Stage), *get_args(WithoutText), *LEVELS),
    *get_args(FirstStage),
    *(kind.name for kind in kinds()),
    *("none", "cohere", "dcg@10", FIRST_STAGE),
}
_KNOWN = ("runs/service/about.json.reranker", "runs/service/about.json.settings")
_TEMPLATES = {"template", "remedy"}


@dataclass
class Markup:
    """A generator of markup that fetches or links to `url`/n. places: n → the place of the text."""

    url: str
    places: list[str] = field(default_factory=list)

    def text(self, place: str, kinds: int = len(_KINDS)) -> str:
        """Return all kinds of markup, or a few; which one is first changes from text to text, since
        names are shortened."""
        n = len(self.places)
        self.places.append(place)
        turned = (*_KINDS[n % len(_KINDS) :], *_KINDS[: n % len(_KINDS)])
        return " ".join(turned[:kinds]).format(url=self.url, n=n)

    short = partialmethod(text, kinds=1)
    """Return one kind of markup, for a field of few characters."""

    def within(self, text: str) -> bool:
        """Return whether a text contains this markup."""
        return self.url in text or ":red[hot]" in text or TURNED in text


def fill(home: Path, scratch: Path, markup: Markup) -> Workspace:
    """Return a new workspace in `home` with one data set and something of everything that a
    workspace stores. scratch: a folder that does not exist."""
    parts = exported(written(Workspace(scratch / "written"), markup))
    empty = Workspace(scratch / "empty")
    for name in sorted(parts.keys() - {MANIFEST}):
        few = fewest(parts, name)
        for changes in (_json_marked if name.endswith(".json") else _table_marked)(
            name, parts[name], markup
        ):
            tried = (change(few[name]) for change in changes)
            accepted = (each for each in tried if _accepted(empty, few | {name: each}))
            few[name] = next(accepted, few[name])
        parts[name] = few[name]
    workspace = Workspace(home)
    bring_in(workspace, parts)
    return rows_marked(workspace, markup)


def bring_in(workspace: Workspace, parts: dict[str, bytes]) -> Any:
    """Import the parts of a workspace file after renewing its manifest."""
    target = io.BytesIO()
    packer = Packer(target)
    for name, content in parts.items():
        if name != MANIFEST:
            packer.add(name, content)
    packer.close({k: v for k, v in json.loads(parts[MANIFEST]).items() if k != "parts"})
    return import_workspace.bring_in(workspace, io.BytesIO(target.getvalue()), "shop.rankdash.zip")


def fewest(parts: dict[str, bytes], name: str) -> dict[str, bytes]:
    """Return the fewest parts that make a workspace file with a part: its data set and its run."""
    head = json.loads(parts[MANIFEST])
    ((dataset_id, _runs),) = head["datasets"].items()
    kind, _step, rest = name.partition("/")
    run = rest.partition("/")[0] if kind == "runs" else ""
    folders = [f"datasets/{dataset_id}/", *([f"runs/{run}/"] if run else [])] if rest else []
    head["datasets"] = {dataset_id: [run] if run else []} if rest else {}
    kept = {each: parts[each] for each in parts if each.startswith((*folders, name))}
    return {**kept, MANIFEST: json.dumps(head).encode()}


def _accepted(workspace: Workspace, parts: dict[str, bytes]) -> bool:
    try:
        found = bring_in(workspace, parts)
    except FormatError:
        return False
    for dataset_id in found.datasets:
        workspace.delete_dataset(dataset_id)
    for key in assumptions.SCENARIOS, import_workspace.PRICES, import_workspace.TARGETS:
        workspace.set_setting(key, "")
    return True


def exported(workspace: Workspace) -> dict[str, bytes]:
    target = io.BytesIO()
    archive.export(workspace, target, "1.2.3")
    with zipfile.ZipFile(target) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def written(workspace: Workspace, markup: Markup) -> Workspace:
    """Store one row of each kind. Its words are replaced later, except ids and tables of the data
    set, because its content determines its id."""
    queries = [markup.text("query_id") for _each in range(QUERIES)]
    docs = [markup.text("doc_id") for _each in range(DOCUMENTS)]
    segment, kind = map(markup.short, ("segment", "kind"))
    of_queries = [
        {"query_id": query, "query": markup.text("query"), kind: "ab"[q > 7],
         segment: markup.short("segment value") if q % 2 else "plain"}
        for q, query in enumerate(queries)
    ]  # fmt: skip
    of_docs = [
        {"doc_id": doc, "title": markup.text("title"), "document": markup.text("document")}
        for doc in docs
    ]
    rows = [
        {
            **query,
            **doc,
            "label": None if (q + d) % 3 == 1 else int(d == q % DOCUMENTS),
            "score": 9 - d,
        }
        for q, query in enumerate(of_queries)
        for d, doc in enumerate(of_docs)
    ]
    dataset_id = keep_rows(workspace, rows, markup.text("data set"))
    lists = [
        (query, [docs[q % 4], *(doc for d, doc in enumerate(docs) if d != q % 4)], [4.0, 3, 2, 1])
        for q, query in enumerate(queries)
    ]
    for run in _runs(dataset_id, lists):
        workspace.save_run(run)
        RunNotes(workspace).store(run.id, "note", "Ann")
    Pins(workspace).pin(run.id)
    result = Explanation(0.5, (), 5, 7).to_json()
    explain(workspace, ExplanationRequest(run.id, queries[0], docs[0], "term"), result=result)
    for query in queries[:3]:
        Notes(workspace).store(dataset_id, query, ["tag", "other"], "note", "Ann")
    for at, doc in enumerate(docs):
        Corrections(workspace).correct(dataset_id, (queries[0], doc), float(at % 2), "Ann")
        LabelNotes(workspace).store(dataset_id, (queries[0], doc), "Ann", "note")
    _judge(workspace, dataset_id, [(query, doc) for query in queries for doc in docs])
    plan = {
        "systems": [FIRST_STAGE, run.id], "metric": "dcg@10", "top": 1.0, "threshold": 1.0,
        "seed": 1, "judge": StoredJudges(workspace).rows(dataset_id)[0].id, "share": 0.2,
    }  # fmt: skip
    plan_id = LabelPlans(workspace).begin(dataset_id, plan, "guidelines")
    Corrections(workspace).correct(dataset_id, (queries[1], docs[0]), 1.0, "Ann")
    LabelPlans(workspace).resume(plan_id, "Ann")
    workspace.set_setting(
        assumptions.SCENARIOS, assumptions.write_scenarios({"one": Assumptions(elasticity=0.25)})
    )
    own = [replace(each, key=f"own-{at}") for at, each in enumerate(shipped_prices()[:3])]
    workspace.set_setting(import_workspace.PRICES, to_json(own))
    workspace.set_setting(import_workspace.TARGETS, shipped_targets().to_json())
    return workspace


def _runs(dataset_id: str, lists: list[tuple[str, list[str], list[float]]]) -> Iterator[Run]:
    yield run_from_ranking("run", dataset_id, Ranking.from_lists(lists), "run.trec")
    turned = [(query, docs[::-1], scores) for query, docs, scores in lists[:-2]]
    run = run_from_ranking("service", dataset_id, Ranking.from_lists(turned), "x")
    failed = run.queries[:2].assign(
        query_id=[query for query, *_ in lists[-2:]], state=["skipped", "failed"], pairs=0,
        reason="answered 400",
    )  # fmt: skip
    queries = pd.concat([run.queries, failed], ignore_index=True)
    calls = pd.DataFrame(
        {
            "query_id": queries["query_id"], "start_s": np.arange(len(queries), dtype=float),
            "ms": 20.0, "attempts": 1, "retry_wait_ms": 0.0, "status": 200, "server_ms": 1.0,
            "queue_ms": 1.0, "billed": '{"search_units": 1}', "error": "error", "note": "note",
        }
    )  # fmt: skip
    yield replace(
        run,
        id="service",
        reranker="endpoint",
        settings=create("endpoint", {"key_variable": "none"}).settings,
        machine={"cpu": "cpu", "python": "3", "threads": 2, "versions": {"numpy": "2"}},
        queries=queries.assign(latency_ms=np.where(queries["state"] == "done", 20.0, np.nan)),
        calls=calls,
        measured=Measured(
            pairs=56, seconds=2.0, cpu_seconds=0.1, serial_queries=14, serial_seconds=0.3
        ),
        load_ms=12.0,
    )


def _judge(workspace: Workspace, dataset_id: str, pairs: list[tuple[str, str]]) -> None:
    answer = {"grade": 1.0, "reason": "reason", "error": "", "kind": ""}
    lost = {"grade": None, "reason": "", "error": "error", "kind": "timeout"}
    graded = [
        grade(pair) | said | {"answers": json.dumps([said, said])}
        for at, pair in enumerate(pairs)
        for said in [lost if at % 9 == 8 else answer]
    ]
    usage = {"calls": 2, "billed": {"prompt_tokens": 9, "dollars": 0.5}}
    settings = Judge({"key_variable": "none", "repeats": 2}).settings
    judge(workspace, dataset_id, "judge", graded, usage, settings=settings, pairs=pairs)


def worked(workspace: Workspace) -> None:
    """Store failed jobs, a judge and an explanation, which no file contains."""
    (data,), queue, owner = workspace.datasets(), Queue(workspace), Owner()
    error = StoreError("The service answered: {answer}", remedy="Ask {whom}.", answer="a", whom="b")
    settings = create("endpoint", {"key_variable": "none"}).settings
    job_id = submit(workspace, data.id, "lost job", reranker="endpoint", settings=settings)
    queue.claim(owner)
    queue.finish(job_id, owner, "failed", error)
    pairs = [each.pair for each in Corrections(workspace).all(data.id)]
    settings = Judge({"key_variable": "none"}).settings
    judge(workspace, data.id, "failed", error=error, settings=settings, pairs=pairs)
    explain(workspace, ExplanationRequest("service", *pairs[0], "sentence"), error=error)


Change = Callable[[bytes], bytes]


def _json_marked(name: str, content: bytes, markup: Markup) -> Iterator[list[Change]]:
    """Yield lists of changes to a JSON part; the first accepted one of each is made: the long or
    the short markup at a place, for items of a list together; then one more key in an object."""
    read = json.loads(content)
    places = {place for place, text in _texts(read) if not markup.within(text)}
    for place in sorted(places):
        # One run has a reranker that pages know, and the plan has existing systems.
        if not f"{name}{place}".startswith(_KNOWN) and not place.startswith(".plan.settings"):
            yield [_changed(place, make) for make in (markup.text, markup.short)]
    objects = {place for place, _text in _texts(read, keys=True) if place.endswith("*")}
    for place in sorted(objects):
        yield [_changed(place, markup.short)]


def _changed(place: str, make: Callable[[str], str]) -> Change:
    return lambda now: json.dumps(_with(json.loads(now), "", place, make)).encode()


def _texts(value: Any, place: str = "", *, keys: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of every text in JSON, also of JSON in a text. keys: also of keys."""
    if isinstance(value, dict):
        for key, each in value.items():
            if keys:
                yield f"{place}.*", key
            yield from _texts(each, f"{place}.{key}", keys=keys)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, f"{place}[]", keys=keys)
    elif isinstance(value, str):
        inner = json_in(value)
        yield from [(place, value)] if inner is None else _texts(inner, f"{place}!", keys=keys)


def _with(value: Any, place: str, wanted: str, make: Callable[[str], str]) -> Any:
    """Return the JSON with other texts at a place, or one more key in the objects there."""
    if not wanted.startswith(place):
        return value
    if isinstance(value, dict):
        changed = {key: _with(each, f"{place}.{key}", wanted, make) for key, each in value.items()}
        if f"{place}.*" == wanted and changed:
            changed[make(wanted)] = next(iter(changed.values()))
        return changed
    if isinstance(value, list):
        return [_with(each, f"{place}[]", wanted, make) for each in value]
    if isinstance(value, str):
        inner = json_in(value)
        if inner is not None:
            return json.dumps(_with(inner, f"{place}!", wanted, make))
        return make(wanted) if place == wanted else value
    return value


def json_in(text: str) -> Any:
    """Return the object or list in a JSON text; None for any other text."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except ValueError:
        return None


def _table_marked(name: str, content: bytes, markup: Markup) -> Iterator[list[Change]]:
    """Yield a list of changes per text column of a table; the first accepted one is made."""
    table = pq.read_table(io.BytesIO(content))

    def changed(column: str, now: bytes) -> bytes:
        table = pq.read_table(io.BytesIO(now))
        make = partial(markup.short, f"{name} {column}")
        texts = [text and _other(text, markup, make) for text in table[column].to_pylist()]
        target = io.BytesIO()
        at = table.column_names.index(column)
        pq.write_table(table.set_column(at, column, pa.array(texts, table[column].type)), target)
        return target.getvalue()

    for each in table.schema:
        if pa.types.is_string(each.type) or pa.types.is_large_string(each.type):
            texts = [text for text in table[each.name].to_pylist() if text]
            if texts and not all(map(markup.within, texts)):
                yield [partial(changed, each.name)]


def _other(
    text: str, markup: Markup, make: Callable[[], str], kept: Collection[str] = _WORDS
) -> str:
    """Return a text that replaces another one; in JSON, all its texts."""
    inner = json_in(text)
    return make() if inner is None else json.dumps(_marked(inner, markup, kept))


def _marked(value: Any, markup: Markup, kept: Collection[str] = _WORDS) -> Any:
    """Return JSON with every text replaced that rankdash did not choose, and one more key in each
    object."""
    if isinstance(value, dict):
        made = {key: _marked(each, markup, kept) for key, each in value.items()}
        for key in _TEMPLATES & made.keys():
            made[key] = made[key].replace("{", "{{").replace("}", "}}")
        return made | {markup.short("key"): markup.short("value")}
    if isinstance(value, list):
        return [_marked(each, markup, kept) for each in value]
    if isinstance(value, str) and value not in kept:
        return markup.text("value")
    return value


def rows_marked(workspace: Workspace, markup: Markup) -> Workspace:
    """Add rows of the kinds that no file contains, and replace the texts of columns without markup,
    except ids, times, folders and words that rankdash chose."""
    worked(workspace)
    kept = {*_WORDS, *(each.name for each in workspace.root.glob("*/*"))}
    with workspace.database.writing() as db:
        columns = text_columns(db)
        for table, names in columns.items():
            kept |= {row[0] for row in db.execute(f"SELECT {names[0]} FROM {table}")}
        for table, names in columns.items():
            for name in names:
                texts = [text for (text,) in db.execute(f"SELECT DISTINCT {name} FROM {table}")]
                if any(text and markup.within(text) for text in texts):
                    continue
                make = partial(markup.text, f"{table}.{name}")
                for text in texts:
                    if text and text.rpartition("/")[2] not in kept and not _is_time(text):
                        new = _other(text, markup, make, kept)
                        db.execute(f"UPDATE {table} SET {name} = ? WHERE {name} = ?", (new, text))
        # The stored schema is a text too. It is restored, or the workspace would count as damaged.
        keep_schema(db)
    return workspace


def text_columns(db: sqlite3.Connection) -> dict[str, list[str]]:
    """Return table → its columns of text, in order, of tables that have any."""
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    found = {
        table: [
            column["name"]
            for column in db.execute(f"PRAGMA table_info({table})").fetchall()
            if column["type"] == "TEXT"
        ]
        for (table,) in tables
    }
    return {table: names for table, names in found.items() if names}


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
