"""Fuse runs on the Run page: at once, with weights, failures and a name of its own."""

import pytest

from tests.sets import ROOT

RUN = str(ROOT / "pages" / "run.py")


@pytest.fixture
def form(app, stored):
    app.query_params["data"] = stored
    app.switch_page(RUN).run()
    app.session_state["combine"] = True
    app.run()
    assert not app.exception
    return app


def widget(items, key):
    (found,) = [item for item in items if item.key == key]
    return found


def choose_all(app):
    (field,) = [item for item in app.multiselect if str(item.key).startswith("combine.systems")]
    field.set_value(["first-stage", better(app)]).run()
    return app


def better(app):
    from rankdash.ui.state.server import workspace

    return workspace().runs()[0].id


def combine(app):
    widget(app.button, "combine.start").click().run()
    assert not app.exception


def test_nothing_can_be_combined_until_two_are_chosen(form):
    assert widget(form.button, "combine.start").disabled
    choose_all(form)
    assert not widget(form.button, "combine.start").disabled


def test_a_combination_is_a_run_with_the_failures_of_its_parts(form, workspace):
    choose_all(form)
    run_id = better(form)
    widget(form.number_input, f"combine.weight.{run_id}").set_value(3.0).run()
    combine(form)
    row = workspace.runs()[-1]
    assert (row.name, row.reranker) == ("Fused (RRF)", "fusion")
    assert (row.queries_done, row.queries_failed) == (15, 1)
    assert row.settings["parts"] == "First stage + better"
    assert row.settings["weights"] == "1, 3"
    run = workspace.run(row.id)
    assert run.ranking.documents_of("q1")[0][0] == "d1"
    failed = run.queries.set_index("query_id").loc["q15"]
    assert (failed["state"], failed["reason"]) == ("failed", "better: no *luck*")


def test_a_name_that_is_taken_gets_a_number(form, workspace):
    choose_all(form)
    widget(form.text_input, "combine.name").set_value("better").run()
    combine(form)
    assert workspace.runs()[-1].name == "better (2)"


def test_other_methods_have_no_k(form, workspace):
    choose_all(form)
    assert widget(form.number_input, "combine.k").value == 60
    widget(form.selectbox, "combine.method").set_value("z").run()
    assert not [item for item in form.number_input if item.key == "combine.k"]
    combine(form)
    assert workspace.runs()[-1].settings["method"] == "z"


def test_without_a_run_there_is_nothing_to_combine(app, stored, workspace):
    workspace.delete_run(workspace.runs()[0].id)
    app.query_params["data"] = stored
    app.switch_page(RUN).run()
    assert not any("Fuse" in str(item.label) for item in app.expander)
