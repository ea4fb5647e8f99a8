"""Data sets, rankings and results in the formats of other tools; `FORMATS` lists them all.

Every format writes ids unchanged. A study with an id, a label or a text that a format cannot carry
is refused with an error that names it. Scores are written as in TREC files: equal or missing ones
are decreased just enough, so that every tool reads the same order.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.files import write
from rankdash.core.base.text import defused
from rankdash.core.data.arrays import arrow_integers
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, documents_of, text_array
from rankdash.core.study.cache import part
from rankdash.core.study.labelling import only_estimates
from rankdash.core.study.leaderboard import ranked_names
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.kit.html.tables import (
    compact_markdown,
    falling,
    markdown_safe,
    qrels_bytes,
    refuse_blanks,
    run_bytes,
)

_SLUG = 40
# The start of a cell that `defused` may change.
_FORMULA = r"^'*[=+@\-\t\r\n＝＋－＠]"


@dataclass(frozen=True)
class Format:
    """A format of another tool.

    name: of the option and the argument. title: the tool, on screen. purpose: the content, on
    screen. check: raises DataError if the format cannot carry the study. make: returns path →
    content. file: the only path; "" if the format is a folder. kind: the media type of the file.
    """

    name: str
    title: str
    purpose: str
    check: Callable[[Study], None]
    make: Callable[[Study], Mapping[str, bytes]]
    file: str = ""
    kind: str = "application/zip"

    @property
    def folder(self) -> bool:
        """True if the format consists of several files."""
        return not self.file

    def files(self, study: Study) -> dict[str, bytes]:
        """Return path → content. Raises DataError if the format cannot carry the study."""
        self.check(study)
        return dict(self.make(study))

    def save(self, study: Study, target: Path) -> None:
        """Write the file, or the files into a new or empty folder. Raises DataError if the folder
        contains files, and what `files` raises."""
        files = self.files(study)
        if not self.folder:
            (content,) = files.values()
            write(target, content)
            return
        if target.is_file() or (target.is_dir() and any(target.iterdir())):
            raise DataError(
                "The folder {folder} is not empty.",
                remedy="Choose a new or empty folder: the format {name} consists of several files.",
                folder=str(target),
                name=self.name,
            )
        for path, content in files.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            write(target / path, content)


def format_of(name: str) -> Format:
    """Return the format of a name. Raises SpecError for an unknown one."""
    if name not in FORMATS:
        raise SpecError(
            "Unknown format {name!r}.",
            remedy="Formats: {formats}.",
            name=name,
            formats=", ".join(FORMATS),
        )
    return FORMATS[name]


def shown_ranking(study: Study, system: str) -> Ranking:
    """Return the ranking with ties in the order that the metrics used."""
    ranking, rules = study.ranking(system), study.conventions
    return ranking.with_ties(rules.order_rule(ranking.ties), rules.score_precision)


def slug(text: str) -> str:
    """Return a part of a file name for any operating system: lowercase letters, digits and
    dashes."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_SLUG].strip("-") or "system"


def numbered(study: Study, system: str) -> str:
    """Return the start of a system's file name; a number makes it unique."""
    return f"{study.chosen.index(system) + 1:02}-{slug(study.name(system))}"


# Parts of several formats.


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _json(value: object) -> bytes:
    return _encoded(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def _lines(rows: Iterable[object]) -> bytes:
    return _encoded("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def _whole(label: float) -> int | float:
    return int(label) if label.is_integer() else label


def _labels(study: Study) -> dict[str, dict[str, int | float]]:
    """Return query → document → label."""
    labels: dict[str, dict[str, int | float]] = {}
    for query, document, label in study.dataset.qrels.itertuples(index=False):
        labels.setdefault(query, {})[document] = _whole(label)
    return labels


def _scores(study: Study, system: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each query with document → score, best first."""
    ranking = shown_ranking(study, system)
    for query in ranking.query_ids:
        documents, scores = ranking.documents_of(query)
        yield query, dict(zip(documents, falling(scores).tolist(), strict=True))


def _with_documents(study: Study) -> Dataset:
    """Return the data set with the documents that only a run has."""
    runs = (study.run(system) for system in study.chosen)
    documents = documents_of(run for run in runs if run is not None)
    return study.dataset if documents is None else study.dataset.with_documents(documents)


def _refuse_fractions(study: Study) -> None:
    qrels = study.dataset.qrels
    fractional = qrels[qrels["label"] % 1 != 0]
    if len(fractional):
        row = fractional.iloc[0]
        raise DataError(
            "The label {label} of document {doc!r} for query {query!r} is not a whole number, and "
            "the format allows only whole numbers.",
            remedy="Choose another format, such as quepid or trec, or round the labels yourself.",
            label=f"{row['label']:g}",
            doc=row["doc_id"],
            query=row["query_id"],
        )


def _matching(ids: Any, pattern: str) -> list[str]:
    """Return the ids, as pandas or Arrow text, that match a regular expression."""
    texts = text_array(ids) if isinstance(ids, pd.Series) else ids
    matches: list[str] = texts.filter(pc.match_substring_regex(texts, pattern)).to_pylist()
    return matches


def _refuse_breaks(ids: pd.Series[str]) -> None:
    for name in _matching(ids, r"[\r\n]")[:1]:
        raise DataError(
            "The ID {name!r} contains a line break, which the format does not allow.",
            remedy="Use an ID without line breaks.",
            name=name,
        )


def _refuse_textless(data: Dataset, queries: Any, documents: Sequence[Any] = ()) -> None:
    """Raise DataError if one of the queries or documents, as Arrow text, has no text."""
    remedy = "Add the texts to the data set, or choose another format."
    texts = data.query_text()
    for name in _outside(queries, texts.index[texts.str.strip() != ""].to_series())[:1]:
        template = "The query {name!r} has no text, which the format needs."
        raise DataError(template, remedy=remedy, name=name)
    if not documents:
        return
    known = data.documents["doc_id"]
    if data.textless:
        known = known[~known.isin(data.textless)]
    for name in (name for each in documents for name in _outside(each, known)[:1]):
        template = "The document {name!r} has no text, which the format needs."
        raise DataError(template, remedy=remedy, name=name)


def _outside(ids: Any, known: pd.Series[str]) -> list[str]:
    """Return the ids, as Arrow text, that are not in `known`."""
    found = pc.is_in(ids, text_array(known).cast(ids.type))
    outside: list[str] = ids.filter(pc.invert(found)).to_pylist()
    return outside


def _ranked(study: Study) -> list[Any]:
    """Return the ranked documents of each system as Arrow text, each once."""
    rankings = (study.ranking(system) for system in study.chosen)
    return [each.documents.take(arrow_integers(np.unique(each.docs))) for each in rankings]


def _labelled(study: Study) -> Any:
    """Return the labelled queries as Arrow text."""
    return study.dataset.labels["query_id"].texts


# TREC.


def _check_trec(study: Study) -> None:
    labels = study.dataset.labels
    documents = [labels["doc_id"].texts, *_ranked(study)]
    queries = [
        _labelled(study),
        *(text_array(study.ranking(each).query_ids) for each in study.chosen),
    ]
    for kind, ids in (("query", queries), ("document", documents)):
        for each in ids:
            refuse_blanks(_matching(each, r"^$|[ \t\n\r\v\f]"), kind)


def _trec(study: Study) -> dict[str, bytes]:
    """Return the labels and a run for each system."""
    return {"qrels.txt": qrels_bytes(study.dataset.qrels)} | {
        f"{numbered(study, system)}.trec": _run_lines(study, system) for system in study.chosen
    }


def _run_lines(study: Study, system: str) -> bytes:
    return run_bytes(shown_ranking(study, system), slug(study.name(system)))


# BEIR: corpus.jsonl, queries.jsonl, qrels/test.tsv, and TREC runs, which its loader ignores. A
# first stage that rankdash made is not written, because a reader could not recognise it.


def _check_beir(study: Study) -> None:
    _check_trec(study)
    _refuse_fractions(study)
    _refuse_breaks(study.dataset.queries["query_id"])
    _refuse_breaks(study.dataset.documents["doc_id"])


def _beir(study: Study) -> dict[str, bytes]:
    data = _with_documents(study)
    documents = data.documents.fillna({"text": ""}).itertuples(index=False)
    corpus = ({"_id": doc, "title": title, "text": text} for doc, title, text in documents)
    queries = data.queries.fillna({"text": ""}).drop(columns=["query_id", "text"])
    facts = queries.astype(object).where(queries.notna(), None).to_numpy().tolist()
    texts = zip(data.query_text().items(), facts, strict=True)
    return {
        "corpus.jsonl": _lines(corpus),
        "queries.jsonl": _lines(
            {"_id": query, "text": text, "metadata": _known(zip(queries, about, strict=True))}
            for (query, text), about in texts
        ),
        "qrels/test.tsv": _table(
            ("query-id", "corpus-id", "score"),
            (
                (query, doc, _whole(label))
                for query, doc, label in data.qrels.itertuples(index=False)
            ),
            "\t",
        ),
        **_runs_beside(study),
    }


def _known(values: Iterable[tuple[Any, object]]) -> dict[str, object]:
    return {str(name): value for name, value in values if value is not None}


def _runs_beside(study: Study) -> dict[str, bytes]:
    files = {}
    for system in study.chosen:
        if system != FIRST_STAGE:
            files[f"runs/{numbered(study, system)}.trec"] = _run_lines(study, system)
        elif study.dataset.first_stage == "given":
            files["initial.trec"] = _run_lines(study, system)
    return files


def _table(head: Iterable[str], rows: Iterable[Iterable[object]], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return _encoded(out.getvalue())


# rank_llm: requests as JSON lines, a query with its candidates and their texts on each line.


def _check_rank_llm(study: Study) -> None:
    data = _with_documents(study)
    for system in study.chosen:
        _refuse_textless(data, text_array(study.ranking(system).query_ids))
    _refuse_textless(data, _labelled(study)[:0], _ranked(study))


def _rank_llm(study: Study) -> dict[str, bytes]:
    data = _with_documents(study)
    queries, table = data.query_text(), data.documents.fillna({"text": ""})
    contents = {
        doc: {"title": title, "contents": text} if title else {"contents": text}
        for doc, title, text in table.itertuples(index=False)
    }
    return {
        f"{numbered(study, system)}.jsonl": _lines(
            {
                "query": {"text": queries[query], "qid": query},
                "candidates": [
                    {"docid": doc, "score": score, "doc": contents[doc]}
                    for doc, score in scores.items()
                ],
            }
            for query, scores in _scores(study, system)
        )
        for system in study.chosen
    }


# MTEB: predictions of a retrieval task, from which `convert_to_reranking` takes candidates.


def _mteb(study: Study) -> dict[str, bytes]:
    task = re.sub(r"[^\w.-]+", "-", study.dataset.name).strip("-.") or "data"
    return {
        f"{numbered(study, system)}/{task}_predictions.json": _json(
            {
                "mteb_model_meta": {"model_name": study.name(system), "revision": None},
                "default": {"test": dict(_scores(study, system))},
            }
        )
        for system in study.chosen
    }


# ranx: labels and runs as nested dictionaries.


def _ranx(study: Study) -> dict[str, bytes]:
    return {"qrels.json": _json(_labels(study))} | {
        f"{numbered(study, system)}.json": _json(dict(_scores(study, system)))
        for system in study.chosen
    }


# Elasticsearch and OpenSearch: a request of the ranking evaluation API. All queries use one
# template, which users replace by their search.

_TEMPLATE = "search"


def _check_rank_eval(study: Study) -> None:
    _refuse_fractions(study)
    _refuse_textless(study.dataset, _labelled(study))


def _rank_eval(study: Study) -> dict[str, bytes]:
    index = re.sub(r'[\s"*\\<>|,/?#:]+', "-", study.dataset.name).strip("-_+.").lower() or "data"
    texts = study.dataset.query_text()
    search = {"query": {"multi_match": {"query": "{{query}}", "fields": ["title", "text"]}}}
    requests = [
        {
            "id": query,
            "template_id": _TEMPLATE,
            "params": {"query": texts[query]},
            "ratings": [
                {"_index": index, "_id": doc, "rating": label} for doc, label in labels.items()
            ],
        }
        for query, labels in _labels(study).items()
    ]
    metric = {"dcg": {"k": study.cutoff or 10, "normalize": True}}
    templates = [{"id": _TEMPLATE, "template": {"inline": search}}]
    return {
        "rank_eval.json": _json({"templates": templates, "requests": requests, "metric": metric})
    }


# Quepid: ratings of a case, which it matches by the text of the query.


def _check_quepid(study: Study) -> None:
    _refuse_textless(study.dataset, _labelled(study))
    texts = study.dataset.query_text().reindex(_labelled(study).to_pylist())
    documents = study.dataset.qrels["doc_id"]
    _refuse_breaks(documents)
    for each in (texts, documents):
        _refuse_formulas(_matching(each, _FORMULA))
    repeated = texts[texts.duplicated(keep=False)]
    if len(repeated):
        raise DataError(
            "The queries {first!r} and {second!r} have the same text, by which the format "
            "identifies a query.",
            remedy="Use one ID for each text, or choose another format.",
            first=repeated.index[0],
            second=repeated.index[repeated == repeated.iloc[0]][1],
        )


def _refuse_formulas(cells: Iterable[str]) -> None:
    for cell in cells:
        if defused(cell) != cell:
            raise DataError(
                "A spreadsheet could run {cell!r} as a formula, and CSV cannot mark it as text.",
                remedy="Choose a format in JSON, such as rank-eval.",
                cell=cell,
            )


def _quepid(study: Study) -> dict[str, bytes]:
    texts = study.dataset.query_text()
    rows = (
        (texts[query], doc, label)
        for query, labels in _labels(study).items()
        for doc, label in labels.items()
    )
    return {"ratings.csv": _table(("query", "docid", "rating"), rows)}


# The results in a model card of Hugging Face: metadata for programs, and a table.


def _check_model_card(study: Study) -> None:
    if only_estimates(study):
        raise DataError(
            "The labels are a sample, so the systems have no exact values for a model card.",
            remedy="Label the missing documents, or export the report with its estimates.",
        )


def _model_card(study: Study) -> dict[str, bytes]:
    comparison, names = study.comparison, ranked_names(study)
    models = [_model(study, system) for system in study.challengers or (study.baseline,)]
    sentences = (
        comparison.verdict(system, study.measure, names).sentence for system in study.challengers
    )
    text = "".join(
        (
            "---\nmodel-index:\n",
            *(line for model in models for line in _yaml_item(model, "")),
            "---\n\n",
            f"## {markdown_safe(study.dataset.name)}\n\n",
            *compact_markdown(comparison, names),
            *(f"\n- {markdown_safe(sentence)}" for sentence in sentences),
            "\n",
        )
    )
    return {"model_card.md": _encoded(text)}


def _model(study: Study, system: str) -> dict[str, object]:
    evaluation = study.evaluations[system]
    metrics = [
        {"type": measure.spec.replace("@", "_at_"), "value": float(mean), "name": measure.title}
        for measure in evaluation.measures
        if pd.notna(mean := evaluation.mean(measure))
    ]
    result = {
        "task": {"type": "text-ranking", "name": "Text Ranking"},
        "dataset": {"name": study.dataset.name, "type": slug(study.dataset.name)},
        "metrics": metrics,
    }
    return {"name": study.name(system), "results": [result]}


def _yaml_item(item: Mapping[str, object], indent: str) -> Iterator[str]:
    """Yield the lines of an item of a YAML list."""
    start = f"{indent}- "
    for name, value in item.items():
        yield from _yaml(name, value, start)
        start = f"{indent}  "


def _yaml(name: str, value: object, start: str) -> Iterator[str]:
    """Yield a name with its value; texts are quoted as in JSON, which YAML contains, without
    characters that begin a link, a picture or HTML in Markdown."""
    below = " " * len(start)
    if isinstance(value, Mapping):
        yield f"{start}{name}:\n"
        for inner, each in value.items():
            yield from _yaml(inner, each, f"{below}  ")
    elif isinstance(value, list):
        yield f"{start}{name}:\n"
        for each in value:
            yield from _yaml_item(each, below)
    else:
        plain = value
        if isinstance(value, str):
            plain = "".join(each if each.isprintable() else " " for each in value)
        quoted = json.dumps(plain, ensure_ascii=False)
        quoted = quoted.replace("<", r"\u003c").replace("[", r"\u005b")
        yield f"{start}{name}: {quoted}\n"


def _nothing(_study: Study) -> None:
    """Accept every study."""


_FORMATS = (
    Format("trec", "TREC", "The labels and the rankings, for trec_eval.", _check_trec, _trec),
    Format(
        "beir",
        "BEIR",
        "A folder with the documents, the queries, the labels and the rankings.",
        _check_beir,
        _beir,
    ),
    Format(
        "rank-llm",
        "rank_llm",
        "JSON lines for each ranking: every query with its candidates and their texts.",
        _check_rank_llm,
        _rank_llm,
    ),
    Format("mteb", "MTEB", "The predictions of each system.", _nothing, _mteb),
    Format("ranx", "ranx", "The labels and the rankings as JSON.", _refuse_fractions, _ranx),
    Format(
        "rank-eval",
        "Elasticsearch",
        "A request of the API _rank_eval with the labels. Replace its search by your own.",
        _check_rank_eval,
        _rank_eval,
        "rank_eval.json",
        "application/json",
    ),
    Format(
        "quepid",
        "Quepid",
        "The labels as ratings of a case, in CSV.",
        _check_quepid,
        _quepid,
        "ratings.csv",
        "text/csv",
    ),
    Format(
        "model-card",
        "Hugging Face",
        "The results for a model card: metadata in YAML, and a table in Markdown.",
        _check_model_card,
        _model_card,
        "model_card.md",
        "text/markdown",
    ),
)
FORMATS: Mapping[str, Format] = {each.name: each for each in _FORMATS}


@part("labels", "chosen")
def refusal(study: Study, name: str) -> DataError | None:
    """Return the error if the format cannot carry the study, or None."""
    try:
        FORMATS[name].check(study)
    except DataError as error:
        return error
    return None
