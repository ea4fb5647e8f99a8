"""Rerankers that run a model, and their requests."""

from rankdash.core.rerankers import Corpus, Request, create

QUERY = "get a refund for the order"
DOCUMENTS = ["how to return an item", "delivery time", "", "card"]
LONG = "the cat and the dog on the sofa " * 20


def prepared(kind, folder=None, **settings):
    model = {} if folder is None else {"model": str(folder)}
    reranker = create(kind, {**model, **settings})
    reranker.prepare(Corpus([], []))
    return reranker


def ask(query, documents, name="q"):
    return Request(name, query, [f"d{place}" for place in range(len(documents))], documents)


def score(reranker, query, documents):
    return reranker.score([ask(query, documents)])[0]
