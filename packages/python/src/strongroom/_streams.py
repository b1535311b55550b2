"""Imports and exports of any size: in bounded memory, complete or with an error, and never twice."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from ._errors import ConnectionError, StreamError
from ._object import UNSET, Object
from ._transport import AsyncTransport, SyncTransport, parsed
from ._types import ImportResult, Token

REQUESTS_AT_ONCE = 500
_CHARACTERS_MAX = 512 * 1024
_PAUSE = 0.5


@dataclass(frozen=True)
class Progress:
    """How far an import or an export has come."""

    done: int
    """Tokens that were received, or requests that have a result."""
    failed: int = 0
    """Requests of an import whose result is a problem."""


OnProgress = Callable[[Progress], None]


class _Part:
    """Requests that are sent together, and the results that they have so far."""

    def __init__(self, lines: list[tuple[str, str | None]]) -> None:
        self._lines = lines
        self._is_repeated = False
        self.results: list[ImportResult] = []
        self.problem: dict[str, Any] | None = None

    @property
    def is_done(self) -> bool:
        return len(self.results) == len(self._lines)

    def body(self) -> str:
        rest = self._lines[len(self.results) :]
        return "".join(f"{text}\n" for text, _ in rest)

    def take(self, line: str) -> bool:
        """False for what ends the response early."""
        value = parsed(line)
        if not isinstance(value, Object) or "line" not in value:
            self.problem = value.get("problem") if isinstance(value, Object) else None
            return False
        _, own_id = self._lines[len(self.results)]
        value["line"] = len(self.results) + 1
        # Its id is random, so the attempt before created it. This key may not see that it is equal.
        if self._is_repeated and own_id is not None and value["status"] == 409:
            value = Object(line=value["line"], status=200, token=Object(id=own_id))
        self.results.append(ImportResult(value))
        return True

    def repeat(self) -> None:
        self._is_repeated = True

    def is_refused(self) -> bool:
        """What the vault refuses for good, such as a key that was revoked, is not sent again."""
        return self.problem is not None and self.problem.get("status") != 503


class _Parts:
    """Collects requests until they are enough to be sent."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lines: list[tuple[str, str | None]] = []
        self._characters = 0

    def add(self, request: Mapping[str, Any]) -> _Part | None:
        """The part before this request, where it is full."""
        own_id = str(uuid.uuid4()) if request.get("id") is None else None
        text = json.dumps(dict(request) if own_id is None else {**request, "id": own_id})
        is_full = len(self._lines) >= self._at_once or self._characters + len(text) > _CHARACTERS_MAX
        part = self.rest() if self._lines and is_full else None
        self._lines.append((text, own_id))
        self._characters += len(text)
        return part

    def rest(self) -> _Part | None:
        part = _Part(self._lines) if self._lines else None
        self._lines, self._characters = [], 0
        return part


def _parts(requests: Iterable[Mapping[str, Any]], at_once: int) -> Iterator[_Part]:
    parts = _Parts(at_once)
    for request in requests:
        part = parts.add(request)
        if part is not None:
            yield part
    last = parts.rest()
    if last is not None:
        yield last


async def _parts_async(
    requests: AsyncIterable[Mapping[str, Any]] | Iterable[Mapping[str, Any]], at_once: int
) -> AsyncIterator[_Part]:
    if isinstance(requests, Iterable):
        for part in _parts(requests, at_once):
            yield part
        return
    parts = _Parts(at_once)
    async for request in requests:
        full = parts.add(request)
        if full is not None:
            yield full
    last = parts.rest()
    if last is not None:
        yield last


def _broken_import(done: int, part: _Part, reason: str) -> StreamError:
    said = part.problem["detail"] if part.problem else reason
    return StreamError(
        f"The import broke off after {done} requests: {said} Go on with request {done + 1}. Requests that you give an "
        "id are never imported twice.",
        done,
        part.problem,
    )


def import_tokens(
    transport: SyncTransport,
    requests: Iterable[Mapping[str, Any]],
    at_once: int,
    on_progress: OnProgress | None,
) -> Iterator[ImportResult]:
    done = 0
    failed = 0
    for part in _parts(requests, at_once):
        attempt = 0
        reason = "The connection was lost."
        while not part.is_done and attempt <= transport.retries and not part.is_refused():
            attempt += 1
            before = len(part.results)
            outgoing = transport.prepare("createTokens", lines=part.body())
            try:
                response = transport.open(outgoing)
                try:
                    for line in response.iter_lines():
                        if line and not part.take(line):
                            break
                finally:
                    response.close()
            except (httpx.HTTPError, ConnectionError) as error:
                reason = str(error) if isinstance(error, ConnectionError) else reason
            if part.is_done or part.is_refused():
                break
            attempt = attempt if len(part.results) == before else 0
            part.repeat()
            time.sleep(_PAUSE)
        before = done
        done += len(part.results)
        failed += sum(1 for result in part.results if result.problem)
        if on_progress is not None:
            on_progress(Progress(done, failed))
        for result in part.results:
            result["line"] += before
            yield result
        if not part.is_done:
            raise _broken_import(done, part, reason)


async def import_tokens_async(
    transport: AsyncTransport,
    requests: AsyncIterable[Mapping[str, Any]] | Iterable[Mapping[str, Any]],
    at_once: int,
    on_progress: OnProgress | None,
) -> AsyncIterator[ImportResult]:
    done = 0
    failed = 0
    async for part in _parts_async(requests, at_once):
        attempt = 0
        reason = "The connection was lost."
        while not part.is_done and attempt <= transport.retries and not part.is_refused():
            attempt += 1
            before = len(part.results)
            outgoing = transport.prepare("createTokens", lines=part.body())
            try:
                response = await transport.open(outgoing)
                try:
                    async for line in response.aiter_lines():
                        if line and not part.take(line):
                            break
                finally:
                    await response.aclose()
            except (httpx.HTTPError, ConnectionError) as error:
                reason = str(error) if isinstance(error, ConnectionError) else reason
            if part.is_done or part.is_refused():
                break
            attempt = attempt if len(part.results) == before else 0
            part.repeat()
            await asyncio.sleep(_PAUSE)
        before = done
        done += len(part.results)
        failed += sum(1 for result in part.results if result.problem)
        if on_progress is not None:
            on_progress(Progress(done, failed))
        for result in part.results:
            result["line"] += before
            yield result
        if not part.is_done:
            raise _broken_import(done, part, reason)


def _broken_export(done: int, why: str, problem: dict[str, Any] | None = None) -> StreamError:
    return StreamError(
        f"The export broke off after {done} tokens: {why} What came is right, but not all. Export again.",
        done,
        problem,
    )


def _exported(line: str, done: int) -> Token | None:
    """The token of a line; `None` for the last one, which says that the export is complete."""
    value = parsed(line)
    if isinstance(value, Object):
        if value.get("exported") == done:
            return None
        problem = value.get("problem")
        if problem is not None:
            raise _broken_export(done, problem["detail"], problem)
        if "id" in value:
            return Token(value)
    raise _broken_export(done, "the vault sent a line that is no token.")


def export_tokens(
    transport: SyncTransport, query: Mapping[str, Any], on_progress: OnProgress | None
) -> Iterator[Token]:
    done = 0
    response = transport.open(transport.prepare("exportTokens", query=query))
    try:
        lines = response.iter_lines()
        while True:
            try:
                line = next(lines, UNSET)
            except httpx.HTTPError:
                line = UNSET
            if isinstance(line, str):
                token = _exported(line, done)
                if token is None:
                    return
                done += 1
                if on_progress is not None:
                    on_progress(Progress(done))
                yield token
                continue
            raise _broken_export(done, "the connection was lost.")
    finally:
        response.close()


async def export_tokens_async(
    transport: AsyncTransport, query: Mapping[str, Any], on_progress: OnProgress | None
) -> AsyncIterator[Token]:
    done = 0
    response = await transport.open(transport.prepare("exportTokens", query=query))
    try:
        lines = response.aiter_lines()
        while True:
            try:
                line = await anext(lines, UNSET)
            except httpx.HTTPError:
                line = UNSET
            if isinstance(line, str):
                token = _exported(line, done)
                if token is None:
                    return
                done += 1
                if on_progress is not None:
                    on_progress(Progress(done))
                yield token
                continue
            raise _broken_export(done, "the connection was lost.")
    finally:
        await response.aclose()
