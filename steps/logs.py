"""How steps log: one JSON object a line on stderr, because stdout and files belong to documents.

Imported by the step modules only: pure code does not log, it returns. The event is a constant, `<step>.<what happened>`.
"""

import sys

import structlog


def log_for(step: str) -> structlog.typing.FilteringBoundLogger:
    """A logger that names the step in every line. Configures structlog on first use; tests may have done so before."""
    if not structlog.is_configured():
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(default=str),
            ],
            wrapper_class=structlog.make_filtering_bound_logger("info"),
            logger_factory=_to_stderr,
        )
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(step=step)
    return logger


def _to_stderr(*_: object) -> structlog.WriteLogger:
    """stderr as it is now, not as it was when this module was imported."""
    return structlog.WriteLogger(sys.stderr)
