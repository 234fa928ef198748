"""The real transport against a server on the loopback: one request a call, paged lists, and what each failure is called."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from steps.adapters.kubernetes.client import RealApi
from steps.contracts.errors import BadInput, OutcomeUnknown, SourceUnavailable


@dataclass
class Script:
    """replies: (status, body) in order, the last one again and again; a body of None closes the connection without an answer.
    seen: requests as (method, path, query, headers, body)."""

    replies: list[tuple[int, Any]] = field(default_factory=lambda: [(200, {})])
    seen: list[tuple[str, str, dict[str, list[str]], dict[str, str], Any]] = field(default_factory=list)
    delay_s: float = 0.0
    url: str = ""


@pytest.fixture
def server() -> Iterator[Script]:
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            script.seen.append((self.command, parts.path, parse_qs(parts.query), headers, json.loads(content) if content else None))
            status, body = script.replies[0] if len(script.replies) == 1 else script.replies.pop(0)
            time.sleep(script.delay_s)
            if body is None:
                self.close_connection = True
                return
            written = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    script.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield script
    running.shutdown()
    running.server_close()
    thread.join()


def kubeconfig(folder: Path, url: str) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def api(server: Script, tmp_path: Path) -> Iterator[RealApi]:
    with contextlib.closing(RealApi({"KUBECONFIG": str(kubeconfig(tmp_path, server.url))}, timeout_s=(1.0, 0.3))) as real:
        yield real


def test_a_get_sends_the_token_and_returns_raw_json(api: RealApi, server: Script) -> None:
    server.replies = [(200, {"kind": "Pod", "unknown": [1]})]
    answer = api.get("/api/v1/namespaces/team/pods/a")
    assert (answer.status, answer.body) == (200, {"kind": "Pod", "unknown": [1]})
    (method, path, _, headers, _) = server.seen[0]
    assert (method, path, headers["authorization"]) == ("GET", "/api/v1/namespaces/team/pods/a", "Bearer s3cret")


def test_a_patch_is_a_json_merge_patch_and_a_delete_carries_the_uid(api: RealApi, server: Script) -> None:
    api.patch("/x", {"spec": {"replicas": 0}})
    api.delete("/y", uid="u-1")
    api.create("/z", {"kind": "ConfigMap"})
    patch, delete, create = server.seen
    assert (patch[0], patch[3]["content-type"], patch[4]) == ("PATCH", "application/merge-patch+json", {"spec": {"replicas": 0}})
    assert (delete[0], delete[4]["preconditions"]) == ("DELETE", {"uid": "u-1"})
    assert (create[0], create[3]["content-type"], create[4]) == ("POST", "application/json", {"kind": "ConfigMap"})


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 429])
def test_a_no_is_a_value_with_the_servers_words_and_is_asked_once(api: RealApi, server: Script, status: int) -> None:
    server.replies = [(status, {"kind": "Status", "message": "because"})]
    for answer in (api.get("/x"), api.create("/x", {}), api.patch("/x", {}), api.delete("/x")):
        assert (answer.status, answer.ok, answer.words) == (status, False, "because")
    assert len(server.seen) == 4


def test_a_proxys_plain_no_is_a_value_as_well(api: RealApi, server: Script) -> None:
    server.replies = [(403, b"blocked by the proxy\n")]
    assert api.get("/x").words == "blocked by the proxy"


def test_a_list_is_read_page_by_page_until_there_is_no_token_even_if_the_last_page_is_empty(api: RealApi, server: Script) -> None:
    server.replies = [
        (200, {"items": [{"n": 1}], "metadata": {"continue": "t&1"}}),
        (200, {"items": [{"n": 2}], "metadata": {"continue": "t2"}}),
        (200, {"items": None, "metadata": {}}),
    ]
    answer = api.list("/api/v1/pods", field_selector="status.phase=Pending", label_selector="a=b")
    assert answer.body["items"] == [{"n": 1}, {"n": 2}]
    queries = [query for _, _, query, _, _ in server.seen]
    assert [query.get("continue") for query in queries] == [None, ["t&1"], ["t2"]]
    assert all(query["limit"] == ["500"] and query["fieldSelector"] == ["status.phase=Pending"] for query in queries)
    assert all(query["labelSelector"] == ["a=b"] for query in queries)


def test_a_list_that_expired_half_way_starts_again_and_drops_what_it_had(api: RealApi, server: Script) -> None:
    server.replies = [
        (200, {"items": [{"n": "old"}], "metadata": {"continue": "t"}}),
        (410, {"message": "expired"}),
        (200, {"items": [{"n": "new"}], "metadata": {}}),
    ]
    assert api.list("/api/v1/pods").body["items"] == [{"n": "new"}]


def test_a_list_that_expires_for_ever_is_given_up(api: RealApi, server: Script) -> None:
    server.replies = [(410, {"message": "expired"})]
    with pytest.raises(SourceUnavailable, match="expired 3 times"):
        api.list("/api/v1/pods")
    assert len(server.seen) == 3


@pytest.mark.parametrize("reply", [(500, {"message": "etcd"}), (504, b"gateway timeout"), (200, b"<html>"), (200, None)])
def test_a_write_without_a_usable_answer_is_outcome_unknown_and_is_sent_once(
    api: RealApi, server: Script, reply: tuple[int, Any]
) -> None:
    server.replies = [reply]
    writes: list[Callable[[], object]] = [lambda: api.create("/x", {}), lambda: api.patch("/x", {}), lambda: api.delete("/x")]
    for write in writes:
        with pytest.raises(OutcomeUnknown, match="look before you repeat it"):
            write()
    assert len(server.seen) == 3


@pytest.mark.parametrize("reply", [(500, {"message": "etcd"}), (503, b"busy"), (200, b"<html>"), (200, None)])
def test_a_read_without_a_usable_answer_is_unavailable_and_not_unknown(
    api: RealApi, server: Script, reply: tuple[int, Any]
) -> None:
    server.replies = [reply]
    with pytest.raises(SourceUnavailable, match="try again later") as caught:
        api.get("/x")
    assert not isinstance(caught.value, OutcomeUnknown)
    assert len(server.seen) == 1


def test_a_late_answer_is_asked_for_once_read_or_write(api: RealApi, server: Script) -> None:
    """The client's default would send a GET or DELETE four times (facts/kubernetes section 1)."""
    server.delay_s = 0.5
    with pytest.raises(SourceUnavailable):
        api.get("/x")
    with pytest.raises(OutcomeUnknown):
        api.delete("/x")
    time.sleep(0.6)
    assert [method for method, *_ in server.seen] == ["GET", "DELETE"]


def test_a_server_that_is_not_there_is_unavailable_even_for_a_write_because_nothing_was_sent(tmp_path: Path) -> None:
    with contextlib.closing(RealApi({"KUBECONFIG": str(kubeconfig(tmp_path, "http://127.0.0.1:1"))})) as real:
        with pytest.raises(SourceUnavailable, match=r"http://127.0.0.1:1 cannot be reached") as caught:
            real.patch("/x", {})
        assert not isinstance(caught.value, OutcomeUnknown)


def test_a_text_is_read_up_to_the_limit_and_no_further(api: RealApi, server: Script) -> None:
    server.replies = [(200, b"0123456789")]
    assert api.text("/log", limit_bytes=4) == (200, "0123")
    assert api.text("/log", limit_bytes=10) == (200, "0123456789")
    server.replies = [(404, b"no pod")]
    assert api.text("/log", limit_bytes=10) == (404, "no pod")


# --- configuration


def test_without_a_kubeconfig_the_sentence_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"kubeconfig .*/\.kube/config does not exist; set KUBECONFIG"):
        RealApi({"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    "content", ["", "[]", "a: b", "{", "kind: Config\ncontexts: []\ncurrent-context: x\n", "current-context: 3"]
)
def test_a_kubeconfig_that_cannot_be_used_is_one_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(BadInput, match=f"kubeconfig {path} cannot be used") as caught:
        RealApi({"KUBECONFIG": str(path)})
    assert "\n" not in str(caught.value)


def test_a_kubeconfig_that_is_a_folder_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="kubeconfig"):
        RealApi({"KUBECONFIG": str(tmp_path)})
