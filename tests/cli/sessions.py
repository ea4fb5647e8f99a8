"""Console sessions: command lines with all their output, repeated by tests.

Each file `tests/approved/cli/*.txt` is a session. The start of a line gives its kind:

    # the reason for the next commands
    & en            the sample `en` (or `zh`), reduced: a folder with two rankings; or `old-new`;
                    or `graded`
    > own.toml      a file of the lines with | below it; \\e is the escape character
    % up 1*14 4*6   labels.qrels and up.trec: 14 queries with their relevant document at rank 1, 6
                    with it at rank 4; 0 if the ranking lacks the query
    t times.json …  timings: for each of these queries a latency, or its state, such as failed
    $ rankdash …    a command, with `< FILE` for its standard input, and then
                    `| grep TEXT`, `| head N` or `| json PATH …` for a part of its output
    $ cat FILE      also `text FILE` of HTML, `ls`, `cp`, `ln`, `rm` and `sed` of the shell,
                    `zip FILE NAME=FILE …`, and `cut FILES`, which appends half a line to the first
                    of them
    $ robot PLAN N  labels the next N pairs by the sample's labels, all but the fourth
    $ keep FILE N   stores a file as the data set N of the workspace
    $ set NAME=TEXT an environment variable
    $ service …     the next answers of the service at SERVER: `ok*3`, `500`, `html`; or settings:
                    `key=TEXT`, `says=LINE/LINE|…` or `uncounted`; restarts the count of requests
    $ requests      the number of requests to the service, their keys, and the last prompt

The output follows, indented: `!` before standard error, `→` before an exit code other than 0.
Values that depend on a machine or a day are masked: durations, the version, digits after the
seventh.
"""

import io
import json
import re
import shlex
import subprocess
import zipfile
from collections.abc import Callable
from functools import cache
from itertools import count, cycle, takewhile
from pathlib import Path
from pprint import pformat
from typing import Any
from xml.etree import ElementTree

import pytest

from rankdash import __version__
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.workspace import Workspace
from tests.cli import drawn
from tests.rerankers.loopback import Server, running
from tests.sets import ROOT
from tests.surfaces.reading import Page

SAMPLES = {name: ROOT / "assets" / "samples" / folder
           for name, folder in (("en", "helpcentre"), ("zh", "helpcentre_zh"))}  # fmt: skip
QUERIES, DEPTH = 12, 20
_DIGITS = re.compile(r"-?\d+\.\d{11,}(?:e-?\d+)?")
_OF_A_CLOCK = re.compile("! (Ready after|Latency of single queries|Throughput:) ")
_TAKEN = re.compile(r"[\d.,]+ (ms|kB|MB|GB|pairs per second|s(?= left|\b))")


def play(session: str, run: Callable, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the session with the present output of its commands. The current folder is empty."""
    with running() as server:
        return _play(session, run, monkeypatch, server)


def _play(session: str, run: Callable, monkeypatch: pytest.MonkeyPatch, server: Server) -> str:
    lines = [line for line in session.splitlines() if line[:1].strip()]
    written: list[str] = []
    for at, line in enumerate(lines):
        if line.startswith("#") and written:
            written.append("")
        written.append(line)
        shown = _done(line, lines[at + 1 :], run, monkeypatch, server)
        written += [f"    {each}".rstrip() for each in shown]
    return "\n".join(written) + "\n"


def _done(
    line: str, below: list[str], run: Callable, patch: pytest.MonkeyPatch, server: Server
) -> list[str]:
    name, *rest = line[2:].replace("\\e", "\x1b").split(" ")
    match line[0]:
        case "&":
            sample(name)
        case ">":
            content = takewhile(lambda each: each.startswith("|"), below)
            place = _place(" ".join([name, *rest]))
            place.write_text("".join(f"{each[2:]}\n" for each in content).replace("\\e", "\x1b"))
        case "%":
            ranks(Path(), name, [int(each) for each in _times(rest)])
        case "t":
            Path(name).write_text(json.dumps([*map(_timed, count(), _times(rest))]))
        case "$":
            typed = " ".join([name, *rest]).replace("SERVER", server.url)
            shown = _command(typed, run, patch, server)
            return [each.replace(server.url[7:], "SERVER") for each in shown]
    return []


def _place(name: str) -> Path:
    place = Path(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _times(texts: list[str]) -> list[str]:
    """Return 2, 2, 2, 1 for "2*3 1"."""
    parts = [text.partition("*") for text in texts]
    return [each for each, _star, times in parts for _ in range(int(times or 1))]


def _timed(query: int, text: str) -> dict[str, object]:
    latency = float(text) if text[0].isdigit() else None
    state = text if latency is None else "done"
    return {"query_id": f"q{query}", "state": state, "latency_ms": latency}


def _serve(server: Server, asked: str) -> None:
    name, _equals, text = asked.partition("=")
    match name:
        case "key":
            server.key = text
        case "says":
            texts = cycle(text.replace("/", "\n").split("|"))
            server.reply = (lambda _body: (next(texts), {})) if text else None
        case "uncounted":
            server.counts_tokens = False
        case "ok" | "html":
            server.fail({} if name == "ok" else {"html": True})
        case status:
            server.fail({"status": int(status)})


def _requests(server: Server) -> list[str]:
    keys = sorted({headers.get("Authorization", "no key") for _, headers, _ in server.seen})
    body = server.seen[-1][2] if server.seen else {}
    prompt = body["messages"][-1]["content"].splitlines() if "messages" in body else []
    return [f"{len(server.seen)}: {', '.join(keys)}", *prompt]


def _command(
    typed: str, run: Callable, monkeypatch: pytest.MonkeyPatch, server: Server
) -> list[str]:
    words, *filters = _split(shlex.split(typed), "|")
    words, *stdin = _split(words, "<")
    match words:
        case ["ls"]:
            return [" ".join(sorted(each.name for each in Path().iterdir()))]
        case ["cp" | "rm" | "ln" | "sed", *_, name]:
            _place(name)
            subprocess.run(typed, shell=True, check=True)
            return []
        case ["cut", name]:
            file = min(Path().glob(name))
            content = file.read_bytes()
            file.write_bytes(content + content.splitlines()[-1][:30])
            return []
        case ["zip", name, *parts]:
            with zipfile.ZipFile(_place(name), "w") as archive:
                for inside, _equals, file in (part.partition("=") for part in parts):
                    archive.writestr(inside, Path(file).read_bytes())
            return []
        case ["keep", file, name]:
            loaded = load(sources_from_path(Path(file)), name=name)
            Workspace.open().save_dataset(loaded.dataset, report_json=loaded.report.to_json())
            return []
        case ["set", setting]:
            monkeypatch.setenv(*setting.split("=", 1))
            return []
        case ["service", *asked]:
            server.seen.clear()
            for each in _times(asked):
                _serve(server, each)
            return []
        case ["requests"]:
            code, out, err = 0, "\n".join(_requests(server)), ""
        case ["robot", plan, number]:
            pairs = drawn.next_pairs(run, Path(plan), int(number))
            answers = drawn.answers(Path(), pairs, cannot_tell=3)
            assert run("label", "add", plan, answers).code == 0
            return []
        case ["cat", name]:
            code, out, err = 0, Path(name).read_text("utf-8-sig"), ""
            if name.lower().endswith(".xml"):
                ElementTree.fromstring(out)
        case ["text", name]:
            texts = Page(Path(name).read_text("utf-8")).texts.values()
            code, out, err = 0, re.sub(r"\s*\n\s*", "\n", "\n".join(texts)).strip(), ""
        case ["rankdash", *arguments]:
            content = Path(stdin[0][0]).read_bytes() if stdin else b""
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
            done = run(*arguments)
            code, out, err = done.code, done.out, done.err
            if arguments[0] in ("rerank", "merge", "report", "label", "judge"):
                err = _TAKEN.sub(r"# \1", err)
    if code == 0 and any(name == "json" for name, *_arguments in filters):
        err = ""
    shown = [*_lines(out, filters), *(f"! {mask(each)}" for each in err.splitlines())]
    for name, *arguments in filters:
        if name == "grep":
            shown = [each for each in shown if arguments[0] in each]
        elif name == "head":
            shown = shown[: int(arguments[0])]
    return [*(each for each in shown if not _OF_A_CLOCK.match(each)), *([f"→ {code}"] * bool(code))]


def _split(words: list[str], at: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == at:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _lines(out: str, filters: list[list[str]]) -> list[str]:
    out = mask(out)
    if out[:1] not in "{[" or not out:
        return out.splitlines()
    try:
        found = json.loads(out)
    except json.JSONDecodeError:
        # The output is JSON lines, or a text in brackets.
        return out.splitlines()
    paths = [path for name, *paths in filters if name == "json" for path in paths]
    if not paths:
        return pformat(found, width=120, sort_dicts=False).splitlines()
    return [f"{path}: {json.dumps(_at(found, path), ensure_ascii=False)}" for path in paths]


def _at(value: Any, path: str) -> Any:
    for key in path.split("/"):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def mask(text: str) -> str:
    """Mask the values that depend on a machine, a day or a version."""
    text = _DIGITS.sub(lambda found: f"{float(found[0]):.7g}", text)
    text = re.sub(rf"{re.escape(str(Path.cwd()))}/?", "", text)
    text = re.sub(r"[A-Z][a-z]{2} \d{1,2}, 20\d\d|20\d\d年\d+月\d+日", "DATE", text)
    text = re.sub(r"(?<=datasets/)\w{16}-\w{8}|(?<=trash/)\w{16}-\w{8}", "ID", text)
    text = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", "TIME", text)
    return text.replace(__version__, "VERSION")


def ranks(folder: Path, name: str, places: list[int]) -> None:
    """Write labels of one relevant document per query, and a ranking with it at these ranks."""
    labels = "".join(f"q{query} 0 good 1\n" for query in range(len(places)))
    (folder / "labels.qrels").write_text(labels)
    rows = [
        f"q{query} Q0 {'good' if rank == place else f'bad{rank}'} {rank} {20 - rank} {name}\n"
        for query, place in enumerate(places)
        for rank in range(1, place + 1)
    ]
    (folder / f"{name}.trec").write_text("".join(rows))


def sample(name: str) -> None:
    """Write a sample. `none`: English without labels; `old-new`: two rankings only; `graded`: two
    rankings of all queries, labels of 30 and of 9 of them, and grades."""
    if name == "old-new":
        drawn.rankings(Path(), 40)
        return
    if name == "graded":
        drawn.rankings(Path())
        drawn.graded(Path())
        return
    for file, content in cut("en" if name == "none" else name).items():
        if name == "none" and file == "qrels.tsv":
            continue
        _place(f"{name}/{file}").write_text(content, encoding="utf-8")


@cache
def cut(name: str) -> dict[str, str]:
    """Return the files of the first queries of a sample, with a ranking that has the relevant
    documents of most queries first, and grades of a judge that errs on every fifth pair."""

    def lines(file: str) -> list[str]:
        return (SAMPLES[name] / file).read_text("utf-8").splitlines(keepends=True)

    queries = lines("queries.jsonl")[:QUERIES]
    keep = [json.loads(line)["_id"] for line in queries]
    head, *labels = lines("qrels.tsv")
    labels = [line for line in labels if line.split()[0] in keep]
    known = {(q, d): int(label) for q, d, label in map(str.split, labels)}
    ranked = [line.split()[:3] for line in lines("initial.trec")]
    lists = {query: [doc for q, _, doc in ranked if q == query][:DEPTH] for query in keep}
    better = {
        query: sorted(docs, key=lambda doc: -known.get((query, doc), 0))
        if place % 4
        else docs[::-1]
        for place, (query, docs) in enumerate(lists.items())
    }
    pairs = [(query, doc) for query, docs in lists.items() for doc in docs[:10]]
    grades = "".join(
        f"{query},{doc},{min(known.get((query, doc), 0) + (place % 5 == 0), 3)}\n"
        for place, (query, doc) in enumerate(pairs)
    )
    return {
        "queries.jsonl": "".join(queries),
        "corpus.jsonl": "".join(lines("corpus.jsonl")),
        "qrels.tsv": head + "".join(labels),
        "initial.trec": _trec(lists),
        "../better.trec": _trec(better),
        "../grades.csv": f"query_id,doc_id,grade\n{grades}",
    }


def _trec(lists: dict[str, list[str]]) -> str:
    return "".join(
        f"{query} Q0 {doc} {rank} {DEPTH - rank} x\n"
        for query, docs in lists.items()
        for rank, doc in enumerate(docs, start=1)
    )
