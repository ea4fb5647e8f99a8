"""Findings of stored check reports in the words of today.

A stored report holds its messages as they were worded when it was made; translations are found by
the wording of today. The fields of a message are the same ones.
"""

from __future__ import annotations

from dataclasses import replace

from rankdash.core.base.errors import Finding
from rankdash.core.readers.checks.grading import NO_LABELS

_OF_FIRST_STAGE = "documents of the first stage only {judged:.0%}"
# (former, today's), pieces of messages and of remedies.
_REWORDED = (
    *(
        (
            f"The files give no first-stage order, so BM25 ordered each query's {which} documents.",
            "The files give no first-stage order, so BM25 ordered the documents that they list for "
            "each query. A search would first have to find them among all others.",
        )
        for which in ("own", "labelled")
    ),
    (
        "The files give neither a first-stage order nor texts to make one, so the order of the "
        "rows is taken.",
        "The order of the rows in the files is the first stage, which is that of a search only "
        "where the rows were written so.",
    ),
    (
        "Add a ranking, or the texts of queries and documents.",
        "Add a ranking, or a column of scores or ranks, to start from your own search.",
    ),
    (" retrieved the best {depth} of all ", " retrieved up to {depth} of all "),
    (
        "A reranker reads them as empty.",
        "Reranking excludes them, or scores them as empty texts: a setting of the run.",
    ),
    (" left out because ", " excluded because "),
    ("labels nor candidates, left aside:", "labels nor candidates, excluded:"),
    ("the others are left aside.", "the others are not."),
    ("is used, {others} left aside.", "is used, not {others}."),
    (
        "texts. The {read:,} that have a label or a rank were read, the others left aside.",
        "texts. Only the {read:,} that have a label or a rank were read.",
    ),
    ("Opened by its name from", "Loaded by its name from"),
    (" of {all} documents.", " of {all}."),
    (
        "Labelled documents that the ranking {name} spells otherwise:",
        "Labelled documents with a different spelling in the ranking {name}:",
    ),
    (
        "Pairs labelled more than once with the same label: {rows} rows, counted once each.",
        "Rows that repeat the label of a pair: {rows}. Each pair counts once.",
    ),
    ("They are kept as they are.", "They are used unchanged."),
    (
        "None of the {count} ids of {texts} occurs in the labels or rankings.",
        "Ids of {texts} that occur in the labels or rankings: none of {count}.",
    ),
    ("documents are called by their query", "documents are named by their query"),
    ("a paper that goes with the data.", "a licence, a notice or a hidden file."),
    (
        "The rank column contradicts the scores for {count} of {queries} queries.",
        "Queries whose rank column contradicts the scores: {count} of {queries}.",
    ),
    ("about {labels:.1f} a query,", "about {labels:.1f} per query,"),
    ("Ids with another text in another file", "Ids with a different text in another file"),
    ("The first file's text is kept.", "The first file's text is used."),
    ("{count}. The first text is kept.", "{count}. The first text is used."),
    (
        "{rows} of {all}, in {queries} queries.",
        "{rows} of {all}. Queries with such rows: {queries}.",
    ),
    ("order and are counted apart.", "order and are counted separately."),
    (
        "Here a higher label is better. If the lowest is the best in your data, turn the labels "
        "round,",
        "A higher label must be better. If the lowest label is the best in your data, invert the "
        "labels,",
    ),
    (
        "in your data, invert the labels, for example highest + lowest - label.",
        "in your data, reverse the labels: on the page Data, or with --reverse-labels N, where N "
        "is the grade that means not relevant.",
    ),
    ("To have others among the candidates,", "To have other candidates,"),
    (", or leave the row out.", ", or remove the row."),
    (", or leave the entry out.", ", or remove the entry."),
    ("decimal point, or leave it out.", "decimal point, or remove it."),
    ("Keep one row for each query and document.", "Give one row for each query and document."),
    (
        "If it is something else, map the columns by hand.",
        "If it is something else, rename the column, for example to label, first_stage_score, "
        "query or document, and load the file again.",
    ),
    (
        "is taken as the first-stage ranking; the others are compared with it as systems that were "
        "run elsewhere:",
        "is the first-stage ranking; the others are added as systems:",
    ),
    ("is taken as the first-stage ranking.", "is the first-stage ranking."),
    ("Columns left aside, since", "Columns not used, since"),
    ("kept as candidates that nobody judged:", "used as unjudged candidates:"),
    ("is the mean of what its annotators say.", "is the mean of its annotators' labels."),
    (
        "is what most of its annotators say; where no grade has more votes, the lower one.",
        "is the majority vote of its annotators; on a tie, the lower label.",
    ),
    (
        "gave one and the same label in every row they share ({rows}), which says nothing of their "
        "agreement.",
        "gave the same label in every row they share ({rows}), so their agreement cannot be "
        "measured.",
    ),
    ("because as quotes they do not work out.", "because reading them as quotes fails."),
    ('because "" does not work out.', 'because reading them as "" fails.'),
    ("so ids were made that", "so ids were generated that"),
    (
        "as for a search that finds nothing, unless you leave them out.",
        "like a search that finds nothing, unless you exclude them.",
    ),
    (_OF_FIRST_STAGE, "documents of the ranking {name} only {judged:.0%}"),
    (
        "See Overview > Documents without a label for what they could change and which to label "
        "first, or choose",
        "Label documents on the page Label, see Overview > Documents without a label for what they "
        "could change, or choose",
    ),
    (
        "See Overview > Documents without a label for what they could change and which to label "
        "first.",
        "Label documents on the page Label, or see Overview > Documents without a label for what "
        "they could change.",
    ),
    (
        "The rule Judged documents only needs labels",
        "Condensed lists (judged documents only) need labels",
    ),
    (
        "or choose the rule Judged documents only.",
        "or choose Condensed lists (judged documents only) under Metric conventions.",
    ),
)


def in_todays_words(finding: Finding) -> Finding:
    if finding.code == NO_LABELS.code:
        return NO_LABELS
    template, remedy, params = finding.template, finding.remedy, dict(finding.params)
    if _OF_FIRST_STAGE in template:
        params["name"] = "first stage"
    for former, now in _REWORDED:
        template, remedy = template.replace(former, now), remedy.replace(former, now)
    for name, value in finding.params.items():
        if f"{{{name}:g}}" in template:
            template, params[name] = template.replace(f"{{{name}:g}}", f"{{{name}}}"), f"{value:g}"
    return replace(finding, template=template, remedy=remedy, params=params)
