"""rankdash measures whether a reranker improves search, at what latency and cost.

In a notebook or script:

    import rankdash as rd

    data = rd.read("data/shop")                                     # files, a folder, an archive
    run = rd.rerank(data, "bi-encoder", depth=50)                   # or rd.read_run("a.trec", data)
    first, reranked = rd.evaluate(data), rd.evaluate(data, run)     # values per query
    rd.compare({"first stage": first, "bi-encoder": reranked})      # a table with verdicts
    rd.report(data, run, "report.html")                             # one file that opens offline

`read` returns a `Dataset`, `rerank` and `read_run` a `Run`, `evaluate` an `Evaluation`, `compare` a
`Comparison`, and `study_of` a `Study` with everything that the pages and the report show. Rules are
`Conventions` and `StatisticsSettings`. Every error is a `RankdashError`. For details, see
`help(rd.read)` and so on. Each function is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankdash.api import (
        Comparison,
        Conventions,
        Dataset,
        Evaluation,
        Judgements,
        RankdashError,
        Run,
        SentenceEvaluator,
        StatisticsSettings,
        Study,
        compare,
        doubtful_labels,
        evaluate,
        export,
        ir_measures_provider,
        policy,
        read,
        read_run,
        report,
        rerank,
        standings,
        study_of,
    )

__version__ = "0.2.0"

__all__ = [
    "Comparison",
    "Conventions",
    "Dataset",
    "Evaluation",
    "Judgements",
    "RankdashError",
    "Run",
    "SentenceEvaluator",
    "StatisticsSettings",
    "Study",
    "compare",
    "doubtful_labels",
    "evaluate",
    "export",
    "ir_measures_provider",
    "policy",
    "read",
    "read_run",
    "report",
    "rerank",
    "standings",
    "study_of",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # `import rankdash` alone takes no time: the command line and the dashboard begin with it.
    from rankdash import api

    member: object = getattr(api, name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
