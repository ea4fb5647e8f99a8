"""The form of a reranker's settings."""

from streamlit.testing.v1 import AppTest


def _form() -> None:
    import streamlit as st

    from rankdash.rerankers import get
    from rankdash.ui.runs.settings_form import draw

    st.text(draw(get("cross-encoder"), "latin")["model"])


def test_well_known_models_are_offered_with_what_is_known_of_them_and_others_can_be_typed():
    at = AppTest.from_function(_form, default_timeout=300).run()
    (model,) = [box for box in at.selectbox if box.label == "Model"]
    assert len(model.options) >= 10
    assert at.text[0].value == model.value == "packaged/ms-marco-MiniLM-L12-v2"
    assert at.caption[1].value.startswith("English · 33 M parameters · 512 tokens · ")
    model.set_value("BAAI/bge-reranker-base").run()
    assert at.caption[0].value == "Chinese and English."
    assert "Chinese, English · 278 M" in at.caption[1].value
    # Typed again, the browser shows all, and Enter takes the first: it had better be the same.
    assert at.selectbox[0].options[0] == "BAAI/bge-reranker-base"
    assert at.text[0].value == "BAAI/bge-reranker-base"


def _cascade() -> None:
    import streamlit as st

    from rankdash.rerankers import get
    from rankdash.ui.runs.settings_form import draw

    st.text(draw(get("cascade"), "latin")["second"])


def test_the_stages_of_a_cascade_are_chosen_by_title_and_kept_by_name():
    at = AppTest.from_function(_cascade, default_timeout=300).run()
    second = next(box for box in at.selectbox if box.label == "Second reranker")
    assert "Late interaction" in second.options
    assert "late-interaction" not in second.options
    second.set_value("late-interaction").run()
    assert at.text[0].value == "late-interaction"


def _chinese() -> None:
    import streamlit as st

    from rankdash.rerankers import get
    from rankdash.ui.runs.settings_form import draw

    for name in ("cross-encoder", "bi-encoder"):
        st.text(draw(get(name), "zh")["model"])


def test_the_default_model_reads_the_language_of_the_queries_and_another_is_warned_of():
    at = AppTest.from_function(_chinese, default_timeout=300).run()
    assert [text.value for text in at.text] == [
        "BAAI/bge-reranker-v2-m3",
        "packaged/multilingual-e5-small",
    ]
    assert not at.warning
    at.selectbox[0].set_value("cross-encoder/ms-marco-MiniLM-L6-v2").run()
    [warning] = at.warning
    said = warning.value.replace("\\", "")
    assert "not trained for the language of these queries" in said
    assert "such as BAAI/bge-reranker-v2-m3" in said
