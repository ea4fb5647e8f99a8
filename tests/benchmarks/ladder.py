"""The ladder on both samples: BM25, vectors, hybrid, and hybrid with a reranker.

    python -m tests.benchmarks.ladder

prints the rows of the tables in docs/tasks/ladder.md. It needs the packaged models.
"""

from rankdash import api
from rankdash.core.base.i18n import number, signed
from rankdash.core.base.shipped import SAMPLES
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Run
from rankdash.core.rerankers import create
from rankdash.core.runs.plan import Timing
from rankdash.core.runs.retrieving import Retrieval, retrieved
from rankdash.core.runs.runner import rerank
from rankdash.core.study.leaderboard import standings

DEPTH = 50
METRICS = ("ndcg@10", f"recall@{DEPTH}")
RERANKERS = {
    "en": ("cross-encoder", "packaged/ms-marco-MiniLM-L12-v2"),
    "zh": ("bi-encoder", "packaged/multilingual-e5-small"),
}


def ladder(data: Dataset, reranker: str, model: str) -> list[Run]:
    """Return the four runs. reranker, model: of the last run."""
    names = {"bm25": "BM25", "bi-encoder": "Vectors", "hybrid": "Hybrid"}
    runs = [retrieved(data, Retrieval(how, DEPTH), name) for how, name in names.items()]
    source = data.with_candidates(runs[-1].ranking, runs[-1].name)
    last = rerank(source, create(reranker, {"model": model}), timing=Timing(latency="never"))
    return [*runs, last]


def rows(data: Dataset, runs: list[Run]) -> list[str]:
    """Return a row of the table for each run: name, metrics, and the change against BM25."""
    study = api.study_of(data, runs[1:], baseline=runs[0], others=METRICS[1:])
    found = {row.system: row for row in standings(study)}
    lines = []
    for run in runs:
        row, recall = found[run.id], study.evaluations[run.id].mean(METRICS[1])
        change = "baseline"
        if run is not runs[0]:
            span = f"{signed(row.delta_low)} … {signed(row.delta_high)}"
            change = f"{signed(row.delta)} ({span}), {row.kind}"
        name = run.name if run is not runs[-1] else f"Hybrid, reranked ({run.settings['model']})"
        lines.append(f"| {name} | {number(row.mean)} | {number(recall)} | {change} |")
    return lines


if __name__ == "__main__":
    for language, (reranker, model) in RERANKERS.items():
        data = api.read(SAMPLES[language])
        print("\n".join(rows(data, ladder(data, reranker, model))), flush=True)
