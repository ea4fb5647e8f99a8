"""The packaged models in every runtime of the engine against sentence-transformers, in one run.

`python tests/benchmarks/scoring.py [PAIRS …]` scores the pairs of each of PAIRS: "docstrings" (the
documentation strings of Python's standard library, retrieved by BM25 for ten questions), "sample",
or the folder of a data set. The lengths of docstrings vary as in most collections (from a line to a
page); the passages of the sample have similar lengths, which suits a library that pads.

The reference is PyTorch in float32 on the same weights: one `CrossEncoder.predict` of all pairs in
batches of 8, and one `SentenceTransformer.encode` of all distinct documents in batches of 32.
Paths take turns, A B A B, and the fastest round of each counts, because other programs only slow
them down. "x wall" and "x CPU" compare seconds of the clock and of the processor. On a busy machine
set OMP_NUM_THREADS=1: a thread that waits for another one spins, which costs CPU seconds.

"of limit" is the model's computation, without padding, as a share of the speed at which this
machine multiplies matrices of float32 of the model's sizes, measured in the same turns: by the
clock with all threads, and by CPU seconds with the limit of one thread. It is comparable between
machines; 16 and 8 bits may be above 100 %.

Agreement with the reference: the largest difference of scores, Kendall's tau (mean over queries),
and the queries of which all documents, or the first ten, have the same order; for vectors the
smallest cosine.
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
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
CROSS, ENCODER = "packaged/ms-marco-MiniLM-L12-v2", "packaged/multilingual-e5-small"
REFERENCE = "library"
# Speed relative to the reference, or else to the limit in float32; tokens with padding per real
# token; the smallest cosine of vectors.
RATIO_GOAL, SHARE_GOAL, PADDING_GOAL, COSINE_GOAL = 1.3, 0.65, 1.03, 0.9999
_TOKENS = 1024


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
    """Return the docstrings of the standard library's public classes, methods and functions."""
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
    from rankdash.core.readers import Source
    from rankdash.core.readers.loading import load
    from rankdash.core.rerankers import Request

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
    parser.add_argument("--queries", type=int, default=4)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--runtimes", default="auto,onnx,openvino,openvino-bf16,onnx-int8")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["RANKDASH_CACHE"] = place
        for source in options.pairs:
            requests = pairs(source, options.queries, options.depth)
            score_pairs(source, requests, options)
            encode_texts(source, requests, options)


def score_pairs(source: str, requests, options: argparse.Namespace) -> None:
    """Compare scores of all pairs by the cross-encoder."""
    import torch
    from scipy.stats import kendalltau
    from sentence_transformers import CrossEncoder

    from rankdash.core.rerankers import Corpus, create
    from rankdash.core.rerankers.neural import runtimes

    folder = folder_of(CROSS)
    library = CrossEncoder(str(folder), device="cpu", max_length=512)
    asked = [(request.query, text) for request in requests for text in request.documents]
    ends = np.cumsum([len(request.documents) for request in requests])[:-1]

    def opened(runtime: str, **settings: object):
        reranker = create("cross-encoder", {"model": CROSS, "runtime": runtime, **settings})
        reranker.prepare(Corpus([], []))
        return reranker

    def predicted() -> np.ndarray:
        usual = {"activation_fn": torch.nn.Identity(), "show_progress_bar": False}
        return library.predict(asked, batch_size=8, **usual).astype(np.float64)

    def path(reranker) -> Callable[[], np.ndarray]:
        return lambda: np.concatenate([answer.scores for answer in reranker.score(requests)])

    rerankers = {name: opened(name) for name in runtimes_of(options)}
    paths = {REFERENCE: predicted} | {name: path(each) for name, each in rerankers.items()}
    alone = np.split(path(opened("onnx", batch_tokens=1))(), ends)
    lengths = np.concatenate([answer.tokens for answer in rerankers["auto"].score(requests)])
    turns = Turns(paths, options.rounds, folder, lengths, first_only=True)
    padding = runtimes.plan_batches(lengths, _TOKENS).slots / lengths.sum()
    by_characters = np.argsort([-len(query) - len(text) for query, text in asked], kind="stable")
    print(
        f"{source}: {len(asked)} pairs, {lengths.sum():,} tokens; padded/real {padding:.3f}, ",
        end="",
    )
    print(f"the library's {padded(lengths[by_characters], 8) / lengths.sum():.2f}; {CROSS}")
    turns.head(rerankers["auto"].details(), "max diff     tau   order  top 10")
    expected = np.split(turns.results[REFERENCE], ends)
    for name, scores in turns.results.items():
        found = np.split(scores, ends)
        tau = np.mean([kendalltau(a, b)[0] for a, b in zip(expected, found, strict=True)])
        alike = f"{share_alike(expected, found):>8.0%}{share_alike(expected, found, 10):>8.0%}"
        difference = np.abs(scores - turns.results[REFERENCE]).max()
        turns.row(name, f"{difference:>8.1e}{tau:>8.4f}{alike}")
    turns.say_goal()
    say(f"{PADDING_GOAL:g} padded tokens for each real one", padding <= PADDING_GOAL, padding)
    same = share_alike(alone, np.split(turns.results["auto"], ends))
    say("queries in the order of pairs computed one by one", same == 1, same)
    print()


def encode_texts(source: str, requests, options: argparse.Namespace) -> None:
    """Compare vectors of all distinct documents by the bi-encoder."""
    from sentence_transformers import SentenceTransformer

    from rankdash.core.rerankers import get
    from rankdash.core.rerankers.neural import model_files
    from rankdash.core.rerankers.neural.open_model import open_model

    folder = folder_of(ENCODER)
    library = SentenceTransformer(str(folder), device="cpu")
    texts = list(dict.fromkeys(text for request in requests for text in request.documents))
    defaults = {spec.name: spec.default for spec in get("bi-encoder").settings}
    weights = model_files.digest(folder)
    models = {
        name: open_model("text", folder, weights, {**defaults, "runtime": name}, lambda model: None)
        for name in runtimes_of(options)
    }

    def encoded() -> np.ndarray:
        return library.encode_document(texts, batch_size=32, show_progress_bar=False)

    def path(model) -> Callable[[], np.ndarray]:
        return lambda: model.compute(*model.alone(texts, "document", {"document": ""})[:2])

    paths = {REFERENCE: encoded} | {name: path(model) for name, model in models.items()}
    rows = models["auto"].alone(texts, "document", {"document": ""})[0]
    lengths = np.array([len(row) for row in rows])
    turns = Turns(paths, options.rounds, folder, lengths, first_only=False)
    print(f"{source}: {len(texts)} documents, {lengths.sum():,} tokens; {ENCODER}")
    turns.head(models["auto"].details(), "cosine")
    cosines = {}
    for name, vectors in turns.results.items():
        cosines[name] = (vectors * turns.results[REFERENCE]).sum(axis=1).min()
        turns.row(name, f"{cosines[name]:.6f}")
    turns.say_goal()
    say(f"cosine of {COSINE_GOAL:g}", cosines["auto"] >= COSINE_GOAL, cosines["auto"])
    print()


def folder_of(name: str) -> Path:
    from rankdash.core.rerankers.neural import packaged

    model = packaged.named(name)
    assert model is not None
    return packaged.folder_of(model)


def runtimes_of(options: argparse.Namespace) -> list[str]:
    from rankdash.core.rerankers.neural import runtimes

    names = dict.fromkeys(["auto", *options.runtimes.split(",")])
    return [name for name in names if name == runtimes.AUTO or runtimes.installed(name)]


def share_alike(first: Sequence[np.ndarray], second: Sequence[np.ndarray], top: int = 0) -> float:
    """Return the share of queries with the same order of documents, or of the first `top` ones."""
    orders = [[np.argsort(-each, kind="stable") for each in scores] for scores in (first, second)]
    alike = [(a[: top or None] == b[: top or None]).all() for a, b in zip(*orders, strict=True)]
    return float(np.mean(alike))


def padded(lengths: np.ndarray, size: int) -> int:
    """Return the tokens that a library computes for rows in this order, in batches of `size`."""
    batches = [lengths[at : at + size] for at in range(0, len(lengths), size)]
    return sum(len(batch) * int(batch.max()) for batch in batches)


def say(goal: str, met: bool, found: float) -> None:
    print(f"goal {goal}: {'met' if met else 'missed'} ({found:.6g})")


class Turns:
    """Paths that took turns on the same rows, with the limit of the machine measured between them.

    lengths: number of tokens of each row."""

    def __init__(
        self,
        paths: dict[str, Callable[[], np.ndarray]],
        rounds: int,
        model: Path,
        lengths: np.ndarray,
        *,
        first_only: bool,
    ) -> None:
        self.results: dict[str, np.ndarray] = {}
        self._wall = dict.fromkeys(paths, np.inf)
        self._busy = dict.fromkeys(paths, np.inf)
        self._count = len(lengths)
        self._limit = Limit(model)
        self._work = self._limit.work(lengths, first_only=first_only)
        for _ in range(rounds):
            self._limit.measure()
            for name, path in paths.items():
                start, cpu = time.perf_counter(), time.process_time()
                self.results[name] = path()
                self._busy[name] = min(self._busy[name], time.process_time() - cpu)
                self._wall[name] = min(self._wall[name], time.perf_counter() - start)

    def head(self, details: dict[str, object], agreement: str) -> None:
        times = details.get("calibration", "nothing to choose from")
        print(f"auto: {details['runtime']} ({times}), {details['threads']} threads; ", end="")
        print(
            f"load {os.getloadavg()[0]:.1f}; limit: {self._limit.by_clock:.0f} GFLOP/s, and ",
            end="",
        )
        print(f"{self._limit.by_cpu:.0f} GFLOP a CPU second of one thread")
        print(f"{'path':<14}{'a second':>9}{'x wall':>8}{'x CPU':>7}", end="")
        print(f"{'of limit':>10}{'CPU':>6}  {agreement}")

    def row(self, name: str, agreement: str) -> None:
        wall, busy = self._times(name)
        share = self._work / self._wall[name] / self._limit.by_clock
        print(f"{name:<14}{self._count / self._wall[name]:>9.1f}{wall:>8.2f}{busy:>7.2f}", end="")
        print(f"{share:>10.0%}{self._share(name):>6.0%}  {agreement}")

    def say_goal(self) -> None:
        wall, busy = self._times("auto")
        share = self._share("auto")
        say(f"{RATIO_GOAL:g} x the library, wall", wall >= RATIO_GOAL, wall)
        say(f"{RATIO_GOAL:g} x the library, CPU", busy >= RATIO_GOAL, busy)
        say(f"or {SHARE_GOAL:.0%} of the limit, CPU", share >= SHARE_GOAL, share)

    def _times(self, name: str) -> tuple[float, float]:
        """Return the speed as a multiple of the reference's, by the clock and by the processor."""
        wall, busy = (each[REFERENCE] / each[name] for each in (self._wall, self._busy))
        return wall, busy

    def _share(self, name: str) -> float:
        return self._work / self._busy[name] / self._limit.by_cpu


class Limit:
    """The speed of this machine's products of float32 matrices of a model's sizes, in GFLOP per
    second: the fastest of NumPy and PyTorch, of all rounds."""

    def __init__(self, model: Path) -> None:
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
        self._layers, self._hidden, self._inner = (
            int(config[name]) for name in ("num_hidden_layers", "hidden_size", "intermediate_size")
        )
        self.by_clock = self.by_cpu = 0.0

    def work(self, lengths: np.ndarray, *, first_only: bool) -> float:
        """Return the GFLOP of rows of these numbers of tokens: the layers' matrices, and attention.
        first_only: the output is the first token of a row, so the last layer computes only keys and
        values of the other tokens."""
        hidden, tokens, squares = (
            self._hidden,
            lengths.sum(),
            (lengths.astype(np.float64) ** 2).sum(),
        )
        rest = 2 * hidden**2 + 2 * hidden * self._inner
        layer = (2 * hidden**2 + rest) * tokens + 2 * hidden * squares
        last = 2 * hidden**2 * tokens + rest * len(lengths) + 2 * hidden * tokens
        return 2 * ((self._layers - 1) * layer + (last if first_only else layer)) / 1e9

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


if __name__ == "__main__":
    main()
