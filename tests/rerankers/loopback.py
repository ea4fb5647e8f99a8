"""A rerank service, an LLM and a search engine on 127.0.0.1, over real HTTP; they break on
command.

For trials of the page and the command line: `python tests/rerankers/loopback.py --port 8099`.

It speaks every wire format of `rankdash.core.rerankers.kinds.endpoint` and chat completions, and
scores by words that query and document share (`score`). A fault is a dict, such as
{"status": 500} or {"hang": 2.0}; `Server.fail` sets the faults of the next requests, `fault_of` the
faults of all others.
{"together": 8} answers once eight requests have been active at the same time.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import threading
import time
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# path → (documents key, wrap, results key, score key, maximum number of documents per request)
RERANKERS = {
    "/v2/rerank": ("documents", "", "results", "relevance_score", 1000),
    "/v1/rerank": ("documents", "", "results", "relevance_score", 1000),
    "/voyage/v1/rerank": ("documents", "", "data", "relevance_score", 1000),
    "/v1/reranking": ("input", "", "data", "score", 1000),
    "/v1/models/rerank": ("documents", "", "results", "relevance_score", 1000),
    "/infinity/rerank": ("documents", "", "results", "relevance_score", 1000),
    "/rerank": ("texts", "", "", "score", 32),
    "/v1/ranking": ("passages", "text", "rankings", "logit", 512),
}
# Prefixes of dialects: services that share a path have different prefixes.
PREFIX = {"voyage": "/voyage", "infinity": "/infinity"}
CHAT = "/v1/chat/completions"
# A search engine that answers as Elasticsearch does.
SEARCH = "/docs/_search"


def engine_at(url: str, **fields: object) -> dict[str, object]:
    """Return the description of the search engine of a server, with changed or added fields."""
    return {
        "name": "Stub",
        "url": url + SEARCH,
        "headers": {"Authorization": {"env": "SEARCH_KEY", "prefix": "ApiKey "}},
        "body": {"query": {"match": {"text": "{query}"}}, "size": "{k}"},
        "hits": "hits.hits",
        "id": "_id",
        "text": "_source.text",
        "score": "_score",
        **fields,
    }


def words(text: str) -> set[str]:
    return {*re.findall(r"[a-z0-9]+", text.lower()), *re.findall(r"[\u4e00-\u9fff]", text)}


def score(query: str, document: str) -> float:
    """Return the number of shared words, with the length as a tie-break: different texts differ."""
    shared = words(query) & words(document)
    return len(shared) - 0.001 * (len(document) % 97)


class Server(ThreadingHTTPServer):
    """A server. seen: every request as (path, headers, body). key: the Bearer token; "" for any."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0, key: str = "") -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.lock, self.let_go = threading.Lock(), threading.Event()
        self.at_once = 0
        self.forget(key)

    def forget(self, key: str = "") -> None:
        """Reset the server, with this key, after hanging requests have ended."""
        self.let_go.set()
        limit = time.monotonic() + 10
        while self.at_once and time.monotonic() < limit:
            time.sleep(0.005)
        self.let_go, self.key = threading.Event(), key
        self.seen: list[tuple[str, dict, dict]] = []
        self.faults: deque[dict] = deque()
        self.fault_of = lambda body: {}
        self.documents: dict[str, str] = {}
        self.limit: int | None = None
        self.reply = None
        self.counts_tokens = True
        self.most_at_once = 0

    def url_of(self, dialect: str) -> str:
        return self.url + PREFIX.get(dialect, "")

    def fail(self, *faults: dict) -> None:
        """Set faults for the next requests, one each."""
        self.faults.extend(faults)

    def heard(self, requests: int) -> None:
        """Wait for this number of requests: a client that timed out may have closed before its
        request was read, and the fault of that request must not apply to the next one."""
        limit = time.monotonic() + 60
        while len(self.seen) < requests and time.monotonic() < limit:
            time.sleep(0.01)

    def handle_error(self, request, client_address) -> None:
        """Ignore clients that disconnect in the middle: the tests do so on purpose."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise Nagle's algorithm waits 40 ms for the client's acknowledgement of the headers.
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, *args) -> None:
        pass

    def do_POST(self) -> None:
        server = self.server
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length))
        with server.lock:
            server.seen.append((self.path, dict(self.headers), body))
            fault = server.faults.popleft() if server.faults else server.fault_of(body)
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            self.answer(body, fault)
        finally:
            with server.lock:
                server.at_once -= 1

    def answer(self, body: dict, fault: dict) -> None:
        limit = time.monotonic() + 300
        while self.server.most_at_once < fault.get("together", 0) and time.monotonic() < limit:
            time.sleep(0.01)
        self.server.let_go.wait(fault.get("hang", 0.0))
        time.sleep(fault.get("slow", 0.0))
        if "cut" in fault or "drip" in fault:
            # Less content than the stated length, and a closed connection.
            self.send_bytes(b'{"results": [', 200, "application/json", length=100_000)
            for _ in range(int(fault.get("drip", 0.0) / 0.05)):
                self.wfile.write(b" ")
                time.sleep(0.05)
            self.close_connection = True
            return
        if "redirect" in fault:
            self.send({}, 307, {"Location": fault["redirect"]})
            return
        if "status" in fault:
            text = fault.get("text", {"message": f"told to say {fault['status']}"})
            content = text if isinstance(text, bytes) else json.dumps(text).encode()
            self.send_bytes(content, fault["status"], headers=fault.get("headers"))
            return
        if "html" in fault:
            self.send_bytes(b"<html><body><h1>Bad gateway</h1></body></html>", 200, "text/html")
            return
        if "huge" in fault:
            self.send_bytes(b"[" + b" " * fault["huge"] + b"]", 200)
            return
        given = self.headers.get("Authorization", "")
        if self.path == SEARCH and self.server.key:
            given = given.replace("ApiKey ", "Bearer ")
        if self.server.key and given != f"Bearer {self.server.key}":
            self.send({"message": f"invalid api token: {given}"}, 401)
        elif self.path == CHAT:
            self.chat(body)
        elif self.path == SEARCH:
            self.send({**self.search(body), **fault.get("with", {})})
        elif self.path in RERANKERS:
            self.rerank(body, fault)
        else:
            self.send({"detail": "Not Found"}, 404)

    def search(self, body: dict) -> dict:
        (kind,) = body["query"].values()
        query = kind.get("text") or kind["query"]
        scores = {doc: score(query, text) for doc, text in self.server.documents.items()}
        best = sorted((doc for doc in scores if scores[doc] > 0), key=lambda doc: -scores[doc])
        hits = [
            {"_id": doc, "_score": scores[doc], "_source": {"text": self.server.documents[doc]}}
            for doc in best[: body["size"]]
        ]
        return {"timed_out": False, "hits": {"hits": hits}}

    def rerank(self, body: dict, fault: dict) -> None:
        key, wrap, results, score_key, limit = RERANKERS[self.path]
        documents = body.get(key)
        if not isinstance(documents, list) or not isinstance(body.get("query"), (str, dict)):
            self.send({"detail": [{"msg": f"field required: {key}"}]}, 422)
            return
        limit = self.server.limit or limit
        if len(documents) > limit:
            said = f"batch size {len(documents)} > maximum allowed batch size {limit}"
            self.send({"error": said, "error_type": "Validation"}, 422)
            return
        plain = [text[wrap] if wrap else text for text in documents]
        query = body["query"][wrap] if wrap else body["query"]
        rows = [{"index": place, score_key: score(query, text)} for place, text in enumerate(plain)]
        rows.sort(key=lambda row: -row[score_key])
        rows = _spoiled(rows, fault, score_key)
        tokens = sum(len(text.split()) + len(query.split()) for text in plain)
        headers = {}
        answer: object = {results: rows, "usage": {"total_tokens": tokens}}
        if self.path == "/v2/rerank":
            units = math.ceil(len(plain) / 100)
            answer = {"id": "x", "results": rows, "meta": {"billed_units": {"search_units": units}}}
        elif self.path == "/v1/models/rerank":
            answer = {"results": rows, "total_tokens": tokens}
        elif self.path == "/rerank":
            answer = rows
            headers = {
                "x-tokenization-time": "1", "x-queue-time": "2", "x-inference-time": "7",
                "x-compute-tokens": str(tokens),
            }  # fmt: skip
        self.send(fault.get("answer", answer), 200, headers)

    def chat(self, body: dict) -> None:
        prompt = body["messages"][-1]["content"]
        text, top = self.server.reply(body) if self.server.reply else judge(prompt)
        tokens = sum(len(message["content"]) for message in body["messages"]) // 4
        written = len(text.split())
        listed = [{"token": token, "logprob": value} for token, value in top.items()]
        shown = {"content": [{"token": text, "logprob": 0.0, "top_logprobs": listed}]}
        usage = {
            "prompt_tokens": tokens,
            "completion_tokens": written,
            "total_tokens": tokens + written,
        }
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
            "logprobs": shown if body.get("logprobs") and top else None,
        }
        answer = {"choices": [choice], "usage": usage if self.server.counts_tokens else None}
        self.send(answer, 200, {"openai-processing-ms": "3"})

    def send(self, answer: object, status: int = 200, headers: dict | None = None) -> None:
        self.send_bytes(json.dumps(answer).encode(), status, headers=headers)

    def send_bytes(
        self, content: bytes, status: int, kind="application/json", headers=None, length=None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


# The last result of a service with a fault, by the fault.
SPOILED = {
    "duplicate": lambda rows, key, _: dict(rows[0]),
    "out_of_range": lambda rows, key, _: {**rows[-1], "index": 9999},
    "no_index": lambda rows, key, _: {key: 1.0},
    "nan": lambda rows, key, _: {**rows[-1], key: math.nan},
    "digits": lambda rows, key, digits: {**rows[-1], key: 10 ** (digits - 1)},
    "null": lambda rows, key, _: {**rows[-1], key: None},
}


def _spoiled(rows: list[dict], fault: dict, score_key: str) -> list[dict]:
    rows = rows[: len(rows) - fault.get("short", 0)]
    for name in SPOILED.keys() & fault:
        rows = [*rows[:-1], SPOILED[name](rows, score_key, fault[name])]
    return rows


def _documents(prompt: str) -> list[str]:
    return re.findall(r"(?s)<document[^>]*>\n(.*?)\n</document>", prompt)


def judge(prompt: str) -> tuple[str, dict[str, float]]:
    """Return an obedient model's answer to the default prompts of rankdash."""
    query = "".join(re.findall(r"(?s)<query>\n(.*?)\n</query>", prompt))
    scores = [score(query, text) for text in _documents(prompt)]
    asked = prompt.rpartition("</document>")[2]
    if "[2] > [1]" in asked:
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        return " > ".join(f"[{place + 1}]" for place in order), {}
    if "A or B" in asked:
        a, b = scores
        return ("A" if a >= b else "B"), {"A": a - b, " B": b - a, "The": -9.0}
    value = scores[0]
    if "Grade: N" in asked:
        top = 1 if "1: relevant." in asked else 3
        return f"Shared words: {round(value)}.\nGrade: {round(min(max(value, 0), top))}", {}
    if "0 to 10" in asked:
        return str(round(min(max(value, 0), 10))), {}
    if "0 to 4" in asked:
        centre = min(max(value, 0.0), 4.0)
        grades = {str(grade): -((grade - centre) ** 2) for grade in range(5)}
        return max(grades, key=lambda grade: grades[grade]), grades
    yes, no = -math.log1p(math.exp(-value)), -math.log1p(math.exp(value))
    said = "Yes" if value > 0 else "No"
    return said, {"Yes": yes, " yes": yes - 3, "No": no, "no": no - 3, "Maybe": -12.0}


@contextmanager
def running(port: int = 0, key: str = ""):
    """Run a server in a separate thread."""
    server = Server(port, key)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--key", default="", help="answer 401 to any other key")
    parser.add_argument("--milliseconds", type=float, default=0.0, help="how long an answer takes")
    options = parser.parse_args()
    server = Server(options.port, options.key)
    server.fault_of = lambda body: {"slow": options.milliseconds / 1000}
    print(f"Listening on {server.url}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
