"""Means, changes, and their proof, by cutoff and kind of query, compared with the definitions."""

import math
import re

import numpy as np
import pytest

from tests.referee import kinds
from tests.referee.conftest import array
from tests.referee.definitions import NAMES, best, value
from tests.referee.inference import FEWEST, corrected, detectable, interval, p_value
from tests.referee.shown import assert_ends, assert_shows

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)


def test_every_value_of_every_query(own, said):
    of_system = list(dict.fromkeys(said.queries["system"]))
    for system, shown_as in zip(own.systems, of_system, strict=True):
        rows = said.queries[said.queries["system"] == shown_as].set_index("query_id")
        for name in NAMES:
            column = rows[f"{name}@10"].dropna()
            assert column.to_dict() == pytest.approx(own.table[name, system], abs=1e-12)


def test_every_mean_and_change(own, said):
    (rows,) = said.page.tables["systems"]
    for (name, system), cells in zip(own.table, rows[1:], strict=True):
        values = own.table[name, system]
        assert_shows(cells[2], array(values).mean())
        if system == own.baseline:
            assert cells[4:6] == ["–", "–"]
            assert cells[7] == str(len(values))
            continue
        changes = own.changes(system, name)
        assert_shows(cells[4], array(changes).mean())
        assert cells[7] == str(len(changes))
        either = (
            own.labels
            if own.rules.missing_counts
            else set().union(
                *(own.systems[each] for each in (own.baseline, system)), own.lost.get(system, ())
            )
        )
        assert cells[8] == str(len(set(own.labels) & set(either)) - len(changes))


def test_every_interval(own, said):
    rules = own.rules
    rows = said.comparison.to_dict("records")
    for (name, system), row in zip(own.table, rows, strict=True):
        parts = {"mean": own.table[name, system]}
        if system != own.baseline:
            parts["delta"] = own.changes(system, name)
        for part, values in parts.items():
            ends = interval(array(values), rules)
            for end, (low, high) in zip(("low", "high"), ends, strict=True):
                shown = row[f"{part}_{end}"]
                none = math.isnan(low) and math.isnan(shown)
                assert none or low - 1e-9 <= shown <= high + 1e-9, (name, system, part, end)


def test_every_p_and_its_correction(own, said):
    rules = own.rules
    for name in NAMES:
        rows = said.comparison[said.comparison["metric"] == f"{name}@10"].iloc[1:]
        if name == "judged":
            assert rows["p"].isna().all()
            continue
        for system, shown in zip(own.challengers, rows["p"], strict=True):
            p, error = p_value(array(own.changes(system, name)), flips=rules.flips)
            assert shown == pytest.approx(p, abs=error), (name, system)
        wanted = corrected(rows["p"].tolist(), holm=rules.holm)
        assert rows["p_corrected"].tolist() == pytest.approx(wanted, abs=1e-12)


def test_every_minimum_detectable_change(own, said):
    """At the corrected level of each comparison; a change is not shown if no order of the ranked
    documents can reach it."""
    for name in NAMES:
        # Metrics that only describe labels are not tested, so they need no correction.
        comparisons = 1 if name == "judged" else len(own.challengers)
        level = 1 - (1 - own.rules.level) / comparisons
        rows = said.comparison[said.comparison["metric"] == f"{name}@10"].iloc[1:]
        for system, shown in zip(own.challengers, rows["smallest_detectable"], strict=True):
            changes, before = own.changes(system, name), own.table[name, own.baseline]
            found = detectable(array(changes), level)
            room = np.mean([_reachable(own, name, query) - before[query] for query in changes])
            wanted = found if found <= room else math.nan
            assert shown == pytest.approx(wanted, rel=1e-9, nan_ok=True), (name, system)


def _reachable(own, name, query):
    """Return the value of the best order of all documents that a system ranks for the query."""
    if name == "judged":
        return 1.0
    ranked = {doc for lists in own.systems.values() for doc, _score in lists.get(query, ())}
    known = own.labels[query]
    order = best([known.get(document) for document in ranked])
    return value(name, order, list(known.values()), own.rules)


def test_every_verdict(own, said):
    """From the interval, the corrected p and the size, as shown."""
    (shown,) = said.page.tables["systems"]
    rows = said.comparison.to_dict("records")
    for (name, system), row, cells in zip(own.table, rows, shown[1:], strict=True):
        assert cells[9] == _verdict(own, name, system, row), (name, system)


def _verdict(own, name, system, row):
    if system == own.baseline:
        return "baseline"
    if name == "judged":
        return "no verdict"
    if not any(abs(each) > 0.005 + 1e-12 for each in own.changes(system, name).values()):
        return "the same"
    excluded = row["delta_low"] > 0 or row["delta_high"] < 0
    if not excluded or row["p_corrected"] > 1 - own.rules.level + 1e-12:
        return "not proven"
    return "worse" if row["delta"] < 0 else "better"


def test_helped_same_and_hurt(own, said):
    for name in NAMES:
        rows = said.comparison[said.comparison["metric"] == f"{name}@10"].iloc[1:]
        found = rows[["helped", "same", "hurt"]].itertuples(index=False, name=None)
        assert list(found) == [own.tally(own.changes(each, name)) for each in own.challengers]
    counts = re.findall(r"(\d+) helped · (\d+) same .*? · (\d+) hurt", said.page.texts["queries"])
    wanted = [own.tally(own.changes(each)) for each in own.challengers]
    assert [tuple(map(int, each)) for each in counts] == wanted


def test_every_cutoff(own, said):
    (rows,) = said.page.tables["cutoffs"]
    # Beyond the longest list only the ideal gain increases.
    longest = max(len(rows) for lists in own.systems.values() for rows in lists.values())
    cutoffs = sorted({min(cutoff, longest) for cutoff in CUTOFFS})
    for (k, *cells), cutoff in zip(rows[1:], cutoffs, strict=True):
        assert k == str(cutoff)
        found = [own.values(each, "ndcg", cutoff) for each in own.systems]
        common = set(found[0]).intersection(*found)
        for values, cell in zip(found, cells, strict=True):
            mean, ends = re.fullmatch(r"(\S+) \((.*)\)", cell).groups()
            kept = np.array([values[query] for query in own.labels if query in common])
            assert_shows(mean, kept.mean())
            assert_ends(ends, interval(kept, own.rules))


def test_most_changed_queries(own, said):
    shown = re.findall(r"NDCG@10 (\S+) → (\S+) \((\S+)\) · query (.+)", said.page.texts["queries"])
    wanted = []
    for system in own.challengers:
        changes = own.changes(system)
        moved = [each for each in changes if abs(changes[each]) > 0.005 + 1e-12]
        hurt = sorted(each for each in map(changes.get, moved) if each < 0)[:5]
        helped = sorted((each for each in map(changes.get, moved) if each > 0), reverse=True)[:5]
        wanted += [*hurt, *helped]
    assert len(shown) == len(wanted)
    for (before, after, change, query), expected in zip(shown, wanted, strict=True):
        assert_shows(change, expected)
        own_before = own.table["ndcg", own.baseline][query.strip()]
        assert_shows(before, own_before)
        assert_shows(after, own_before + expected)


def test_kinds_of_queries(own, said):
    """Figures of each group; p is corrected over the groups of one kind."""
    texts = {query: str(row["text"]) for query, row in own.queries.items()}
    named = {
        "First-stage difficulty": kinds.thirds(own.table["ndcg", own.baseline]),
        "Relevant documents": kinds.relevant(own.labels, own.rules.threshold),
        "Script of the query": {query: kinds.script(text) for query, text in texts.items()},
        "Length of the query": {query: kinds.length(text) for query, text in texts.items()},
    }
    for system, rows in zip(own.challengers, said.page.tables["segments"], strict=True):
        tables: dict[str, list[list[str]]] = {}
        for row in rows[1:]:
            tables.setdefault(row[0], []).append(row[1:])
        assert set(tables) & set(named)
        for title, table in tables.items():
            groups = named.get(title) or kinds.column(own.queries, title)
            _check_groups(own, system, groups, table)


def _check_groups(own, system, groups, table):
    rules, changes = own.rules, own.changes(system)
    before = own.table["ndcg", own.baseline]
    assert {row[0] for row in table} == {groups[query] for query in changes}
    tested = []
    for group, n, means, change, ends, p, tally in table:
        inside = {query: each for query, each in changes.items() if groups[query] == group}
        part, start = array(inside), np.mean([before[query] for query in inside])
        assert n == str(len(inside))
        for shown, expected in zip(means.split(" → "), (start, start + part.mean()), strict=True):
            assert_shows(shown, expected)
        assert_shows(change, part.mean())
        assert tally == " · ".join(map(str, own.tally(inside)))
        if len(inside) < FEWEST:
            assert (ends, p) == ("–", "–")
            continue
        assert_ends(ends, interval(part, rules))
        tested.append((p, *p_value(part, flips=rules.flips)))
        # The sampling error of a p is multiplied with p, and may exceed another p.
    slack = len(tested) * max((error for _shown, _p, error in tested), default=0.0)
    wanted = corrected([p for _shown, p, _error in tested], holm=rules.holm)
    for (shown, *_), expected in zip(tested, wanted, strict=True):
        assert_shows(shown, expected, slack)
