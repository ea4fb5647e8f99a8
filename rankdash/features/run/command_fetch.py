"""`fetch`: fetch rankings from search engines into a folder of a data set."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.rules import settings_of
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run, documents_of
from rankdash.core.readers import Source
from rankdash.core.readers.queries import queries_in
from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.search.endpoint import Endpoint, Hit, presets
from rankdash.core.search.fetching import Answer, churns, fetch, fetched, requests_in, trial
from rankdash.core.words.queries import query_count
from rankdash.features.run.command_retrieve import without_first_stage
from rankdash.kit.commands.arguments import (
    DONE,
    INCOMPLETE,
    NAMES,
    Parser,
    UsageError,
    add_label_rules,
    add_match,
    chosen_settings,
)
from rankdash.kit.commands.output import aligned, or_null, printable, write, write_ranking
from rankdash.kit.commands.rankings import names_of
from rankdash.kit.commands.timings import write_timings

_SENDING = settings_of(Policy)
_REPORT_SECONDS = 5.0
_JOURNALS = ".journal"
# The names of the other files in the output folder.
_OTHER_FILES = ("corpus", "fetch", "qrels", "queries")
_SHOWN_HITS = 10
_SHOWN_ANSWER = 1_000
_SHOWN_TEXT = 40
# With a value at a path in fewer of the hits, the path is probably wrong.
_FEW = 0.05
_CHURN_DEPTH = 10
_BLANK = re.compile(r"\s")


def add(parser: Parser) -> None:
    parser.description = (
        "Fetch rankings from search engines. An endpoint is a JSON file with the request and the "
        "paths to the hits; --preset writes an example. The output folder is a data set: queries, "
        "documents with texts, one TREC run for each endpoint, the state and latency of each "
        "query, and fetch.json with counts and failures. The same command resumes a stopped "
        "fetch: answered queries are not requested again, failed ones are. Keys are read from "
        "environment variables and are never written. Exit code 1 if a query failed."
    )
    parser.add_argument("endpoints", nargs="*", metavar="ENDPOINT", help="the endpoints, as JSON")
    parser.option(
        "--queries",
        "FILE",
        "the queries: a table with a column query and optionally query_id, or a text with one "
        "query per line",
    )
    parser.several(
        "--data", "PATH", f"a data set with the queries and, if available, labels{NAMES}"
    )
    parser.number("--depth", "documents per query (default: %(default)s)", kind=int, default=100)
    parser.option("--out", "FOLDER", "the folder to write; it must be empty, or of the same fetch")
    parser.number(
        "--repeat",
        "fetch N times, and report how much the top 10 changes from one fetch to the next; the "
        "run is the first fetch (default: %(default)s)",
        kind=int,
        default=1,
    )
    parser.option(
        "--test", "QUERY", "send one request; show it, the answer and its hits; write nothing"
    )
    parser.flag("--presets", "list the presets")
    parser.option("--preset", "NAME", "print the endpoint of a search engine, to edit")
    parser.settings(_SENDING)
    add_label_rules(parser)
    add_match(parser)
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    if arguments.presets:
        rows = [(name, endpoint.name) for name, endpoint in presets().items()]
        sys.stdout.write(aligned(rows, left=2))
        return DONE
    if arguments.preset is not None:
        sys.stdout.write(_preset(arguments.preset))
        return DONE
    if not arguments.endpoints:
        raise UsageError("the following arguments are required: ENDPOINT. See: rankdash fetch -h")
    if arguments.depth < 1 or arguments.repeat < 1:
        raise UsageError("--depth and --repeat must be 1 or more")
    policy = Policy(**chosen_settings(arguments, _SENDING))
    endpoints = {
        name: Endpoint.of(_text(path), str(path))
        for name, path in _named(arguments.endpoints).items()
    }
    if arguments.test is not None:
        tested = [_test(each, arguments, policy) for each in endpoints.values()]
        return DONE if all(tested) else INCOMPLETE
    if (arguments.queries is None) == (not arguments.data):
        raise UsageError("one of --queries and --data is required")
    if arguments.out is None:
        raise UsageError("the following arguments are required: --out")
    return _fetch(arguments, endpoints, policy)


def _named(files: Sequence[str]) -> dict[str, Path]:
    """Return the name of each endpoint in the output folder → its file. Raises DataError for a name
    of another file in the folder."""
    named: dict[str, Path] = {}
    # Some file systems ignore case.
    used = {*_OTHER_FILES}
    for long_name, path in names_of(files).items():
        name = long_name.replace("/", "-")
        if name.casefold() in used:
            raise DataError(
                "The name {name!r} of the endpoint is already used in the output folder.",
                remedy="Rename the file of the endpoint.",
                file=str(path),
                name=name,
            )
        used.add(name.casefold())
        named[name] = path
    return named


def _preset(name: str) -> str:
    known = presets()
    if name not in known:
        raise UsageError(f"--preset: {name!r} is not one of {', '.join(known)}")
    return json.dumps(known[name].as_dict(), indent=2, ensure_ascii=False) + "\n"


def _text(path: Path) -> str:
    data = Source.from_path(path).data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise DataError(
            "The file is not UTF-8.", remedy="Save it as UTF-8.", file=str(path)
        ) from problem


def _test(endpoint: Endpoint, arguments: argparse.Namespace, policy: Policy) -> bool:
    """Print a test call. Return whether it succeeded."""
    shown = trial(endpoint, arguments.test, arguments.depth, policy)
    lines = [shown.request, ""]
    if shown.status or shown.answer:
        answer = shown.answer[:_SHOWN_ANSWER]
        lines += [f"Status: {shown.status}", answer, ""]
    if shown.reason:
        lines += [f"Failed: {shown.reason}"]
    else:
        lines += [f"Hits: {len(shown.hits)}, in {shown.latency_ms:.0f} ms"]
    if shown.repeats:
        lines += [f"Repeated documents, not used: {shown.repeats}"]
    lines += [f"Warning: {each}" for each in _without_values(endpoint, shown.hits)]
    text = "\n".join(printable(line) for each in lines for line in each.splitlines() or [""])
    sys.stdout.write(f"{text}\n")
    rows = [
        (str(rank), hit.doc_id, f"{hit.score:g}", hit.title[:_SHOWN_TEXT], _start(hit))
        for rank, hit in enumerate(shown.hits[:_SHOWN_HITS], 1)
    ]
    if rows:
        sys.stdout.write(aligned([("rank", "id", "score", "title", "text"), *rows], left=5))
    return not shown.reason


def _start(hit: Hit) -> str:
    return (hit.text or "")[:_SHOWN_TEXT]


def _without_values(endpoint: Endpoint, hits: Sequence[Hit]) -> Iterator[str]:
    """Yield a sentence for each path of the endpoint at which almost no hit has a value."""
    values = {
        "title": (endpoint.title, [bool(hit.title) for hit in hits]),
        "text": (endpoint.text, [bool(hit.text) for hit in hits]),
        "score": (endpoint.score, [np.isfinite(hit.score) for hit in hits]),
    }
    for field, (path, present) in values.items():
        if path and hits and np.mean(present) < _FEW:
            yield (
                f"{sum(present):,} of {len(hits):,} hits have a value at {printable(path)}, the "
                f"path of {field} in the endpoint."
            )


@dataclass(frozen=True)
class _Fetched:
    """The fetches of an endpoint. run: of the first one. journals: one for each fetch."""

    name: str
    endpoint: Endpoint
    run: Run
    fetches: list[tuple[Answer, ...]]
    journals: list[Path]


def _fetch(arguments: argparse.Namespace, endpoints: dict[str, Endpoint], policy: Policy) -> int:
    dataset = _dataset(arguments)
    folder = _folder(arguments.out)
    texts = {str(query): text for query, text in dataset.query_text().items()}
    results = []
    for name, endpoint in endpoints.items():
        fetches = []
        journals = [
            folder / _JOURNALS / f"{name}.{number}.jsonl"
            for number in range(1, arguments.repeat + 1)
        ]
        for number, journal in enumerate(journals, 1):
            label = f"{name}, fetch {number}" if arguments.repeat > 1 else name
            report = _progress(label, texts)
            fetches.append(
                fetch(endpoint, texts, arguments.depth, policy, journal=journal, on_answers=report)
            )
        run = fetched(dataset, endpoint, fetches[0], arguments.depth, name)
        results.append(_Fetched(name, endpoint, run, fetches, journals))
    _write(folder, dataset, results, arguments.depth)
    complete = [_report(each) for each in results]
    return DONE if all(complete) else INCOMPLETE


def _dataset(arguments: argparse.Namespace) -> Dataset:
    """Return the data set, or a data set of only queries."""
    if arguments.queries is not None:
        path = Path(arguments.queries)
        queries = queries_in(Source.from_path(path))
        documents = pd.DataFrame({"doc_id": [], "title": [], "text": []})
        labels = pd.DataFrame({"query_id": [], "doc_id": [], "label": []})
        return Dataset(path.stem, queries, documents, labels, Ranking.from_lists([]))
    return without_first_stage(arguments)


def _folder(out: str) -> Path:
    """Return the folder, with a folder for journals. Raises DataError if it contains other
    files."""
    folder = Path(out)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _JOURNALS).is_dir():
        raise DataError(
            "The folder contains other files.",
            remedy="Use a new folder for --out.",
            file=out,
        )
    (folder / _JOURNALS).mkdir(parents=True, exist_ok=True)
    return folder


def _progress(name: str, queries: Any) -> Callable[[Sequence[Answer]], None]:
    """Return a function that reports the progress on standard error."""
    count, last = [0], [time.monotonic()]

    def told(answers: Sequence[Answer]) -> None:
        count[0] += len(answers)
        if time.monotonic() - last[0] >= _REPORT_SECONDS:
            last[0] = time.monotonic()
            sys.stderr.write(f"{printable(name)}: {count[0]:,} of {len(queries):,} queries\n")

    return told


def _report(result: _Fetched) -> bool:
    """Write the counts and failures to standard error. Return whether all queries are done."""
    answers = result.fetches[0]
    failed = [each for each in answers if each.state == "failed"]
    for each in failed:
        sys.stderr.write(f"failed: query {printable(each.query_id)}: {printable(each.reason)}\n")
    empty = sum(each.state == "done" and not each.hits for each in answers)
    without = f", {empty:,} of them without a hit" if empty else ""
    sys.stderr.write(
        f"{printable(result.name)}: {query_count(len(answers) - len(failed))} fetched{without}, "
        f"{len(failed):,} failed."
    )
    changes = churns(result.fetches, _CHURN_DEPTH)
    if changes:
        mean = sum(each.mean for each in changes) / len(changes)
        sys.stderr.write(f" Top {_CHURN_DEPTH} that changes from fetch to fetch: {mean:.1%}.")
    sys.stderr.write("\n")
    hits = [hit for each in answers for hit in each.hits]
    for line in _without_values(result.endpoint, hits):
        sys.stderr.write(f"warning: {printable(result.name)}: {line}\n")
    return not any(each.state == "failed" for fetch_ in result.fetches for each in fetch_)


# The files of the folder.


def _write(folder: Path, dataset: Dataset, results: Sequence[_Fetched], depth: int) -> None:
    documents = documents_of([each.run for each in results])
    whole = dataset if documents is None else dataset.with_documents(documents)
    _write_lines(folder / "queries.jsonl", _queries(dataset))
    _write_lines(folder / "corpus.jsonl", _documents(whole))
    if len(dataset.qrels):
        from rankdash.kit.html.tables import qrels_bytes

        write(qrels_bytes(dataset.qrels), folder / "qrels.txt")
    for each in results:
        _write_run(each.run, folder / each.name)
        write_timings(each.run, folder / f"{each.name}.timings.json")
    content = {
        "depth": depth,
        "queries": len(dataset.queries),
        "endpoints": [_summary(each) for each in results],
    }
    write(
        (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode(), folder / "fetch.json"
    )


def _write_lines(target: Path, rows: Iterator[Mapping[Any, Any]]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    write("".join(lines).encode("utf-8", "replace"), target)


def _queries(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for row in dataset.queries.to_dict("records"):
        query, text = row.pop("query_id"), row.pop("text")
        more = {name: value for name, value in row.items() if isinstance(value, str)}
        named = {"metadata": more} if more else {}
        yield {"_id": query, "text": text if isinstance(text, str) else "", **named}


def _documents(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for row in dataset.documents.itertuples(index=False):
        text = row.text if isinstance(row.text, str) else ""
        if text or row.title:
            yield {"_id": row.doc_id, "title": row.title, "text": text}


def _write_run(run: Run, target: Path) -> None:
    """Write a TREC run, or JSON lines if an id contains a blank. A run without rows has no
    file."""
    if not len(run.ranking):
        return
    ids = [*run.ranking.query_ids, *run.ranking.doc_ids]
    if any(map(_BLANK.search, ids)):
        rows = iter(run.ranking.frame().to_dict("records"))
        _write_lines(target.with_name(f"{target.name}.jsonl"), rows)
    else:
        write_ranking(run.ranking, target.with_name(f"{target.name}.trec"), run.name)


def _summary(result: _Fetched) -> dict[str, Any]:
    """Return the entry of an endpoint in fetch.json."""
    answers = result.fetches[0]
    done = [each for each in answers if each.state == "done"]
    times = [each.latency_ms for each in done]
    last = max(each.stat().st_mtime for each in result.journals if each.exists())
    changes = churns(result.fetches, _CHURN_DEPTH)
    return {
        "name": result.name,
        "endpoint": result.endpoint.as_dict(),
        "request": result.endpoint.request_hash,
        "date": datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds"),
        "done": len(done),
        "without_hits": sum(not each.hits for each in done),
        "repeated_documents": sum(each.repeats for each in done),
        "failed": [
            {"query_id": each.query_id, "reason": each.reason}
            for each in answers
            if each.state == "failed"
        ],
        "requests": sum(map(requests_in, result.journals)),
        **{
            f"p{share}_ms": or_null(float(np.percentile(times, share)) if times else np.nan)
            for share in (50, 95)
        },
        "churn": [
            {"depth": _CHURN_DEPTH, "mean": or_null(each.mean), "changed": or_null(each.changed)}
            for each in changes
        ],
    }
