"""Writes files with the functions of another tool, and reads files with them.

    python tests/conformance/drive.py TOOL FOLDER

It runs under the Python that has the tool's package, and imports nothing of rankdash.
FOLDER/data.json contains queries, documents, qrels and run. The tool's files go to FOLDER/theirs;
FOLDER/ours contains files that rankdash wrote. FOLDER/answer.json is for the test: the parts
that the tool read from our files, and its values, metric → query → value (query "": the mean).
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Nested = dict[str, dict[str, float]]
Values = dict[str, dict[str, float]]
CUTOFF = 10


class Exchange:
    """The data, the two folders, and the answer.

    ranked: query → documents, the best first. relevant: query → documents with a label above 0.
    """

    def __init__(self, folder: Path) -> None:
        data = json.loads((folder / "data.json").read_text("utf-8"))
        self.queries: dict[str, str] = data["queries"]
        self.documents: dict[str, str] = data["documents"]
        self.qrels: dict[str, dict[str, int]] = data["qrels"]
        self.run: Nested = data["run"]
        self.folder, self.ours, self.theirs = folder, folder / "ours", folder / "theirs"
        self.read: dict[str, Any] = {}
        self.values: Values = {}
        self.ranked = {
            query: sorted(scores, key=lambda each, of=scores: -of[each])
            for query, scores in self.run.items()
        }
        self.relevant = {
            query: [doc for doc, label in labels.items() if label > 0]
            for query, labels in self.qrels.items()
        }

    def run_file(self, pattern: str) -> Path:
        """Return our file with the ranking."""
        (found,) = sorted((self.ours).glob(pattern))
        return found

    def texts_of(self, ids: Iterable[str]) -> list[str]:
        return [self.documents[each] for each in ids]

    def binary(self, query: str) -> list[int]:
        """Return 1 for each relevant document of the ranking, else 0."""
        return [int(doc in self.relevant[query]) for doc in self.ranked[query]]

    def per_query(self, value: Callable[[str], float]) -> dict[str, float]:
        return {query: float(value(query)) for query in self.queries}


def _nested(rows: Iterable[tuple[Any, Any, Any]], kind: Callable[[Any], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for query, document, value in rows:
        found.setdefault(str(query), {})[str(document)] = kind(value)
    return found


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def ranx(at: Exchange) -> None:
    from ranx import Qrels, Run, evaluate

    qrels, run = Qrels(at.qrels), Run(at.run)
    qrels.save(str(at.theirs / "qrels.json"))
    run.save(str(at.theirs / "initial.json"))
    at.read["qrels"] = Qrels.from_file(str(at.ours / "ranx" / "qrels.json")).to_dict()
    read = Run.from_file(str(at.run_file("ranx/0*.json")))
    at.read["run"] = read.to_dict()
    names = {
        "ndcg@10": "ndcg@10", "ndcg_exp@10": "ndcg_burges@10", "mrr@10": "mrr@10", "map": "map",
        "recall@5": "recall@5", "precision@5": "precision@5", "hit@5": "hit_rate@5",
        "f1@5": "f1@5", "r_precision": "r-precision", "dcg@10": "dcg@10",
    }  # fmt: skip
    for name, theirs in names.items():
        evaluate(qrels, read, theirs)
        at.values[name] = {query: float(value) for query, value in read.scores[theirs].items()}


def ir_measures(at: Exchange) -> None:
    import ir_measures as measures

    qrels = list(measures.read_trec_qrels(str(at.ours / "trec" / "qrels.txt")))
    run = list(measures.read_trec_run(str(at.run_file("trec/0*.trec"))))
    at.read["qrels"] = _nested(
        ((each.query_id, each.doc_id, each.relevance) for each in qrels), int
    )
    at.read["run"] = _nested(((each.query_id, each.doc_id, each.score) for each in run), float)
    names = {
        "ndcg@10": "nDCG@10", "mrr": "RR", "map": "AP",
        "recall@5": "R@5", "precision@5": "P@5", "hit@5": "Success@5", "r_precision": "Rprec",
        "bpref": "Bpref", "judged@5": "Judged@5",
    }  # fmt: skip
    for name, theirs in names.items():
        found = measures.iter_calc([measures.parse_measure(theirs)], qrels, run)
        at.values[name] = {each.query_id: each.value for each in found}


def pytrec_eval(at: Exchange) -> None:
    import pytrec_eval

    _write_json(at.theirs / "qrels.json", at.qrels)
    _write_json(at.theirs / "initial.json", at.run)
    with (at.ours / "trec" / "qrels.txt").open() as file:
        at.read["qrels"] = qrels = pytrec_eval.parse_qrel(file)
    with at.run_file("trec/0*.trec").open() as file:
        at.read["run"] = run = pytrec_eval.parse_run(file)
    names = {
        "ndcg@10": "ndcg_cut_10", "mrr": "recip_rank", "map": "map", "recall@5": "recall_5",
        "precision@5": "P_5", "hit@5": "success_5", "r_precision": "Rprec", "bpref": "bpref",
    }  # fmt: skip
    found = pytrec_eval.RelevanceEvaluator(qrels, pytrec_eval.supported_measures).evaluate(run)
    for name, theirs in names.items():
        at.values[name] = {query: values[theirs] for query, values in found.items()}


def trectools(at: Exchange) -> None:
    import pandas as pd
    from trectools import TrecEval, TrecQrel, TrecRun

    rows = [
        (query, "Q0", doc, rank, at.run[query][doc], "trectools")
        for query, docs in at.ranked.items()
        for rank, doc in enumerate(docs, 1)
    ]
    made = TrecRun()
    frame = pd.DataFrame(rows, columns=["query", "q0", "docid", "rank", "score", "system"])
    made.load_run_from_dataframe(frame)
    made.print_subset(str(at.theirs / "initial.trec"), topics=list(at.queries))
    qrels = TrecQrel(str(at.ours / "trec" / "qrels.txt"))
    run = TrecRun(str(at.run_file("trec/0*.trec")))
    labels = qrels.qrels_data[["query", "docid", "rel"]].itertuples(index=False)
    scores = run.run_data[["query", "docid", "score"]].itertuples(index=False)
    at.read["qrels"], at.read["run"] = _nested(labels, int), _nested(scores, float)
    judge = TrecEval(run, qrels)
    for name, table in {
        "ndcg@10": judge.get_ndcg(depth=10, per_query=True, trec_eval=True),
        "precision@5": judge.get_precision(depth=5, per_query=True),
        "mrr": judge.get_reciprocal_rank(per_query=True),
        "map": judge.get_map(per_query=True),
    }.items():
        found = table.iloc[:, 0].to_dict()
        at.values[name] = {query: float(found.get(query, 0.0)) for query in at.queries}


def ir_datasets(at: Exchange) -> None:
    import ir_datasets

    lines = {
        "docs.tsv": [f"{name}\t{text}" for name, text in at.documents.items()],
        "queries.tsv": [f"{name}\t{text}" for name, text in at.queries.items()],
        "source.txt": [
            f"{query} 0 {doc} {label}"
            for query, labels in at.qrels.items()
            for doc, label in labels.items()
        ],
    }
    for name, content in lines.items():
        (at.folder / name).write_text("\n".join(content) + "\n", "utf-8")
    made = ir_datasets.create_dataset(*(str(at.folder / name) for name in lines))
    for name, rows in (
        ("docs", made.docs_iter()), ("queries", made.queries_iter()), ("qrels", made.qrels_iter()),
    ):  # fmt: skip
        with (at.theirs / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(each._asdict()) + "\n" for each in rows)
    read = ir_datasets.create_dataset(qrels_trec=str(at.ours / "trec" / "qrels.txt"))
    rows = ((each.query_id, each.doc_id, each.relevance) for each in read.qrels_iter())
    at.read["qrels"] = _nested(rows, int)


def datasets(at: Exchange) -> None:
    from datasets import Dataset, load_dataset

    rows = {
        "queries": [{"_id": name, "text": text} for name, text in at.queries.items()],
        "corpus": [{"_id": name, "text": text} for name, text in at.documents.items()],
    }
    for name, each in rows.items():
        Dataset.from_list(each).to_parquet(str(at.theirs / f"{name}.parquet"))
    labels = [
        {"query-id": query, "corpus-id": doc, "score": label}
        for query, found in at.qrels.items()
        for doc, label in found.items()
    ]
    (at.theirs / "qrels").mkdir()
    Dataset.from_list(labels).to_csv(str(at.theirs / "qrels" / "test.csv"))

    def read(kind: str, name: str, **options: Any) -> Any:
        files = str(at.ours / "beir" / name)
        cache = str(at.ours / "cache")
        return load_dataset(kind, data_files=files, split="train", cache_dir=cache, **options)

    for part in ("corpus", "queries"):
        found = read("json", f"{part}.jsonl")
        named = "documents" if part == "corpus" else part
        at.read[named] = dict(zip(found["_id"], found["text"], strict=True))
    found = read("csv", "qrels/test.tsv", sep="\t")
    columns = (found[name] for name in ("query-id", "corpus-id", "score"))
    at.read["qrels"] = _nested(zip(*columns, strict=True), int)


def sklearn(at: Exchange) -> None:
    import numpy as np
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file
    from sklearn.metrics import ndcg_score

    numbers = [number for number, query in enumerate(at.queries) for _ in at.ranked[query]]
    pairs = [(query, doc) for query in at.queries for doc in at.ranked[query]]
    labels = [at.qrels[query].get(doc, 0) for query, doc in pairs]
    scores = np.array([[at.run[query][doc]] for query, doc in pairs])
    file = str(at.theirs / "test.txt")
    dump_svmlight_file(scores, labels, file, zero_based=False, query_id=numbers)
    _, _, queries = load_svmlight_file(file, query_id=True)
    assert queries.tolist() == numbers

    def value(query: str, k: int) -> float:
        ranked = at.ranked[query]
        # It knows only the documents passed to it: labelled ones that are not ranked come last.
        others = [doc for doc in at.qrels[query] if doc not in ranked]
        true = [at.qrels[query].get(doc, 0) for doc in [*ranked, *others]]
        least = min(at.run[query].values())
        scores = [at.run[query][doc] for doc in ranked]
        scores += [least - 1 - number for number in range(len(others))]
        return float(ndcg_score([true], [scores], k=k))

    for k in (5, 8):
        at.values[f"ndcg@{k}"] = at.per_query(lambda query, k=k: value(query, k))


def sentence_transformers(at: Exchange) -> None:
    import numpy as np
    import torch
    from sentence_transformers.evaluation import InformationRetrievalEvaluator

    names = list(at.documents)
    scores = np.full((len(at.queries), len(names)), -1.0)
    for row, query in enumerate(at.queries):
        for doc, score in at.run[query].items():
            scores[row, names.index(doc)] = score

    class Card:
        def set_evaluation_metrics(self, *_: Any) -> None:
            """Store nothing."""

    class Model:
        """A model with the scores of the run."""

        similarity_fn_name = "dot"
        model_card_data = Card()

        def encode(self, texts: list[str], **_: Any) -> Any:
            texts = [texts] if isinstance(texts, str) else list(texts)
            if texts[0] in at.queries.values():
                return np.eye(len(at.queries), dtype=np.float64)
            return scores.T.copy()

        encode_query = encode_document = encode

    evaluator = InformationRetrievalEvaluator(
        at.queries, at.documents, {query: set(docs) for query, docs in at.relevant.items()},
        mrr_at_k=[8], ndcg_at_k=[8], map_at_k=[8], precision_recall_at_k=[5], accuracy_at_k=[5],
        write_csv=False, write_predictions=True,
        score_functions={"dot": lambda one, other: torch.as_tensor(one) @ torch.as_tensor(other).T},
    )  # fmt: skip
    found = evaluator(Model(), output_path=str(at.theirs))
    for name, theirs in {
        "ndcg@8": "dot_ndcg@8", "mrr@8": "dot_mrr@8", "precision@5": "dot_precision@5",
        "recall@5": "dot_recall@5", "hit@5": "dot_accuracy@5",
    }.items():  # fmt: skip
        at.values[name] = {"": float(found[theirs])}
    (predictions,) = at.theirs.glob("*predictions*.jsonl")
    predictions.rename(at.theirs / "initial.jsonl")
    data = {
        "queries": at.queries, "corpus": at.documents, "relevant_docs": at.relevant,
    }  # fmt: skip
    _write_json(at.theirs / "evaluator.json", data)


def _mteb_task(at: Exchange) -> Any:
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    class Task(AbsTaskRetrieval):
        """The data as a retrieval task."""

        metadata = TaskMetadata(
            name="Conformance", description="-", reference=None, type="Retrieval", category="t2t",
            modalities=["text"], eval_splits=["test"], eval_langs=["eng-Latn"],
            main_score="ndcg_at_10", dataset={"path": "none/none", "revision": "0" * 40},
            date=("2026-01-01", "2026-01-02"), domains=[], task_subtypes=[], license=None,
            annotations_creators=None, dialect=[], sample_creation=None, bibtex_citation="",
        )  # fmt: skip

        def load_data(self, **_: Any) -> None:
            texts = [{"id": each, "text": text, "title": ""} for each, text in at.documents.items()]
            queries = [{"id": each, "text": text} for each, text in at.queries.items()]
            split = {
                "corpus": Dataset.from_list(texts),
                "queries": Dataset.from_list(queries),
                "relevant_docs": at.qrels,
                "top_ranked": None,
            }
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    return Task()


def mteb(at: Exchange) -> None:
    import mteb
    from mteb.models.model_meta import ModelMeta

    class Model:
        """A model that returns the run."""

        mteb_model_meta = ModelMeta.create_empty({"name": "none/run", "revision": "1"})

        def index(self, *_: Any, **__: Any) -> None:
            pass

        def search(self, *_: Any, **__: Any) -> Nested:
            return at.run

    result = mteb.evaluate(
        Model(), _mteb_task(at), cache=None, prediction_folder=at.theirs / "predictions",
        overwrite_strategy="always",
    )  # fmt: skip
    (written,) = (at.theirs / "predictions").glob("*.json")
    written.rename(at.theirs / "initial.json")
    (found,) = result.task_results[0].scores["test"]
    for name, theirs in {
        "ndcg@10": "ndcg_at_10", "map@10": "map_at_10", "recall@5": "recall_at_5",
        "precision@5": "precision_at_5", "mrr@10": "mrr_at_10",
    }.items():  # fmt: skip
        at.values[name] = {"": float(found[theirs])}
    reranking = _mteb_task(at).convert_to_reranking(at.run_file("mteb/*/*.json"), top_k=100)
    at.read["ranked"] = dict(reranking.dataset["default"]["test"]["top_ranked"])


def beir(at: Exchange) -> None:
    from beir import util
    from beir.datasets.data_loader import GenericDataLoader
    from beir.retrieval.evaluation import EvaluateRetrieval

    (at.theirs / "qrels").mkdir()
    corpus = {name: {"title": "", "text": text} for name, text in at.documents.items()}
    util.write_to_json(str(at.theirs / "corpus.jsonl"), corpus)
    util.write_to_json(str(at.theirs / "queries.jsonl"), at.queries)
    util.write_to_tsv(str(at.theirs / "qrels" / "test.tsv"), at.qrels)
    util.save_runfile(str(at.theirs / "initial.trec"), at.run)
    corpus, queries, qrels = GenericDataLoader(str(at.ours / "beir")).load(split="test")
    at.read["queries"], at.read["qrels"] = queries, qrels
    at.read["documents"] = {name: each["text"] for name, each in corpus.items()}
    run = at.read["run"] = util.load_runfile(str(at.ours / "beir" / "initial.trec"))
    ndcg, average, recall, precision = EvaluateRetrieval.evaluate(qrels, run, [5, 10])
    mrr = EvaluateRetrieval.evaluate_custom(qrels, run, [10], "mrr")
    for found in (ndcg, average, recall, precision, mrr):
        for theirs, value in found.items():
            name, _, k = theirs.lower().partition("@")
            at.values[f"{'precision' if name == 'p' else name}@{k}"] = {"": value}


def rank_llm(at: Exchange) -> None:
    from rank_llm.data import Candidate, DataWriter, Query, Request, read_requests_from_file

    requests = [
        Request(
            Query(text, name),
            [
                Candidate(doc, at.run[name][doc], {"contents": at.documents[doc]})
                for doc in at.ranked[name]
            ],
        )
        for name, text in at.queries.items()
    ]
    writer = DataWriter(requests)
    writer.write_in_jsonl_format(str(at.theirs / "initial.jsonl"))
    writer.write_in_trec_eval_format(str(at.theirs / "initial.trec"))
    read = read_requests_from_file(str(at.run_file("rank-llm/0*.jsonl")))
    at.read["run"] = {
        each.query.qid: {found.docid: found.score for found in each.candidates} for each in read
    }
    at.read["queries"] = {each.query.qid: each.query.text for each in read}


def flag_embedding(at: Exchange) -> None:
    from FlagEmbedding.abc.evaluation.evaluator import AbsEvaluator

    target = str(at.theirs / "initial.json")
    AbsEvaluator.save_search_results("all", "run", "NoReranker", at.run, target, "test", "cf")
    for name, texts in (("corpus", at.documents), ("test_queries", at.queries)):
        with (at.theirs / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            rows = ({"id": each, "text": text} for each, text in texts.items())
            file.writelines(json.dumps(row) + "\n" for row in rows)
    with (at.theirs / "test_qrels.jsonl").open("w", encoding="utf-8") as file:
        for query, labels in at.qrels.items():
            for doc, label in labels.items():
                row = {"qid": query, "docid": doc, "relevance": label}
                file.write(json.dumps(row) + "\n")
    found = AbsEvaluator.compute_metrics(at.qrels, at.run, [5, 10])
    for name, theirs in {
        "ndcg@10": "ndcg_at_10", "map@10": "map_at_10", "recall@5": "recall_at_5",
        "precision@5": "precision_at_5", "mrr@10": "mrr_at_10",
    }.items():  # fmt: skip
        at.values[name] = {"": float(found[theirs])}


def pyterrier(at: Exchange) -> None:
    import ir_measures
    import pandas as pd
    import pyterrier as pt

    rows = [
        (query, doc, rank, at.run[query][doc])
        for query, docs in at.ranked.items()
        for rank, doc in enumerate(docs)
    ]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "rank", "score"])
    pt.io.write_results(frame, str(at.theirs / "initial.trec"))
    qrels = pt.io.read_qrels(str(at.ours / "trec" / "qrels.txt"))
    run = pt.io.read_results(str(at.run_file("trec/0*.trec")))
    labels = qrels[["qid", "docno", "label"]].itertuples(index=False)
    scores = run[["qid", "docno", "score"]].itertuples(index=False)
    at.read["qrels"], at.read["run"] = _nested(labels, int), _nested(scores, float)
    names = {"ndcg@10": "nDCG@10", "map": "AP", "mrr": "RR", "recall@5": "R@5"}
    measures = [ir_measures.parse_measure(each) for each in names.values()]
    found = pt.Evaluate(run, qrels, metrics=measures, perquery=True)
    for name, measure in zip(names, measures, strict=True):
        keys = {str(each): each for each in next(iter(found.values()))}
        at.values[name] = {
            query: float(values[keys[str(measure)]]) for query, values in found.items()
        }


def llama_index(at: Exchange) -> None:
    from llama_index.core.evaluation import RetrieverEvaluator
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.finetuning.embeddings.common import EmbeddingQAFinetuneDataset

    class Retriever(BaseRetriever):
        """A retriever that returns the run."""

        def _retrieve(self, bundle: Any) -> list[NodeWithScore]:
            (query,) = (each for each, text in at.queries.items() if text == bundle.query_str)
            return [
                NodeWithScore(
                    node=TextNode(id_=doc, text=at.documents[doc]), score=at.run[query][doc]
                )
                for doc in at.ranked[query]
            ]

    data = EmbeddingQAFinetuneDataset(
        queries=at.queries, corpus=at.documents, relevant_docs=at.relevant
    )
    data.save_json(str(at.theirs / "dataset.json"))
    names = {"hit@10": "hit_rate", "mrr": "mrr", "map": "ap", "recall@10": "recall"}
    evaluator = RetrieverEvaluator.from_metric_names(
        [*names.values(), "ndcg"], retriever=Retriever()
    )
    results = {
        query: evaluator.evaluate(at.queries[query], at.relevant[query]) for query in at.queries
    }
    with (at.theirs / "results.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(each.model_dump_json() + "\n" for each in results.values())
    for name, theirs in {**names, "ndcg@10": "ndcg"}.items():
        at.values[name] = {query: each.metric_vals_dict[theirs] for query, each in results.items()}


def ragas(at: Exchange) -> None:
    import asyncio

    from ragas import EvaluationDataset, SingleTurnSample
    from ragas.metrics import IDBasedContextPrecision, IDBasedContextRecall

    samples = {
        query: SingleTurnSample(
            user_input=text,
            retrieved_contexts=at.texts_of(at.ranked[query]),
            reference_contexts=at.texts_of(at.relevant[query]),
            retrieved_context_ids=at.ranked[query],
            reference_context_ids=at.relevant[query],
        )
        for query, text in at.queries.items()
    }
    data = EvaluationDataset(samples=list(samples.values()))
    data.to_jsonl(at.theirs / "samples.jsonl")
    for name, metric in {
        f"recall@{CUTOFF}": IDBasedContextRecall(), "shown": IDBasedContextPrecision(),
    }.items():  # fmt: skip
        at.values[name] = at.per_query(
            lambda query, metric=metric: asyncio.run(metric.single_turn_ascore(samples[query]))
        )
    # Its precision divides by the documents shown.
    shown = at.values.pop("shown")
    at.values[f"precision@{CUTOFF}"] = {
        query: value * len(at.ranked[query]) / CUTOFF for query, value in shown.items()
    }


def haystack(at: Exchange) -> None:
    from haystack import Document
    from haystack.components import evaluators
    from haystack.evaluation import EvaluationRunResult

    def documents(query: str, ids: list[str], scores: Mapping[str, float]) -> list[Document]:
        return [Document(id=doc, content=at.documents[doc], score=scores.get(doc)) for doc in ids]

    truth = [documents(query, at.relevant[query], at.qrels[query]) for query in at.queries]
    shown = [documents(query, at.ranked[query], at.run[query]) for query in at.queries]
    inputs = {
        "questions": list(at.queries.values()),
        "ground_truth_documents": [[each.to_dict() for each in row] for row in truth],
        "retrieved_documents": [[each.to_dict() for each in row] for row in shown],
    }
    results = {}
    for name, evaluator in {
        "ndcg@10": evaluators.DocumentNDCGEvaluator(),
        "mrr": evaluators.DocumentMRREvaluator(),
        "recall@10": evaluators.DocumentRecallEvaluator(mode="multi_hit"),
    }.items():
        found = evaluator.run(ground_truth_documents=truth, retrieved_documents=shown)
        results[name] = found
        at.values[name] = dict(zip(at.queries, found["individual_scores"], strict=True))
    report = EvaluationRunResult("conformance", inputs=inputs, results=results)
    _write_json(at.theirs / "report.json", report.detailed_report("json"))


def langchain(at: Exchange) -> None:
    from langchain_core.documents import Document

    def documents(ids: list[str]) -> list[Document]:
        return [
            Document(id=doc, page_content=at.documents[doc], metadata={"source": "cf"})
            for doc in ids
        ]

    with (at.theirs / "examples.jsonl").open("w", encoding="utf-8") as file:
        for query, text in at.queries.items():
            row = {
                "id": query,
                "inputs": {"question": text},
                "outputs": {"documents": [d.model_dump() for d in documents(at.ranked[query])]},
                "reference_outputs": {
                    "documents": [d.model_dump() for d in documents(at.relevant[query])]
                },
            }
            file.write(json.dumps(row) + "\n")


def deepeval(at: Exchange) -> None:
    from deepeval.dataset import EvaluationDataset, Golden

    goldens = [
        Golden(
            input=text,
            expected_output="-",
            context=at.texts_of(at.relevant[query]),
            retrieval_context=at.texts_of(at.ranked[query]),
        )
        for query, text in at.queries.items()
    ]
    data = EvaluationDataset(goldens=goldens)
    data.save_as("json", str(at.theirs), "goldens")


def autorag(at: Exchange) -> None:
    import pandas as pd
    from autorag.data.qa.schema import QA, Corpus, Raw
    from autorag.evaluation.metric import retrieval
    from autorag.schema.metricinput import MetricInput

    corpus = pd.DataFrame({
        "doc_id": list(at.documents), "contents": list(at.documents.values()),
        "metadata": [{"last_modified_datetime": pd.Timestamp(0)}] * len(at.documents),
        "path": "-", "start_end_idx": [(0, 1)] * len(at.documents),
    })  # fmt: skip
    truth = pd.DataFrame({
        "qid": list(at.queries), "query": list(at.queries.values()),
        "retrieval_gt": [[at.relevant[query]] for query in at.queries],
        "generation_gt": [["-"]] * len(at.queries),
    })  # fmt: skip
    corpora = Corpus(corpus, Raw(pd.DataFrame()))
    QA(truth, corpora).to_parquet(str(at.theirs / "qa.parquet"), str(at.theirs / "corpus.parquet"))
    ranked = list(at.ranked.items())
    pd.DataFrame({
        "retrieved_contents": [at.texts_of(docs) for _, docs in ranked],
        "retrieved_ids": [docs for _, docs in ranked],
        "retrieve_scores": [[at.run[query][doc] for doc in docs] for query, docs in ranked],
    }).to_parquet(at.theirs / "0.parquet")  # fmt: skip
    inputs = [
        MetricInput(retrieval_gt=[[doc] for doc in at.relevant[query]], retrieved_ids=docs)
        for query, docs in ranked
    ]
    found = retrieval.retrieval_recall(metric_inputs=inputs)
    at.values[f"recall@{CUTOFF}"] = dict(zip(at.queries, found, strict=True))


def openinference(at: Exchange) -> None:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    class Retriever(BaseRetriever):
        """A retriever that returns the run."""

        def _retrieve(self, bundle: Any) -> list[NodeWithScore]:
            (query,) = (each for each, text in at.queries.items() if text == bundle.query_str)
            return [
                NodeWithScore(
                    node=TextNode(id_=doc, text=at.documents[doc]), score=at.run[query][doc]
                )
                for doc in at.ranked[query]
            ]

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    for text in at.queries.values():
        Retriever().retrieve(text)
    with (at.theirs / "spans.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(span.to_json(indent=None) + "\n" for span in spans.get_finished_spans())


def rerankers(at: Exchange) -> None:
    from rerankers.documents import Document
    from rerankers.results import RankedResults, Result

    results = [
        RankedResults(
            [
                Result(Document(at.documents[doc], doc_id=doc), at.run[query][doc], rank)
                for rank, doc in enumerate(at.ranked[query], 1)
            ],
            text,
            has_scores=True,
        )
        for query, text in at.queries.items()
    ]
    with (at.theirs / "results.jsonl").open("w", encoding="utf-8") as file:
        for each in results:
            found = [
                {"doc_id": one.doc_id, "text": one.text, "score": one.score, "rank": one.rank}
                for one in each.top_k(CUTOFF)
            ]
            file.write(json.dumps({"query": each.query, "results": found}) + "\n")


def pyserini(at: Exchange) -> None:
    from pyserini.trectools import Qrels, TrecRun

    rows = [
        (query, "Q0", doc, rank, at.run[query][doc], "pyserini")
        for query, docs in at.ranked.items()
        for rank, doc in enumerate(docs, 1)
    ]
    TrecRun.from_list(rows).save_to_txt(str(at.theirs / "initial.trec"))
    run = TrecRun(str(at.run_file("trec/0*.trec"))).run_data
    scores = run[["topic", "docid", "score"]].itertuples(index=False)
    at.read["run"] = _nested(scores, float)
    qrels = Qrels(str(at.ours / "trec" / "qrels.txt")).qrels_data
    labels = qrels[["topic", "docid", "relevance_grade"]].itertuples(index=False)
    at.read["qrels"] = _nested(labels, int)


def trulens(at: Exchange) -> None:
    from trulens.feedback import GroundTruthAgreement
    from trulens.feedback.llm_provider import LLMProvider

    truth = [
        {
            "query": text,
            "query_id": query,
            "expected_chunks": [
                {"text": at.documents[doc], "expect_score": at.qrels[query][doc]}
                for doc in at.qrels[query]
            ],
        }
        for query, text in at.queries.items()
    ]
    _write_json(at.theirs / "golden.json", truth)
    # Its MRR counts every expected chunk, also with the score 0.
    relevant = [
        each | {"expected_chunks": [one for one in each["expected_chunks"] if one["expect_score"]]}
        for each in truth
    ]
    # Only metrics that call a model use the provider.
    provider = LLMProvider.model_construct()
    graded, binary = (GroundTruthAgreement(each, provider=provider) for each in (truth, relevant))
    shown = {query: at.texts_of(docs) for query, docs in at.ranked.items()}
    at.values["ndcg@5"] = at.per_query(
        lambda query: graded.ndcg_at_k(at.queries[query], shown[query], k=5)
    )
    at.values["mrr"] = at.per_query(lambda query: binary.mrr(at.queries[query], shown[query]))


# tool → its function and its package.
TOOLS: dict[str, tuple[Callable[[Exchange], None], str]] = {
    "ranx": (ranx, "ranx"),
    "ir_measures": (ir_measures, "ir_measures"),
    "pytrec_eval": (pytrec_eval, "pytrec_eval-terrier"),
    "trectools": (trectools, "trectools"),
    "ir_datasets": (ir_datasets, "ir_datasets"),
    "Hugging Face datasets": (datasets, "datasets"),
    "scikit-learn": (sklearn, "scikit-learn"),
    "sentence-transformers": (sentence_transformers, "sentence-transformers"),
    "MTEB": (mteb, "mteb"),
    "BEIR": (beir, "beir"),
    "rank_llm": (rank_llm, "rank-llm"),
    "FlagEmbedding": (flag_embedding, "FlagEmbedding"),
    "PyTerrier": (pyterrier, "pyterrier"),
    "Pyserini": (pyserini, "pyserini"),
    "LlamaIndex": (llama_index, "llama-index-core"),
    "Ragas": (ragas, "ragas"),
    "Haystack": (haystack, "haystack-ai"),
    "LangChain": (langchain, "langchain-core"),
    "DeepEval": (deepeval, "deepeval"),
    "AutoRAG": (autorag, "AutoRAG"),
    "OpenInference (Phoenix)": (openinference, "openinference-instrumentation-llama-index"),
    "rerankers": (rerankers, "rerankers"),
    "TruLens": (trulens, "trulens-feedback"),
}


def main(tool: str, folder: Path) -> None:
    exchange = Exchange(folder)
    TOOLS[tool][0](exchange)
    values = {
        name: {query: value for query, value in found.items() if not math.isnan(value)}
        for name, found in exchange.values.items()
    }
    _write_json(folder / "answer.json", {"read": exchange.read, "values": values})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
