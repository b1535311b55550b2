"""The Python client of Strongroom, a self-hosted tokenization vault.

    from strongroom import Strongroom

    with Strongroom(url="https://vault.example.com", api_key=key) as vault:
        token = vault.tokens.create(type="token", data="Ada Lovelace")
        print(token.id)
"""

from ._client import AsyncStrongroom, Strongroom
from ._errors import (
    ApiError,
    AuthenticationError,
    ConfigurationError,
    ConflictError,
    ConnectionError,
    NotAVaultError,
    NotFoundError,
    PermissionError,
    RateLimitError,
    ServerError,
    StreamError,
    StrongroomError,
    TimeoutError,
    ValidationError,
    VersionError,
    WebhookSignatureError,
)
from ._names import API_VERSION
from ._object import UNSET, Object, Unset
from ._streams import Progress
from ._transport import AsyncList, SyncList
from ._webhooks import verify_webhook

__all__ = [
    "API_VERSION",
    "UNSET",
    "ApiError",
    "AsyncList",
    "AsyncStrongroom",
    "AuthenticationError",
    "ConfigurationError",
    "ConflictError",
    "ConnectionError",
    "NotAVaultError",
    "NotFoundError",
    "Object",
    "PermissionError",
    "Progress",
    "RateLimitError",
    "ServerError",
    "StreamError",
    "Strongroom",
    "StrongroomError",
    "SyncList",
    "TimeoutError",
    "Unset",
    "ValidationError",
    "VersionError",
    "WebhookSignatureError",
    "verify_webhook",
]
