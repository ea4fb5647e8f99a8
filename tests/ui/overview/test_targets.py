"""The targets that a person sets, as a form."""

from streamlit.testing.v1 import AppTest


def profile() -> None:
    """The form of the first shipped profile that has a limit."""
    from rankdash.ui.overview import targets_view

    targets = targets_view._saved()
    key = next(name for name, each in targets.profiles.items() if each.limits)
    targets_view._edit(targets, key, targets.profiles[key])


def test_a_limit_put_back_is_shown_put_back(workspace):
    app = AppTest.from_function(profile).run()
    usual = app.number_input[0].value
    app.number_input[0].set_value(usual + 1).run()
    app.button(key="targets.save").click().run()
    assert app.number_input[0].value == usual + 1
    app.button(key="targets.reset").click().run()
    assert app.number_input[0].value == usual
    app.button(key="targets.save").click().run()
    assert app.number_input[0].value == usual
