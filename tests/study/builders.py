"""Small comparisons, and parts of a study as text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.metrics import Conventions
from rankdash.core.readers import Source
from rankdash.core.readers.loading import Loaded, load
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs.combining import CombinedRun, fuse
from rankdash.core.study.cache import Cache, Key
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from rankdash.core.study.unjudged.system_bounds import UnjudgedComparison
from rankdash.core.value.prices import ListedPrice, Price

LETTERS = "abcdefgh"
Lists = Mapping[str, Sequence[str]]
FIELDS = ("name", "queries", "documents", "qrels", "candidates", "first_stage")


def changed(data: Dataset, **tables: object) -> Dataset:
    """Return the data set with another name, tables or candidates."""
    return Dataset(**({name: getattr(data, name) for name in FIELDS} | tables))


def ranking(lists: Lists) -> Ranking:
    """Return each list in its order, with scores that fall by one."""
    return Ranking.from_lists(
        (query, list(docs), np.arange(len(docs), 0, -1.0)) for query, docs in lists.items()
    )


def lists_of(ranked: Ranking) -> dict[str, list[str]]:
    """Return query → its documents in order."""
    return {query: [*ranked.documents_of(query)[0]] for query in ranked.query_ids}


def data_of(
    candidates: Ranking | Lists,
    labels: Mapping[str, Mapping[str, float]],
    docs: Iterable[str] = LETTERS,
    texts: Mapping[str, str] | None = None,
    **columns: object,
) -> Dataset:
    """Return queries and documents whose text is their id. columns: of the queries."""
    made = candidates if isinstance(candidates, Ranking) else ranking(candidates)
    ids, docs = list(made.query_ids), list(docs)
    rows = [(query, doc, label) for query, own in labels.items() for doc, label in own.items()]
    said = [(texts or {}).get(doc, doc) for doc in docs]
    return Dataset(
        "set",
        pd.DataFrame({"query_id": ids, "text": ids, **columns}),
        pd.DataFrame({"doc_id": docs, "title": "", "text": said}),
        pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]),
        made,
    )


def study_on(data: Dataset, *runs: Run, **given: object) -> Study:
    """Return a study of the runs against the first stage; given: fields of the study."""
    fields_ = {"baseline": FIRST_STAGE, "challengers": tuple(each.id for each in runs)} | given
    return Study(data, systems_of(data, runs), **fields_)


def small(
    first: Lists,
    *runs: Lists,
    labels: Mapping[str, Mapping[str, float]],
    failed: tuple[str, ...] = (),
    texts: Mapping[str, str] | None = None,
    **given: object,
) -> Study:
    """Return a study of lists of letters by query. failed: queries on which every run failed."""
    data = data_of(first, labels, texts=texts)
    lost = pd.DataFrame({"query_id": failed, "state": "failed", "reason": "time-out"})
    made = []
    for place, lists in enumerate(runs):
        run = run_from_ranking(f"run {place}", data.id, ranking(lists), "run.trec")
        made.append(replace(run, queries=pd.concat([run.queries, lost], ignore_index=True)))
    return study_on(data, *made, **given)


def keeping(kept: dict[Key, Any] | None = None) -> Cache:
    """Return a cache that stores all parts, as on pages. kept: its dictionary."""
    kept = {} if kept is None else kept

    def keep(key: Key, make: Callable[[], Any]) -> Any:
        if key not in kept:
            kept[key] = make()
        return kept[key]

    return keep


def without(run: Run, queries: Iterable[str], state: str = "failed") -> Run:
    """Return the run with no result for these queries."""
    lost = run.queries["query_id"].isin(list(queries))
    states = run.queries.assign(state=np.where(lost, state, run.queries["state"]))
    return replace(run, ranking=run.ranking.without(list(queries)), queries=states)


def timed(run: Run, ms: float | Sequence[float], **columns: object) -> Run:
    return replace(run, queries=run.queries.assign(latency_ms=ms, **columns))


def together(data: Dataset, *parts: Run, name: str = "", first_stage: bool = False) -> Run:
    """Return a fused run. first_stage: include the first stage in its parts."""
    found = [CombinedRun(each.name, each.ranking, each) for each in parts]
    if first_stage:
        found.insert(0, CombinedRun("first stage", data.candidates))
    return fuse(data, found, Fusion(), name or " + ".join(each.name for each in parts))


def own_price(
    amount: float, unit: str = "search", currency: str = "USD", **more: object
) -> ListedPrice:
    price = Price(amount, unit, currency, **more)
    return ListedPrice("own", "Us", "", price, "our invoice", date(2026, 11, 1))


# Comparisons in which each query has one relevant document, at a rank.

DOCS = 10
FLAT, TOP = [3] * DOCS, [1] * DOCS
_load = cache(lambda text, retrieval: load([Source("rows.csv", text)], retrieval=retrieval))


def rows(
    relevant: Sequence[int],
    *,
    labelled: Mapping[int, int] | None = None,
    kinds: Sequence[str] = (),
    scores: bool = True,
    texts: bool = True,
    retrieval: str | None = None,
) -> Loaded:
    """Return a query for each rank of its relevant document. labelled: query → the number of its
    first documents with a label (all). kinds: of the queries."""
    lines = []
    for q, rank in enumerate(relevant):
        for d in range(DOCS):
            known = d < (labelled or {}).get(q, DOCS)
            line = {
                "query_id": f"q{q}",
                "query": f"text {q}" if texts else None,
                "doc_id": f"d{d}",
                "document": f"document {d}" if texts else None,
                "label": str(int(d + 1 == rank)) if known else "",
                "score": str(DOCS - d) if scores else None,
                "kind": kinds[q] if kinds else None,
            }
            lines.append({name: each for name, each in line.items() if each is not None})
    head = ",".join(lines[0])
    body = "".join(",".join(line.values()) + "\n" for line in lines)
    return _load(f"{head}\n{body}".encode(), retrieval)


def moved(loaded: Loaded, ranks: Sequence[int], name: str = "new", **given: object) -> Run:
    """Return a run with the relevant document of each query moved to a rank."""
    relevant = {
        row.query_id: row.doc_id for row in loaded.dataset.qrels.itertuples() if row.label > 0
    }
    lists = {}
    for q, rank in enumerate(ranks):
        best = relevant[f"q{q}"]
        others = [f"d{d}" for d in range(DOCS) if f"d{d}" != best]
        lists[f"q{q}"] = [*others[: rank - 1], best, *others[rank - 1 :]]
    made = run_from_ranking(name, loaded.dataset.id, ranking(lists), f"{name}.trec")
    return replace(made, **given)


def reversed_(loaded: Loaded) -> Run:
    """Return a run with every list of the first stage reversed."""
    lists = {query: docs[::-1] for query, docs in lists_of(loaded.dataset.candidates).items()}
    return run_from_ranking("new", loaded.dataset.id, ranking(lists), "new.trec")


def with_finding(loaded: Loaded, *findings: Finding) -> Study:
    """Return a gain on data with additional findings of the check."""
    report = replace(loaded.report, findings=(*loaded.report.findings, *findings))
    return compared(loaded, moved(loaded, TOP), check=report)


# These tests do not depend on the last digit of an interval.
FEW = StatisticsSettings(resamples=1000)


def compared(loaded: Loaded, *runs: Run, **given: object) -> Study:
    usual = {"metric": "mrr", "others": (), "check": loaded.report, "statistics": FEW}
    return study_on(loaded.dataset, *runs, **(usual | given))


def on(before: Sequence[int], after: Sequence[int], kinds: Sequence[str] = (), **given) -> Study:
    """Return a study from ranks of the one relevant document of each query, before and after."""
    loaded = rows(before, kinds=kinds)
    return compared(loaded, moved(loaded, after), **given)


# Parts of a study as text.


def content(value: Any) -> Any:
    """Return the content of a value without the settings it was made with, to compare by `==`."""
    match value:
        case StatisticsSettings() | Conventions():
            return ""
        case Study():
            return value.spec
        case pd.DataFrame():
            return repr((value.columns, value.index.tolist(), value.to_numpy(object).tolist()))
        case pd.Series():
            return repr((value.index.tolist(), value.tolist()))
        case np.ndarray():
            return repr(value.tolist())
        case np.generic():
            return value.item()
        case Mapping():
            return [(content(key), content(each)) for key, each in value.items()]
        case list() | tuple():
            return [content(each) for each in value]
        case UnjudgedComparison():
            return content(value.bounds)
    if is_dataclass(value):
        return [content(getattr(value, each.name)) for each in fields(value) if each.init]
    return value.to_pylist() if hasattr(value, "to_pylist") else repr(value)


def six(number: float) -> str:
    """Return a number with six digits, and 0 for a rounding error."""
    return f"{round(number, 9) + 0.0:.6g}"


def shown(value: Any) -> str:
    """Return a value as one line: its fields by name, numbers in six digits."""
    match value:
        case np.generic():
            return shown(value.item())
        case float():
            return six(value)
        case pd.Series():
            return shown(value.to_dict())
        case pd.DataFrame():
            return shown(value.to_dict("list"))
        case Mapping():
            return ", ".join(f"{key} {shown(each)}" for key, each in value.items())
        case list() | tuple() | np.ndarray():
            return f"[{', '.join(map(shown, value))}]"
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.init and each.name[0] != "_"]
        own = {name: getattr(value, name) for name in names}
        return f"{type(value).__name__}({shown(own)})"
    return str(value)
