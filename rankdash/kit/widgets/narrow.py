"""Layout in a narrow window, and other styles that the theme has no setting for.

Streamlit stacks columns only on a phone. Between that and a wide window, next to the sidebar, a
chart, a card or a choice in one of several columns is too narrow for its words.
"""

from __future__ import annotations

import json

import streamlit as st

from rankdash.core.base.i18n import language
from rankdash.core.base.i18n import pgettext as _p
from rankdash.kit.drawing.frontier import PHONE_STYLE

WIDE = 1100
"""The window width, in pixels, from which columns are side by side."""

BELOW = "sliders-below"
"""The key of a container of two columns whose first column, with the sliders, is below the other
one."""

ASIDE = "aside-below"
"""The key of a container of two columns whose second column, which explains the first, is below it.
"""

IN_SIGHT = "stays-in-sight"
"""The key of a container that stays at the top of the window while the page is scrolled; not in a
low or very narrow window, where it would hide the content."""

_TALL, _BROAD = 800, 640
"""The height and width of a window, in pixels, with room for both."""

_ROW, _COLUMN = '[data-testid="stHorizontalBlock"]', '[data-testid="stColumn"]'
_DRAWN = '[data-testid="stPlotlyChart"], [data-testid="stDataFrame"]'
_SLIDER = '[data-testid="stSlider"]'

_STYLE = f"""<style>
/* White on the accent and the accent on its own tint cannot both be legible on a dark ground. */
button:is([data-variant="segmented_control"], [data-variant="pills"])[data-selected="true"],
button:is([data-variant="segmented_control"], [data-variant="pills"])[data-selected="true"] * {{
  color: inherit !important; }}
[data-testid="stSliderThumbValue"] {{ color: inherit; }}
/* Headings of parts follow the page's title, and need no more room than smaller ones. */
[data-testid="stHeading"] h2 {{ padding-top: 0.75rem; }}
@media screen and (max-width: {WIDE - 1}px) {{
  [data-testid="stMainBlockContainer"] {{ padding-left: 2rem; padding-right: 2rem; }}
  /* Charts and tables below each other. */
  {_ROW} > {_COLUMN}:has({_DRAWN}) {{ flex: 1 1 100%; min-width: 100%; }}
  /* Four in two rows. */
  {_ROW}:has(> {_COLUMN}:nth-child(4)) > {_COLUMN} {{ min-width: calc(50% - 1rem); }}
  .st-key-{ASIDE} > [data-testid="stLayoutWrapper"] > {_ROW} > {_COLUMN} {{
    flex: 1 1 100%; min-width: 100%; }}
  /* The answer, then the sliders. */
  .st-key-{BELOW} {_ROW}:has(> {_COLUMN} {_SLIDER}) > {_COLUMN} {{ flex: 1 1 100%; order: 1; }}
  .st-key-{BELOW} {_ROW}:has(> {_COLUMN} {_SLIDER}) > {_COLUMN}:last-child {{ order: 0; }}
}}
{PHONE_STYLE}
@media screen and (max-width: {_BROAD - 1}px) {{
  /* Choices on several lines: each in its own frame. */
  button[data-variant="segmented_control"] {{ border-radius: 6px; margin: 0 4px 0 0; }}
}}
@media screen and (min-width: {_BROAD}px) and (min-height: {_TALL}px) {{
  [data-testid="stLayoutWrapper"]:has(> .st-key-{IN_SIGHT}) {{
    position: sticky; top: 0; z-index: 90; background: %s; }}
}}
</style>"""


def style() -> None:
    light, dark = (st.get_option(f"theme.{name}.backgroundColor") for name in ("light", "dark"))
    st.html(_STYLE.replace("%s", f"light-dark({light}, {dark})"))
    if language() != "en":
        # Streamlit writes the button of a field for files in English only.
        button = '[data-testid="stFileUploaderDropzone"] button p'
        word = json.dumps(_p("button", "Upload"), ensure_ascii=False)
        st.html(
            f"<style>{button} {{ font-size: 0; }} "
            f"{button}::after {{ content: {word}; font-size: 1rem; }}</style>"
        )
