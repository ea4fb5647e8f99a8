"""Start with `streamlit run app.py`; `streamlit run app.py -- --read-only` for a read-only
dashboard."""

import os
import sys

import streamlit as st
from starlette.middleware import Middleware

from rankdash.app.guard import Guard
from rankdash.app.server import PageCase, lifespan, on_script_error
from rankdash.app.static_files import StaticFiles
from rankdash.core.base.shipped import INTERFACE
from rankdash.core.workspace.workspace import READ_ONLY_VARIABLE
from rankdash.kit.widgets.uploader import UploadLimits

if "--read-only" in sys.argv[1:]:
    os.environ[READ_ONLY_VARIABLE] = "1"

app = st.App(
    INTERFACE,
    lifespan=lifespan,
    middleware=[
        Middleware(Guard),
        Middleware(UploadLimits),
        Middleware(PageCase),
        Middleware(StaticFiles),
    ],
    on_script_error=on_script_error,
)
