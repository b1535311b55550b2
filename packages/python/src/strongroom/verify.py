"""Offline verification of what a vault signs: receipts of erasure, checkpoints of the log, and exports of the log.

    from strongroom.verify import verify_erasure_receipt

    statement = verify_erasure_receipt(receipt, public_keys=public_keys)
    print(statement.id)

It needs the package `cryptography`: pip install cryptography.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ._errors import ConfigurationError, StrongroomError
from ._object import UNSET, Object
from ._transport import parsed

__all__ = ["LogFinding", "LogReport", "ProofError", "verify_checkpoint", "verify_erasure_receipt", "verify_log"]


class ProofError(StrongroomError):
    """What was verified is not what a vault signed: its `code` is `not_signed`, `not_trusted` or `altered`."""


@dataclass(frozen=True)
class LogFinding:
    """Something that is wrong with a log."""

    kind: str
    """`edited`, `deleted`, `inserted`, `truncated`, `forged` or `unreadable`."""
    seq: int
    """The number of the entry or the checkpoint; of an unreadable line, its number."""
    message: str
    tenant_id: str | None = None
    stream_id: str | None = None


@dataclass(frozen=True)
class LogReport:
    """The result of verifying a log."""

    intact: bool
    """Whether nothing was found."""
    entries: int
    streams: int
    checkpoints: int
    removed: int
    """Entries that retention removed, as signed."""
    uncovered: int
    """Entries that are newer than every checkpoint: only the chain speaks for them."""
    findings: list[LogFinding]
    """The first of each stream, and all about statements and lines."""


def verify_erasure_receipt(receipt: Mapping[str, Any], *, public_keys: Sequence[str]) -> Object:
    """Verifies a receipt of erasure, the response of `vault.tokens.erasure`, and gives what was signed.

    `public_keys` are keys of the tenant's log that you stored earlier, in base64 or PEM: `public_keys` of a checkpoint.
    A key in the same document as the signature proves nothing. The newest is the last: receipts by those before it are
    not trusted, because nothing shows when they were signed. Times in the statement are milliseconds since 1970.

    Raises `ProofError` where the statement is not signed by a trusted key, or an attribute differs from it.
    """
    given = _keys_of(public_keys)
    trusted = set(_keys_of(public_keys[-1:]))
    signs_until: dict[str, int] = {}
    # In the order of the keys, so that each one is introduced by one before it.
    introductions = receipt.get("introductions")
    for signed in introductions if isinstance(introductions, list) else []:
        if not isinstance(signed, Mapping) or signed.get("public_key") not in trusted:
            continue
        introduction = _opened(signed, "checkpoint")
        if introduction is None or introduction["tenant_id"] != receipt.get("tenant_id"):
            continue
        # A key vouches for none that it has replaced: whoever stole an old key could add any later checkpoint in which
        # the new key names it.
        introduced, until = introduction.get("introduces"), introduction["created_at"] + _REPLACED_MS
        if introduced is not None:
            trusted.add(introduced)
        for key in (*introduction.get("succeeds", ()), *(() if introduced is None else (signed["public_key"],))):
            signs_until[key] = min(until, signs_until.get(key, until))
    statement = _open_trusted(receipt, "erasure", given | trusted)
    key = receipt["public_key"]
    if key not in trusted or (key in signs_until and statement["issued_at"] > signs_until[key]):
        raise ProofError(
            "not_trusted",
            "The receipt is signed by a key that had been replaced. The vault issues it again under the newest key.",
        )
    _require_equal(receipt, _shown_erasure(statement))
    return statement


def verify_checkpoint(checkpoint: Mapping[str, Any], *, public_keys: Sequence[str]) -> Object:
    """Verifies a checkpoint of the log, the response of `vault.logs.checkpoint`, and gives what was signed.

    Raises `ProofError` where the statement is not signed by a trusted key, or an attribute differs from it.
    """
    statement = _open_trusted(checkpoint, "checkpoint", _keys_of(public_keys))
    shown = {
        "tenant_id": statement["tenant_id"],
        "seq": statement["seq"],
        "created_at": _date(statement["created_at"]),
        "public_keys": _signers_up_to(checkpoint, statement),
    }
    _require_equal(checkpoint, shown)
    return statement


def verify_log(
    log: str | bytes | Iterable[str | bytes],
    *,
    public_keys: Sequence[str],
    checkpoints: Iterable[Mapping[str, Any]] = (),
) -> LogReport:
    """Verifies an export of the log, the output of `strongroom logs export`.

    `log` is its text, or its parts as they arrive, such as a file that is open for reading. Lines are read once, and
    what is kept grows with streams and checkpoints, not with entries. `checkpoints` are those that you stored elsewhere.

    An intact report says that no entry was changed, removed or added up to the newest of `checkpoints`. What is newer
    is `uncovered`: only a checkpoint that you stored elsewhere shows that the end of a log is missing.
    """
    walk = _LogWalk(_keys_of(public_keys))
    for signed in checkpoints:
        walk.learn_kept(signed)
    for number, line in enumerate(_lines_of([log] if isinstance(log, (str, bytes)) else log), 1):
        value = _parsed(line)
        entry = _entry_of(value, line)
        if entry is None:
            walk.take_other(value, line, number)
        else:
            walk.take_entry(entry)
    return walk.finish()


_TYPES = {
    "checkpoint": "strongroom log checkpoint 1",
    "removal": "strongroom log removal 1",
    "erasure": "strongroom erasure receipt 1",
}

_SPKI_PREFIX = bytes.fromhex("302a300506032b6570032100")
"""What precedes the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410)."""

_PEM = re.compile(r"\s*-----BEGIN PUBLIC KEY-----([\w+/=\s]+)-----END PUBLIC KEY-----\s*", re.ASCII)


def _keys_of(public_keys: Sequence[str]) -> frozenset[str]:
    """Trusted keys as base64 of their 32 bytes."""
    if isinstance(public_keys, str) or not public_keys:
        raise ConfigurationError("public_keys must have the keys of the log that you trust, as a list.")
    return frozenset(_key_of(text) for text in public_keys)


def _key_of(text: str) -> str:
    pem = _PEM.fullmatch(text)
    raw = _base64("".join(pem[1].split()) if pem else text.strip())
    if pem and raw is not None:
        raw = raw.removeprefix(_SPKI_PREFIX)
    if raw is None or len(raw) != 32:
        raise ConfigurationError("public_keys must have Ed25519 keys, in base64 or PEM.")
    return base64.b64encode(raw).decode()


def _base64(text: str) -> bytes | None:
    """`None` unless it is base64 in its one spelling."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return raw if base64.b64encode(raw).decode() == text else None


def _is_signed(key: bytes, signature: bytes, statement: str) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise ConfigurationError("Verifying needs the package cryptography: pip install cryptography.") from None
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, _encoded(statement))
    except (InvalidSignature, ValueError):
        return False
    return True


def _opened(signed: Mapping[str, Any], kind: str) -> Object | None:
    """What it says; `None` unless the key next to it signed it as this kind of statement."""
    statement = signed.get("statement")
    key, signature = _base64(str(signed.get("public_key"))), _base64(str(signed.get("signature")))
    if not isinstance(statement, str) or not statement.startswith(f'{{"type":"{_TYPES[kind]}"'):
        return None
    if key is None or len(key) != 32 or signature is None or not _is_signed(key, signature, statement):
        return None
    value = parsed(statement)
    return value if isinstance(value, Object) else None


def _open_trusted(signed: Mapping[str, Any], kind: str, trusted: Collection[str]) -> Object:
    statement = _opened(signed, kind)
    if statement is None:
        raise ProofError(
            "not_signed",
            f"The statement is no {kind} that the key next to it signed: it was altered, or is of another kind.",
        )
    if signed["public_key"] not in trusted:
        raise ProofError(
            "not_trusted",
            "The statement is signed by a key that is not in public_keys: it is of another tenant, or forged.",
        )
    del statement["type"]
    return statement


def _keys_named_in(checkpoint: Mapping[str, Any]) -> list[str]:
    """The other keys of the log that a checkpoint vouches for."""
    introduced = checkpoint.get("introduces")
    return [*checkpoint.get("succeeds", []), *([] if introduced is None else [introduced])]


def _signers_up_to(signed: Mapping[str, Any], checkpoint: Mapping[str, Any]) -> list[str]:
    """The keys that signed up to a checkpoint, the newest last. They are shown next to it."""
    return [*checkpoint.get("succeeds", []), signed["public_key"]]


def _require_equal(shown: Mapping[str, Any], signed: Mapping[str, Any]) -> None:
    """What is signed and what is shown must be the same: a reader looks at the second."""
    for name, value in signed.items():
        if name in shown and _canonical(shown[name]) != _canonical(value):
            raise ProofError("altered", f"The attribute {name} differs from the signed statement.")


def _canonical(value: Any) -> str:
    """Equal for equal JSON, whatever the order of its members; `True` is not 1."""
    return json.dumps(value, sort_keys=True, default=repr)


def _date(milliseconds: int | None) -> str | None:
    """As responses show a time."""
    if milliseconds is None:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    at = datetime.fromtimestamp(seconds, timezone.utc).replace(microsecond=rest * 1000)
    return at.isoformat(timespec="milliseconds")


def _shown_erasure(statement: Mapping[str, Any]) -> dict[str, Any]:
    entry = statement["log_entry"]
    head_seq, head_hash = entry["head"]
    copies = ("stored_responses", "results")
    return {
        **statement,
        **{name: _date(statement[name]) for name in ("erased_at", "row_gone_at", "search_terms_gone_at", "issued_at")},
        "log_entry": {
            "stream_id": entry["stream_id"],
            "seq": entry["seq"],
            "head_seq": head_seq,
            "head_hash": head_hash,
        },
        **{name: {**statement[name], "gone_by": _date(statement[name]["gone_by"])} for name in copies},
        "keys": [
            {**key, **{name: _date(key[name]) for name in ("created_at", "destroyed_at", "due_at")}}
            for key in statement["keys"]
        ],
    }


def _lines_of(source: Iterable[str | bytes]) -> Iterator[str]:
    rest = b""
    for chunk in source:
        *lines, rest = (rest + (_encoded(chunk) if isinstance(chunk, str) else bytes(chunk))).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines if line.strip())
    if rest.strip():
        yield rest.decode(errors="replace")


def _parsed(line: str) -> Any:
    value = parsed(line)
    return None if value is UNSET else value


_SURROGATE = re.compile("[\ud800-\udfff]")


def _json(value: Any) -> str:
    """JSON as a vault writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


def _is_exactly(line: str, value: Any) -> bool:
    try:
        return _json(value) == line
    except RecursionError:
        return False


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _sha256(text: str) -> str:
    return hashlib.sha256(_encoded(text)).hexdigest()


@dataclass(frozen=True)
class _Entry:
    tenant_id: str
    stream_id: str
    seq: int
    hash: str
    created_at: int
    text: str
    """What its hash is over."""

    @property
    def stream(self) -> _Stream:
        return self.tenant_id, self.stream_id


_Stream = tuple[str, str]
"""A tenant, and a stream of its log."""

_Head = tuple[int, str]
"""The number of an entry, and its hash."""

_REPLACED_MS = 300_000
"""Servers that have not learned of a new key may sign with the one before for so long after its first checkpoint."""

_LATENESS_MS = 3_600_000
"""An entry that is older than the newest checkpoint by this much, and not covered by it, was put there later."""


@dataclass
class _Succession:
    """The keys of a tenant's log in the order in which they sign."""

    at: int
    introduced_by: dict[str, str] = field(default_factory=dict)
    signs_until: dict[str, int] = field(default_factory=dict)


class _LogWalk:
    def __init__(self, trusted: frozenset[str]) -> None:
        self._trusted = trusted
        self._introduced: dict[str, set[str]] = {}
        self._findings: list[LogFinding] = []
        self._kept: dict[str, dict[int, str]] = {}
        """By tenant: statements of checkpoints that were stored elsewhere, by number."""
        self._successions: dict[str, _Succession] = {}
        self._last: dict[str, tuple[int, str]] = {}
        """By tenant: number and statement of its last checkpoint in the log."""
        self._newest_at: dict[str, int] = {}
        self._known: dict[_Stream, dict[int, str]] = {}
        """Heads that checkpoints name."""
        self._covered: dict[_Stream, int] = {}
        self._heads: dict[_Stream, _Head] = {}
        self._removals: dict[_Stream, _Head] = {}
        self._broken: set[_Stream] = set()
        self._open: set[str] = set()
        self._begun: set[str] = set()
        self._entries = self._checkpoints = self._uncovered = 0

    def learn_kept(self, signed: Mapping[str, Any]) -> None:
        checkpoint = self._open_statement(signed, "checkpoint")
        if checkpoint is None:
            return
        tenant, seq = checkpoint["tenant_id"], checkpoint["seq"]
        kept = self._kept.setdefault(tenant, {})
        if kept.get(seq, signed["statement"]) != signed["statement"]:
            message = "two checkpoints that were kept have one number and say different things"
            self._report("edited", seq, message, tenant)
        kept[seq] = signed["statement"]
        signers = _signers_up_to(signed, checkpoint)
        if _canonical(signed.get("public_keys", signers)) != _canonical(signers):
            message = f"public_keys of the kept checkpoint {seq} are not the keys that the log introduced"
            self._report("forged", seq, message, tenant)
        self._learn(checkpoint)

    def take_other(self, value: Any, line: str, number: int) -> None:
        """A line that is no entry."""
        record = value if isinstance(value, dict) else {}
        kind, tenant = record.get("kind"), record.get("tenant_id")
        signed = {name: record.get(name) for name in ("statement", "public_key", "signature")}
        if kind in ("begin", "end") and isinstance(tenant, str) and _is_exactly(line, {"kind": kind, "tenant_id": tenant}):
            if kind == "begin":
                self._begun.add(tenant)
                self._open.add(tenant)
            else:
                self._open.discard(tenant)
        elif kind in ("checkpoint", "removal") and _is_exactly(line, {"kind": kind, **signed}):
            if kind == "checkpoint":
                self._take_checkpoint(signed)
            else:
                removal = self._open_statement(signed, "removal")
                if removal is not None:
                    stream = removal["tenant_id"], removal["stream_id"]
                    self._removals[stream] = removal["to_seq"], removal["last_hash"]
        else:
            what = "edited" if kind == "altered" else "unreadable"
            self._report(what, number, f"line {number} is not as a vault writes it")

    def take_entry(self, entry: _Entry) -> None:
        self._entries += 1
        stream, seq = entry.stream, entry.seq
        if stream not in self._heads:
            start = self._removals.get(stream)
            if start is not None:
                self._compare(stream, *start)
            seed = ["strongroom log stream", 1, *stream]
            self._heads[stream] = start or (0, _sha256(_json(seed)))
        if stream in self._broken:
            return
        last, last_hash = self._heads[stream]
        if seq > last + 1:
            self._break(stream, "deleted", last + 1, f"entries {last + 1} to {seq - 1} are missing")
        elif seq <= last:
            self._break(stream, "inserted", seq, f"entry {seq} occurs twice, or was moved")
        elif entry.hash != _sha256(f"{last_hash}{seq}{entry.text}"):
            message = f"entry {seq} or its hash was edited, or entries before it removed"
            self._break(stream, "edited", seq, message)
        if stream in self._broken:
            return
        self._heads[stream] = seq, entry.hash
        self._compare(stream, seq, entry.hash)
        if self._covered.get(stream, 0) >= seq:
            return
        self._uncovered += 1
        newest = self._newest_at.get(entry.tenant_id)
        if newest is not None and entry.created_at < newest - _LATENESS_MS:
            message = f"entry {seq} is older than a checkpoint that does not know of it"
            self._break(stream, "inserted", seq, message)

    def finish(self) -> LogReport:
        for stream, last in self._covered.items():
            seq, _ = self._heads.get(stream) or self._removals.get(stream) or (0, "")
            if seq < last:
                message = f"entries {seq + 1} to {last} are known to a checkpoint, and missing at the end"
                self._break(stream, "truncated", seq + 1, message)
        for tenant in self._open:
            self._report("truncated", self._entries + 1, "the export ends before the end of the log", tenant)
        for tenant, kept in self._kept.items():
            newest = max(kept)
            seq, _ = self._last.get(tenant, (0, ""))
            if tenant not in self._begun:
                # Streams of which only earlier checkpoints knew could be missing without a trace.
                message = "the export has no beginning, and a checkpoint of the log was kept"
                self._report("truncated", 1, message, tenant)
            elif seq < newest:
                message = f"checkpoints {seq + 1} to {newest} are missing, and the newest was kept"
                self._report("truncated", seq + 1, message, tenant)
        return LogReport(
            intact=not self._findings,
            entries=self._entries,
            streams=len(self._heads),
            checkpoints=self._checkpoints,
            removed=sum(to_seq for to_seq, _ in self._removals.values()),
            uncovered=self._uncovered,
            findings=self._findings,
        )

    def _take_checkpoint(self, signed: Mapping[str, Any]) -> None:
        self._checkpoints += 1
        checkpoint = self._open_statement(signed, "checkpoint")
        if checkpoint is None:
            return
        tenant, seq, statement = checkpoint["tenant_id"], checkpoint["seq"], signed["statement"]
        last, before = self._last.get(tenant, (0, None))
        expected = None if before is None else _sha256(before)
        if seq > last + 1:
            self._report("deleted", seq, f"checkpoints from {last + 1} on are missing", tenant)
        elif seq <= last:
            self._report("inserted", seq, f"checkpoint {seq} occurs twice", tenant)
        elif checkpoint["previous"] != expected:
            self._report("edited", seq, f"checkpoint {seq} does not continue the one before", tenant)
        if self._kept.get(tenant, {}).get(seq, statement) != statement:
            self._report("edited", seq, f"checkpoint {seq} is not the one that was kept", tenant)
        self._last[tenant] = seq, statement
        if self._is_replaced(signed["public_key"], checkpoint):
            self._report("forged", seq, f"checkpoint {seq} is signed by a key that had been replaced", tenant)
        self._learn(checkpoint)

    def _is_replaced(self, key: str, checkpoint: Mapping[str, Any]) -> bool:
        """Whoever holds a key that was replaced, because it leaked, signs nothing with it any more."""
        created_at, introduced = checkpoint["created_at"], checkpoint.get("introduces")
        succession = self._successions.setdefault(checkpoint["tenant_id"], _Succession(created_at))
        succession.at = max(succession.at, created_at)
        is_over = key in succession.signs_until and succession.at > succession.signs_until[key]
        before = succession.introduced_by.get(key)
        if before is not None:
            succession.signs_until.setdefault(before, created_at + _REPLACED_MS)
        if introduced is not None:
            succession.introduced_by[introduced] = key
        return is_over

    def _learn(self, checkpoint: Mapping[str, Any]) -> None:
        tenant, created_at = checkpoint["tenant_id"], checkpoint["created_at"]
        self._newest_at[tenant] = max(self._newest_at.get(tenant, created_at), created_at)
        for stream_id, seq, digest in checkpoint["heads"]:
            stream = tenant, stream_id
            known = self._known.setdefault(stream, {})
            if seq not in known:
                # What has passed was not compared with it. An export has its statements before its entries.
                if self._heads.get(stream, (0, ""))[0] >= seq:
                    message = f"a checkpoint comes after entry {seq}, which it is about"
                    self._break(stream, "unreadable", seq, message)
            elif known[seq] != digest:
                self._break(stream, "edited", seq, f"two checkpoints say different things about entry {seq}")
            known[seq] = digest
            self._covered[stream] = max(self._covered.get(stream, 0), seq)

    def _open_statement(self, signed: Mapping[str, Any], kind: str) -> Object | None:
        statement = _opened(signed, kind)
        tenant = statement and statement.get("tenant_id")
        if statement is not None and isinstance(tenant, str):
            introduced = self._introduced.setdefault(tenant, set())
            if signed["public_key"] in self._trusted or signed["public_key"] in introduced:
                if kind == "checkpoint":
                    introduced.update(_keys_named_in(statement))
                return statement
        self._report("forged", self._checkpoints, f"a {kind} is not signed, or not by a key that is trusted")
        return None

    def _compare(self, stream: _Stream, seq: int, digest: str) -> None:
        if self._known.get(stream, {}).get(seq, digest) != digest:
            self._break(stream, "edited", seq, f"entries up to {seq} are not as a checkpoint recorded them")

    def _break(self, stream: _Stream, kind: str, seq: int, message: str) -> None:
        """What follows in the stream says nothing more."""
        if stream not in self._broken:
            self._report(kind, seq, message, *stream)
        self._broken.add(stream)

    def _report(
        self, kind: str, seq: int, message: str, tenant_id: str | None = None, stream_id: str | None = None
    ) -> None:
        self._findings.append(LogFinding(kind, seq, message, tenant_id, stream_id))


_SHOWN = {"revealed": "r", "masked": "m", "redacted": "x"}
_THROUGH = {
    "get": "g",
    "list": "l",
    "search": "s",
    "detokenize": "d",
    "export": "e",
    "create": "c",
    "update": "u",
    "replay": "y",
    "proxy": "p",
    "reactor": "r",
}
_SOURCE = ("application_id", "key_id", "person_id", "person_name")


def _entry_of(value: Any, line: str) -> _Entry | None:
    """An entry. The line must be exactly what a vault writes, because no hash covers what was added to it."""
    if not isinstance(value, dict) or value.get("kind") != "entry":
        return None
    given: dict[str, Any] = value
    # Releases that recorded none of these wrote lines without them.
    is_sourced = "key_id" in given
    is_read = "shown" in given or "through" in given

    def part(*names: str) -> dict[str, Any]:
        return {name: given.get(name) for name in names}

    exact = {
        **part("kind", "tenant_id", "stream_id", "seq", "hash", "created_at", "actor_id", "actor_type"),
        **(part(*_SOURCE) if is_sourced else {}),
        **part("entity_type", "entity_id", "operation", "message", "result"),
        **(part("shown", "through") if is_read else {}),
        **(part("container") if is_sourced else {}),
        **part("origin"),
        **(part("user_agent", "forwarded") if is_sourced else {}),
        **part("trace_id"),
        **(part("state") if "state" in given else {}),
    }
    names = ("tenant_id", "stream_id", "hash")
    is_form = (
        all(isinstance(given.get(name), str) for name in names)
        and all(type(given.get(name)) is int for name in ("seq", "created_at"))
        and given.get("state", "") is not None
        and _is_exactly(line, exact)
    )
    code = _code_of(given) if is_read else None
    if not is_form or (is_read and code is None):
        return None
    who = [given.get(n) for n in ("actor_type", "actor_id", "key_id", "application_id", "person_id", "person_name")]
    where = [given.get(n) for n in ("origin", "user_agent", "forwarded")]
    plain = [given.get(n) for n in ("actor_id", "actor_type", "origin")]
    covered = [
        *([_trimmed(who), _trimmed(where)] if is_sourced else plain),
        *(given.get(n) for n in ("entity_type", "operation", "message", "result")),
        code,
        *([given.get("container")] if is_sourced else []),
        *(given.get(n) for n in ("created_at", "entity_id", "trace_id")),
        *([given["state"]] if "state" in given else []),
    ]
    tenant_id, stream_id, seq, digest, created_at = (given[n] for n in (*names[:2], "seq", "hash", "created_at"))
    return _Entry(tenant_id, stream_id, seq, digest, created_at, _json(covered))


def _code_of(entry: Mapping[str, Any]) -> str | None:
    shown, through = entry.get("shown"), entry.get("through")
    if not isinstance(shown, str) or not isinstance(through, str):
        return None
    return _SHOWN[shown] + _THROUGH[through] if shown in _SHOWN and through in _THROUGH else None


def _trimmed(facts: list[Any]) -> list[Any]:
    """Without the nulls at its end."""
    while facts and facts[-1] is None:
        facts.pop()
    return facts
