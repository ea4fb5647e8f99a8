"""`check`: report the content of a data set, refused rows and suspicious data."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import convert

from rankdash.core.base.errors import Finding, Phrase, Severity
from rankdash.core.data.arrays import alike, arrow_integers, places_in
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure
from rankdash.core.readers.checks.former_findings import in_todays_words
from rankdash.core.readers.checks.grading import (
    NO_LABELS,
    SPARSE,
    LabelCount,
    direction,
    histogram,
    label_findings,
    sparse_labels,
)
from rankdash.core.readers.checks.matching import match_labels, overlap_findings, top_findings
from rankdash.core.readers.parse.limits import counted

FIRST_STAGE = Phrase("first stage")
IMPLAUSIBLE = (
    "unused_labels",
    "counted_queries",
    "labels_shifted",
    "labels_by_accident",
    "pairs_match_nothing",
    "ids_match_nothing",
    "label_direction",
    "none_in_top",
    "few_documents",
)
"""Warnings that may invalidate a verdict on the data, the most serious first."""

_MANY_REFUSED = 0.1
"""The smallest share of excluded rows that a verdict mentions."""

_NO_DOCUMENT_TEXT = Finding(
    "note",
    "no_texts",
    "No document has a text. The rankings can be compared; nothing can be reranked.",
    remedy="Add the file with the texts, such as corpus.jsonl.",
)
_NO_QUERY_TEXT = Finding(
    "note",
    "no_query_texts",
    "No query has a text. The rankings can be compared; nothing can be reranked.",
    remedy="Add the file with the texts, such as queries.jsonl.",
)


@dataclass(frozen=True)
class LabelSpread:
    """The lowest, median and highest of some counts."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> LabelSpread | None:
        """Summarise values; return None if there are none."""
        array = np.fromiter(values, dtype=np.float64)
        if not len(array):
            return None
        return cls(float(array.min()), float(np.median(array)), float(array.max()))


@dataclass(frozen=True)
class CheckReport:
    """The result of a check of a data set, independent of the interface.

    queries, documents, labels, labelled_queries: counts.
    candidates_per_query: of the first stage; queries without candidates count as 0.
    label_histogram: from the lowest label to the highest.
    query_chars, document_chars: lengths of non-empty texts, in characters.
    rankings: the first stage, then every precomputed system.
    findings: errors first, then warnings, then notes.
    """

    queries: int
    documents: int
    labels: int
    labelled_queries: int
    candidates_per_query: LabelSpread | None
    label_histogram: tuple[LabelCount, ...]
    query_chars: LabelSpread | None
    document_chars: LabelSpread | None
    rankings: tuple[RankingCheck, ...]
    findings: tuple[Finding, ...]

    @property
    def of_fetch(self) -> tuple[Finding, ...]:
        """The findings of the fetch from a search engine, if it made the data set."""
        return tuple(each for each in self.findings if each.code in ("fetched", "fetch_failed"))

    @property
    def fetched_depth(self) -> int:
        """The documents requested per query in the fetch that made the data set; 0 without one."""
        return int(str(self._param("fetched", "depth") or 0))

    @property
    def judged_at_10(self) -> float | None:
        """judged@10 of the first stage."""
        return self.rankings[0].judged_at_10

    @property
    def suspected_best(self) -> str:
        """The lowest grade, as written in the file, if it seems to be the best; else ""."""
        return str(self._param("label_direction", "best") or "")

    @property
    def reversed_at(self) -> float | None:
        """The files' grade for "not relevant" if the labels were reversed, else None."""
        worst = self._param("labels_reversed", "worst")
        return None if worst is None else float(str(worst))

    @property
    def refused_rows(self) -> tuple[int, int] | None:
        """The numbers of excluded rows and of all rows of the affected files, if many are
        excluded."""
        refusals = [
            each for each in self.warnings if "rows" in each.params and "lines" in each.params
        ]
        rows = {each.file: int(str(each.params["rows"])) for each in refusals}
        count = sum(each.count for each in refusals)
        total = sum(rows.values())
        return (count, total) if total and count >= _MANY_REFUSED * total else None

    @property
    def implausible(self) -> tuple[Finding, ...]:
        """The warnings that may invalidate a verdict, the most serious first."""
        selected = (each for each in self.warnings if each.code in IMPLAUSIBLE)
        return tuple(sorted(selected, key=lambda each: IMPLAUSIBLE.index(each.code)))

    def _param(self, code: str, name: str) -> object:
        """Return a parameter of the first finding with that code; None without one."""
        return next((each.params[name] for each in self.findings if each.code == code), None)

    @property
    def errors(self) -> tuple[Finding, ...]:
        return self._of("error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return self._of("warning")

    @property
    def notes(self) -> tuple[Finding, ...]:
        return self._of("note")

    @property
    def blocks_reranking(self) -> Finding | None:
        """The finding that explains why nothing can be reranked; None if something can."""
        if self.document_chars is None:
            return _NO_DOCUMENT_TEXT
        return _NO_QUERY_TEXT if self.query_chars is None else None

    def _of(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def to_json(self) -> str:
        return json.dumps(
            asdict(self),
            ensure_ascii=False,
            # NumPy numbers are Python numbers in JSON.
            default=lambda value: value.item() if isinstance(value, np.generic) else str(value),
        )

    @classmethod
    def from_json(cls, text: str) -> CheckReport:
        """Read a report that `to_json` wrote. Raises ValueError for anything else."""
        report = convert(json.loads(text), cls)
        findings = []
        for finding in map(in_todays_words, report.findings):
            # Restore the translatable phrase, which JSON stores as text.
            params = {
                key: FIRST_STAGE if each == FIRST_STAGE else each
                for key, each in finding.params.items()
            }
            findings.append(replace(finding, params=params))
        return replace(report, findings=tuple(findings))


def check(
    dataset: Dataset,
    findings: Iterable[Finding],
    rankings: Mapping[str, Ranking],
    lost: Mapping[str, Collection[str]] | None = None,
) -> CheckReport:
    """Check a data set and the rankings of its systems. findings: the findings of its readers.
    lost: ranking ("" for the first stage) → its queries without a result, which are not
    missing."""
    without = {name or FIRST_STAGE: queries for name, queries in (lost or {}).items()}
    labels = dataset.labels
    systems = {FIRST_STAGE: dataset.candidates, **rankings}
    noticed = list(findings)
    codes = {finding.code for finding in noticed}
    # Ids were generated from texts.
    made_ids = bool(codes & {"made_query_id", "made_doc_id"})
    noticed += _labels(dataset, systems, without, made_ids=made_ids)
    if dataset.first_stage != "rows" and "label_direction" not in codes:
        noticed += direction(dataset.candidates, labels)
    if not dataset.only_ids and "counted_queries" not in codes:
        noticed += overlap_findings(dataset)
    queries, documents = _ids(dataset, systems)
    texts = None if dataset.only_ids else dataset.document_text()
    due = [query for query in queries if query not in without.get(FIRST_STAGE, ())]
    noticed += [*_texts(dataset, texts), *_queries(due, dataset.candidates)]
    checks = tuple(
        RankingCheck(
            name=name,
            queries=len(ranking.query_ids),
            rows=len(ranking),
            judged_at_10=judged_at_10(ranking, labels),
            tied_queries=int(ranking.tied.sum()),
            tied_rows=_tied_rows(ranking),
        )
        for name, ranking in systems.items()
    )
    noticed += sparse_labels(labels, [(each.name, each.judged_at_10) for each in checks])
    fetched = any(each.code == "fetched" for each in noticed)
    made_name = "" if dataset.first_stage == "given" else FIRST_STAGE
    noticed += [
        finding
        for ranking_check in checks
        # The order of equal scores is the engine's.
        if not (fetched and ranking_check.name == FIRST_STAGE)
        for finding in ties(ranking_check, made=ranking_check.name == made_name)
    ]
    candidates = dataset.candidates
    lengths = dict(zip(candidates.query_ids, np.diff(candidates.offsets), strict=True))
    return CheckReport(
        queries=len(queries),
        documents=documents,
        labels=len(labels["label"]),
        labelled_queries=dataset.labelled_queries,
        candidates_per_query=LabelSpread.of(lengths.get(query, 0) for query in queries),
        label_histogram=histogram(labels["label"]),
        query_chars=None if texts is None else _chars(dataset.query_text()),
        document_chars=None if texts is None else _chars(texts),
        rankings=checks,
        findings=_sorted(noticed),
    )


def relabelled(
    report: CheckReport, dataset: Dataset, rankings: Mapping[str, Ranking]
) -> CheckReport:
    """Return the report with the counts of the data set's current labels.

    dataset: with labels added or corrected in rankdash, whose ids and scale are valid, so that
        they need no check. rankings: by name; the judged@10 of missing ones is unchanged.
    """
    labels = dataset.labels
    by_name = {FIRST_STAGE: dataset.candidates, **rankings}
    checks = tuple(
        replace(each, judged_at_10=judged_at_10(by_name[each.name], labels))
        if each.name in by_name
        else each
        for each in report.rankings
    )
    counted = () if not len(labels["label"]) else (NO_LABELS.code, *SPARSE)
    findings = [each for each in report.findings if each.code not in counted]
    # If all labels were added in rankdash, they may be a sample, and few are enough.
    if report.labels and counted:
        findings += sparse_labels(labels, [(each.name, each.judged_at_10) for each in checks])
    return replace(
        report,
        labels=len(labels["label"]),
        labelled_queries=dataset.labelled_queries,
        label_histogram=histogram(labels["label"]),
        rankings=checks,
        findings=_sorted(findings),
    )


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    order = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(findings, key=lambda finding: order[finding.severity]))


def _ids(dataset: Dataset, systems: Mapping[str, Ranking]) -> tuple[list[str], int]:
    """Return the query ids and the number of documents, without creating tables that would only
    repeat labelled and ranked ids."""
    if not dataset.only_ids:
        return list(dataset.queries["query_id"]), len(dataset.documents)
    queries: list[str] = dataset.labels["query_id"].texts.to_pylist()
    documents = dataset.labels["doc_id"].texts
    for ranking in systems.values():
        queries += ranking.query_ids.tolist()
        new = np.flatnonzero(places_in(documents, ranking.documents) < 0)
        added = ranking.documents.take(arrow_integers(new))
        documents = pa.concat_arrays([alike(documents), alike(added)])
    return list(dict.fromkeys(queries)), len(documents)


def _chars(texts: pd.Series[str]) -> LabelSpread | None:
    lengths = texts.str.len().to_numpy(dtype=np.float64)
    return LabelSpread.of(lengths[lengths > 0])


def _labels(
    dataset: Dataset,
    systems: Mapping[str, Ranking],
    lost: Mapping[str, Collection[str]],
    *,
    made_ids: bool,
) -> list[Finding]:
    labels = dataset.labels
    if not len(labels["label"]):
        return [NO_LABELS]
    findings = label_findings(labels)
    for name, ranking in systems.items():
        matching = match_labels(name, ranking, labels, made_ids=made_ids, lost=lost.get(name, ()))
        findings += matching or top_findings(name, ranking, labels)
    return findings


def _texts(dataset: Dataset, documents: pd.Series[str] | None) -> list[Finding]:
    if documents is None or not (documents != "").any():
        return [_NO_DOCUMENT_TEXT]
    queries = dataset.query_text()
    findings = []
    ranked = documents.reindex(dataset.candidates.doc_ids)
    textless = list(ranked.index[(ranked == "").to_numpy()])
    if textless:
        findings.append(
            counted(
                "warning",
                "candidates_without_text",
                "Candidates without a text: {count} of {all}.",
                len(textless),
                "Depending on a setting of the run, reranking excludes these candidates or scores "
                "them as empty texts. Add the texts, or check that the ids match.",
                examples=textless,
                all=len(ranked),
            )
        )
    mute = list(queries.index[(queries == "").to_numpy()])
    if len(mute) == len(queries):
        findings.append(_NO_QUERY_TEXT)
    elif mute:
        findings.append(
            counted(
                "warning",
                "queries_without_text",
                "Queries without a text: {count} of {all}.",
                len(mute),
                "These queries cannot be reranked. Add the texts, or check that the ids match.",
                examples=mute,
                all=len(queries),
            )
        )
    return findings


def _queries(queries: Sequence[str], candidates: Ranking) -> list[Finding]:
    names = [query for query in queries if query not in candidates.positions]
    if not names:
        return []
    return [
        counted(
            "warning",
            "queries_without_candidates",
            "Queries without candidates: {count} of {all}.",
            len(names),
            "There is nothing to rerank for these queries; they count as missing.",
            examples=names,
            all=len(queries),
        )
    ]


# Widths are not allowed: one of 10⁹ would create a string of 10⁹ characters.
_FORMAT = re.compile(r"[,]?(\.\d{1,2})?[dfg%]?")


def check_report(text: str) -> CheckReport:
    """Read and validate the JSON of a check report, because an invalid one would break the page of
    its data set. Raises what `Judges` may raise for anything else."""
    report = CheckReport.from_json(text)
    if not report.rankings:
        raise ValueError("a check report without a ranking")
    for finding in report.findings:
        for template in (finding.template, finding.remedy):
            # A template may only insert its own parameters, with a simple format.
            for _text, name, form, _conversion in string.Formatter().parse(template):
                if name is not None and not (name.isidentifier() and _FORMAT.fullmatch(form or "")):
                    raise ValueError("a finding that cannot be displayed")
            template.format(**finding.params)
    return report


# The entry of one ranking in a check report: its size, its ties and its judged@10.

_JUDGED = "judged@10"
# With at least this share of rows in ties, the order depends mainly on the tie rule.
_MANY_TIES = 0.5


@dataclass(frozen=True)
class RankingCheck:
    """Counts of one ranking: queries, rows, judged@10 (None if no labelled query is ranked), tied
    queries and tied rows."""

    name: str
    queries: int
    rows: int
    judged_at_10: float | None
    tied_queries: int
    tied_rows: int


def judged_at_10(ranking: Ranking, labels: Mapping[str, Any]) -> float | None:
    if not len(labels["label"]) or not len(ranking):
        return None
    conventions = Conventions(no_relevant="count", missing="skip")
    evaluation = evaluate(
        judge(ranking, labels, conventions), [parse_measure(_JUDGED)], conventions
    )
    mean = evaluation.mean(_JUDGED)
    return float(mean) if np.isfinite(mean) else None


def _tied_rows(ranking: Ranking) -> int:
    """Return the number of rows that share their score with a neighbour of the same query."""
    query = np.repeat(np.arange(len(ranking.query_ids)), np.diff(ranking.offsets))
    equal = (ranking.scores[1:] == ranking.scores[:-1]) & (query[1:] == query[:-1])
    return int((np.append(equal, False) | np.append(False, equal)).sum()) if len(query) else 0


def ties(ranking: RankingCheck, *, made: bool) -> list[Finding]:
    """Return a finding about tied rows. made: rankdash made the ranking, so the user cannot change
    its scores."""
    if not ranking.tied_queries:
        return []
    many = not made and ranking.tied_rows >= _MANY_TIES * ranking.rows
    params = {"rows": ranking.tied_rows, "all": ranking.rows, "queries": ranking.tied_queries}
    return [
        Finding(
            "warning" if many else "note",
            "ties",
            "Rows of the ranking {name} that share their score with another: {rows} of {all}. "
            "Queries with such rows: {queries}. Ties are resolved by a rule, not by the system.",
            {"name": ranking.name, **params},
            "Write scores with more digits." if many else "",
            count=ranking.tied_queries,
        )
    ]
