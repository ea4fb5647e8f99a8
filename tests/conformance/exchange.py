"""The data that rankdash and the other tools exchange, and the programs of the other tools."""

import csv
import json
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import rankdash as rd
from tests.conformance.drive import TOOLS

DRIVE = Path(__file__).with_name("drive.py")
# The folders of virtual environments with the other tools, separated as in PATH.
VARIABLE = "RANKDASH_TOOLS"
FORMATS = ("trec", "beir", "rank-llm", "mteb", "ranx")
TOLERANCE = 1e-9
PATIENCE_SECONDS = 600
QUERIES = 12
DOCUMENTS = 30
RANKED = 8
SUBJECTS = ("returns", 'Größe "L"', "配送时间", "invoice, VAT", "gift cards", "naïve café")


def _data() -> dict[str, Any]:
    """Return queries, documents, qrels and run. Scores differ, labels are 0 to 3, some labelled
    documents are not ranked, some ranked ones have no label, and one query finds nothing."""
    queries = {f"q{n}": f"how about {SUBJECTS[n % 6]} number {n}?" for n in range(1, QUERIES + 1)}
    documents = {
        f"doc-{n}": f"{SUBJECTS[n % 6]}: paragraph {n} of the help pages."
        for n in range(1, DOCUMENTS + 1)
    }
    names = list(documents)
    qrels, run = {}, {}
    for n, query in enumerate(queries, 1):
        ranked = [names[(n * 7 + step * 11) % DOCUMENTS] for step in range(RANKED)]
        run[query] = {doc: 9.5 - place * 0.75 - n / 64 for place, doc in enumerate(ranked)}
        others = [name for name in names if name not in ranked]
        labels = {
            doc: (3, 0, 2, 1)[(n + place) % 4] for place, doc in enumerate(ranked) if place % 3 < 2
        }
        labels[others[n]] = 1 + n % 3
        if n == QUERIES:
            labels = {ranked[0]: 0, others[0]: 2}
        qrels[query] = labels
    return {"queries": queries, "documents": documents, "qrels": qrels, "run": run}


DATA = _data()


@cache
def _packages(python: Path) -> dict[str, str]:
    """Return the packages of a virtual environment, each with its version."""
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.name: d.version for d in m.distributions()}))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, check=True)
    return {_plain(name): version for name, version in json.loads(done.stdout).items()}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def python_of(tool: str) -> Path | None:
    """Return the Python that has the package of a tool; None if the tool is not installed."""
    folders = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    programs = (Path(each) / "bin" / "python" for each in folders)
    return next((each for each in programs if _plain(TOOLS[tool][1]) in _packages(each)), None)


def _write_ours(folder: Path) -> None:
    """Write the data with rankdash, in the formats of other tools, into FOLDER/ours."""
    for name in ("ours", "theirs"):
        (folder / name).mkdir()
    source = folder / "source"
    (source / "qrels").mkdir(parents=True)
    for name, part in (("corpus", "documents"), ("queries", "queries")):
        rows = ({"_id": each, "text": text} for each, text in DATA[part].items())
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (source / f"{name}.jsonl").write_text(lines, "utf-8")
    (source / "qrels.json").write_text(json.dumps(DATA["qrels"]), "utf-8")
    (source / "initial.json").write_text(json.dumps(DATA["run"]), "utf-8")
    with (folder / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("query", "doc_id", "label"))
        rows.writerows(
            (DATA["queries"][query], doc, label)
            for query, labels in DATA["qrels"].items()
            for doc, label in labels.items()
        )
    data = rd.read(source)
    for name in FORMATS:
        rd.export(data, [], folder / "ours" / name, name)
    (folder / "data.json").write_text(json.dumps(DATA), "utf-8")


@dataclass(frozen=True)
class Read:
    """Files of a tool that rankdash reads, and the parts that they contain.

    joined: other files that are read with them, such as labels. columns: of `rd.read`. ids: the
    kinds of ids in the files; queries or documents without an id are compared by their text.
    """

    files: tuple[str, ...]
    parts: tuple[str, ...] = ("labels", "ranking")
    joined: tuple[str, ...] = ()
    ids: tuple[str, ...] = ("query", "document")
    columns: Mapping[str, str] | None = None


# Tools that know relevant documents, without grades.
BINARY = ("sentence-transformers", "LlamaIndex", "Ragas", "AutoRAG")
# Tools that round their means, with the number of digits.
ROUNDED = {"MTEB": 5, "BEIR": 5, "FlagEmbedding": 5}
LABELS = ("source/qrels.json",)
TEXTS = ("queries", "documents")
ALL = ("labels", "ranking", *TEXTS)
RUN = ("ranking",)
READS: dict[str, tuple[Read, ...]] = {
    "ranx": (Read(("qrels.json", "initial.json")),),
    "pytrec_eval": (Read(("qrels.json", "initial.json")),),
    "trectools": (Read(("initial.trec",), RUN, LABELS),),
    "ir_datasets": (Read(("docs.jsonl", "queries.jsonl", "qrels.jsonl"), ("labels", *TEXTS)),),
    "Hugging Face datasets": (
        Read(("corpus.parquet", "queries.parquet", "qrels/test.csv"), ("labels", *TEXTS)),
    ),
    "scikit-learn": (Read(("test.txt",), ("grades",), columns={"score": "feature 1"}),),
    "sentence-transformers": (
        Read(("evaluator.json",), ("relevant", *TEXTS)),
        Read(("initial.jsonl",), ("order", "queries"), LABELS),
    ),
    "MTEB": (Read(("initial.json",), RUN, LABELS),),
    "BEIR": (Read(("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "initial.trec"), ALL),),
    "rank_llm": (
        Read(("initial.jsonl",), ("ranking", *TEXTS), LABELS),
        Read(("initial.trec",), RUN, LABELS),
    ),
    "FlagEmbedding": (
        Read(("initial.json",), RUN, LABELS),
        Read(("corpus.jsonl", "test_queries.jsonl", "test_qrels.jsonl"), ("labels", *TEXTS)),
    ),
    "PyTerrier": (Read(("initial.trec",), RUN, LABELS),),
    "Pyserini": (Read(("initial.trec",), RUN, LABELS),),
    "LlamaIndex": (
        Read(("dataset.json",), ("relevant", *TEXTS)),
        Read(("results.jsonl",), ("relevant", "order", "queries"), ids=("document",)),
    ),
    "Ragas": (Read(("samples.jsonl",), ("relevant", "order"), ids=()),),
    "Haystack": (Read(("report.json",), ("relevant", "order"), ids=("document",)),),
    "LangChain": (Read(("examples.jsonl",), ("relevant", "order", *TEXTS)),),
    "DeepEval": (Read(("goldens.json",), ("relevant", "order"), ids=()),),
    "AutoRAG": (
        Read(("qa.parquet", "corpus.parquet"), ("relevant", *TEXTS)),
        Read(("qa.parquet", "corpus.parquet", "0.parquet"), ("relevant", "order")),
    ),
    "OpenInference (Phoenix)": (
        Read(("spans.jsonl",), ("ranking", *TEXTS), ("pairs.csv",), ids=("document",)),
    ),
    "rerankers": (Read(("results.jsonl",), ("order", *TEXTS), ("pairs.csv",), ("document",)),),
    "TruLens": (Read(("golden.json",), ("labels",), ids=("query",)),),
}


# tool → the reason for its known problems.
FAILS: dict[str, str] = {}


@dataclass
class Outcome:
    """The result for one tool.

    read, written: the files in either direction. values: the number of compared values.
    difference: the largest. problems: everything that differs; empty if the tool passes.
    """

    tool: str
    version: str = ""
    read: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    values: int = 0
    difference: float = 0.0
    problems: list[str] = field(default_factory=list)


def parts_of(data: rd.Dataset, ids: tuple[str, ...] = ("query", "document")) -> dict[str, Any]:
    """Return the labels, ranking and texts of a data set. Without ids, texts identify them."""
    tables = {"query": data.queries.set_index("query_id"), "document": data.documents}
    tables["document"] = tables["document"].set_index("doc_id")
    texts = {
        kind: {name: text for name, text in table["text"].items() if isinstance(text, str)}
        for kind, table in tables.items()
    }

    def named(kind: str, name: str) -> str:
        return name if kind in ids else texts[kind].get(name, name)

    labels: dict[str, dict[str, float]] = {}
    for query, doc, label in data.qrels.itertuples(index=False):
        labels.setdefault(named("query", query), {})[named("document", doc)] = label
    ranking: dict[str, dict[str, float]] = {}
    for query in data.candidates.query_ids:
        docs, scores = data.candidates.documents_of(query)
        pairs = zip(docs, scores.tolist(), strict=True)
        ranking[named("query", query)] = {named("document", doc): score for doc, score in pairs}
    return {
        "labels": labels,
        "relevant": {
            query: {doc for doc, label in each.items() if label > 0}
            for query, each in labels.items()
        },
        "ranking": ranking,
        "grades": [
            [labels.get(query, {}).get(doc, 0.0) for doc in scores]
            for query, scores in ranking.items()
        ],
        "order": {query: list(scores) for query, scores in ranking.items()},
        "queries": {named("query", name): text for name, text in texts["query"].items()},
        "documents": {named("document", name): text for name, text in texts["document"].items()},
    }


def expected(ids: tuple[str, ...]) -> dict[str, Any]:
    """Return the parts of the data as `parts_of` returns them."""

    def named(kind: str, name: str) -> str:
        return name if kind in ids else DATA["queries" if kind == "query" else "documents"][name]

    def nested(part: str) -> dict[str, dict[str, float]]:
        return {
            named("query", query): {named("document", doc): value for doc, value in each.items()}
            for query, each in DATA[part].items()
        }

    labels, ranking = nested("qrels"), nested("run")
    return {
        "labels": labels,
        "relevant": {
            query: {doc for doc, label in each.items() if label > 0}
            for query, each in labels.items()
        },
        "ranking": ranking,
        "grades": [
            [labels[query].get(doc, 0.0) for doc in each] for query, each in ranking.items()
        ],
        "order": {query: list(each) for query, each in ranking.items()},
        "queries": {named("query", name): text for name, text in DATA["queries"].items()},
        "documents": {named("document", name): text for name, text in DATA["documents"].items()},
    }


def differing(part: str, found: Any, due: Any) -> str:
    """Return how a part differs from the data, or "". Files without a corpus have fewer texts."""
    if part == "ranking":
        if {name: list(each) for name, each in found.items()} != {
            name: list(each) for name, each in due.items()
        }:
            return f"another order of {part}"
        worst = max(abs(found[name][doc] - due[name][doc]) for name in due for doc in due[name])
        return f"scores differ by {worst:g}" if worst > TOLERANCE else ""
    if part in TEXTS:
        missing = {name for name, text in found.items() if due.get(name) != text}
        return f"{len(missing)} other {part}" if missing or not found else ""
    return "" if found == due else f"other {part}"


def _read_theirs(folder: Path, tool: str, outcome: Outcome) -> None:
    for number, each in enumerate(READS.get(tool, ())):
        place = folder / f"read-{number}"
        place.mkdir()
        for name in (*each.files, *each.joined):
            source = folder / ("theirs" if name in each.files else "") / name
            target = place / (name if name in each.files else Path(name).name)
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
        names = ", ".join(f"`{name}`" for name in each.files)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = rd.read(place, columns=each.columns)
        except rd.RankdashError as error:
            outcome.problems.append(f"reading {names}: {str(error).splitlines()[0]}")
            continue
        found, due = parts_of(data, each.ids), expected(each.ids)
        wrong = [differing(part, found[part], due[part]) for part in each.parts]
        outcome.problems += [f"reading {names}: {difference}" for difference in filter(None, wrong)]
        outcome.read.append(f"{names}: {', '.join(each.parts)}")


PARTS = {"qrels": "labels", "run": "ranking", "ranked": "order"}


def _compare_read(answer: Mapping[str, Any], outcome: Outcome) -> None:
    due = expected(("query", "document"))
    for name, found in answer.items():
        part = PARTS.get(name, name)
        difference = differing(part, found, due[part])
        if difference:
            outcome.problems.append(f"the tool read {difference}")
        outcome.written.append(part)


def _compare_values(tool: str, values: Mapping[str, Any], folder: Path, outcome: Outcome) -> None:
    """Compare the values of a tool, each of a query or, without one, a mean."""
    place = folder / "values"
    place.mkdir()
    labels = {
        query: {doc: int(label > 0) if tool in BINARY else label for doc, label in each.items()}
        for query, each in DATA["qrels"].items()
    }
    (place / "qrels.json").write_text(json.dumps(labels))
    (place / "initial.json").write_text(json.dumps(DATA["run"]))
    evaluation = rd.evaluate(rd.read(place), None, list(values))
    wide = evaluation.wide()
    for name, found in values.items():
        for query, value in found.items():
            ours = float(wide.loc[query, name] if query else evaluation.mean(name))
            difference = abs(value - ours)
            if tool in ROUNDED:
                difference = min(difference, abs(value - round(ours, ROUNDED[tool])))
            outcome.values += 1
            outcome.difference = max(outcome.difference, difference)
            if not difference <= TOLERANCE:
                outcome.problems.append(f"{name} of {query or 'all'}: {value} there, {ours} here")


def exchange(tool: str, python: Path, folder: Path) -> Outcome:
    """Exchange files with a tool, in both directions, and compare its values."""
    _write_ours(folder)
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    done = subprocess.run(
        [python, DRIVE, tool, folder],
        env=offline, cwd=folder, timeout=PATIENCE_SECONDS,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    outcome = Outcome(tool, _packages(python)[_plain(TOOLS[tool][1])])
    if done.returncode:
        outcome.problems.append(f"the tool failed: {done.stderr.strip().splitlines()[-1]}")
        return outcome
    answer = json.loads((folder / "answer.json").read_text("utf-8"))
    _read_theirs(folder, tool, outcome)
    _compare_read(answer["read"], outcome)
    if answer["values"]:
        _compare_values(tool, answer["values"], folder, outcome)
    return outcome
