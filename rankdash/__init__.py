"""rankdash: does reranking help, for which queries, how surely, how fast, at what price?

From a notebook or a script, in five steps:

    import rankdash as rd

    data = rd.read("data/shop")                                     # files, a folder, an archive
    run = rd.rerank(data, "bi-encoder", depth=50)                   # or rd.read_run("a.trec", data)
    first, reranked = rd.evaluate(data), rd.evaluate(data, run)     # query by query, NaN: no value
    rd.compare({"first stage": first, "bi-encoder": reranked})      # a table, with verdicts
    rd.report(data, run, "report.html")                             # one file that opens offline

`read` gives a `Dataset`, `rerank` and `read_run` a `Run`, `evaluate` an `Evaluation`, `compare` a
`Comparison`, `report` a file, `study_of` a `Study`, which has all that the pages and the report
show; the rules are `Conventions` and `StatisticsSettings`; what goes wrong is a `RankdashError`.
`help(rd.read)` and so on say the rest. Each loads what it needs on first use.
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
        StatisticsSettings,
        Study,
        compare,
        evaluate,
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
    "StatisticsSettings",
    "Study",
    "compare",
    "evaluate",
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
