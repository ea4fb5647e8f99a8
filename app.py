"""Start with `streamlit run app.py`; `streamlit run app.py -- --read-only` only shows."""

import os
import sys

import streamlit as st
from starlette.middleware import Middleware

from rankdash.shipped import INTERFACE
from rankdash.store.workspace import READ_ONLY_VARIABLE
from rankdash.ui.state.guard import Guard
from rankdash.ui.state.page_case import PageCase
from rankdash.ui.state.server import lifespan, on_script_error
from rankdash.ui.state.upload_limits import UploadLimits

if "--read-only" in sys.argv[1:]:
    os.environ[READ_ONLY_VARIABLE] = "1"

app = st.App(
    INTERFACE,
    lifespan=lifespan,
    middleware=[Middleware(Guard), Middleware(UploadLimits), Middleware(PageCase)],
    on_script_error=on_script_error,
)
