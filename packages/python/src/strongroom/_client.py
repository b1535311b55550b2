"""The clients of a vault, blocking and not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import httpx

from . import _resources as resources
from ._errors import ConfigurationError, StrongroomError
from ._object import UNSET, Unset
from ._streams import (
    REQUESTS_AT_ONCE,
    OnProgress,
    export_tokens,
    export_tokens_async,
    import_tokens,
    import_tokens_async,
)
from ._transport import AsyncResource, AsyncTransport, Core, SyncResource, SyncTransport, built, unlogged
from ._types import Application, ImportResult, Token

_TIMEOUT = 30.0
_RETRIES = 2


class Tokens(resources.SyncTokens):
    """`vault.tokens`: values, and what stands for them."""

    def import_(
        self,
        requests: Iterable[Mapping[str, Any]],
        *,
        requests_at_once: int = REQUESTS_AT_ONCE,
        on_progress: OnProgress | None = None,
    ) -> Iterator[ImportResult]:
        """Creates any number of tokens, in parts that are sent again where a connection breaks.

        Each request has the arguments of `create`. A request without an `id` gets a random one. `on_progress` is
        called after each part, before you get its results.
        """
        return import_tokens(self._transport, requests, requests_at_once, on_progress)

    def export(
        self,
        *,
        container: str | Unset = UNSET,
        type: str | Unset = UNSET,
        fingerprint: str | Unset = UNSET,
        metadata: Mapping[str, str] | Unset = UNSET,
        on_progress: OnProgress | None = None,
    ) -> Iterator[Token]:
        """Every token that the key may read, over one connection. It raises `StreamError` where it is not complete."""
        query = {"container": container, "type": type, "fingerprint": fingerprint, "metadata": metadata}
        return export_tokens(self._transport, query, on_progress)


class AsyncTokens(resources.AsyncTokens):
    """`vault.tokens`: values, and what stands for them."""

    def import_(
        self,
        requests: AsyncIterable[Mapping[str, Any]] | Iterable[Mapping[str, Any]],
        *,
        requests_at_once: int = REQUESTS_AT_ONCE,
        on_progress: OnProgress | None = None,
    ) -> AsyncIterator[ImportResult]:
        """Creates any number of tokens, in parts that are sent again where a connection breaks.

        Each request has the arguments of `create`. A request without an `id` gets a random one. `on_progress` is
        called after each part, before you get its results.
        """
        return import_tokens_async(self._transport, requests, requests_at_once, on_progress)

    def export(
        self,
        *,
        container: str | Unset = UNSET,
        type: str | Unset = UNSET,
        fingerprint: str | Unset = UNSET,
        metadata: Mapping[str, str] | Unset = UNSET,
        on_progress: OnProgress | None = None,
    ) -> AsyncIterator[Token]:
        """Every token that the key may read, over one connection. It raises `StreamError` where it is not complete."""
        query = {"container": container, "type": type, "fingerprint": fingerprint, "metadata": metadata}
        return export_tokens_async(self._transport, query, on_progress)


def _proxy_call(core: Core, url: str, proxy: str | None, headers: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    sent = {**headers, **core.prepare("getOwnApplication").headers}
    if proxy is not None:
        sent[core.header("PROXY-KEY")] = proxy
    parts = urlsplit(url)
    if proxy is None:
        if not parts.scheme or not parts.netloc:
            raise ConfigurationError("Give request the option proxy together with a path, or a whole https address.")
        sent[core.header("PROXY-URL")] = f"{parts.scheme}://{parts.netloc}"
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    address = f"{core.url}/proxy{path}"
    # A part of the path may come from a stranger, and `..` would lead to the vault's own interface, with the key: also
    # where a server in front of the vault decodes it. Decoded twice, because some do.
    segments = re.split(r"[/\\\\]", unquote(unquote(parts.path)))
    if ".." in segments or "." in segments or (path and path[0] not in "/?"):
        raise ConfigurationError("The path of a call must not lead above the destination.")
    return address, sent


def _of_destination(core: Core, response: httpx.Response) -> httpx.Response:
    if core.header("PROXY-DESTINATION-STATUS") in response.headers:
        return response
    raise core.refusal_of("proxy.request", response)


class Proxy(SyncResource):
    """`vault.proxy`: calls of proxies."""

    def request(
        self,
        method: str,
        url: str,
        *,
        proxy: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> httpx.Response:
        """Sends a request through the vault, as `httpx.request` does. `proxy` is the key of a proxy; `url` is a path
        below its destination or, without a proxy, the address of the destination.

        Any status of the destination is a response. Only a failure of the vault is raised.
        """
        transport = self._transport
        address, sent = _proxy_call(transport, url, proxy, headers or {})
        limit = transport.timeout if timeout is None else timeout
        failure: StrongroomError
        try:
            auth = options.pop("auth", httpx.USE_CLIENT_DEFAULT)
            outgoing = built(transport._client, method, address, headers=sent, timeout=limit, **options)
            with unlogged():
                response = transport._client.send(outgoing, auth=auth, follow_redirects=False)
            return _of_destination(transport, response)
        except httpx.HTTPError as error:
            failure = transport.failure_of("proxy.request", error, limit)
        raise failure


class AsyncProxy(AsyncResource):
    """`vault.proxy`: calls of proxies."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        proxy: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> httpx.Response:
        """Sends a request through the vault, as `httpx.request` does. See `Strongroom.proxy`."""
        transport = self._transport
        address, sent = _proxy_call(transport, url, proxy, headers or {})
        limit = transport.timeout if timeout is None else timeout
        failure: StrongroomError
        try:
            auth = options.pop("auth", httpx.USE_CLIENT_DEFAULT)
            outgoing = built(transport._client, method, address, headers=sent, timeout=limit, **options)
            with unlogged():
                response = await transport._client.send(outgoing, auth=auth, follow_redirects=False)
            return _of_destination(transport, response)
        except httpx.HTTPError as error:
            failure = transport.failure_of("proxy.request", error, limit)
        raise failure


class Strongroom:
    """A client of one vault, with one key.

    `timeout` is in seconds, for each attempt; `retries` is how often a request is sent again when it can succeed then.
    Beyond this machine, `url` must be https, unless `allow_http` says that the key may cross the network in plaintext.
    """

    def __init__(
        self,
        *,
        api_key: str,
        url: str,
        timeout: float = _TIMEOUT,
        retries: int = _RETRIES,
        header_prefix: str = "SVC",
        allow_http: bool = False,
        http_client: httpx.Client | None = None,
    ) -> None:
        transport = SyncTransport(
            http_client,
            api_key=api_key,
            url=url,
            timeout=timeout,
            retries=retries,
            header_prefix=header_prefix,
            allow_http=allow_http,
        )
        self._transport = transport
        self.tokens = Tokens(transport)
        self.token_intents = resources.SyncTokenIntents(transport)
        self.applications = resources.SyncApplications(transport)
        self.sessions = resources.SyncSessions(transport)
        self.people = resources.SyncPeople(transport)
        self.proxies = resources.SyncProxies(transport)
        self.egress = resources.SyncEgress(transport)
        self.approvals = resources.SyncApprovals(transport)
        self.proxy = Proxy(transport)
        self.reactors = resources.SyncReactors(transport)
        self.webhooks = resources.SyncWebhooks(transport)
        self.logs = resources.SyncLogs(transport)
        self.enrichments = resources.SyncEnrichments(transport)
        self.encryption_keys = resources.SyncEncryptionKeys(transport)
        self.tenant = resources.SyncTenant(transport)

    def tokenize(self, body: Any, **options: Any) -> Any:
        """Replaces the values in any JSON with tokens."""
        return self._transport.call("tokenize", body=body, **options)

    def detokenize(self, body: Any, **options: Any) -> Any:
        """Replaces references to tokens in any JSON with their data, as far as the key may see it."""
        return self._transport.call("detokenize", body=body, **options)

    def check(self) -> tuple[str, Application]:
        """Checks the address, the version and the key; gives the version and the application of the key."""
        version = self._transport.version()
        self._transport.require_version(version)
        return version, self.applications.current()

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Strongroom:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        self.close()
        return False


class AsyncStrongroom:
    """A client of one vault, with one key, that does not block."""

    def __init__(
        self,
        *,
        api_key: str,
        url: str,
        timeout: float = _TIMEOUT,
        retries: int = _RETRIES,
        header_prefix: str = "SVC",
        allow_http: bool = False,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        transport = AsyncTransport(
            http_client,
            api_key=api_key,
            url=url,
            timeout=timeout,
            retries=retries,
            header_prefix=header_prefix,
            allow_http=allow_http,
        )
        self._transport = transport
        self.tokens = AsyncTokens(transport)
        self.token_intents = resources.AsyncTokenIntents(transport)
        self.applications = resources.AsyncApplications(transport)
        self.sessions = resources.AsyncSessions(transport)
        self.people = resources.AsyncPeople(transport)
        self.proxies = resources.AsyncProxies(transport)
        self.egress = resources.AsyncEgress(transport)
        self.approvals = resources.AsyncApprovals(transport)
        self.proxy = AsyncProxy(transport)
        self.reactors = resources.AsyncReactors(transport)
        self.webhooks = resources.AsyncWebhooks(transport)
        self.logs = resources.AsyncLogs(transport)
        self.enrichments = resources.AsyncEnrichments(transport)
        self.encryption_keys = resources.AsyncEncryptionKeys(transport)
        self.tenant = resources.AsyncTenant(transport)

    async def tokenize(self, body: Any, **options: Any) -> Any:
        """Replaces the values in any JSON with tokens."""
        return await self._transport.call("tokenize", body=body, **options)

    async def detokenize(self, body: Any, **options: Any) -> Any:
        """Replaces references to tokens in any JSON with their data, as far as the key may see it."""
        return await self._transport.call("detokenize", body=body, **options)

    async def check(self) -> tuple[str, Application]:
        """Checks the address, the version and the key; gives the version and the application of the key."""
        version = await self._transport.version()
        self._transport.require_version(version)
        return version, await self.applications.current()

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncStrongroom:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        await self.close()
        return False
