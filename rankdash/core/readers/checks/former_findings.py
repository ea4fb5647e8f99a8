"""Conversion of the findings of stored check reports to current wording.

A stored report contains messages in the wording of its version; translations exist only for the
current wording. The fields of a message are the same.
"""

from __future__ import annotations

from dataclasses import replace

from rankdash.core.base.errors import Finding
from rankdash.core.readers.checks.grading import NO_LABELS

_OF_FIRST_STAGE = "documents of the first stage only {judged:.0%}"
# (former, current) pieces of messages and remedies. A piece may be the former wording of a later
# entry, so the order matters.
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
    (
        "To have other candidates, add a ranking that holds them.",
        "To use other candidates, add a ranking that contains them.",
    ),
    (
        "Ties are settled by a rule,",
        "Ties are resolved by a rule,",
    ),
    (
        "They say nothing about an order and are counted separately.",
        "Such queries cannot show which ranking is better and are reported separately.",
    ),
    (
        "Such queries cannot tell rankings apart and are reported separately.",
        "Such queries cannot show which ranking is better and are reported separately.",
    ),
    (
        "per query, all of relevant documents; of the first ten documents of the first stage "
        "{judged:.0%} have one. A document without a label counts as not relevant.",
        "per query, all for relevant documents; {judged:.0%} of the first ten documents of the "
        "first stage have a label. Documents without a label count as not relevant.",
    ),
    (
        "only in what stands before the number:",
        "only in the prefix before the number:",
    ),
    (
        "Check that the file was written to its end.",
        "Check that the file is complete.",
    ),
    (
        "holds no labelled document for the query it is labelled for, though queries and "
        "documents match one by one.",
        "shares no query–document pair with the labels, although it shares queries and documents "
        "with them.",
    ),
    (
        "and that its ids are those of the labels.",
        "and that ranking and labels use the same ids.",
    ),
    (
        "Look at the program that wrote the file: it cuts text in the middle of a character.",
        "The program that wrote the file splits characters; fix it there.",
    ),
    (
        "Not read: the form of the file is not known.",
        "Not read: unknown file format.",
    ),
    (
        "If it holds data, load it alone to see why.",
        "If it contains data, load it by itself to see the error.",
    ),
    (
        "Hidden sheets, which are not read:",
        "Hidden sheets that were not read:",
    ),
    (
        "that hold a formula without a saved value, or an error, and are read as empty:",
        "with an error, or with a formula without a saved value, read as empty:",
    ),
    (
        "and save it, which saves the values.",
        "and save it, which stores the values.",
    ),
    (
        "Files of this table that are not there:",
        "Missing files of this table:",
    ),
    (
        "The rows come in {count} splits. {taken} is used, not {others}.",
        "The rows are in {count} splits. rankdash uses {taken} and ignores {others}.",
    ),
    (
        "The labels come in {count} splits. {taken} is used, not {others}.",
        "The labels are in {count} splits. rankdash uses {taken} and ignores {others}.",
    ),
    (
        "load its files without those of the other splits.",
        "load only the files of that split.",
    ),
    (
        "load its file alone with the queries and the documents.",
        "load only its file with the queries and the documents.",
    ),
    (
        "The columns are read as the ratings of one person each, as in a book of Quepid:",
        "The columns are read as ratings, one annotator per column, as in a Quepid book:",
    ),
    (
        "If they are something else, rename the column that holds the labels",
        "If they are not ratings, rename the column that contains the labels",
    ),
    (
        "The file holds {count} snapshots. {taken} is used, the others are not.",
        "The file contains {count} snapshots. rankdash uses {taken} and ignores others.",
    ),
    (
        "export each to a file of its own.",
        "export each to a separate file.",
    ),
    (
        "Products with one id are other products in other locales,",
        "The same id means different products in different locales,",
    ),
    (
        "To keep a list, write one value for each query in it.",
        "To use a list, write one value per query in it.",
    ),
    (
        "Keys that occur more than once in an entry, of which the last value is used:",
        "Duplicate keys in an entry, for which rankdash uses the last value:",
    ),
    (
        "Give each key of an entry a different name.",
        "The keys of an entry must be unique.",
    ),
    (
        "The rows are those of the longest list.",
        "Only the longest list was read as rows.",
    ),
    (
        "Lines without the id of a document: {count}. The documents are named by their query and "
        "their place in it.",
        "Lines without a document id: {count}. Their documents are named by query and position.",
    ),
    (
        "though others are: the file may be cut short.",
        "although others are: the file may be truncated.",
    ),
    (
        "holds ids of another file,",
        "contains ids of another file,",
    ),
    (
        "Queries whose text is that of another query but for blanks around it:",
        "Queries whose text differs from another query's only in spaces around it:",
    ),
    (
        "Remove the blanks, or give the queries ids.",
        "Remove the spaces, or add ids to the queries.",
    ),
    (
        "Nothing has to be done; the rows say the same.",
        "No action needed; the rows are identical.",
    ),
    (
        "or settle the pairs in the file.",
        "or resolve the pairs in the file.",
    ),
    (
        "because of what it holds.",
        "based on its values.",
    ),
    (
        "The files give no first-stage order, so BM25 ordered the documents that they list for "
        "each query. A search would first have to find them among all others.",
        "The files contain no first-stage ranking, so BM25 ordered the documents that they list "
        "for each query. A real search would first have to find them among all documents.",
    ),
    (
        "The order of the rows in the files is the first stage, which is that of a search only "
        "where the rows were written so.",
        "The first stage is the order of the rows in the files. It matches your search only if "
        "the rows were written in that order.",
    ),
    (
        "The files give neither a first-stage ranking",
        "The files contain neither a first-stage ranking",
    ),
    (
        "Where the rows stand in the order of your search,",
        "If the rows are in the order of your search,",
    ),
    (
        "The files give no first-stage ranking,",
        "The files contain no first-stage ranking,",
    ),
    (
        "settle the rows that differ: with a kappa below 0.4 labels say more about who gave them "
        "than about the documents.",
        "resolve the rows that differ: with a kappa below 0.4, labels depend more on the "
        "annotator than on the document.",
    ),
    (
        "Labels that came by draws with a known probability: {count}. While documents lack a "
        "label, a mean counts them as not relevant and is not an estimate.",
        "Labels sampled with known probabilities: {count}. Means treat unlabelled documents as "
        "not relevant, so they are biased here.",
    ),
    (
        "Until all are labelled, use the estimated difference of a sum over documents, such as "
        "dcg@10.",
        "Use the estimated difference in an additive metric, such as dcg@10, until all documents "
        "are labelled.",
    ),
    (
        "The labels are those of the column {column}. Rows in which {others} has another label: "
        "{count}.",
        "The labels are from the column {column}. Rows with a different label in {others}: "
        "{count}.",
    ),
    (
        "If each column is of one annotator,",
        "If each column contains the labels of one annotator,",
    ),
    (
        "says that the lowest grade is the best:",
        "indicates that the lowest grade is best:",
    ),
    (
        "because they have another number of fields than the rest",
        "because of a wrong number of fields",
    ),
    (
        "Look for a missing separator, or for an unquoted one inside a text.",
        "Check for missing separators, or separators inside unquoted text.",
    ),
    (
        "A row without a label is kept only where it has a first-stage score or rank.",
        "Rows without a label are used only if they have a first-stage score or rank.",
    ),
    (
        "Give the row a number with a decimal point, or remove it.",
        "Use digits and a decimal point, or remove the row.",
    ),
    (
        "because the list of the query holds the document already",
        "because the query already lists the document",
    ),
    (
        "Give one row for each query and document.",
        "Keep one row per query and document.",
    ),
    (
        "Write each like this line:",
        "Use this format for each line:",
    ),
    (
        "because their id came before with another text",
        "because their id already has a different text",
    ),
    (
        "Give every query and every document an id of its own.",
        "Use a unique id for each query and each document.",
    ),
    (
        "Labels that say that it cannot be told: {count}. These documents have no label.",
        'Labels "cannot tell": {count}. These documents count as unlabelled.',
    ),
    (
        "The order is taken from the scores, as trec_eval does.",
        "The scores determine the order, as in trec_eval.",
    ),
    (
        "If the ranks are the truth, write scores that fall with the rank.",
        "If the ranks are correct, write scores that decrease with rank.",
    ),
    (
        "Queries whose ranks leave out places: {count} of {queries}. The documents in between",
        "Queries with gaps in their ranks: {count} of {queries}. The missing documents",
    ),
    (
        "with an empty label where nobody judged it.",
        "with an empty label if it is unjudged.",
    ),
    (
        "Loaded by its name from",
        "Loaded by name from",
    ),
    (
        "Reranking excludes them, or scores them as empty texts: a setting of the run.",
        "Depending on a setting of the run, reranking excludes these candidates or scores them as "
        "empty texts.",
    ),
    (
        "They cannot be reranked.",
        "These queries cannot be reranked.",
    ),
    (
        "There is nothing to rerank for them;",
        "There is nothing to rerank for these queries;",
    ),
    (
        "Of the first ten documents of the ranking {name} only {judged:.0%} have a label. A "
        "document without a label counts as not relevant, so a system that brings up good new "
        "documents",
        "Only {judged:.0%} of the first ten documents of the ranking {name} have a label. "
        "Documents without a label count as not relevant, so a system that finds good new "
        "documents",
    ),
    (
        "documents, and here there are none.",
        "documents, which this data set does not have.",
    ),
    (
        "Low labels sit at the top",
        "Low labels are at the top",
    ),
    (
        "They differ only in white space around the ids:",
        "The ids differ only in white space around them:",
    ),
    (
        "They differ only in how accents are encoded (composed or not): write the ids alike",
        "The ids differ only in how accents are encoded (composed or not): write them alike",
    ),
    (
        "They differ only in upper and lower case: write the ids alike",
        "The ids differ only in upper and lower case: write them alike",
    ),
    (
        "They differ only in leading zeros: write the ids alike",
        "The ids differ only in leading zeros: write them alike",
    ),
    (
        "They differ only in the prefix before the number: write the ids alike",
        "The ids differ only in the prefix before the number: write them alike",
    ),
    (
        "They count as not retrieved:",
        "These documents count as not retrieved:",
    ),
    (
        "so ids were generated that the ranking cannot know:",
        "so rankdash generated ids, which the ranking does not contain:",
    ),
    (
        "They count as 0, like a search that finds nothing,",
        "These queries count as 0, like searches without results,",
    ),
    (
        "If the labels count the queries in the order",
        "If the labels number the queries in the order",
    ),
    (
        "have no ids; they are named {first} to {last} in the order they first appear. The same "
        "text is the same id.",
        "have no ids. rankdash named them {first} to {last} in order of first appearance; equal "
        "texts have the same id.",
    ),
    (
        "Pairs labelled more than once with different labels: {count}. The rule is: {rule}.",
        "Pairs with conflicting labels: {count}. Rule: {rule}.",
    ),
    (
        "Labels may belong to other queries than their ids say.",
        "Labels may belong to other queries than the ids indicate.",
    ),
    (
        "none of {count}. It has {example!r},",
        "none of {count}. {texts} has {example!r},",
    ),
    (
        "The column {column} decides the labels, not the columns of the annotators.",
        "The labels are from the column {column}, not from the annotators' columns.",
    ),
    (
        "with blanks around them, which are removed:",
        "with spaces around them, which were removed:",
    ),
    (
        "Remove the blanks from the file if",
        "Remove the spaces from the file if",
    ),
    (
        "Rows that repeat an id and its text, read once:",
        "Rows with a repeated id and text, which were read once:",
    ),
    (
        "since they describe more than the query:",
        "because they have several values per query:",
    ),
    ("Count the ranks of a query 1, 2, 3 …", "Number the ranks of each query 1, 2, 3 …"),
)


def in_todays_words(finding: Finding) -> Finding:
    """Return a stored finding with its message and remedy in current wording."""
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
