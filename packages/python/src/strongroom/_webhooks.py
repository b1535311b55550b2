"""Verifying that a request comes from a vault: its signature, and how old it is."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping
from datetime import datetime

from ._errors import ConfigurationError, WebhookSignatureError
from ._object import Object
from ._transport import parsed


def verify_webhook(
    *,
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str | None = None,
    public_key: str | None = None,
    tolerance: float = 300,
    header_prefix: str = "SVC",
) -> Object:
    """Verifies the signature of a webhook and its age, and gives what it says. It needs no network.

    `secret` verifies `webhook-signature` (Standard Webhooks), and `public_key`, the PEM text of
    `vault.webhooks.public_key()`, the signature of the vault. The second needs the package `cryptography`.

    Raises `WebhookSignatureError` with the code `missing_signature`, `wrong_signature` or `old_signature`.
    """
    if not isinstance(body, (bytes, str)):
        raise ConfigurationError("body must be the bytes of the request as they came, not what was parsed.")
    if secret is None and public_key is None:
        raise ConfigurationError("Give verify_webhook the secret of the webhook, or public_key.")
    content = body.encode() if isinstance(body, str) else body
    given = {name.lower(): value for name, value in headers.items()}
    times: list[float] = []
    if secret is not None:
        times.append(_verify_secret(content, given, secret))
    if public_key is not None:
        _verify_key(content, _header(given, f"{header_prefix}-signature".lower()), public_key)
    payload = parsed(content.decode(errors="replace"))
    if not isinstance(payload, Object) or "event" not in payload:
        raise WebhookSignatureError("wrong_signature", "The body is signed, and is no event.")
    if public_key is not None:
        delivered = str(payload["delivered_at"]).replace("Z", "+00:00")
        times.append(datetime.fromisoformat(delivered).timestamp())
    for at in times:
        age = time.time() - at
        if abs(age) > tolerance:
            raise WebhookSignatureError(
                "old_signature",
                f"The signature is {age:.0f} s old, and {tolerance:g} s are accepted: an attacker may have sent an old "
                "request again. Do not act on it. If all are refused, set the clock of this machine, or raise tolerance.",
            )
    return payload


def _verify_secret(body: bytes, headers: Mapping[str, str], secret: str) -> float:
    key = _base64(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else None
    # Anybody can sign with an empty key.
    if not key:
        raise ConfigurationError("secret must be the secret of the webhook: whsec_ and base64.")
    message_id = _header(headers, "webhook-id")
    timestamp = _header(headers, "webhook-timestamp")
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    signatures = _header(headers, "webhook-signature").split(" ")
    # Each is compared, so that the time does not say which one was right.
    matches = [hmac.compare_digest(one.encode(), expected.encode()) for one in signatures]
    if any(matches) and timestamp.isdecimal():
        return float(timestamp)
    raise _wrong("secret")


def _verify_key(body: bytes, signature: str, public_key: str) -> None:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise ConfigurationError("public_key needs the package cryptography: pip install cryptography.") from None
    try:
        key = load_pem_public_key(public_key.encode())
    except ValueError:
        key = None
    if not isinstance(key, rsa.RSAPublicKey):
        raise ConfigurationError("public_key must be the PEM text that vault.webhooks.public_key() gives.")
    raw = _base64(signature)
    pss = padding.PSS(padding.MGF1(SHA256()), 32)
    is_right = False
    if raw is not None:
        try:
            key.verify(raw, body, pss, SHA256())
            is_right = True
        except InvalidSignature:
            pass
    if not is_right:
        raise _wrong("public_key")


def _wrong(option: str) -> WebhookSignatureError:
    return WebhookSignatureError(
        "wrong_signature",
        f"The body or its signature was changed, or {option} is that of another webhook or vault. Do not act on it. "
        "If all are refused, check that body has the bytes as they came, and that the secret is the present one.",
    )


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if value:
        return value
    raise WebhookSignatureError(
        "missing_signature",
        f"The request has no header {name}. It does not come from a vault, or a server in front removed it.",
    )


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
