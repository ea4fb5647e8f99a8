"""Labelled sets to test on: the shipped sample, and real sets in a folder next to the project."""

import functools
from dataclasses import replace
from pathlib import Path

from rankdash.core.data.ranking import Ranking
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import Loaded, load

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
REAL = ROOT.parent / "shared" / "data"

SETS = {each.name: each for each in (SAMPLE, *sorted(REAL.glob("*/")))}
"""Name → folder with corpus.jsonl, queries.jsonl, qrels.tsv and initial.trec; the sample first,
which is always there."""

_RERANKED = 20


@functools.cache
def loaded(name: str) -> Loaded:
    """Return a set with its rerankings. The sample has none, so one is made, without a model."""
    found = load(sources_from_path(SETS[name]), first_stage="initial")
    if found.runs:
        return found
    return replace(found, rankings={"rerank_by_title": _by_title(found)})


def _by_title(found: Loaded) -> Ranking:
    """Return the first documents ordered by the number of query words in their title."""
    data = found.dataset
    texts = dict(zip(data.queries["query_id"], data.queries["text"], strict=True))
    titles = dict(zip(data.documents["doc_id"], data.documents["title"], strict=True))

    def ordered(query: str) -> tuple[str, list[str], list[float]]:
        words = set(texts[query].lower().split())
        docs, _scores = data.candidates.documents_of(query)
        top = sorted(
            docs[:_RERANKED], key=lambda doc: -len(words & set(titles[doc].lower().split()))
        )
        return query, [*top, *docs[_RERANKED:]], [-float(place) for place in range(len(docs))]

    return Ranking.from_lists(map(ordered, data.candidates.query_ids))
