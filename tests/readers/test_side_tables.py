"""Labels of several annotators, grades of a judge, and latencies, from separate files: the meaning
of columns and cells, and errors by line."""

from functools import partial

from rankdash.core.readers import Source
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.rated import read_judged, read_rated, read_timings
from tests.results import results


def test_labels_of_several_people_say_who_and_when(approved):
    def rated(head: str, *rows: str, limits: ReadLimits | None = None, rater: str = ""):
        source = Source("labels.csv", "".join(f"{row}\n" for row in (head, *rows)).encode())
        return partial(read_rated, source, rater=rater, limits=limits)

    head, cells = "query_id,doc_id,label,rater", {"query_id": "q1", "label": "1", "rater": "Ann"}
    two = (head, "q1,d1,1,Ann", "q1,d2,1,Ann")
    cases = {
        "a row is of a person and a pair": rated(
            f"{head},time", "q1,d1,2, Ann ,2026-01-31T12:00:00+02:00"
        ),
        **{
            f"{name} says who labelled": rated(f"query_id,doc_id,label,{name}", "q1,d1,1,Bo")
            for name in ("Annotator", "assessor", "labeler", "who", "标注员")
        },
        "of two names the surer counts, and a row may name nobody": rated(
            "query_id,doc_id,label,who,rater", "q1,d1,1,Ann,Bo", "q2,d1,1,Ann,"
        ),
        **{
            f"{name} says when, and what is no time is left out": rated(
                f"{head},{name}", "q1,d1,1,a,2026-01-31", "q2,d1,1,a,soon", "q3,d1,1,a,"
            )
            for name in ("time", "made", "Created At", "updated_at")
        },
        **{
            f"{', '.join(names)} alone": rated(
                ",".join(names), ",".join(cells.get(name, "d1") for name in names)
            )
            for names in (
                ("query_id", "doc_id", "label"), ("query_id", "label", "rater"), ("doc_id", "rater")
            )
        },
        **{
            f"{word} is no label": rated(head, f"q1,d1,{word},Ann", "q1,d2,0,Ann")
            for word in ("cannot tell", "Unsure", "skip", "not sure", "不确定")
        },
        "without a name, if one cannot tell": rated(
            "query_id,doc_id,label", "q1,d1,skip", "q1,d2,1", rater=""
        ),
        "a name that is given": rated(head, "q1,d1,skip,Ann", "q1,d2,1,Bo", rater="Cid"),
        "an empty label is none and its row needs no ids": rated(
            head, "q1,,,Ann", "q1,d1,1,Ann", ",d2,,Bo"
        ),
        **{
            f"the row {row}": rated(head, "q1,d1,1,Ann", row)
            for row in (",d2,1,Bo", "q2,,1,Bo", "q2,,unsure,Bo", "q2,d2,high,Bo")
        },
        "as many rows as allowed": rated(*two, limits=ReadLimits(rows=2)),
        "and one more": rated(*two, limits=ReadLimits(rows=1)),
    }  # fmt: skip
    approved("readers/rated.en", results(cases, lambda found: found and found[0]))


def test_a_judge_has_a_grade_or_an_error_for_a_pair(approved):
    def judged(*rows: str, limits: ReadLimits | None = None):
        text = "".join(f"{row}\n" for row in rows).encode()
        return partial(read_judged, Source("grades.csv", text), limits=limits)

    head = "query_id,doc_id,grade"
    cases = {
        "the last row of a pair counts": judged(
            f"{head},error,kind", "q1,a,,timeout,service", "q1,b,2,,", "q1,a,1,,", "q1,b,,late,"
        ),
        "a grade has no error, and what has neither says so": judged(
            f"{head},error,kind", "q1,a,1,old,service", "q1,b,,,"
        ),
        "with its name, its model and the top of its scale": judged(
            f"{head},label,judge,model,top", "q1,a,1,0,,,2", "q1,b,0,1,Jo,m,3", "q2,a,0,1,Jo,n,x"
        ),
        "ids that a spreadsheet would calculate": judged(head, "'=q1,'-a,1"),
        "several judges": judged(f"{head},rater", "q1,a,1,Jo", "q1,b,1,Al", "q1,c,1,Jo"),
        **{f"the row {row}": judged(head, "q1,a,1", row) for row in (",b,1", "q1,,", "q1,b,high")},
        "without a column of grades": judged("query_id,doc_id", "q1,a"),
        "one row more than allowed": judged(head, "q1,a,1", "q1,b,1", limits=ReadLimits(rows=1)),
    }
    approved("readers/judged.en", results(cases))


def test_latencies_are_those_of_queries_that_are_done(approved):
    def timings(text: str, *column: str, limits: ReadLimits | None = None):
        return partial(read_timings, Source("times.csv", text.encode()), *column, limits=limits)

    full = "query_id,state,reason,latency_ms\nq1,done,,12.5\nq2,failed,no answer,\nq3,skipped,,\n"
    cases = {
        "a table of queries": timings(full),
        "a column alone": timings("a, took \nx,3\ny,0\n", "took"),
        **{
            f"{cell!r} was not measured": timings(
                f"query_id,state,latency_ms\nq1,,{cell}\nq2,done, 4 \n"
            )
            for cell in ("", " ", "NaN", "null", "None", "N/A")
        },
        **{
            f"{cell} is no latency": timings(f"query_id,latency_ms\nq1,0\nq2,{cell}\n")
            for cell in ("-1", "-0.001", "inf", "fast", "1e999")
        },
        "states that there are not": timings("state,latency_ms\ndone,1\ngone,1\nlost,1\n"),
        "no such column": timings("query_id,ms\nq1,4\n"),
        "no columns": timings("q1,4\nq2,5\n"),
        "as many rows as allowed": timings(full, limits=ReadLimits(rows=3)),
        "and one more": timings(full, limits=ReadLimits(rows=2)),
    }
    approved("readers/timings.en", results(cases, lambda found: found and found[0]))
