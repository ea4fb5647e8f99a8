"""States of queries, labels of documents, the origin of rankings, and models, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rankdash.core.base.i18n import enumerated, ngettext, number, percent, plain
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language as reader_language
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.dataset import FirstStage
from rankdash.core.data.measured import Measured
from rankdash.core.metrics import parse_measure

if TYPE_CHECKING:
    from rankdash.core.rerankers.catalogue import KnownModel

_MOST_LANGUAGES = 4


def outcome_words() -> dict[str, str]:
    return {"helped": _("helped ▲"), "same": _("same ="), "hurt": _("hurt ▼"), **excluded_words()}


def state_words() -> dict[str, str]:
    return {"ok": _p("state", "ok"), "all_unjudged": _("all unjudged"), **excluded_words()}


def excluded_words() -> dict[str, str]:
    return {
        "failed": _p("state", "failed"),
        "skipped": _("not run"),
        "no_relevant": _("no relevant document"),
        "missing": _("not ranked"),
        "undefined": _p("state", "undefined"),
        "absent": _("only on one side"),
    }


def excluded_text(counts: Mapping[str, int]) -> str:
    """Return how many queries a comparison excludes and why; "" if none. counts: by reason."""
    if not counts:
        return ""
    words = excluded_words()
    reasons = [
        _("{why} ({n})", why=words[reason], n=number(n, 0)) if len(counts) > 1 else words[reason]
        for reason, n in counts.items()
    ]
    return ngettext(
        "{n} query is excluded from both rankings and counts neither for nor against: {counts}.",
        "{n} queries are excluded from both rankings and count neither for nor against: {counts}.",
        sum(counts.values()),
        counts=enumerated(reasons),
    )


def excluded(counts: Mapping[str, int]) -> list[str]:
    """Return a short text for each reason of exclusion. counts: as for `excluded_text`."""
    words = excluded_words()
    return [_("{n} excluded ({why})", n=number(n, 0), why=words[why]) for why, n in counts.items()]


def count_words() -> dict[str, str]:
    """Return key of `Evaluation.counts` → words for the queries that it counts."""
    return {
        "queries": _("labelled queries"),
        "scored": _p("state", "scored"),
        "missing": _("not in the ranking"),
        "no_relevant": _("without a relevant document"),
        "failed": _p("state", "failed"),
        "skipped": _("not run"),
        "tied": _("with tied scores"),
        "unlabelled": _("ranked but without labels"),
    }


def metric_title(spec: str) -> str:
    """Return the title of a metric: "NDCG@10", "MAP (graded)"."""
    measure = parse_measure(spec)
    return measure.title.replace(measure.metric.title, _p("metric", measure.metric.title), 1)


def judged_title(k: int | None) -> str:
    """Return the title of the share of labelled documents: "Judged@10"."""
    return _p("metric", "Judged") if k is None else _p("metric", "Judged@{k}", k=k)


def grade(label: float, best: float) -> str:
    """Return a label in words: "2 of 3", "not judged"."""
    if math.isnan(label):
        return _("not judged")
    return _("{label} of {best}", label=plain(label), best=plain(best))


def label_words(label: float | None) -> str:
    """Return a label as a number; "not judged" for None."""
    return _("not judged") if label is None else plain(label)


def query_count(n: int) -> str:
    """Return "1 query" or "2,000 queries", for commands and files, which are in English only."""
    return "1 query" if n == 1 else f"{n:,} queries"


def excluded_line(what: str, counts: Mapping[str, int]) -> str:
    """Return how many queries a comparison excludes and why, in English; "" if none. what: a system
    or a metric. counts: by reason."""
    words = {
        "failed": "failed",
        "skipped": "skipped",
        "no_relevant": "without a relevant document",
        "missing": "missing from a ranking",
        "undefined": "without a value of the metric",
        "absent": "evaluated for one ranking only",
    }
    counted = ", ".join(f"{number(n, 0)} {words[reason]}" for reason, n in counts.items())
    return f"Excluded from both rankings for {what}: {counted}." if counted else ""


def missing_line(name: str, missing: int, measure: str = "") -> str:
    """Return how many queries a ranking lacks that count as 0, in English; "" if none."""
    if not missing:
        return ""
    verb = "counts" if missing == 1 else "count"
    where = f" in {measure}" if measure else ""
    return f"{name} lacks {query_count(missing)}, which {verb} 0{where}."


# The origin of a ranking and notes from its run, in sentences for every surface.


def without_text(measured: Measured) -> str | None:
    """Return how candidates without a text were ranked; None if every candidate has a text."""
    if not measured.textless_pairs:
        return None
    if measured.without_text == "empty":
        return ngettext(
            "{n} candidate without a text was scored as an empty text.",
            "{n} candidates without a text were scored as empty texts.",
            measured.textless_pairs,
        )
    return ngettext(
        "{n} candidate without a text was excluded: it stays below the reranked ones.",
        "{n} candidates without a text were excluded: they stay below the reranked ones, in "
        "first-stage order.",
        measured.textless_pairs,
    )


def unknown_tokens(system: str, share: float) -> str:
    """Return a warning about a system whose model knows too few of the tokens."""
    return _(
        "{system}: the model does not know {share} of the tokens, so this result is not "
        "meaningful. Use a model that supports the language of the texts.",
        system=system,
        share=percent(share),
    )


def licence_of(model: KnownModel) -> str:
    """Return the licence of a known model; "" if it is unknown."""
    from rankdash.core.rerankers.neural import packaged

    card = packaged.named(model.id)
    return model.licence if card is None or model.service else card.licence


def languages(codes: Sequence[str]) -> str:
    """Return the languages of a model in words."""
    # Commands that print no names of languages start without this library and the rerankers.
    from babel import Locale

    from rankdash.core.rerankers.catalogue import MANY

    if MANY in codes:
        return _("many languages")
    if len(codes) > _MOST_LANGUAGES:
        return ngettext("{n} language", "{n} languages", len(codes))
    return enumerated(Locale(code).get_display_name(reader_language()) or code for code in codes)


def language_name(code: str) -> str:
    """Return a language of `language_of` in words."""
    if code == "latin":
        return _("Latin letters")
    if code == "other":
        return _("other letters")
    from babel import Locale

    return Locale(code).get_display_name(reader_language()) or code


def provenance(facts: Mapping[str, object]) -> str | None:
    """Return origin, package, hash and licence of packaged weights; None for another model.

    facts: as `PackagedModel.provenance` names them, such as the record of a run.
    """
    if "model_package" not in facts:
        return None
    return _(
        "Weights: {origin}, from the package {package}, SHA-256 {sha256}…, licence {licence}.",
        origin=facts["model_origin"],
        package=facts["model_package"],
        sha256=str(facts["model_sha256"])[:12],
        licence=facts["model_licence"],
    )


def first_stage(how: FirstStage) -> str:
    """Return the origin of a data set's first stage, as a part of a sentence."""
    match how:
        case "given":
            return _("as it came with the data")
        case "bm25":
            return _("BM25 ordered the documents that the files list for each query")
        case "rows":
            return _("it is the order of the rows in your files")
        case "corpus-bm25":
            return _("BM25 retrieved it from all documents")
        case "corpus-bi-encoder":
            return _("a bi-encoder retrieved it from all documents")
        case "corpus-fused":
            return _("BM25 and a bi-encoder, fused, retrieved it from all documents")
