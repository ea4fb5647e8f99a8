"""A reranker with a simulated clock, and a summary of its runs."""

import math
import zlib
from dataclasses import fields

import numpy as np

from rankdash.core.data.measured import Measured
from rankdash.core.rerankers import Capabilities, Scored
from rankdash.core.runs.results import usage
from rankdash.core.runs.runner import rerank
from tests.results import shown

BLOCKS, ONE_BY_ONE = Capabilities(across_queries=True), Capabilities()


def scored(request):
    """Return scores and tokens that depend on the texts only."""
    hashes = [zlib.crc32(f"{request.query} {text}".encode()) for text in request.documents]
    values = np.array(hashes, dtype=np.int64)
    return Scored(values % 9973 / 4, 1 + values % 7, 1 + values % 7 + values % 2)


def failed(reason):
    return lambda request: Scored.failed(len(request.doc_ids), reason)


def broken(request):
    raise ZeroDivisionError("division by zero")


class Stub:
    """A reranker that loads in 500 ms; the first call takes 3 s more, any call 10 ms and each pair
    1 ms more.

    usual: function that answers a request. odd: query id → function for that query instead.
    calls: query id → documents, of each call.
    """

    name, threads, print = "stub", 1, "weights 1"

    def __init__(self, odd=None, usual=scored, **settings):
        self.odd, self.usual, self.settings = dict(odd or {}), usual, settings
        self.now, self.loaded, self.corpus, self.calls = 0, 0, None, []

    def clock(self):
        return self.now

    def pass_ms(self, milliseconds):
        self.now += round(milliseconds * 1e6)

    def prepare(self, corpus):
        self.loaded, self.corpus = self.loaded + 1, corpus
        self.pass_ms(500)

    def fingerprint(self):
        assert self.loaded
        return self.print

    def score(self, requests):
        self.pass_ms(10 + sum(len(each.doc_ids) for each in requests) + 3000 * (not self.calls))
        self.calls.append({each.query_id: list(each.doc_ids) for each in requests})
        return [self.odd.get(each.query_id, self.usual)(each) for each in requests]


def go(dataset, model, **options):
    options = {"capabilities": BLOCKS, "clock": model.clock, "cpu_clock": model.clock, **options}
    return rerank(dataset, model, **options)


def told(run, model):
    """Return the state of each query, the measurements, and the queries of each call."""
    lines = []
    for query, state, reason, *numbers in run.queries.itertuples(index=False):
        known = dict(zip(run.queries.columns[3:], numbers, strict=True))
        known = {name: value for name, value in known.items() if not math.isnan(value)}
        docs, scores = run.ranking.documents_of(query) if state == "done" else ([], [])
        listed = " ".join(map("{}={:g}".format, docs, scores))
        lines.append(f"{query} {state} [{reason or listed}] {shown(known)}")
    usual = Measured()
    measured = {each.name: getattr(run.measured, each.name) for each in fields(Measured)}
    measured = {
        name: value
        for name, value in {"load_ms": run.load_ms, **measured}.items()
        if not name.startswith("load_") or name == "load_ms"
        if repr(value) != repr(getattr(usual, name, None))
    }
    lines.append(shown(measured))
    if run.reading is not None:
        lines.append(f"read {shown(run.reading.read)} of {shown(run.reading.full)}")
    if run.calls is not None:
        lines += [shown(run.calls.drop(columns="start_s")), shown(usage(run))]
    return "\n".join([*lines, "calls: " + "; ".join(map(" ".join, model.calls))])
