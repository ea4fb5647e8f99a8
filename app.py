"""Start with `streamlit run app.py`."""

import streamlit as st

from rankdash.ui.server import lifespan, on_script_error

app = st.App("rankdash/ui/main.py", lifespan=lifespan, on_script_error=on_script_error)
