"""Stored check reports speak in the words of today, so that they have a translation."""

import pytest

from rankdash.analysis.labels.former_findings import in_todays_words
from rankdash.findings import Finding
from rankdash.i18n import finding_text, gettext, speaking


@pytest.mark.parametrize(
    ("template", "params", "said"),
    [
        (
            "Rows left out because the label is empty: {count} (lines {lines}).",
            {"count": 2, "lines": "3, 5"},
            "因标注为空而排除的行：2 行（第 3, 5 行）。",
        ),
        (
            "Queries with neither labels nor candidates, left aside: {count} of {all}.",
            {"count": 1, "all": 9},
            "既无标注也无候选而排除的查询：9 条中的 1 条。",
        ),
        (
            "The rank column contradicts the scores for {count} of {queries} queries. The order "
            "is taken from the scores, as trec_eval does.",
            {"count": 1, "queries": 9},
            "9 条查询中有 1 条的名次列与分数矛盾。与 trec_eval 一样，以分数决定顺序。",
        ),
        (
            "Every label is {label:g}. Documents without a label count as not relevant.",
            {"label": 1.0},
            "所有标注都是 1。未标注的文档按不相关计。",
        ),
        (
            "The files give no first-stage ranking, so BM25 retrieved the best {depth} of all "
            "{documents} documents for each query.",
            {"depth": 48, "documents": 48},
            "文件没有给出初排，因此由 BM25 从全部 48 篇文档中为每条查询最多召回 48 篇。",
        ),
    ],
)
def test_a_message_as_it_was_worded_before_is_translated(template, params, said):
    with speaking("zh"):
        assert finding_text(in_todays_words(Finding("note", "any", template, params))) == said


@pytest.mark.parametrize(
    "former",
    [
        "{name} is taken as the first-stage ranking.",
        "{name} is taken as the first-stage ranking; the others are compared with it as systems "
        "that were run elsewhere: {others}.",
        "Columns left aside, since they describe more than the query: {columns}.",
        "Rows without a label, kept as candidates that nobody judged: {count}.",
        "The label of a row is the mean of what its annotators say.",
        "The label of a row is what most of its annotators say; where no grade has more votes, the "
        "lower one.",
        "{raters} annotators gave one and the same label in every row they share ({rows}), which "
        "says nothing of their agreement.",
        "Quotation marks were read as plain characters, because as quotes they do not work out.",
        'Quotation marks inside a text were read as \\", because "" does not work out.',
        "The rows have no ids, so ids were made that the ranking cannot know: add columns query_id "
        "and doc_id to the rows.",
        "They count as 0, as for a search that finds nothing, unless you leave them out.",
        "See Overview > Documents without a label for what they could change and which to label "
        "first. The rule Judged documents only needs labels of not relevant documents, and here "
        "there are none.",
        "See Overview > Documents without a label for what they could change and which to label "
        "first, or choose the rule Judged documents only.",
    ],
)
def test_every_message_and_remedy_that_was_reworded_has_a_translation(former):
    today = in_todays_words(Finding("note", "any", former, {}, former))
    with speaking("zh"):
        assert gettext(today.template) != today.template
    assert today.remedy == today.template


def test_a_message_of_today_stays():
    finding = Finding("note", "no_label", "Every label is {label}.", {"label": "1"}, "Label more.")
    assert in_todays_words(finding) == finding
