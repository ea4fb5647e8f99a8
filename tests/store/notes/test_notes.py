"""Notes on queries, runs and labels, pins, corrected labels and plans: stored, replaced, undone,
and deleted with their subject."""

from dataclasses import replace
from functools import partial

import pytest

from rankdash.core.workspace import Workspace, notes
from rankdash.core.workspace.notes import (
    CARD_SECONDS,
    LONGEST_GUIDELINES,
    LONGEST_LABEL_NOTE,
    LONGEST_NOTE,
    LONGEST_TAG,
    MOST_TAGS,
    Correction,
    Corrections,
    LabelNotes,
    LabelPlans,
    Notes,
    Pins,
    RunNotes,
    tags_in_use,
)
from tests.approved import masked
from tests.results import results, several

HOSTILE = "=1+1 <script>![x](http://evil.invalid)</script>\n\n第二行"
PAIR, OTHER = ("7", "01"), ("007", "1")
MASKS = {"moment": r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", "id": r"\b[0-9a-f]{16}\b", "long": "x{1000,}"}
# Kind → function that stores one on a data set with the run "one", and function that reads all.
KINDS = {
    "note": (lambda w, d: Notes(w).store(d, "7", ["tag"], ""), lambda w, d: Notes(w).all(d)),
    "correction": (
        lambda w, d: Corrections(w).correct(d, PAIR, 2.0, ""), lambda w, d: Corrections(w).all(d),
    ),
    "run note": (
        lambda w, d: RunNotes(w).store(w.runs(d)[0].id, "why"), lambda w, d: RunNotes(w).all(d),
    ),
    "pin": (lambda w, d: Pins(w).pin(w.runs(d)[0].id), lambda w, d: Pins(w).of(d)),
    "label note": (
        lambda w, d: LabelNotes(w).store(d, PAIR, "Ann", "a"), lambda w, d: LabelNotes(w).all(d),
    ),
    "plan": (lambda w, d: LabelPlans(w).begin(d, {}, ""), lambda w, d: LabelPlans(w).newest(d)),
}  # fmt: skip


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    """The id of a data set with two runs."""
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    for run_id in ("one", "two"):
        workspace.save_run(make_run(dataset, run_id))
    return dataset.id


@pytest.fixture
def other(workspace, make_dataset, make_run):
    """The id of another data set with a run."""
    dataset = make_dataset(salt="other")
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset, "three"))
    return dataset.id


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_of_its_data_set_survives_a_restart_and_goes_with_it(
    workspace, stored, other, make_dataset, make_run, kind
):
    keep, kept = KINDS[kind]
    for each in (stored, other):
        assert not kept(workspace, each)
        keep(workspace, each)
    again = Workspace.open(workspace.root)
    assert kept(again, stored) == kept(workspace, stored)
    assert kept(again, stored) and kept(again, other)
    before = kept(workspace, other)
    workspace.delete_dataset(stored)
    workspace.save_dataset(make_dataset())
    workspace.save_run(make_run(make_dataset(), "one"))
    assert not kept(workspace, stored)
    assert kept(workspace, other) == before


# Steps in order, each with the stored values after it.


def queries(w, d, _other):
    notes = Notes(w)

    def keep(query, tags=(), text="", who=""):
        kept = notes.store(d, query, tags, text, who)
        assert notes.of(d, query) == (kept if kept.tags or kept.text else replace(kept, changed=""))
        return notes.all(d)

    def lengths(tags, text):
        (kept,) = (each for each in keep("7", tags, text) if each.query_id == "7")
        return len(kept.tags), max(map(len, kept.tags), default=0), len(kept.text)

    most = [f"{n:<0{LONGEST_TAG}}" for n in range(10, 10 + MOST_TAGS)]
    return {
        "tags are made one whatever their case, and the text stays as it was written": lambda: keep(
            "二", [" wrong   label ", "<b>", "Wrong label", ""], HOSTILE
        ),
        "emptied it is gone": lambda: keep("二", text="  "),
        "notes are listed by query": lambda: [keep("二", text="a"), keep("007", text="b")][-1],
        "a name is one line of 80 characters": lambda: keep("7", (), "x", " Ann\n" + "e" * 200),
        "unsigned again": lambda: keep("7", (), "x"),
        "as much as is allowed": lambda: lengths(most, "x" * LONGEST_NOTE),
        "too many tags": lambda: keep("7", [*most, "a"]),
        "a tag too long": lambda: keep("7", ["x" * (LONGEST_TAG + 1)]),
        "a text too long": lambda: keep("7", (), "x" * (LONGEST_NOTE + 1)),
        "what was there stays": lambda: len(notes.of(d, "7").text),
        "tags in use, as they were written first, in alphabetical order": lambda: [
            keep("7", ["Zeta", "Alpha"]), tags_in_use(keep("007", ["alpha", "beta"])),
        ][-1],
        "a data set that is gone": lambda: notes.store("gone", "7", ["tag"], ""),
    }  # fmt: skip


def runs(w, d, other):
    notes, pins = RunNotes(w), Pins(w)

    def keep(run_id, text, who=""):
        kept = notes.store(run_id, text, who)
        assert notes.of(run_id) == kept
        return notes.all(d), notes.all(other)

    def kept():
        return notes.all(d), pins.of(d), pins.of(other)

    def pin(run_id):
        return pins.pin(run_id), kept()

    def again():
        run = w.run("one")
        w.save_run(replace(run, name="measured anew"))
        return kept()

    return {
        "no note": lambda: notes.of("one"),
        "kept as it was written": lambda: keep("one", f"  {HOSTILE} ", " Ann\n L. "),
        "of another data set": lambda: keep("three", "elsewhere"),
        "other words": lambda: keep("one", "other words"),
        "emptied it is gone": lambda: keep("one", "  "),
        "as much as is allowed": lambda: len(notes.store("two", "x" * LONGEST_NOTE).text),
        "too long": lambda: keep("two", "x" * (LONGEST_NOTE + 1)),
        "what was there stays": lambda: len(notes.of("two").text),
        **several("pin {}", pin, ["two", "three", "one"]),
        "a run that is stored again keeps both": lambda: [keep("one", "why"), again()][-1],
        "a deleted run takes its note and no pin": lambda: [w.delete_run("two"), kept()],
        "unpinned twice": lambda: [*(pins.unpin(d) for _ in "12"), kept()],
        "a deleted run takes its pin": lambda: [pin("one"), w.delete_run("one"), kept()][1:],
        "a note on a run that is gone": lambda: keep("one", "words"),
        "a pin on a run that is gone": lambda: pins.pin("one"),
    }


def labels(w, d, _other):
    remarks = LabelNotes(w)

    def keep(pair, who, text):
        remarks.store(d, pair, who, text)
        return remarks.of(d, pair, who), remarks.all(d)

    return {
        "nothing": lambda: remarks.of(d, PAIR, "Ann"),
        "of Bo": lambda: keep(PAIR, "Bo", "b"),
        "of Ann, beside it": lambda: keep(PAIR, " Ann ", "first"),
        "of Ann again, in one line": lambda: keep(PAIR, "Ann", "two\n lines"),
        "emptied it is gone": lambda: keep(PAIR, "Bo", "  "),
        "cut, of nobody and another pair": lambda: [
            *map(len, (keep(OTHER, "", "x" * (LONGEST_LABEL_NOTE + 1))[0], remarks.all(d)))
        ],
        "a data set that is gone": lambda: remarks.store("gone", PAIR, "Ann", "a"),
    }


def corrections(w, d, _other):
    layer, saved, data = Corrections(w), [], w.dataset(d)

    def kept():
        return layer.layer(d), layer.all(d)

    def correct(pair, label, who=""):
        return layer.correct(d, pair, label, who), *kept()

    def withdraw(*pairs):
        saved[:] = saved or layer.all(d)
        return layer.withdraw(d, pairs), *kept()

    def anew():
        w.delete_dataset(d)
        w.save_dataset(data)
        return correct(PAIR, 2.0)

    return {
        "nothing": kept,
        "a label": lambda: correct(PAIR, 2.0, " Ada \n L. "),
        "another is in force instead": lambda: correct(PAIR, 0.0),
        "no label, of another pair": lambda: correct(OTHER, None, "x" * 81),
        "withdrawn": lambda: withdraw(PAIR),
        "nothing is in force": lambda: withdraw(OTHER),
        "restored with its names": lambda: [layer.restore(d, saved), *kept()],
        **several("as of revision {}", lambda n: layer.all(d, n), [0, 1, 2, 3, 4, 5]),
        "the log": lambda: layer.log(d),
        "from a revision to another": lambda: layer.log(d, 1, 3),
        "the last revision, and that of another data set": lambda: [
            layer.revision(d), layer.revision("another"), layer.log("another"),
        ],
        "a data set that is gone": lambda: layer.correct("gone", PAIR, 1.0, ""),
        "no revision is used twice": anew,
    }  # fmt: skip


def plans(w, d, _other):
    plans, pairs, ids = LabelPlans(w), [PAIR, OTHER], []

    def begin(settings=None, guidelines=""):
        ids.append(plans.begin(d, settings or {}, guidelines))
        assert plans.newest(d).id == ids[-1]
        return plans.newest(d)

    def take(*owners, of=0, gone=""):
        closed = {"gone": gone.__eq__} if gone else {}
        return [plans.take(ids[of], pairs, each, **closed) for each in owners]

    def resume(*names, of=0):
        for each in names:
            plans.resume(ids[of], each)
        found = plans.resumed(ids[of])
        assert all(times == sorted(times) for times in found.values())
        return found

    return {
        "no plan": lambda: plans.newest(d),
        "a plan": lambda: begin({"seed": 1}),
        "the one that was begun last, at the labels of then": lambda: [
            Corrections(w).correct(d, PAIR, 0.0, "Ann"),
            begin({"systems": ["a", "b"], "top": 2.0}, "  *Read* first.  "),
        ],
        "as much as is allowed": lambda: len(begin({}, "x" * LONGEST_GUIDELINES).guidelines),
        "guidelines too long": lambda: begin({}, "x" * (LONGEST_GUIDELINES + 1)),
        "two windows never look at one pair, and who asks again lets go of theirs": lambda: (
            take("one", "two", "three", "one")
        ),
        "what is free": lambda: [plans.take(ids[0], [OTHER], "one"), *take("three")],
        "pairs of another plan": lambda: take("two", of=1),
        "another window is closed": lambda: take("one", gone="four"),
        "the pair of a closed window is free": lambda: take("one", gone="three"),
        "ends of pauses": lambda: resume("Ann", " Bo ", "Ann"),
        "of another plan": lambda: plans.resumed(ids[1]),
        "a data set that is gone": lambda: [w.delete_dataset(d), plans.begin(d, {}, "")],
        "a plan that is gone keeps nothing": lambda: resume("Ann"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", [queries, runs, labels, corrections, plans])
def test_how_it_is_kept(kind, workspace, stored, other, approved):
    said = results(kind(workspace, stored, other))
    approved(f"store/notes/{kind.__name__}", masked(said, **MASKS))


@pytest.mark.parametrize(
    ("later", "free"),
    # Also after the clock was set back by a day.
    [(CARD_SECONDS, False), (CARD_SECONDS + 1, True), (-86_400, True)],
)
def test_a_pair_that_was_left_lying_is_free_again(workspace, stored, monkeypatch, later, free):
    take = partial(LabelPlans(workspace).take, LabelPlans(workspace).begin(stored, {}, ""))
    clock = [200_000.0]
    monkeypatch.setattr(notes.time, "time", lambda: clock[0])
    take([PAIR, OTHER], "one")
    clock[0] += later
    assert take([PAIR, OTHER], "two") == (PAIR if free else OTHER)


def test_labels_from_a_file_keep_their_times(workspace, stored):
    said = "2025-03-01T08:00:00.000+00:00"
    corrections = Corrections(workspace)
    corrections.take_in(
        stored, [Correction(*PAIR, 2.0, "Ann", said), Correction(*OTHER, 1.0, "Bo", "")]
    )
    bo, ann = corrections.all(stored)
    assert (ann.pair, ann.made, ann.who) == (PAIR, said, "Ann")
    assert bo.made > said
