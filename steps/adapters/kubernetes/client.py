"""The real API server behind the port: raw JSON over the official client's connection.

Building models is four fifths of the cost of a list (facts/kubernetes section 2), so bodies stay raw. Every call has a timeout
and is sent once; a write whose answer is lost is OutcomeUnknown, never repeated.
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from steps.adapters.kubernetes.api import Answer, Json
from steps.adapters.kubernetes.connection import configuration
from steps.adapters.kubernetes.fields import list_at, text_at
from steps.contracts.errors import OutcomeUnknown, ReclaimError, SourceUnavailable

TIMEOUT_S: Final = (5.0, 30.0)
"""Seconds to connect, seconds between two pieces of an answer."""
PAGE: Final = 500
MAX_PAGES: Final = 2000
MAX_RESTARTS: Final = 3
MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
CERTIFICATE: Final = "CERTIFICATE_VERIFY_FAILED"
"""A handshake that fails on this sends no request."""
READS: Final = frozenset({"GET"})


class RealApi:
    """Fits api.Api. Raises BadInput when made without a usable configuration."""

    def __init__(self, environment: Mapping[str, str], timeout_s: tuple[float, float] = TIMEOUT_S) -> None:
        from kubernetes.client import ApiClient  # noqa: PLC0415

        self._configuration: Final = configuration(environment)
        self._client: Final = ApiClient(self._configuration)
        self._timeout_s: Final = timeout_s

    def get(self, path: str) -> Answer:
        return self._json("GET", path)

    def list(self, path: str, *, field_selector: str = "", label_selector: str = "") -> Answer:
        """Fits the port. The end is the missing continue token, not a short page; an expired token (410) starts it again."""
        query = {"limit": str(PAGE), "fieldSelector": field_selector, "labelSelector": label_selector}
        for _ in range(MAX_RESTARTS):
            answer = self._pages(path, {key: value for key, value in query.items() if value})
            if answer.status != 410:
                return answer
        raise SourceUnavailable(
            f"the list {path} of {self._host} expired {MAX_RESTARTS} times half-way; try again when it is less busy"
        )

    def create(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self._json("POST", path, body, "application/json")

    def patch(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self._json("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str, *, uid: str | None = None, grace_s: int | None = None) -> Answer:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        return self._json("DELETE", path, options, "application/json")

    def text(self, path: str, *, limit_bytes: int) -> tuple[int, str]:
        status, content = self._send("GET", path, {"Accept": "*/*"}, None, limit_bytes)
        return status, content.decode(errors="replace")

    def close(self) -> None:
        """Give the connections back; a step that ends needs not ask for it."""
        self._client.rest_client.pool_manager.clear()

    @property
    def _host(self) -> str:
        return str(self._configuration.host)

    def _pages(self, path: str, query: Mapping[str, str]) -> Answer:
        items: list[Json] = []
        token = ""
        for _ in range(MAX_PAGES):
            page = {**query, "continue": token} if token else query
            answer = self._json("GET", f"{path}?{urlencode(page, quote_via=quote)}")
            if not answer.ok:
                return answer
            items += list_at(answer.body, "items")
            token = text_at(answer.body, "metadata", "continue") or ""
            if not token:
                return Answer(status=answer.status, body={**answer.body, "items": items})
        raise SourceUnavailable(f"the list {path} of {self._host} has more than {MAX_PAGES * PAGE} items; survey fewer namespaces")

    def _json(self, verb: str, path: str, body: Mapping[str, Any] | None = None, content_type: str | None = None) -> Answer:
        headers = {"Accept": "application/json", **({"Content-Type": content_type} if content_type else {})}
        status, content = self._send(verb, path, headers, body)
        shown = content[:200].decode(errors="replace").strip()
        if status >= 500:
            raise self._lost(verb, path, f"HTTP {status}: {shown!r}")
        try:
            parsed = json.loads(content)
        except ValueError as error:
            if status >= 400:  # a proxy's own words
                return Answer(status=status, body={"message": shown})
            raise self._lost(verb, path, "its answer is no JSON") from error
        return Answer(status=status, body=parsed if isinstance(parsed, dict) else {})

    def _send(
        self, verb: str, path: str, headers: dict[str, str], body: Mapping[str, Any] | None, limit_bytes: int = MAX_ANSWER_BYTES
    ) -> tuple[int, bytes]:
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415
        from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError  # noqa: PLC0415

        self._authenticate(headers, verb, path)
        try:
            answer = self._client.rest_client.request(
                verb, f"{self._host}{path}", headers=headers, body=body, _request_timeout=self._timeout_s
            )
            content = _read(answer.response, limit_bytes)
        except (NewConnectionError, ConnectTimeoutError) as error:
            raise self._unreachable(error) from error
        except (ApiException, HTTPError) as error:  # ApiException: the client's word for a TLS failure
            raise (self._unreachable(error) if CERTIFICATE in str(error) else self._lost(verb, path, _words(error))) from error
        return int(answer.status), content

    def _authenticate(self, headers: dict[str, str], verb: str, path: str) -> None:
        """Add the account's token, read again each minute in a pod."""
        from kubernetes.config import ConfigException  # noqa: PLC0415

        headers["User-Agent"] = "gpu-reclaim"
        try:
            self._client.update_params_for_auth(headers, [], ["BearerToken"], path, verb, None)
        except (ConfigException, OSError) as error:
            raise SourceUnavailable(
                f"the token for the API server {self._host} cannot be read: {error}; mount or renew it"
            ) from error

    def _unreachable(self, error: Exception) -> ReclaimError:
        """Nothing was sent."""
        return SourceUnavailable(
            f"the API server {self._host} cannot be reached: {_words(error)}; check address, network and certificate"
        )

    def _lost(self, verb: str, path: str, why: str) -> ReclaimError:
        """The request may have been carried out."""
        said = f"the API server {self._host} gave no usable answer to {verb} {path}: {why}"
        if verb in READS:
            return SourceUnavailable(f"{said}; try again later")
        return OutcomeUnknown(f"{said}; it may or may not have been done, look before you repeat it")


def _read(response: Any, limit_bytes: int) -> bytes:
    """At most so many bytes; the connection is kept only if the answer was read to its end."""
    content = bytes(response.read(limit_bytes + 1, decode_content=True))
    if len(content) > limit_bytes:
        response.close()
    else:
        response.release_conn()
    return content[:limit_bytes]


def _words(error: Exception) -> str:
    """The error in one line, cut: urllib3's are long and name objects by address."""
    reason = getattr(error, "reason", None)
    return " ".join(f"{type(error).__name__}: {reason or error}".split())[:200]
