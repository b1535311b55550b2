"""The connection to a vault: each request with its key, its time, its retries, and its failure as a typed error."""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import math
import random
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from ._errors import (
    BY_STATUS,
    ApiError,
    ConfigurationError,
    ConnectionError,
    NotAVaultError,
    ServerError,
    StrongroomError,
    TimeoutError,
    VersionError,
)
from ._names import API_VERSION, OPERATIONS
from ._object import UNSET, HiddenList, HiddenObject, Object, Unset

Item = TypeVar("Item")

_READING = frozenset({"searchTokens", "detokenize", "explainAccess", "verifyBankAccount", "createTokens"})
"""Sent without an idempotency key, because the vault would store a response that may hold values."""
_OF_ANY_FORM = frozenset({"tokenize", "detokenize", "react", "getReactorResult"})
_KINDS = {"pub": "public", "pvt": "private", "mgt": "management", "ses": "session"}
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_LASTING = re.compile(r"integrity|reactor_\w+")
_PROBLEM = "urn:strongroom:problem:"
_VERSION = "check"
_RETRY_AFTER_MAX = 60


@dataclass(frozen=True)
class Outgoing:
    """What is sent, once or several times."""

    operation: str
    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes | None = None


def unset_removed(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not UNSET}


class Core:
    """What the client of either kind has in common. It shows neither the key nor a value."""

    def __init__(
        self,
        *,
        api_key: str,
        url: str,
        timeout: float,
        retries: int,
        header_prefix: str,
        allow_http: bool,
    ) -> None:
        parts = urlsplit(str(url))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                "url must be the address of the vault with its scheme, such as https://vault.example.com."
            )
        if parts.username or parts.query or parts.fragment:
            raise ConfigurationError("url must have no user, query or fragment; the key is api_key.")
        is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme == "http" and not is_local and not allow_http:
            raise ConfigurationError(
                "url must be https, because the key is sent there. To send it over plain HTTP, give allow_http."
            )
        if not isinstance(api_key, str) or not re.fullmatch(r"[\x21-\x7e]+", api_key):
            raise ConfigurationError(
                "api_key must be the key of an application, without spaces. Is the variable set that holds it?"
            )
        self.url = str(url).rstrip("/")
        self._api_key = api_key
        self.timeout = timeout
        self.retries = retries
        self._prefix = header_prefix

    def header(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def prepare(
        self,
        operation: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = UNSET,
        lines: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | Unset | None = UNSET,
        trace_id: str | None = None,
    ) -> Outgoing:
        method, pattern = OPERATIONS[operation].split(" ")[:2]

        def filled(match: re.Match[str]) -> str:
            value = (params or {}).get(match[1])
            # As a segment of the path, dots alone would lead to another path.
            if not isinstance(value, str) or re.fullmatch(r"\.{0,2}", value):
                raise ConfigurationError(f"{operation} needs the {match[1]} as a string, as the vault gave it.")
            return quote(value, safe="")

        path = re.sub(r"\{(\w+)\}", filled, pattern)
        pairs: list[tuple[str, str]] = []
        for name, value in unset_removed(query or {}).items():
            if isinstance(value, Mapping):
                pairs += [(f"{name}[{key}]", str(one)) for key, one in value.items()]
            elif isinstance(value, (list, tuple)):
                pairs += [(name, str(one)) for one in value]
            elif value is not None:
                pairs.append((name, str(value)))
        if pairs:
            path += "?" + str(httpx.QueryParams(tuple(pairs)))
        headers = {self.header("API-KEY"): self._api_key}
        if trace_id is not None:
            headers[self.header("TRACE-ID")] = trace_id
        if method in ("POST", "PUT", "PATCH") and operation not in _READING:
            headers[self.header("IDEMPOTENCY-KEY")] = idempotency_key or str(uuid.uuid4())
        if not isinstance(if_match, Unset):
            if not if_match:
                raise ConfigurationError(
                    f"{operation} has an empty if_match, so it would change any state. Read what it changes, and give "
                    "the etag of that."
                )
            headers["if-match"] = if_match
        content: bytes | None = None
        if lines is not None:
            headers["content-type"] = "application/x-ndjson"
            content = lines.encode()
        elif body is not UNSET:
            headers["content-type"] = (
                "application/merge-patch+json" if method == "PATCH" else "application/json"
            )
            content = json.dumps(body).encode()
        return Outgoing(operation, method, path, headers, content)

    def value_of(self, operation: str, response: httpx.Response) -> Any:
        etag = response.headers.get("etag")
        if not response.content and etag is None:
            return None
        if response.headers.get("content-type", "").startswith("text/plain"):
            return response.text
        value = parsed(response.text) if response.content else Object()
        if value is UNSET:
            raise self.not_a_vault(operation, response)
        if operation not in _OF_ANY_FORM:
            if isinstance(value, Object):
                value.etag = etag
            return value
        if isinstance(value, dict):
            return HiddenObject(value)
        return HiddenList(value) if isinstance(value, list) else value

    def not_a_vault(self, operation: str, response: httpx.Response) -> NotAVaultError:
        if 300 <= response.status_code < 400:
            what = "redirects to another address"
        else:
            kind = response.headers.get("content-type", "no type")
            what = f"responds to {operation} with status {response.status_code} and {kind}, as no vault does"
        return NotAVaultError(
            f"The server at {self.url} {what}. Set url to the address of the vault itself."
        )

    def refusal_of(self, operation: str, response: httpx.Response) -> StrongroomError:
        """`VersionError` where only the version is missing to it: see `is_unknown`."""
        body = parsed(response.text)
        problem = body.get("proxy_error", body) if isinstance(body, dict) else {}
        kind = problem.get("type") if isinstance(problem, dict) else None
        if not isinstance(kind, str) or not kind.startswith(_PROBLEM):
            return self.not_a_vault(operation, response)
        status = response.status_code
        error = BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
        return error(
            problem,
            status=status,
            trace_id=response.headers.get(self.header("TRACE-ID")),
            retry_after=_retry_after(response.headers.get("retry-after")),
            advice=self._advice(status, operation),
        )

    def is_unknown(self, error: StrongroomError, operation: str) -> bool:
        """Whether the vault does not have the operation: it is of another version, or under another path."""
        if operation == _VERSION or not isinstance(error, ApiError):
            return False
        is_no_route = error.status == 404 and "route" in str(error.problem.get("detail"))
        return is_no_route or error.code == "method_not_allowed"

    def unknown(self, operation: str, version: str | None) -> StrongroomError:
        if version is not None and version != API_VERSION:
            return VersionError(
                f"The vault at {self.url} has the version {version}, without {operation}. This client is for "
                f"{API_VERSION}: update the vault, or install strongroom=={version}.",
                version,
            )
        return NotAVaultError(
            f"The vault does not have {operation} at {self.url}. Set url to the address of the vault without a "
            "path, unless a server in front of it adds one."
        )

    def require_version(self, version: str) -> None:
        if _interface(version) != _interface(API_VERSION):
            raise self.unknown("this interface", version)

    def failure_of(self, operation: str, error: httpx.HTTPError, timeout: float) -> ConnectionError:
        if isinstance(error, httpx.TimeoutException):
            return TimeoutError(
                f"{operation} got no response from {self.url} within {timeout:g} s. Give it more time with timeout, "
                "or check that the vault is not overloaded."
            )
        return ConnectionError(
            f"{operation} cannot reach the vault at {self.url} ({type(error).__name__}). Check that it runs there, "
            "that url has its scheme and port, and that a certificate and a firewall allow the connection."
        )

    def _advice(self, status: int, operation: str) -> str | None:
        if status == 401:
            return "Check that api_key is a whole key of this vault that was not deleted."
        found = re.match(r"key_[a-z]+_([a-z]+)_", self._api_key)
        kind = _KINDS.get(found[1]) if found else None
        kinds = OPERATIONS.get(operation, "").split(" ")[2:]
        if status != 403 or kind is None or not kinds or kind in kinds:
            return None
        return f"{operation} needs a {' or '.join(kinds)} key, and this client has a {kind} key."


def version_of(core: Core, response: httpx.Response) -> str:
    description = parsed(response.text)
    info = description.get("info") if isinstance(description, dict) else None
    if not isinstance(info, dict) or info.get("title") != "Strongroom":
        raise core.not_a_vault(_VERSION, response)
    return str(info["version"])


def version_request(core: Core) -> Outgoing:
    return Outgoing(_VERSION, "GET", "/openapi.json", {})


def parsed(text: str) -> Any:
    """`UNSET` for what is no JSON. The error of the parser has the whole text, so it is not raised."""
    try:
        return json.loads(text, object_hook=Object)
    except (ValueError, RecursionError):
        return UNSET


def wait_for(error: StrongroomError, attempt: int) -> float | None:
    """How many seconds to wait before the next attempt; `None` where another attempt would fail as well."""
    back_off: float = min(0.5 * 2 ** (attempt - 1), 8) * (1 - random.random() / 4)
    if isinstance(error, ConnectionError):
        return back_off
    if not isinstance(error, ApiError) or _LASTING.fullmatch(error.code):
        return None
    if error.status not in _PASSING and not (error.status == 409 and error.retry_after is not None):
        return None
    if error.retry_after is None:
        return back_off
    return None if error.retry_after > _RETRY_AFTER_MAX else float(error.retry_after)


def _may_have_happened(error: StrongroomError) -> bool:
    return not isinstance(error, ApiError) or error.status >= 500


def _retry_after(header: str | None) -> int | None:
    if header is None:
        return None
    if header.isdecimal():
        return int(header)
    date = email.utils.parsedate_tz(header)
    return None if date is None else max(0, math.ceil(email.utils.mktime_tz(date) - time.time()))


def _interface(version: str) -> str:
    major, minor = (version.split(".") + [""])[:2]
    return f"0.{minor}" if major == "0" else major


def built(client: httpx.Client | httpx.AsyncClient, method: str, url: str, **options: Any) -> httpx.Request:
    """A request without cookies, unless the caller gives some.

    A client of httpx keeps the cookies of every response. Those of destinations of proxies all come from the address of
    the vault, and each destination would receive those of the others.
    """
    cookies = options.pop("cookies", None)
    own = httpx.Headers(options.get("headers")).get("cookie")
    request = client.build_request(method, url, **options)
    request.headers.pop("cookie", None)
    if own is not None:
        request.headers["cookie"] = own
    elif cookies is not None:
        httpx.Cookies(cookies).set_cookie_header(request)
    return request


_is_sending: ContextVar[bool] = ContextVar("strongroom_is_sending", default=False)


def _is_of_others(_record: logging.LogRecord) -> bool:
    return not _is_sending.get()


# A filter of a logger does not apply to those below it.
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))):
    logging.getLogger(_name).addFilter(_is_of_others)


@contextmanager
def unlogged() -> Iterator[None]:
    """What is sent meanwhile is in no log of httpx: addresses have ids and filters, which may be values of cards."""
    before = _is_sending.set(True)
    try:
        yield
    finally:
        _is_sending.reset(before)


class SyncTransport(Core):
    """Sends requests and waits for them."""

    def __init__(self, http_client: httpx.Client | None, **options: Any) -> None:
        super().__init__(**options)
        self._client = http_client or httpx.Client()

    def close(self) -> None:
        self._client.close()

    def call(
        self,
        operation: str,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        **request: Any,
    ) -> Any:
        outgoing = self.prepare(operation, **request)
        return self.send(outgoing, timeout, retries, lambda one: self.value_of(operation, one))

    def send(
        self,
        outgoing: Outgoing,
        timeout: float | None,
        retries: int | None,
        read: Callable[[httpx.Response], Any],
    ) -> Any:
        may_have_happened = False
        attempt = 0
        while True:
            attempt += 1
            response, error = self._attempt(outgoing, timeout, stream=False)
            if error is None and response is not None:
                return read(response)
            assert error is not None
            if outgoing.method == "DELETE" and error.code == "not_found" and may_have_happened:
                return None
            wait = wait_for(error, attempt)
            if wait is None or attempt > (self.retries if retries is None else retries):
                raise error
            may_have_happened = may_have_happened or _may_have_happened(error)
            time.sleep(wait)

    def open(self, outgoing: Outgoing, timeout: float | None = None) -> httpx.Response:
        """A response whose body is read as it arrives. The caller closes it."""
        attempt = 0
        while True:
            attempt += 1
            response, error = self._attempt(outgoing, timeout, stream=True)
            if error is None and response is not None:
                return response
            assert error is not None
            wait = wait_for(error, attempt)
            if wait is None or attempt > self.retries:
                raise error
            time.sleep(wait)

    def _attempt(
        self, outgoing: Outgoing, timeout: float | None, *, stream: bool
    ) -> tuple[httpx.Response | None, StrongroomError | None]:
        limit = self.timeout if timeout is None else timeout
        try:
            request = built(
                self._client,
                outgoing.method,
                self.url + outgoing.path,
                headers=dict(outgoing.headers),
                content=outgoing.content,
                timeout=limit,
            )
            with unlogged():
                response = self._client.send(request, stream=stream, follow_redirects=False)
                if not response.is_success and stream:
                    response.read()
        except httpx.HTTPError as error:
            # Raised outside of this block: the error of httpx has the request, and with it the key.
            return None, self.failure_of(outgoing.operation, error, limit)
        if response.is_success:
            return response, None
        refused = self.refusal_of(outgoing.operation, response)
        if self.is_unknown(refused, outgoing.operation):
            return None, self.unknown(outgoing.operation, self._known_version())
        return None, refused

    def version(self) -> str:
        return str(self.send(version_request(self), None, None, lambda one: version_of(self, one)))

    def _known_version(self) -> str | None:
        try:
            return self.version()
        except StrongroomError:
            return None


class AsyncTransport(Core):
    """The same without blocking."""

    def __init__(self, http_client: httpx.AsyncClient | None, **options: Any) -> None:
        super().__init__(**options)
        self._client = http_client or httpx.AsyncClient()

    async def close(self) -> None:
        await self._client.aclose()

    async def call(
        self,
        operation: str,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        **request: Any,
    ) -> Any:
        outgoing = self.prepare(operation, **request)
        return await self.send(outgoing, timeout, retries, lambda one: self.value_of(operation, one))

    async def send(
        self,
        outgoing: Outgoing,
        timeout: float | None,
        retries: int | None,
        read: Callable[[httpx.Response], Any],
    ) -> Any:
        may_have_happened = False
        attempt = 0
        while True:
            attempt += 1
            response, error = await self._attempt(outgoing, timeout, stream=False)
            if error is None and response is not None:
                return read(response)
            assert error is not None
            if outgoing.method == "DELETE" and error.code == "not_found" and may_have_happened:
                return None
            wait = wait_for(error, attempt)
            if wait is None or attempt > (self.retries if retries is None else retries):
                raise error
            may_have_happened = may_have_happened or _may_have_happened(error)
            await asyncio.sleep(wait)

    async def open(self, outgoing: Outgoing, timeout: float | None = None) -> httpx.Response:
        """A response whose body is read as it arrives. The caller closes it."""
        attempt = 0
        while True:
            attempt += 1
            response, error = await self._attempt(outgoing, timeout, stream=True)
            if error is None and response is not None:
                return response
            assert error is not None
            wait = wait_for(error, attempt)
            if wait is None or attempt > self.retries:
                raise error
            await asyncio.sleep(wait)

    async def _attempt(
        self, outgoing: Outgoing, timeout: float | None, *, stream: bool
    ) -> tuple[httpx.Response | None, StrongroomError | None]:
        limit = self.timeout if timeout is None else timeout
        try:
            request = built(
                self._client,
                outgoing.method,
                self.url + outgoing.path,
                headers=dict(outgoing.headers),
                content=outgoing.content,
                timeout=limit,
            )
            with unlogged():
                response = await self._client.send(request, stream=stream, follow_redirects=False)
                if not response.is_success and stream:
                    await response.aread()
        except httpx.HTTPError as error:
            return None, self.failure_of(outgoing.operation, error, limit)
        if response.is_success:
            return response, None
        refused = self.refusal_of(outgoing.operation, response)
        if self.is_unknown(refused, outgoing.operation):
            return None, self.unknown(outgoing.operation, await self._known_version())
        return None, refused

    async def version(self) -> str:
        found = await self.send(version_request(self), None, None, lambda one: version_of(self, one))
        return str(found)

    async def _known_version(self) -> str | None:
        try:
            return await self.version()
        except StrongroomError:
            return None


class SyncList(Generic[Item]):
    """A list that was not read yet. Iterating it reads page after page."""

    def __init__(self, read_page: Callable[[str | None], Any]) -> None:
        self._read_page = read_page

    def pages(self) -> Iterator[list[Item]]:
        """The items of each page, one request for each."""
        start: str | None = None
        while True:
            page = self._read_page(start)
            yield page["data"]
            start = page["pagination"].get("next")
            if start is None:
                return

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from page


class AsyncList(Generic[Item]):
    """A list that was not read yet. `async for` reads page after page."""

    def __init__(self, read_page: Callable[[str | None], Awaitable[Any]]) -> None:
        self._read_page = read_page

    async def pages(self) -> AsyncIterator[list[Item]]:
        """The items of each page, one request for each."""
        start: str | None = None
        while True:
            page = await self._read_page(start)
            yield page["data"]
            start = page["pagination"].get("next")
            if start is None:
                return

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in page:
                yield item


class SyncResource:
    """A resource of a vault."""

    def __init__(self, transport: SyncTransport) -> None:
        self._transport = transport


class AsyncResource:
    """A resource of a vault."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
