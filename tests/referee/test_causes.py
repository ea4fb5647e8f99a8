"""Reasons, headroom and rank shifts, compared with the definitions."""

import math
import re

import numpy as np

from rankdash.core.words.verdicts import reason_words
from rankdash.features.rank_shifts import study
from tests.referee.definitions import best, value
from tests.referee.shown import assert_shows
from tests.referee.why import reasons


def test_every_reason(own, said):
    """By query, and the sum of each reason."""
    _headroom, *tables = said.page.tables["reasons"]
    for system, rows in zip(own.challengers, tables, strict=True):
        found = reasons(own.systems[own.baseline], own.systems[system], own.labels, own.rules)
        ids = list(dict.fromkeys(said.queries["system"]))
        name = ids[list(own.systems).index(system)]
        shown = said.queries[said.queries["system"] == name].set_index("query_id")["reason"]
        assert shown.dropna().to_dict() == {query: found[query] for query in shown.dropna().index}
        changes = own.changes(system)
        groups: dict[str, list[str]] = {}
        # Only the queries in the mean; the others are listed below the table.
        for query, code in found.items():
            if query in changes:
                groups.setdefault(code, []).append(query)
        words = {word: code for code, word in reason_words().items()}
        assert {words[row[0]] for row in rows[1:]} == set(groups)
        for row in rows[1:]:
            inside = groups[words[row[0]]]
            parts = [changes[query] for query in inside]
            assert row[1] == str(len(inside))
            assert_shows(row[2], np.mean(parts))
            assert_shows(row[3], sum(parts) / len(changes))


def test_the_headroom(own, said):
    rows = said.page.tables["reasons"][0][1:]
    for system, cells in zip(own.challengers, rows, strict=True):
        parts = []
        for query in own.changes(system):
            known = own.labels[query]
            listed = [
                known.get(document) for document, _score in own.systems[system].get(query, ())
            ]
            everything = sorted(known.values(), reverse=True)
            given = list(known.values())
            parts.append(
                (
                    own.table["ndcg", own.baseline][query],
                    own.table["ndcg", system][query],
                    value("ndcg", best(listed), given, own.rules),
                    value("ndcg", everything, given, own.rules),
                )
            )
        before, after, ceiling, perfect = np.array(parts).mean(axis=0)
        wanted = (before, after - before, ceiling - after, perfect - ceiling, perfect)
        for cell, expected in zip(cells[1:6], wanted, strict=True):
            assert_shows(cell, expected)
        room = ceiling - before
        share = (after - before) / room if room > 1e-9 else math.nan
        assert_shows(cells[6], share if share >= 0 else math.nan)


def test_the_share_of_the_relevant_documents_in_each_list(own, said):
    names = list(dict.fromkeys(said.queries["system"]))
    for system in own.challengers:
        shares = []
        for query in own.changes(system):
            relevant = {d for d, label in own.labels[query].items() if label >= own.rules.threshold}
            listed = {document for document, _score in own.systems[system].get(query, ())}
            if relevant:
                shares.append(len(relevant & listed) / len(relevant))
        name = re.escape(names[list(own.systems).index(system)])
        text = said.page.texts["reasons"]
        found = re.search(rf"{name} ([\d.]+%)", text)
        # Reranks of the same candidates share one sentence, over the queries of the first.
        if found is None and system == own.challengers[0]:
            found = re.search(r"first stage found ([\d.]+%)", text)
        if found is not None:
            assert_shows(found.group(1), np.mean(shares))


def test_where_documents_went(own, said):
    first = own.systems[own.baseline]
    for system, challenger in zip(own.challengers, said.study.challengers, strict=True):
        moves = study.moves(said.study, challenger)
        shown = {
            (moves.query_ids[query], document): (before, after, relevant)
            for query, document, before, after, relevant in zip(
                moves.query,
                moves.names[moves.docs],
                moves.before,
                moves.after,
                moves.relevant,
                strict=True,
            )
        }
        wanted = {}
        for query in first.keys() & own.systems[system].keys():
            places = [
                {document: rank for rank, (document, _score) in enumerate(rows, start=1)}
                for rows in (first[query], own.systems[system][query])
            ]
            for document in places[0].keys() | places[1].keys():
                label = own.labels.get(query, {}).get(document, -math.inf)
                at = [each.get(document, 0) for each in places]
                wanted[query, document] = (*at, label >= own.rules.threshold)
        assert shown == wanted
