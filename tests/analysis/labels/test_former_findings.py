"""Stored check reports are shown with the present messages, so that they have a translation."""

from rankdash.core.base.errors import Finding
from rankdash.core.base.i18n import finding_text, gettext, speaking
from rankdash.core.readers.checks.former_findings import in_todays_words
from tests.approved import table

LEFT = "Rows left out because the label is empty: {count} (lines {lines})."
ASIDE = "Queries with neither labels nor candidates, left aside: {count} of {all}."
RANKS = (
    "The rank column contradicts the scores for {count} of {queries} queries. The order is taken "
    "from the scores, as trec_eval does."
)
GRADE = "Every label is {label:g}. Documents without a label count as not relevant."
BM25 = (
    "The files give no first-stage ranking, so BM25 retrieved the best {depth} of all {documents} "
    "documents for each query."
)
FORMER: dict[str, dict[str, object]] = {
    LEFT: {"count": 2, "lines": "3, 5"},
    ASIDE: {"count": 1, "all": 9},
    RANKS: {"count": 1, "queries": 9},
    GRADE: {"label": 1.0},
    BM25: {"depth": 48, "documents": 48},
}
REMEDIES = (
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
)


def test_every_message_and_remedy_that_was_reworded_has_a_translation(approved):
    said = {}
    with speaking("zh"):
        for former, params in FORMER.items():
            said[former] = finding_text(in_todays_words(Finding("note", "any", former, params)))
        for former in REMEDIES:
            today = in_todays_words(Finding("note", "any", former, {}, former))
            assert gettext(today.template) != today.template == today.remedy
            said[former] = gettext(today.template)
    approved("analysis/former_findings.zh", table(said))


def test_a_message_of_today_stays():
    finding = Finding("note", "no_label", "Every label is {label}.", {"label": "1"}, "Label more.")
    assert in_todays_words(finding) == finding
