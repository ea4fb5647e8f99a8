"""Combination of parts to one `Parsed`: ids, labels, rankings and texts of all files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from rankdash.core.base.errors import DataError, Finding
from rankdash.core.data.arrays import alike, objects
from rankdash.core.data.ranking import Ranking, coded, text_array
from rankdash.core.readers.join.conflicts import (
    Conflict,
    choose_split,
    join_labels,
    ranking_of,
)
from rankdash.core.readers.join.parsed_file import (
    Pairs,
    Parsed,
    ParsedFile,
    ParsedTables,
    Scores,
    data_set_name,
    empty,
    noticed,
    texts,
)
from rankdash.core.readers.parse.limits import counted
from rankdash.core.readers.parse.source import stem_of

# Names of first stages, the most specific first.
_FIRST_STAGE_NAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"initial|首轮|初始|初排",
        r"first.?stage|1st.?stage|^first",
        r"candidates?",
        r"baseline",
        r"retriev|召回",
        r"bm.?25",
    )
)
_ONLY_FIRST_STAGE = re.compile(
    r"initial|(first|1st)[ ._-]?stage|candidates?|首轮|初始|初排", re.IGNORECASE
)
_RERANKED = re.compile(r"re.?rank|重排|精排", re.IGNORECASE)
_OTHER_FIRST_STAGE = (
    "To start from another ranking, load the files again and choose it under First-stage ranking; "
    "on the command line: rerank --first-stage NAME."
)
_EXAMPLES = 5


def identified(
    parts: Sequence[ParsedFile], beside: Sequence[ParsedFile] = ()
) -> tuple[list[ParsedFile], list[ParsedFile], list[Finding]]:
    """Choose one split of the parts and match texts with ids. Return the parts of this split and
    the parts in `beside` (rankings), all with common ids, and findings.

    Raises DataError if an id generated for a text already belongs to another text.
    """
    selected, findings = choose_split(parts)
    everything = [*selected, *beside]
    for key in KEYS:
        # Rankings without other parts are compared with each other.
        everything, notes = _with_ids(everything, key, strict=not parts)
        findings += notes
    return everything[: len(selected)], everything[len(selected) :], findings


def combine(
    parts: Sequence[ParsedFile],
    *,
    read: Sequence[ParsedFile],
    conflict: Conflict,
    worst_label: float | None = None,
    first_stage: str | None = None,
    start: Ranking | None = None,
    beside: Sequence[ParsedFile] = (),
) -> Parsed:
    """Join the parts of one call, as returned by `identified`.

    read: all parts that were read, including unused ones. worst_label: `worst` of `join_labels`.
    first_stage: the name of the first-stage ranking. start: the first-stage ranking itself; the
    rankings of the parts are then ignored. beside: parts of rankings; ids with a different text in
    them are reported.

    Raises DataError if no ranking has the name `first_stage`, or if labels conflict and `conflict`
    is "refuse".
    """
    selected = list(parts)
    labels, findings = join_labels(selected, conflict, worst_label)
    candidates, systems = start, dict[str, Ranking]()
    name, open_choice = "", tuple[str, ...]()
    outcomes: dict[str, pd.DataFrame] = {}
    if start is None:
        rankings = _rankings(selected)
        chosen, sure = _first_stage(rankings, first_stage, selected)
        systems = {each.name: each.ranking for each in rankings if each is not chosen}
        measured = {each.name: each.outcomes for each in rankings}
        outcomes = {name: measured[name] for name in systems if len(measured[name])}
        if chosen is not None:
            candidates, name = chosen.ranking, _file_name(chosen)
            outcomes |= {"": chosen.outcomes} if len(chosen.outcomes) else {}
            open_choice = () if sure else tuple(each.name for each in rankings)
            findings.append(_chosen(chosen, systems, sure=sure))
    ranked = [candidates, *systems.values()] if candidates is not None else list(systems.values())
    only_ids = all(
        table is None for part in selected for table in (part.queries, part.documents, part.pairs)
    )

    @cache
    def made() -> tuple[ParsedTables, list[Finding]]:
        return _tables(selected, labels, ranked)

    if not only_ids:
        findings += made()[1]
    findings += noticed(selected, beside)
    return Parsed(
        name=data_set_name(read),
        labels=labels,
        candidates=candidates,
        rankings=systems,
        findings=tuple(findings),
        formats={part.file: part.format for part in read},
        only_ids=only_ids,
        tables=lambda: made()[0],
        candidates_name=name,
        open_choice=open_choice,
        outcomes=outcomes,
    )


def _tables(
    parts: Sequence[ParsedFile], labels: Pairs, ranked: Sequence[Ranking]
) -> tuple[ParsedTables, list[Finding]]:
    qrels = labels.frame("label")[["query_id", "doc_id", "label"]]
    frames = [empty("query_id", "doc_id"), *(part.pairs for part in parts)]
    pairs = pd.concat(frames, ignore_index=True).drop_duplicates(ignore_index=True)
    queries, findings = _queries(parts, qrels, pairs, ranked)
    documents = _documents(parts, qrels, pairs, ranked)
    return ParsedTables(queries, documents, qrels, pairs), findings


class Ranked(NamedTuple):
    """A ranking of a file. outcomes: as in `Parsed`; None if the file contains none."""

    ranking: Ranking
    outcomes: pd.DataFrame | None


def rankings_in(parts: Sequence[ParsedFile], file: str) -> dict[str, Ranked]:
    """Return name → ranking of a file or an archive: its main ranking under "", others under their
    names; empty if it contains none."""
    exact = [part for part in parts if part.file == file]
    selected = exact or [part for part in parts if part.origin == file]
    rankings = _rankings(selected)
    if not rankings:
        return {}
    chosen = rankings[0] if exact else _first_stage(rankings, None, selected)[0] or rankings[0]
    others = {each.own: each for each in rankings if each is not chosen}
    return {
        name: Ranked(each.ranking, each.outcomes if each.part.outcomes else None)
        for name, each in {"": chosen, **others}.items()
    }


class _Named(NamedTuple):
    """A ranking with its name, its file and its scores."""

    name: str
    part: ParsedFile
    scores: Scores
    ranking: Ranking

    @property
    def own(self) -> str:
        """The name of the ranking in its file."""
        return self.scores.name if len(self.part.scores) > 1 else self.name

    @property
    def outcomes(self) -> pd.DataFrame:
        """The latencies and failures in its file: query_id, state, reason, latency_ms."""
        system = self.scores.name if self.scores.role == "system" else ""
        rows = [each for each in self.part.outcomes if each.system == system]
        return pd.DataFrame(
            {
                "query_id": texts(each.query for each in rows),
                "state": texts("failed" if each.reason else "done" for each in rows),
                "reason": texts(each.reason for each in rows),
                "latency_ms": np.array([each.latency_ms for each in rows], dtype=np.float64),
            }
        )


def _rankings(parts: Sequence[ParsedFile]) -> list[_Named]:
    """Return every ranking of the files. First-stage scores in several files of rows are one
    ranking, unless they rank the same queries."""
    rankings: list[_Named] = []
    first, runs, systems = (
        [(part, scores) for part in parts for scores in part.scores if scores.role == role]
        for role in ("first stage", "run", "system")
    )
    apart = _rank_the_same(first)
    if first and not apart:
        part, scores = first[0]
        pairs = Pairs.joined([scores.pairs for _, scores in first])
        rankings.append(_Named(scores.name, part, scores, ranking_of(part, pairs)))
    for part, scores in [*(first if apart else ()), *runs, *systems]:
        name = scores.name
        if scores.role == "system":
            alone = len(part.scores) == 1
            name = stem_of(part.file) if alone else f"{stem_of(part.file)}/{scores.name}"
        if name in {named.name for named in rankings}:
            name = part.file if len(part.scores) == 1 else f"{part.file}/{scores.name}"
        rankings.append(_Named(name, part, scores, ranking_of(part, scores.pairs)))
    return rankings


def _rank_the_same(scored_parts: Sequence[tuple[ParsedFile, Scores]]) -> bool:
    """Return whether the files rank the same queries, so that each is a separate system. Parts of
    one table share no pair, and a query only at the border of two parts."""
    if len(scored_parts) < 2:
        return False
    rows = pd.concat(
        [
            scores.pairs.frame("score")[["query_id", "doc_id"]].drop_duplicates().assign(file=index)
            for index, (_, scores) in enumerate(scored_parts)
        ],
        ignore_index=True,
    )
    if not rows.duplicated(["query_id", "doc_id"]).any():
        return False
    queries = rows[["query_id", "file"]].drop_duplicates()
    shared = queries["query_id"].duplicated(keep=False)
    return 2 * int(shared.sum()) >= len(queries)


def _file_name(chosen: _Named) -> str:
    """Return the name of the ranking from its file; "" for scores in a file of rows, and for a name
    that only means first stage."""
    explicit = chosen.scores.role != "first stage" and not _ONLY_FIRST_STAGE.fullmatch(chosen.name)
    return chosen.name if explicit else ""


def _chosen(chosen: _Named, systems: Mapping[str, Ranking], *, sure: bool) -> Finding:
    """Return the finding that names the first stage. sure: True if the choice is unambiguous."""
    return Finding(
        "note" if sure else "warning",
        "first_stage",
        "{name} is the first-stage ranking; the others are added as systems: {others}."
        if systems
        else "{name} is the first-stage ranking.",
        {"name": chosen.name, "others": ", ".join(systems)},
        _OTHER_FIRST_STAGE if systems else "",
        chosen.part.file,
    )


def _first_stage(
    rankings: Sequence[_Named], requested: str | None, parts: Sequence[ParsedFile]
) -> tuple[_Named | None, bool]:
    """Return the first-stage ranking and whether the choice is unambiguous: the requested ranking;
    else the one in a file of rows; else the best by name; else the first. A ranking named as
    reranked is chosen only if all are."""
    if requested is not None:
        matching, inside = _requested(rankings, requested, parts)
        if matching:
            return matching[0], True
        if not inside:
            raise DataError(
                "No ranking is called {wanted!r}.",
                remedy="The rankings are: {names}.",
                wanted=requested,
                names=", ".join(named.name for named in rankings) or "none",
            )
        rankings = inside
    beside_rows = [named for named in rankings if named.scores.role == "first stage"]
    if len(beside_rows) == 1:
        return beside_rows[0], True
    runs = beside_rows or [named for named in rankings if named.scores.role == "run"]
    if not runs and not _have_texts(parts):
        # Without texts, no first stage can be made instead.
        runs = list(rankings)
    runs = [named for named in runs if not _RERANKED.search(named.name)] or runs
    for pattern in _FIRST_STAGE_NAMES:
        fitting = [named for named in runs if pattern.search(named.name)]
        if fitting:
            return fitting[0], len(fitting) == 1
    return (runs[0] if runs else None), len(runs) < 2


def _have_texts(parts: Sequence[ParsedFile]) -> bool:
    """Return whether at least one query and one document have a text."""
    return all(
        any(frame is not None and frame["text"].notna().any() for frame in frames)
        for frames in zip(*((part.queries, part.documents) for part in parts), strict=True)
    )


def _requested(
    rankings: Sequence[_Named], requested: str, parts: Sequence[ParsedFile]
) -> tuple[list[_Named], list[_Named]]:
    """Return the rankings with the requested name, and those in an archive or folder of that name.

    The full name of a file takes precedence over names with the same stem, even if the file
    contains no ranking.
    """
    if any(part.file == requested for part in parts):
        return [named for named in rankings if named.part.file == requested], []
    called = [named for named in rankings if named.name == requested]
    inside = [named for named in rankings if named.part.origin == requested]
    if not called and not any(part.origin == requested for part in parts):
        called = [named for named in rankings if stem_of(requested) == stem_of(named.part.file)]
    return called, inside


def _queries(
    parts: Sequence[ParsedFile], qrels: pd.DataFrame, pairs: pd.DataFrame, ranked: Sequence[Ranking]
) -> tuple[pd.DataFrame, list[Finding]]:
    """Return every query with a label or a candidate, with its text and segments, and findings."""
    table, findings = _first_rows([part.queries for part in parts], "query_id"), []
    ids = [text_array(ranking.query_ids) for ranking in ranked]
    mentioned = _mentioned("query_id", qrels, pairs, ids)
    table = _with_mentioned(table, mentioned, "query_id", "text")
    idle = ~table["query_id"].isin(mentioned).to_numpy()
    if idle.any() and not idle.all():
        names = table.loc[idle, "query_id"]
        findings.append(
            counted(
                "note",
                "idle_queries",
                "Queries with neither labels nor candidates, excluded: {count} of {all}.",
                len(names),
                examples=list(names),
                all=len(table),
            )
        )
        table = table[~idle].reset_index(drop=True)
    return table, findings


def _documents(
    parts: Sequence[ParsedFile], qrels: pd.DataFrame, pairs: pd.DataFrame, ranked: Sequence[Ranking]
) -> pd.DataFrame:
    table = _first_rows([part.documents for part in parts], "doc_id")
    mentioned = _mentioned("doc_id", qrels, pairs, [ranking.documents for ranking in ranked])
    return _with_mentioned(table, mentioned, "doc_id", "title", "text")


def _mentioned(
    key: str, qrels: pd.DataFrame, pairs: pd.DataFrame, ids: Sequence[Any]
) -> npt.NDArray[np.object_]:
    """Return the labelled, paired and ranked ids, in that order. ids: of rankings, Arrow text."""
    columns = [text_array(qrels[key]), text_array(pairs[key]), *ids]
    return objects(pa.concat_arrays(list(map(alike, columns))).unique())


def _with_mentioned(
    table: pd.DataFrame, mentioned: npt.NDArray[np.object_], key: str, *texts: str
) -> pd.DataFrame:
    """Return the table with a row for each of the ids; added rows have no text."""
    have = set(table[key])
    missing = [identity for identity in mentioned if identity not in have]
    table = table.reindex(
        columns=[key, *texts, *table.columns.difference([key, *texts], sort=False)]
    )
    if not missing:
        return table
    rows = pd.DataFrame({key: missing}, dtype=object).reindex(columns=table.columns)
    return pd.concat([table.astype(object), rows.astype(object)], ignore_index=True)


def _first_rows(frames: Sequence[pd.DataFrame | None], key: str) -> pd.DataFrame:
    """Merge tables to one row per id, with the first value of each column."""
    filled = [frame for frame in frames if frame is not None]
    if not filled:
        return empty(key)
    if len(filled) == 1:
        return filled[0].reset_index(drop=True)
    return pd.concat(filled, ignore_index=True).groupby(key, sort=False).first().reset_index()


# Generated ids for queries and documents without ids.

Key = Literal["query_id", "doc_id"]
KEYS: tuple[Key, ...] = ("query_id", "doc_id")
_PREFIX = {"query_id": "q", "doc_id": "d"}
_TABLES = {"query_id": "queries", "doc_id": "documents"}


def _with_ids(
    parts: Sequence[ParsedFile], key: Key, *, strict: bool = False
) -> tuple[list[ParsedFile], list[Finding]]:
    """Return the parts with ids instead of texts as keys, and findings.

    A text with an id in another file gets that id. Other texts are named q1, q2 … (d1, d2 … for
    documents) in the order of first appearance; ids with a text in another file are skipped, and
    equal texts have the same id. The ids are reproducible, so that a ranking made elsewhere from
    these ids matches its queries. A column of "texts" that contains ids of another file is read as
    ids.

    Raises DataError if a file of labels or of texts (strict: any file) contains an id without a
    text, and this id would be generated for a text of a file without labels, because they may not
    be the same.
    """
    named = [part for part in parts if key not in part.keyed_by_text]
    if len(named) == len(parts):
        return list(parts), []
    existing = set(chain.from_iterable(part.mentioned(key) for part in named))
    existing.update(*(_table(part, key)[key] for part in named))
    tables = [_table(part, key) for part in named]
    pairs = (pair for each in tables for pair in zip(each["text"], each[key], strict=True))
    listed = [(text, identity) for text, identity in pairs if text]
    listed_ids = {identity for _, identity in listed}
    # The first id of a text is used.
    id_of = dict(reversed(listed))
    findings: list[Finding] = []
    generated: dict[str, str] = {}
    keyed: list[ParsedFile] = []
    unused = (name for n in count(1) if (name := f"{_PREFIX[key]}{n}") not in listed_ids)
    for part in parts:
        if key not in part.keyed_by_text:
            keyed.append(part)
            continue
        entries = list(_table(part, key)[key])
        as_ids, as_texts = (sum(text in each for text in entries) for each in (existing, id_of))
        if as_ids > len(entries) / 2 and as_ids > as_texts:
            findings.append(
                Finding(
                    "note",
                    "texts_are_ids",
                    "The column of queries contains ids of another file, so it is read as ids."
                    if key == "query_id"
                    else "The column of documents contains ids of another file, so it is read as "
                    "ids.",
                    file=part.file,
                )
            )
            forgotten: Any = _table(part, key).assign(text=texts([None] * len(entries)))
            others = part.keyed_by_text - {key}
            keyed.append(replace(part, keyed_by_text=others, **{_TABLES[key]: forgotten}))
            continue
        for text in entries:
            if text not in id_of and text not in generated:
                generated[text] = next(unused)
        keyed.append(part)
    ids = {**generated, **id_of}
    keyed = [_renamed(part, key, ids) if key in part.keyed_by_text else part for part in keyed]
    if generated:
        _refuse_chance(parts, key, generated, listed_ids, strict=strict)
        findings += [_made(key, generated), *_alike(key, generated)]
    return keyed, findings


def _refuse_chance(
    parts: Sequence[ParsedFile],
    key: Key,
    generated: Mapping[str, str],
    listed_ids: Collection[str],
    *,
    strict: bool,
) -> None:
    unnamed = {
        identity
        for part in parts
        if key not in part.keyed_by_text
        for identity in (
            [*_table(part, key)[key], *part.mentioned(key)]
            if strict
            else [*part.labels.ids(key).texts.to_pylist(), *_table(part, key)[key]]
        )
    }.difference(listed_ids)
    keyed = [part for part in parts if key in part.keyed_by_text]
    labelled = {text for part in keyed if len(part.labels) for text in _table(part, key)[key]}
    for part in keyed:
        for text in () if len(part.labels) else _table(part, key)[key]:
            if text not in labelled and generated.get(text) in unnamed:
                raise DataError(
                    "The file identifies queries by text, but other files have queries without a "
                    "text, such as {example!r}."
                    if key == "query_id"
                    else "The file identifies documents by text, but other files have documents "
                    "without a text, such as {example!r}.",
                    remedy="Add a column query_id or doc_id with the ids of the other files.",
                    file=part.file,
                    example=generated[text],
                )


def _table(part: ParsedFile, key: Key) -> pd.DataFrame:
    """Return the table of queries or documents of a part; complete if it is keyed by text."""
    table: pd.DataFrame | None = getattr(part, _TABLES[key])
    return empty(key, "text") if table is None else table


def _renamed(part: ParsedFile, key: Key, id_of: dict[str, str]) -> ParsedFile:
    def rename(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(**{key: texts(map(id_of.__getitem__, frame[key].to_numpy()))})

    def rename_pairs(pairs: Pairs) -> Pairs:
        side = "queries" if key == "query_id" else "documents"
        ids = texts(map(id_of.__getitem__, pairs.ids(key).objects()))
        named: dict[str, Any] = {side: coded(ids)}
        return replace(pairs, **named)

    scores = tuple(replace(scores, pairs=rename_pairs(scores.pairs)) for scores in part.scores)
    renamed: dict[str, Any] = {_TABLES[key]: rename(_table(part, key))}
    return replace(
        part,
        labels=rename_pairs(part.labels),
        outcomes=tuple(
            each if key == "doc_id" else each._replace(query=id_of[each.query])
            for each in part.outcomes
            if key == "doc_id" or each.query in id_of
        ),
        pairs=None if part.pairs is None else rename(part.pairs),
        scores=scores,
        keyed_by_text=part.keyed_by_text - {key},
        **renamed,
    )


def _alike(key: Key, generated: Mapping[str, str]) -> list[Finding]:
    """Return a warning about queries that differ only in spaces around their texts."""
    first = {text.strip(): text for text in reversed([*generated])}
    others = [text for text in generated if first[text.strip()] != text]
    if key != "query_id" or not others:
        return []
    return [
        counted(
            "warning",
            "queries_alike",
            "Queries whose text differs from another query's only in spaces around it: {count}. "
            "They count as different queries.",
            len(others),
            "Remove the spaces, or add ids to the queries.",
            examples=[f"{generated[text]}: {text!r}" for text in others],
        )
    ]


def _made(key: Key, generated: dict[str, str]) -> Finding:
    names = list(generated.values())
    return Finding(
        "note",
        f"made_{key}",
        "The queries have no ids. rankdash named them {first} to {last} in order of first "
        "appearance; equal texts have the same id."
        if key == "query_id"
        else "The documents have no ids. rankdash named them {first} to {last} in order of first "
        "appearance; equal texts have the same id.",
        {"first": names[0], "last": names[-1]},
        count=len(generated),
        examples=tuple(f"{name}: {text}" for text, name in list(generated.items())[:_EXAMPLES]),
    )
