"""Studies to report on: thirty queries, of which a run failed on two and skipped one."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pandas as pd

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.rerankers.neural.packaged import MODELS
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money, System
from rankdash.core.value.prices import shipped
from rankdash.core.workspace.notes import Note

QUERIES = [f"q{n:02}" for n in range(30)]
FAILED, SKIPPED = ("q03", "q07"), ("q11",)
DONE = [q for q in QUERIES if q not in FAILED + SKIPPED]
DOCS = 8
WEIGHTS = MODELS[1]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40

OWN = dataclasses.replace(
    shipped()[0], source="our contract", price=dataclasses.replace(shipped()[0].price, amount=1.0)
)
MONEY = Money.of({"searches_per_day": 5000.0, "value_per_search": 0.01}, prices={"run": OWN})

Place = Callable[[int], int]


def ranked(place: Place) -> Ranking:
    """Return a ranking with the relevant document, fourth in the first stage, at given places."""

    def order(query: str) -> list[str]:
        rest = [f"{query}-d{d}" for d in range(DOCS) if d != 3]
        at = place(QUERIES.index(query))
        return [*rest[:at], f"{query}-d3", *rest[at:]]

    return Ranking.from_lists((q, order(q), np.arange(DOCS, 0, -1.0)) for q in DONE)


def study_of(text: str = "plain", *, timed: bool = True, **changes: object) -> Study:
    """Return a study of a run with the relevant document first for most queries, last for some."""
    rows = [(q, f"{q}-d{d}") for q in QUERIES for d in range(DOCS)]
    ids = {"query_id": [q for q, _ in rows], "doc_id": [doc for _, doc in rows]}
    questions = {"query_id": QUERIES, "text": [f"{text} question {q}" for q in QUERIES]}
    titles = {"doc_id": ids["doc_id"], "title": [f"{text} {doc}" for doc in ids["doc_id"]]}
    data = Dataset(
        f"Shop {text}",
        pd.DataFrame(questions | {"kind": ["order", "return", f"other {text}"] * 10}),
        pd.DataFrame(titles).assign(text="words"),
        pd.DataFrame(ids).assign(label=[float(doc.endswith("d3")) for _, doc in rows]),
        Ranking.from_lists(
            (q, [f"{q}-d{d}" for d in range(DOCS)], np.arange(DOCS, 0, -1.0)) for q in QUERIES
        ),
    )
    states = ["failed" if q in FAILED else "skipped" if q in SKIPPED else "done" for q in QUERIES]
    done = [state == "done" for state in states]
    queries = pd.DataFrame({"query_id": QUERIES, "state": states}).assign(
        reason=[f"time-out {text}" if state == "failed" else "" for state in states],
        latency_ms=np.where(np.array(done) & timed, 20.0 + np.arange(len(QUERIES)), np.nan),
        index_ms=np.nan, pairs=float(DOCS), tokens=400.0, truncated=0.0,
    )  # fmt: skip
    run = Run(
        "run", f"mover {text}", data.id,
        ranked(lambda at: 7 if at % 6 == 0 else 3 if at % 5 == 0 else 0), "bi-encoder", queries,
        settings={"model": text}, machine={"cpu": text, **WEIGHTS.provenance},
    )  # fmt: skip
    given: dict[str, object] = {
        "statistics": StatisticsSettings(resamples=500),
        "notes": {"q00": Note("q00", (text,), f"look {text}")},
    }
    systems = {
        FIRST_STAGE: System(FIRST_STAGE, "first"),
        "run": System("run", run.name, load=lambda: run),
    }
    return Study(data, systems, FIRST_STAGE, ("run",), **(given | changes))


def changed(study: Study, name: str = "", **changes: object) -> Study:
    """Return the study with a run with other fields."""
    run = study.run("run")
    assert run is not None
    other = dataclasses.replace(run, **changes)
    system = System("run", name or run.name, load=lambda: other)
    return dataclasses.replace(study, systems={**study.systems, "run": system})


def moved(study: Study, place: Place, name: str = "") -> Study:
    return changed(study, name, ranking=ranked(place))


def labelled(
    study: Study, keep: Callable[[str, float], bool] = lambda *_: True, **changes: object
) -> Study:
    """Return the study with the labels for which `keep` is true."""
    data = study.dataset
    kept = [keep(*each) for each in zip(data.qrels["query_id"], data.qrels["label"], strict=True)]
    fewer = Dataset(
        data.name, data.queries, data.documents, data.qrels[kept], data.candidates, **changes
    )
    return dataclasses.replace(study, dataset=fewer)


def with_minimum(study: Study, share: float) -> Study:
    statistics = dataclasses.replace(study.statistics, worthwhile=share)
    return dataclasses.replace(study, statistics=statistics)
