"""Every failure, as an error that says what to do. None holds a value: no body, no data, no key."""

from __future__ import annotations

from typing import Any


class StrongroomError(Exception):
    """The failure of a call. All errors of this package are of this class."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """The kind of failure, for programs: `not_found`, `timeout`, `old_signature`."""


class ConfigurationError(StrongroomError):
    """The client was given something that cannot work, such as an address without a scheme."""

    def __init__(self, message: str) -> None:
        super().__init__("configuration", message)


class ConnectionError(StrongroomError):  # noqa: A001
    """No response came: nothing listens at the address, TLS failed, or the connection broke."""

    def __init__(self, message: str, code: str = "connection") -> None:
        super().__init__(code, message)


class TimeoutError(ConnectionError):  # noqa: A001
    """The response took longer than `timeout`. The request may have taken effect."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "timeout")


class StreamError(StrongroomError):
    """An import or an export ended before its end. `done` says how far it came."""

    def __init__(self, message: str, done: int, problem: dict[str, Any] | None = None) -> None:
        super().__init__("stream", message)
        self.done = done
        self.problem = problem


class NotAVaultError(StrongroomError):
    """What responds at the address is no vault."""

    def __init__(self, message: str) -> None:
        super().__init__("not_a_vault", message)


class VersionError(StrongroomError):
    """The vault is of a release that does not have what this client asks for."""

    def __init__(self, message: str, vault_version: str) -> None:
        super().__init__("version", message)
        self.vault_version = vault_version


class ApiError(StrongroomError):
    """The vault refused the request, or failed. Its subclasses have one status each."""

    def __init__(
        self,
        problem: dict[str, Any],
        *,
        status: int,
        trace_id: str | None,
        retry_after: int | None,
        advice: str | None = None,
    ) -> None:
        kind = str(problem["type"])
        # The code of a reactor writes such a problem itself, and may put a value into it.
        if ":reactor_" in kind:
            text = "The code of the reactor raised an error."
        else:
            named = [f"{name} {', '.join(said)}" for name, said in problem.get("errors", {}).items()]
            text = str(problem.get("detail", "")) + (f" ({'; '.join(named)})" if named else "")
        if advice:
            text = f"{text} {advice}"
        if trace_id:
            text = f"{text} [trace id {trace_id}]"
        super().__init__(kind.rsplit(":", 1)[-1], text)
        self.status = status
        """The HTTP status."""
        self.problem = problem
        """The problem document (RFC 9457), with messages by attribute in `errors`."""
        self.trace_id = trace_id
        """Names the request in the log of the vault."""
        self.retry_after = retry_after
        """After how many seconds to try again, where the vault said so."""


class ValidationError(ApiError):
    """400: an attribute is missing or not valid."""


class AuthenticationError(ApiError):
    """401: the key is unknown, was deleted, or has expired."""


class PermissionError(ApiError):  # noqa: A001
    """403: the key may not do this."""


class NotFoundError(ApiError):
    """404: there is nothing with this id, or it has expired."""


class ConflictError(ApiError):
    """409: the id is taken, or something changed at the same time."""


class RateLimitError(ApiError):
    """429: too many requests, after as many retries as the options allow."""


class ServerError(ApiError):
    """500 and above: the vault failed, or is overloaded. The request may have taken effect."""


class WebhookSignatureError(StrongroomError):
    """The signature of a webhook is missing, old or wrong: do not act on the event."""


BY_STATUS: dict[int, type[ApiError]] = {
    400: ValidationError,
    401: AuthenticationError,
    403: PermissionError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    429: RateLimitError,
}
