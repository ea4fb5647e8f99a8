# The dashboard in a container; docs/deploy.md says how to run it.
FROM python:3.11-slim AS build
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel /src

FROM python:3.11-slim
# [models] for models of the Hugging Face hub.
ARG EXTRAS=""
# Another index for packages: pip takes a torch with CUDA unless one offers it without.
ARG PIP_EXTRA_INDEX_URL=""
COPY requirements.txt /wheel/requirements.txt
COPY --from=build /wheel /wheel
RUN pip install --no-cache-dir --constraint /wheel/requirements.txt "$(ls /wheel/*.whl)$EXTRAS"
RUN useradd --create-home --uid 1000 rankdash && install --directory --owner rankdash /workspace
USER rankdash
ENV RANKDASH_HOME=/workspace \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_BASE_URL_PATH=""
VOLUME /workspace
EXPOSE 8501
HEALTHCHECK --start-period=60s CMD python -c "import posixpath, urllib.request; from os import environ; urllib.request.urlopen(posixpath.join('http://127.0.0.1:' + environ['STREAMLIT_SERVER_PORT'], environ['STREAMLIT_SERVER_BASE_URL_PATH'].strip('/'), '_stcore/health'))"
CMD ["rankdash", "serve", "--no-browser"]
