"""What an answer of the API server means: a value where one must expect it, else one sentence."""

from steps.adapters.kubernetes.api import Answer, Json
from steps.contracts.errors import SourceUnavailable
from steps.contracts.ports import Rejected, Rejection

REJECTIONS = {
    400: Rejection.INVALID,
    403: Rejection.FORBIDDEN,
    404: Rejection.GONE,
    409: Rejection.CONFLICT,
    410: Rejection.GONE,
    422: Rejection.INVALID,
}


def unavailable(answer: Answer, verb: str, path: str) -> SourceUnavailable:
    """The sentence for an answer that the caller cannot live with. The server's words of a 403 name the account."""
    remedy = {
        401: "log in again: the credentials are missing, wrong or expired",
        403: f"let this account {verb} it, see docs/permissions.md",
        404: "make sure that it exists and that its API is installed",
        429: "the server is overloaded; try again later",
    }.get(answer.status, "look at the server's log, then try again")
    return SourceUnavailable(f"the API server refused to {verb} {path} (HTTP {answer.status}: {answer.words}); {remedy}")


def body_of(answer: Answer, verb: str, path: str) -> Json:
    """The body of a good answer. Raises SourceUnavailable for any other."""
    if not answer.ok:
        raise unavailable(answer, verb, path)
    return answer.body


def rejected(answer: Answer, verb: str, path: str) -> Rejected:
    """A *no* that one must expect of a write, as a value. Raises SourceUnavailable for any other."""
    rejection = REJECTIONS.get(answer.status)
    if rejection is None:
        raise unavailable(answer, verb, path)
    return Rejected(rejection=rejection, detail=answer.words)
