"""The whole way, by a robot: from search URLs and 50 queries without labels to a verdict and a
report, with hidden labels.

    python -m tests.benchmarks.whole_way                  all sets, 25 seeds each, in Python
    python -m tests.benchmarks.whole_way --browser SET    one seed of a set, in Chromium

A stub server has two engines for each set: BM25 and vectors over all documents. The robot fetches
both and reranks: in English the vectors by a cross-encoder, in Chinese BM25 by vectors, fused with
BM25. It labels the comparison of BM25 with the result, one document at a time, until the result is
conclusive. A label counts as 6 seconds, which the robot
does not wait. Then it makes the report, with a price. In Python it calls the functions that the
pages call.

Goals: a wrong sign in at most 2 % of the runs, a median of at most 150 labels, and at most 30
minutes. The truth is the difference by all labels of the same 50 queries.

Bounds for other methods, with all labels known (`bounds`): the labels of the same plan with perfect
predictions; a fixed sample of documents, and of whole queries, each with a power of 50 %; and the
share of the samples in which a t-test with all labels is significant at 5 %.
"""

import argparse
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright
from scipy import stats

from rankdash import api
from rankdash.core.data.arrays import Flags, Floats
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.rerankers import create, get
from rankdash.core.rerankers.fusion import Fusion, fuse
from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.runs import jobs
from rankdash.core.runs.plan import Timing
from rankdash.core.runs.retrieving import Retrieval, retrieved
from rankdash.core.runs.runner import rerank
from rankdash.core.sampling.estimate import follow_draws
from rankdash.core.sampling.label_plan import (
    VALUE_SHARE,
    Additive,
    Answered,
    Guess,
    LabelPlan,
    labels_table,
    pool_of,
)
from rankdash.core.search.endpoint import Endpoint, presets
from rankdash.core.search.fetching import fetch, fetched
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.score_cache import ScoreCache
from tests.browser.conftest import Visit, visiting
from tests.browser.conftest import serving as dashboard
from tests.conftest import FLAGS
from tests.loopback import serving
from tests.sets import SAMPLE, SETS

QUERIES, DEPTH, SEEDS = 50, 50, 25
SECONDS, MINUTES, LABELS = 6, 30, 150
# On two busy processors.
RUN_SECONDS = 3_600
# The default of the page Label, and a larger cutoff.
METRICS = ("dcg@5", "dcg@10")
BM25, VECTORS = "bm25", "bi-encoder"
NAMES = {BM25: "BM25", VECTORS: "Vectors"}
ENGLISH = (VECTORS, "cross-encoder", "packaged/ms-marco-MiniLM-L12-v2", 20)
# The page fuses this reranker with the first stage by default.
CHINESE = (BM25, "bi-encoder", "packaged/multilingual-e5-small", DEPTH)
# Name → the engine whose candidates are reranked, the reranker, its model, and the depth.
WAYS = {
    "helpcentre": ENGLISH,
    "helpcentre_zh": CHINESE,
    "medquad": ENGLISH,
    "cmrc_zh": CHINESE,
}
FOLDERS = {**SETS, "helpcentre_zh": SAMPLE.with_name("helpcentre_zh")}
# Standard errors of a two-sided interval of 95 %.
TWO_SIDED = 1.96
ASSUMPTIONS = {"searches_per_day": 5_000.0, "value_per_search": 0.02}


@dataclass(frozen=True, eq=False)
class Hidden:
    """A set with labels that the robot sees one by one, and its two engines."""

    name: str
    data: Dataset

    @classmethod
    def of(cls, name: str) -> "Hidden":
        return cls(name, load(sources_from_path(FOLDERS[name]), first_stage="initial").dataset)

    @cached_property
    def stages(self) -> dict[str, Ranking]:
        """Name → the ranking of all queries by an engine."""
        return {
            how: retrieved(self.data, Retrieval(how, DEPTH), how).ranking for how in (BM25, VECTORS)
        }

    @cached_property
    def texts(self) -> dict[str, dict[str, str]]:
        """Document id → title and text, as an engine returns them."""
        rows = self.data.documents[["doc_id", "title", "text"]].fillna("")
        return {doc: {"title": title, "text": text} for doc, title, text in rows.to_numpy()}

    @cached_property
    def queries(self) -> dict[str, str]:
        """Text → query id."""
        return {text: query for query, text in self.data.query_text().items()}

    @cached_property
    def grades(self) -> dict[tuple[str, str], float]:
        """Query id and document id → label."""
        rows = self.data.qrels[["query_id", "doc_id", "label"]].to_numpy()
        return {(query, doc): float(label) for query, doc, label in rows}

    def sample(self, seed: int) -> dict[str, str]:
        """Return 50 queries at random: id → text."""
        texts = np.array(sorted(self.queries))
        chosen = np.random.default_rng(seed).choice(texts, QUERIES, replace=False)
        return {self.queries[text]: str(text) for text in chosen}


@contextmanager
def engines(hidden: Hidden) -> Iterator[str]:
    """Yield the URL of a server with the two engines, which answers in Elasticsearch's form."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_arguments: object) -> None:
            pass

        def do_POST(self) -> None:
            wish = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            ranking = hidden.stages[self.path.split("/")[1]]
            query = hidden.queries[wish["query"]["multi_match"]["query"]]
            docs, scores = (
                ranking.documents_of(query) if query in ranking.positions else ([], np.array([]))
            )
            hits = [
                {"_id": doc, "_score": float(score), "_source": hidden.texts[doc]}
                for doc, score in list(zip(docs, scores, strict=True))[: wish["size"]]
            ]
            answer = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": hits}}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler) as url:
        yield url


def endpoint_of(url: str, engine: str) -> Endpoint:
    """Return the preset of Elasticsearch with the URL of an engine, without a key."""
    written = presets()["elasticsearch"].as_dict()
    return Endpoint.of({**written, "name": NAMES[engine], "url": f"{url}/{engine}/_search",
                        "headers": {}})  # fmt: skip


@dataclass(frozen=True)
class Way:
    """One run of the robot.

    verdict, truth: -1, 0 or 1, for the reranked list against BM25. labels: until the verdict, or
    all. machine: seconds without the labels. bounds: from `bounds`.
    """

    verdict: int
    truth: int
    labels: int
    pairs: int
    machine: float
    bounds: dict[str, float]

    @property
    def wrong(self) -> bool:
        return self.verdict * self.truth < 0

    @property
    def minutes(self) -> float:
        return (self.machine + SECONDS * self.labels) / 60


def fetched_set(url: str, queries: dict[str, str]) -> tuple[Dataset, dict[str, Run]]:
    """Fetch both engines. Return the data set without labels, and the run of each engine."""
    runs: dict[str, Run] = {}
    table = pd.DataFrame({"query_id": list(queries), "text": list(queries.values())})
    nothing = pd.DataFrame(columns=["doc_id", "title", "text"])
    none = pd.DataFrame(columns=["query_id", "doc_id", "label"])
    data = Dataset("fetched", table, nothing, none, Ranking.from_lists([]))
    for engine in NAMES:
        endpoint = endpoint_of(url, engine)
        answers = fetch(endpoint, queries, DEPTH, Policy())
        assert all(each.state == "done" for each in answers)
        run = fetched(data, endpoint, answers, DEPTH, NAMES[engine])
        if engine == BM25:
            data = Dataset(
                "fetched", table, run.documents, none, run.ranking, candidates_name="BM25"
            )
        elif run.documents is not None:
            data = data.with_documents(run.documents)
        runs[engine] = run
    return data, runs


def way(
    hidden: Hidden, url: str, seed: int, cache: ScoreCache | None, report: Path | None
) -> dict[str, Way]:
    """Go the whole way in Python; return metric → run. report: the file for the report of the
    first metric; None for none."""
    started = time.monotonic()
    data, runs = fetched_set(url, hidden.sample(seed))
    source, kind, model, depth = WAYS[hidden.name]
    reranker = create(kind, {"model": model})
    reranked = rerank(
        data.with_candidates(runs[source].ranking, NAMES[source]),
        reranker,
        depth=depth,
        capabilities=get(kind).able(reranker.settings),
        timing=Timing(latency="never"),
        cache=cache,
    )
    ranking = reranked.ranking
    if source == BM25:
        ranking = fuse([data.candidates, ranking], Fusion())
    ways = {}
    for spec in METRICS:
        metric = Additive.of(spec, top=1.0)
        pool = pool_of({"BM25": data.candidates, "reranked": ranking}, metric.k)
        plan = LabelPlan.make(pool, metric, seed=seed, share=VALUE_SHARE)
        # Annotators mark documents as relevant or not, which is the page's default.
        answers = np.minimum(np.nan_to_num(pool.aligned(hidden.data.qrels)), 1.0)
        gains = metric.gains(answers)
        path, _ = follow_draws(plan, 0, gains, Guess.from_ranks(pool), len(plan.drawing))
        verdicts = (path.low > 0).astype(int) - (path.high < 0)
        verdicts[-1] = 0
        last = int(np.argmax(verdicts != 0)) if verdicts.any() else len(verdicts) - 1
        truth = int(np.sign((plan.weights[0] * gains).sum()))
        if report is not None and not ways:
            _report(plan, answers, last + 1, data, replace(reranked, ranking=ranking), report)
        seconds = time.monotonic() - started
        ways[spec] = Way(int(verdicts[last]), truth, last + 1, len(verdicts), seconds,
                         bounds(plan, gains))  # fmt: skip
    return ways


def bounds(plan: LabelPlan, gains: Floats) -> dict[str, float]:
    """Return the labels that other methods need with these gains of all pairs, and the p value of a
    paired t-test with all labels."""
    weights, queries = plan.weights[0], len(plan.pool.query_ids)
    truth, draws = abs(float((weights * gains).sum())), np.arange(1, len(plan.drawing) + 1)
    perfect, _ = follow_draws(plan, 0, gains, Guess.from_gains(gains), len(draws))
    path, _ = follow_draws(plan, 0, gains, Guess.from_ranks(plan.pool), len(draws))
    error = np.sqrt(path.spread[-1] * path.noise) / path.weight
    changes = np.bincount(plan.pool.query, weights * gains, queries) * queries
    some = np.arange(1, queries + 1)
    # Without replacement, from these queries.
    query_error = changes.std(ddof=1) * np.sqrt((1 / some - 1 / queries).clip(0))
    whole = some * len(draws) / queries
    return {
        "perfect": _first(draws, (perfect.low > 0) | (perfect.high < 0)),
        "documents": _first(draws, error * TWO_SIDED < truth),
        "queries": _first(whole, query_error * TWO_SIDED < truth),
        "p": float(stats.ttest_1samp(changes, 0).pvalue),
    }


def _first(labels: Floats, enough: Flags) -> float:
    """Return the first number of labels that is enough, or all."""
    return float(labels[np.argmax(enough) if enough.any() else -1])


def _report(plan: LabelPlan, answers, labels: int, data: Dataset, run: Run, target: Path) -> None:
    """Write the report with the estimate from the first labels, and its price."""
    pairs = plan.order[:labels]
    query = plan.pool.query_ids[plan.pool.query[pairs]]
    rows = pd.DataFrame({"query_id": query, "doc_id": plan.pool.doc_ids[pairs]})
    rows = rows.assign(label=answers[pairs], rater="robot", time="2026-11-28T12:00:00.000+00:00")
    table = labels_table(plan, Answered.of(plan.pool, rows))
    file = target.with_suffix(".labels.csv")
    table.to_csv(file, index=False)
    api.report(data, run, target, metric=str(plan.metric.measure), drawn=file,
               assumptions=ASSUMPTIONS)  # fmt: skip


def told(name: str, every: list[dict[str, Way]]) -> None:
    """Print the rows of a set."""
    for metric in METRICS:
        row(f"{name}, {metric}", [each[metric] for each in every])


def row(name: str, ways: list[Way]) -> None:
    labels = np.array([each.labels for each in ways])
    conclusive = np.array([each.verdict != 0 for each in ways])
    within = np.array([each.minutes <= MINUTES for each in ways]) & conclusive
    print(
        f"{name}: wrong {sum(each.wrong for each in ways)} of {len(ways)}, conclusive "
        f"{conclusive.sum()}; labels {np.median(labels):.0f} (median, of {ways[0].pairs}), "
        f"9 of 10 by {np.quantile(labels, 0.9):.0f}; {(labels <= LABELS).sum()} with at most "
        f"{LABELS}; minutes {np.median([each.minutes for each in ways]):.0f} (median), "
        f"{within.sum()} conclusive in {MINUTES}; machine {max(e.machine for e in ways):.0f} s",
        flush=True,
    )
    bound = pd.DataFrame([each.bounds for each in ways])
    perfect, documents, queries = bound[["perfect", "documents", "queries"]].median()
    print(
        f"  bounds: {perfect:.0f} labels with perfect predictions, {documents:.0f} by a fixed "
        f"sample of documents, {queries:.0f} by whole queries; t-test with all labels significant "
        f"in {(bound['p'] < 0.05).sum()} of {len(ways)}",
        flush=True,
    )


# The same way in Chromium.


class Robot:
    """A visitor of the dashboard who works through the pages."""

    def __init__(self, visit: Visit, home: Path, hidden: Hidden, url: str) -> None:
        self.visit, self.page = visit, visit.page
        self.workspace, self.hidden, self.url = Workspace(home), hidden, url
        self.marks: dict[str, float] = {}
        self._started = time.monotonic()
        self._cards: dict[tuple[str, str], str] = {
            (each["title"].strip(), _squeezed(each["text"])): doc
            for doc, each in hidden.texts.items()
        }

    def mark(self, step: str) -> None:
        """Record the seconds since the last step."""
        now = time.monotonic()
        self.marks[step] = now - self._started
        self._started = now
        print(f"  {step}: {self.marks[step]:.0f} s", flush=True)

    def fill(self, label: str, text: str, key: str) -> None:
        field = self.page.get_by_label(label, exact=True).last
        field.fill(text)
        field.press(key)
        self.visit.settle()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()
        self.visit.settle()

    def request(self, engine: str) -> None:
        """Fill the form of a search engine, and test the request."""
        written = endpoint_of(self.url, engine).as_dict()
        self.fill("Search URL", written.pop("url"), "Enter")
        self.fill("Request and paths (JSON)", json.dumps(written), "Control+Enter")
        self.fill("Depth", str(DEPTH), "Enter")
        self.press("Test")
        self.visit.sees(re.compile(r"^\d+ hits? · "))

    def fetch_both(self, queries: dict[str, str]) -> None:
        """Make a data set from the first engine, and fetch the second one."""
        self.visit.open("data")
        self.page.get_by_text("Start from a search URL", exact=True).click()
        self.visit.settle()
        self.fill("Queries, one per line", "\n".join(queries.values()), "Control+Enter")
        self.request(BM25)
        self.page.get_by_role("button", name=f"Fetch {QUERIES} queries").click()
        self.visit.sees("BM25 is ready")
        self.visit.go("Run")
        self.page.get_by_text("Fetch from a search engine", exact=True).click()
        self.visit.settle()
        self.request(VECTORS)
        self.press("Fetch")
        self.finish(1)

    def finish(self, count: int) -> None:
        """Wait until this many jobs are done."""
        # A new workspace may contain the sample too.
        [data] = [row for row in self.workspace.datasets() if row.name == NAMES[BM25]]

        def done() -> bool:
            listed = jobs.list(self.workspace, data.id)
            assert all(job.state in (*jobs.LIVE, "done") for job in listed), listed
            return sum(job.state == "done" for job in listed) == count

        deadline = time.monotonic() + RUN_SECONDS
        while not done():
            assert time.monotonic() < deadline, "a job did not end in time"
            self.page.wait_for_timeout(500)
        # The page notices it within a few seconds.
        self.page.wait_for_timeout(3_000)
        self.visit.settle()

    def rerank(self) -> None:
        source, kind, _model, depth = WAYS[self.hidden.name]
        self.page.get_by_role("button", name="Clear all").first.click()
        self.visit.settle()
        self.page.get_by_role("combobox", name="Rerankers").click()
        self.page.get_by_role("option", name=get(kind).title, exact=True).click()
        self.page.keyboard.press("Escape")
        self.visit.settle()
        if source == VECTORS:
            self.page.get_by_role("combobox", name="Candidates of").click()
            self.page.get_by_role("option", name=re.compile("^Vectors")).click()
            self.visit.settle()
        if depth < DEPTH:
            slider = self.page.get_by_role("slider", name="Depth: candidates reranked")
            slider.press("Home")
            for _ in range(depth - 1):
                slider.press("ArrowRight")
            self.visit.settle()
        self.page.get_by_role("button", name=re.compile("^Start [12] runs?$")).click()
        self.visit.settle()
        self.finish(2)

    def label(self) -> tuple[int, int]:
        """Label with the page's defaults until the result is conclusive, all documents have a label
        or the time is over. Return the verdict and the number of labels."""
        self.visit.go("Label")
        self.press("Start labelling")
        self.fill("Your name, stored with each label", "Robot", "Enter")
        labels = 0
        card = self.page.locator(".rd-label")
        conclusive = self.page.get_by_text("The result is conclusive.")
        while card.count() and not conclusive.count() and labels < MINUTES * 60 // SECONDS:
            shown = card.inner_text()
            key = str(self.answer())
            self.page.wait_for_timeout(650)
            while card.count() and card.inner_text() == shown:
                self.page.keyboard.press(key)
                self.visit.settle()
            labels += 1
        text = self.page.get_by_test_id("stMain").inner_text()
        found = re.search(r"against BM25: (better|worse)", text)
        return {"better": 1, "worse": -1}[found[1]] if found else 0, labels

    def answer(self) -> int:
        """Return the hidden label of the card: 1 for relevant."""
        query, title, text = self.page.locator(".rd-label").evaluate(
            "card => ['.rd-query', '.rd-title', 'p'].map(each =>"
            " card.querySelector(each)?.textContent ?? '')"
        )
        doc = self._cards[title.strip(), _squeezed(text)]
        return int(self.hidden.grades.get((self.hidden.queries[query], doc), 0) > 0)

    def decide(self, folder: Path) -> None:
        """Read the verdict, enter a price, and download the report."""
        self.visit.go("Overview")
        self.mark("verdict")
        self.visit.go("Cost & ROI")
        # Without a conclusive result there is no gain to multiply by a value.
        if self.page.get_by_role("button", name="Use example values").count():
            self.press("Use example values")
        self.mark("price")
        self.visit.go("Report")
        with self.page.expect_download() as waiting:
            self.page.get_by_role("button", name=re.compile("^Make the report")).click()
        waiting.value.save_as(folder / "report.html")
        self.mark("report")


def _squeezed(text: str) -> str:
    return " ".join(text.split())[:1_000]


def browse(name: str, seed: int) -> None:
    """Go the whole way in Chromium with one seed of the queries, and print it."""
    hidden = Hidden.of(name)
    assert hidden.stages
    with (
        tempfile.TemporaryDirectory() as folder,
        engines(hidden) as url,
        dashboard(Path(folder) / "home") as app,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        with visiting(chromium, app) as visit:
            robot = Robot(visit, app.home, hidden, url)
            robot.fetch_both(hidden.sample(seed))
            robot.mark("fetch")
            robot.rerank()
            robot.mark("rerank")
            verdict, labels = robot.label()
            robot.mark("label")
            robot.decide(Path(folder))
            report = (Path(folder) / "report.html").stat().st_size
        chromium.close()
    machine = sum(robot.marks.values()) - robot.marks["label"]
    print(
        f"{name}, seed {seed}, Chromium: verdict {verdict:+d}, {labels} labels, "
        f"{(machine + SECONDS * labels) / 60:.0f} min of which {machine:.0f} s without labels; "
        f"report {report / 1e3:.0f} kB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--sets", nargs="*", default=list(WAYS))
    parser.add_argument("--browser", metavar="SET", choices=WAYS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.browser:
        browse(arguments.browser, arguments.seed)
        return
    every: list[dict[str, Way]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.sets:
            hidden = Hidden.of(name)
            cache = ScoreCache(Path(folder) / f"{name}.sqlite")
            assert hidden.stages
            with engines(hidden) as url:
                ways = [
                    way(hidden, url, seed, cache, None if seed else Path(folder) / "report.html")
                    for seed in range(arguments.seeds)
                ]  # fmt: skip
            told(name, ways)
            every += ways
    told("all", every)


if __name__ == "__main__":
    main()
