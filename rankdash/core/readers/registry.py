"""What is read, and the readers of formats that have one: a line each.

Text, JSON and Arrow readers make a `Table` of a file whose content they recognise, `collection`
several of one that holds a whole data set. Preparers look at all tables of a call, and change those
whose columns they recognise. Everything else is told by its columns alone.
"""

from __future__ import annotations

from types import ModuleType

from rankdash.core.readers.formats import (
    cast,
    collection,
    esci,
    huggingface,
    json_layouts,
    letor,
    opensearch,
    quepid,
    ranx,
    rre,
    trec_markup,
)

TEXT: tuple[ModuleType, ...] = (letor, trec_markup)
JSON: tuple[ModuleType, ...] = (opensearch, rre, cast, collection, json_layouts, ranx)
PREPARERS: tuple[ModuleType, ...] = (huggingface, quepid, esci)

# As people look for them; the pages, the README and messages list these.
NAMES = (
    "CSV",
    "TSV",
    "JSON",
    "JSON lines",
    "Parquet",
    "Arrow",
    "TREC runs and qrels",
    "TREC documents and topics",
    "BEIR",
    "MTEB reranking",
    "Hugging Face folders",
    "Quepid",
    "WANDS",
    "ESCI",
    "OpenSearch judgments",
    "RRE",
    "ranx",
    "LETOR (SVMlight)",
)
# Shapes of JSON that say what was retrieved and what is relevant: `formats.retrieved` and
# `formats.json_layouts` read them.
SHAPES = ("LlamaIndex", "Ragas", "LangChain and LangSmith", "Haystack")
