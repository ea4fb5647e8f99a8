"""How a ranking was made and what was found while it was, in sentences for every surface."""

from __future__ import annotations

from collections.abc import Mapping

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, percent
from rankdash.core.data.dataset import FirstStage
from rankdash.core.data.measured import Measured


def without_text(measured: Measured) -> str | None:
    """What became of the candidates without a text; None where every one had a text."""
    if not measured.textless_pairs:
        return None
    if measured.without_text == "empty":
        return ngettext(
            "{n} candidate without a text was scored as an empty text.",
            "{n} candidates without a text were scored as empty texts.",
            measured.textless_pairs,
        )
    return ngettext(
        "{n} candidate without a text was excluded: it stays below the reranked ones.",
        "{n} candidates without a text were excluded: they stay below the reranked ones, in "
        "first-stage order.",
        measured.textless_pairs,
    )


def unknown_tokens(system: str, share: float) -> str:
    """Of a system whose model knows too few of the tokens."""
    return _(
        "{system}: the model does not know {share} of the tokens, so this says nothing about "
        "reranking. Use a model that reads the language of the texts.",
        system=system,
        share=percent(share),
    )


def provenance(facts: Mapping[str, object]) -> str | None:
    """Origin, package, hash and licence of packaged weights; None for another model.

    facts: as `PackagedModel.provenance` names them, such as the record of a run.
    """
    if "model_package" not in facts:
        return None
    return _(
        "Weights: {origin}, from the package {package}, SHA-256 {sha256}…, licence {licence}.",
        origin=facts["model_origin"],
        package=facts["model_package"],
        sha256=str(facts["model_sha256"])[:12],
        licence=facts["model_licence"],
    )


def first_stage(how: FirstStage) -> str:
    """Where the first stage of a data set comes from, as a part of a sentence."""
    match how:
        case "given":
            return _("as it came with the data")
        case "bm25":
            return _("BM25 ordered the documents that the files list for each query")
        case "rows":
            return _("it is the order of the rows in your files")
        case "corpus-bm25":
            return _("BM25 retrieved it from all documents")
        case "corpus-bi-encoder":
            return _("a bi-encoder retrieved it from all documents")
        case "corpus-fused":
            return _("BM25 and a bi-encoder, fused, retrieved it from all documents")
