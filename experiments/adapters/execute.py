"""Exec into a container over the official client's websocket. Only this module of the experiments imports that client."""

import json
from collections.abc import Mapping, Sequence

from experiments.zombie.ports import Executed
from steps.adapters.kubernetes.connection import configuration
from steps.contracts.errors import SourceUnavailable


class WebsocketExec:
    """Fits adapters.sessions.Exec."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._configuration = configuration(environment)

    def run(self, namespace: str, pod: str, container: str, argv: Sequence[str], timeout_s: float) -> Executed:
        """Raises SourceUnavailable: refused, unreachable, or not over in time."""
        from kubernetes.client import ApiClient, CoreV1Api  # noqa: PLC0415 - the client costs 0.5 s and 40 MiB
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415
        from kubernetes.stream import stream  # noqa: PLC0415
        from websocket import WebSocketException  # noqa: PLC0415 - of the client's own dependency websocket-client

        where = f"exec of {argv[0]} in pod {namespace}/{pod}"
        try:
            session = stream(
                CoreV1Api(ApiClient(self._configuration)).connect_get_namespaced_pod_exec,
                pod,
                namespace,
                container=container,
                command=list(argv),
                stdin=False,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
                _request_timeout=timeout_s,
            )
            session.run_forever(timeout=timeout_s)
            finished = not session.is_open()
            out, err, status = session.read_stdout(timeout=0), session.read_stderr(timeout=0), session.read_channel(3, timeout=0)
            session.close()
        except (ApiException, WebSocketException, OSError) as error:
            raise SourceUnavailable(
                f"{where} failed: {' '.join(str(error).split())[:300]}; look at the pod and its node"
            ) from error
        if not finished:
            raise SourceUnavailable(f"{where} did not end within {timeout_s:g} s; look at the pod")
        return Executed(code=exit_code(status), stdout=_text(out), stderr=_text(err))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


def exit_code(status: object) -> int | None:
    """The exit code in the Status object that ends the stream; None if there is none."""
    try:
        told = json.loads(_text(status))
    except ValueError:
        return None
    if told.get("status") == "Success":
        return 0
    causes = told.get("details", {}).get("causes", [])
    found = next((one.get("message") for one in causes if one.get("reason") == "ExitCode"), None)
    return int(found) if found is not None and str(found).isdecimal() else None
