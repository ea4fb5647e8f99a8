"""What `label plan`, `next`, `add` and `status` do."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base import outfile
from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.i18n import paragraph
from rankdash.core.data.ragged import Integers
from rankdash.core.readers import read, read_beside, sources_at
from rankdash.core.readers.rated import read_rated
from rankdash.core.sampling.additive import Additive
from rankdash.core.sampling.answers import CANNOT_TELL, COLUMNS, Answered, labels_table, next_pairs
from rankdash.core.sampling.draws import VALUE_SHARE, LabelPlan
from rankdash.core.sampling.label_pool import pool_of
from rankdash.core.sampling.status import LabelStatus, status
from rankdash.features.label.labelling import as_in, drawn_to_label
from rankdash.features.label.trail import read_plan, write_answers, write_plan
from rankdash.features.label.words_estimates import effort_sentence, estimate_sentences
from rankdash.kit.commands.arguments import DONE, columns_of
from rankdash.kit.commands.output import (
    csv_line,
    one_line,
    place_name,
    spare_the_input,
    target_of,
    warn,
    write,
)
from rankdash.kit.commands.rankings import labels_of, names_of
from rankdash.kit.html.trec import qrels_bytes

ORDERS = ("draws", "effect")

_NAMELESS = "(no name)"


def make(arguments: argparse.Namespace) -> int:
    target = target_of(arguments.out)
    if target.exists():
        raise DataError(
            "This file exists, and a plan holds labels.",
            remedy="Give --out another name, or move the file.",
            file=arguments.out,
        )
    joined = read_beside((), names_of(arguments.run), columns=columns_of(arguments.columns))
    warn(joined.findings)
    qrels = None if arguments.qrels is None else labels_of(arguments.qrels, arguments)
    if arguments.top is None and qrels is None:
        raise SpecError(
            "The highest label of the scale is missing.",
            remedy="Give --top, such as 3 for grades 0 to 3, or 1 for relevant or not.",
        )
    top = arguments.top if qrels is None or arguments.top is not None else qrels["label"].max()
    if not 0 < arguments.confidence < 1:
        raise SpecError("--confidence is a share between 0 and 1, such as 0.95.")
    metric = Additive.of(arguments.metric, top=float(top), threshold=arguments.threshold)
    pool = pool_of({name: each.ranking for name, each in joined.rankings.items()}, metric.k)
    systems = range(len(pool.systems))
    known = None if qrels is None else pool.aligned(qrels)
    if known is not None:
        metric.gains(known)
    plan = LabelPlan.make(
        pool,
        metric,
        seed=arguments.seed,
        contrasts=[(a, b) for a in systems for b in systems if a < b]
        if arguments.all_pairs
        else (),
        known=known,
        level=arguments.confidence,
        mode=arguments.mode,
        share=VALUE_SHARE,
    )
    # Never over a plan that somebody else made in between.
    outfile.create(target, write_plan(plan))
    numbers = {
        "mode": plan.mode,
        "systems": list(pool.systems),
        "queries": len(pool.query_ids),
        "excluded_queries": list(pool.excluded),
        "pairs": len(pool),
        "to_label": len(plan.order),
        "known": int((~np.isnan(plan.known)).sum()),
    }
    if arguments.format == "json":
        return _json(numbers)
    sys.stdout.write(
        f"{len(plan.order):,} of the {len(pool):,} pairs in the top {metric.k} of "
        f"{len(pool.systems)} rankings can change the result and have no label. "
        f"Written: {place_name(target)}\n"
    )
    if pool.excluded:
        sys.stderr.write(
            f"warning: excluded, because not every ranking has them: {len(pool.excluded):,} "
            f"queries, such as {one_line(', '.join(pool.excluded[:3]))}\n"
        )
    return DONE


def draw(arguments: argparse.Namespace) -> int:
    plan, answers = read_plan(Path(arguments.plan).read_bytes(), arguments.plan)
    if not 0 <= arguments.double <= 1:
        raise SpecError("--double is a share from 0 to 1, such as 0.1.")
    done, most = Answered.of(plan.pool, answers), max(arguments.count, 0)
    largest = arguments.order == "effect"
    pairs = next_pairs(plan, done, arguments.rater, most, doubled=arguments.double, largest=largest)
    if largest:
        sys.stderr.write(
            "warning: Largest effect first is no random sample: a difference computed from such "
            "labels is biased. The estimate counts each once the draws before it have a "
            "label.\n"
        )
    if arguments.out is not None:
        return _fill_in(plan, pairs, arguments)
    ids = plan.pool.index[pairs]
    cards = [{"query_id": query, "doc_id": doc} for query, doc in ids]
    if arguments.data:
        cards = _with_texts(cards, arguments.data)
    if arguments.format == "json":
        return _json(cards)
    for card in cards:
        sys.stdout.write("\t".join(one_line(text) for text in card.values()) + "\n")
    if not cards:
        sys.stderr.write("Every pair that can make a difference has a label.\n")
    return DONE


def _fill_in(plan: LabelPlan, pairs: Integers, arguments: argparse.Namespace) -> int:
    """Write the pairs as a file to fill in."""
    target = target_of(arguments.out)
    spare_the_input(target, [arguments.plan, *arguments.data])
    none = pd.Series(dtype=object)
    queries, documents = none, none
    if arguments.data:
        parsed = read(sources_at(arguments.data))
        queries = parsed.queries.set_index("query_id")["text"]
        table = parsed.documents.set_index("doc_id").fillna("")
        documents = (table["title"] + " " + table["text"]).str.strip()
        bare = int((documents.reindex(plan.pool.doc_ids[pairs]).fillna("") == "").sum())
        _say_bare(bare, len(pairs))
    write(_csv(drawn_to_label(plan, pairs, queries, documents)), target)
    if arguments.out != "-":
        sys.stdout.write(f"Pairs to label: {len(pairs):,}. Written: {place_name(target)}\n")
    return DONE


def _say_bare(bare: int, pairs: int) -> None:
    if bare:
        sys.stderr.write(
            f"warning: Documents without a text in these files: {bare:,} of {pairs:,}.\n"
        )


def _with_texts(cards: list[dict[str, str]], data: Sequence[str]) -> list[dict[str, str]]:
    parsed = read(sources_at(data))
    queries = parsed.queries.set_index("query_id")["text"]
    documents = parsed.documents.set_index("doc_id")
    titles, texts = documents.get("title"), documents["text"]

    def text(table: pd.Series[str] | None, name: str) -> str:
        found = None if table is None else table.get(name)
        return found if isinstance(found, str) else ""

    bare = sum(not text(documents["text"], card["doc_id"]) for card in cards)
    _say_bare(bare, len(cards))
    return [
        {
            "query_id": card["query_id"],
            "query": text(queries, card["query_id"]),
            "doc_id": card["doc_id"],
            "title": text(titles, card["doc_id"]),
            "document": text(texts, card["doc_id"]),
        }
        for card in cards
    ]


def take(arguments: argparse.Namespace) -> int:
    plan, answers = read_plan(Path(arguments.plan).read_bytes(), arguments.plan)
    new = _as_in(plan, _new_answers(arguments))
    inside = _inside(plan, new, arguments.labels or "")
    kept = _without_known(plan, new[inside])
    # Refused before anything is written: a plan has one scale.
    plan.metric.gains(kept["label"].to_numpy(dtype=np.float64))
    outfile.append(Path(arguments.plan), [write_answers(kept)])
    found = status(plan, Answered.of(plan.pool, pd.concat([answers, kept], ignore_index=True)))
    numbers = {"added": len(kept), "ignored": len(new) - len(kept), **found.numbers()}
    if arguments.format == "json":
        return _json(numbers)
    ignored = (
        f", {numbers['ignored']:,} for other pairs or known before ignored"
        if numbers["ignored"]
        else ""
    )
    sys.stdout.write(f"Labels added: {len(kept):,}{ignored}.\n")
    _say(found)
    return DONE


def _as_in(plan: LabelPlan, table: pd.DataFrame) -> pd.DataFrame:
    """The rows with ids as the plan spells them, where a file for a spreadsheet changed them."""
    found = table.copy()
    for at, name in enumerate(("query_id", "doc_id")):
        own = as_in(table[name], set(plan.pool.index.levels[at]))
        found[name] = np.array(
            [new or old for new, old in zip(own, table[name], strict=True)], dtype=object
        )
    return found


def _without_known(plan: LabelPlan, table: pd.DataFrame) -> pd.DataFrame:
    """The rows but for what nobody said anew: labels that were there before the plan, as the file
    of its labels has them."""
    places = plan.pool.index.get_indexer(pd.MultiIndex.from_frame(table[["query_id", "doc_id"]]))
    said = (plan.known[places] != table["label"]) | (table["rater"] != "")
    found: pd.DataFrame = table[said]
    return found


def _inside(plan: LabelPlan, table: pd.DataFrame, file: str) -> npt.NDArray[np.bool_]:
    """Which rows are for a pair of the plan. Raises DataError where none is."""
    pairs = pd.MultiIndex.from_frame(table[["query_id", "doc_id"]])
    found: npt.NDArray[np.bool_] = pairs.isin(plan.pool.index)
    if not found.any():
        raise DataError(
            "None of the {count} labels is for a pair of this plan.",
            remedy="Check that query and document ids are those of the rankings.",
            file=file,
            count=len(table),
        )
    return found


def _new_answers(arguments: argparse.Namespace) -> pd.DataFrame:
    pair = [arguments.query, arguments.doc]
    said = (arguments.label is not None) + arguments.cannot_tell
    one = None not in pair and said == 1 and arguments.labels is None
    if not one and (arguments.labels is None or said or pair != [None, None]):
        raise SpecError(
            "`label add` takes a file of labels, or --query and --doc with either --label or "
            "--cannot-tell."
        )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    if one:
        if not arguments.cannot_tell and not math.isfinite(arguments.label):
            raise SpecError(
                "--label is no number: {label}.",
                remedy="Give a grade of the plan's scale, or --cannot-tell.",
                label=str(arguments.label),
            )
        label = np.nan if arguments.cannot_tell else arguments.label
        table = pd.DataFrame([[*pair, label]], columns=list(COLUMNS[:3]))
        return table.assign(rater=arguments.rater, time=now)
    sources = sources_at([arguments.labels])
    rated = read_rated(sources[0], rater=arguments.rater) if len(sources) == 1 else None
    if rated is None:
        table = labels_of(arguments.labels, arguments, sources)
        return table.assign(rater=arguments.rater, time=now)
    table, findings = rated
    if arguments.rater or not table["rater"].any():
        # Labels of one person: conflicts are resolved as in any file.
        unsure = table[table["label"].isna()]
        labels = [labels_of(arguments.labels, arguments, sources)] * (len(unsure) < len(table))
        once = pd.concat([*labels, unsure], ignore_index=True).drop_duplicates(list(COLUMNS[:2]))
        return once.assign(rater=arguments.rater, time=now)
    warn(findings)
    return table


def tell(arguments: argparse.Namespace) -> int:
    plan, answers = read_plan(Path(arguments.plan).read_bytes(), arguments.plan)
    judge = None
    if arguments.judge is not None:
        grades = labels_of(arguments.judge, arguments)
        judge = plan.pool.aligned(grades[_inside(plan, grades, arguments.judge)])
    answered = Answered.of(plan.pool, answers)
    found = status(plan, answered, judge)
    if arguments.out is not None:
        target = target_of(arguments.out)
        spare_the_input(target, [arguments.plan, *filter(None, [arguments.judge])])
        write(_file_of(labels_table(plan, answered), target.suffix), target)
        if arguments.out == "-":
            return DONE
    if arguments.format == "json":
        return _json(found.numbers())
    _say(found)
    return DONE


def _file_of(labels: pd.DataFrame, ending: str) -> bytes:
    """The labels as CSV, or as TREC qrels, which hold no draws and nothing that cannot be told."""
    if ending != ".qrels":
        return _csv(labels)
    told = labels[labels["label"] != CANNOT_TELL]
    return qrels_bytes(told.astype({"label": np.float64}))


def _csv(table: pd.DataFrame) -> bytes:
    rows = table.astype(object).where(table.notna(), "").itertuples(index=False)
    lines = [csv_line(table.columns), *(csv_line(map(str, row)) for row in rows)]
    return "".join(lines).encode("utf-8", "replace")


def _say(found: LabelStatus) -> None:
    for each in found.estimates:
        sys.stdout.write(one_line(paragraph(estimate_sentences(each))) + "\n")
    sys.stdout.write(one_line(effort_sentence(found)) + "\n")
    if found.saved:
        sys.stdout.write(
            f"With the judge, about {found.saved:,} labels fewer than without it so far; the "
            "result rests on people's labels.\n"
            if found.saved > 0
            else f"The judge has cost about {-found.saved:,} labels so far.\n"
        )
    for rater in found.raters:
        sys.stdout.write(
            f"{one_line(rater.name) or _NAMELESS}: {rater.answers:,} answers, "
            f"{rater.cannot_tell:,} of them cannot tell\n"
        )
    for agreement in found.agreements:
        kappa = agreement.unweighted
        names = " and ".join(one_line(name) or _NAMELESS for name in agreement.raters)
        value = (
            "no kappa, since both gave one label only"
            if math.isnan(kappa.kappa)
            else f"kappa {kappa.kappa:.2f} ({kappa.low:.2f} to {kappa.high:.2f})"
        )
        pairs = "1 pair" if kappa.pairs == 1 else f"{kappa.pairs:,} pairs"
        sys.stdout.write(f"{names}: {value} on {pairs}, the same label on {kappa.agree:.0%}\n")


def _json(value: dict[str, Any] | Iterable[Any]) -> int:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    return DONE
