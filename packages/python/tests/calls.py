"""What this package sends in calls of proxies. It prints the results as JSON."""

from __future__ import annotations

import asyncio
import io
import json
import logging

import httpx
from strongroom import AsyncStrongroom, ConfigurationError, ConnectionError, Strongroom

seen: list[tuple[str, str | None]] = []


def respond(request: httpx.Request) -> httpx.Response:
    """As a vault passes on the response of a destination that sets a cookie."""
    seen.append((request.url.raw_path.decode(), request.headers.get("cookie")))
    headers = {"set-cookie": "session=of-the-first; Path=/", "svc-proxy-destination-status": "200"}
    return httpx.Response(200, headers=headers, json={"data": []})


client = httpx.Client(transport=httpx.MockTransport(respond))
vault = Strongroom(api_key="key_of_nothing", url="https://vault.example.com", http_client=client)
for proxy in ("first", "second"):
    vault.proxy.request("GET", "/a", proxy=proxy)
vault.proxy.request("GET", "https://third.example.com/b")
vault.proxy.request("GET", "/c", proxy="first", headers={"Cookie": "own=1"})
vault.proxy.request("GET", "/d", proxy="first", cookies={"own": "2"})

climbing = [
    "/../applications",
    "/%2e%2e/applications",
    "/.%2e/applications",
    "/a/%2e%2e/%2e%2e/applications",
    "/%2E%2E%2Fapplications",
    "/%252e%252e/applications",
    "/\\..\\applications",
    "/a/%5c..%5c..%5capplications",
]
refused = []
for path in climbing:
    try:
        vault.proxy.request("GET", path, proxy="first")
    except ConfigurationError:
        refused.append(path)
vault.proxy.request("GET", "/a..b/...c/%2f?x=../y", proxy="first")
for tag in (None, ""):
    try:
        vault.tokens.delete("any", if_match=tag)
    except ConfigurationError:
        continue
    refused.remove(climbing[0])

log = io.StringIO()
logging.basicConfig(stream=log, level=logging.DEBUG)
vault.tokens.get("4242424242424242")
vault.proxy.request("GET", "/4242424242424242", proxy="first")


async def call() -> None:
    own = httpx.AsyncClient(transport=httpx.MockTransport(respond))
    other = AsyncStrongroom(api_key="key_of_nothing", url="https://vault.example.com", http_client=own)
    await other.tokens.get("4242424242424242")
    await other.proxy.request("GET", "/4242424242424242", proxy="first")
    await own.get("https://shop.example.com/async")


asyncio.run(call())
# Nothing listens there: the connection itself is tried.
nowhere = Strongroom(api_key="key_of_nothing", url="http://127.0.0.1:9", retries=0)
try:
    nowhere.tokens.get("4242424242424242")
except ConnectionError:
    pass
client.get("https://shop.example.com/sync")

climbed = [path for path in climbing if path not in refused]
print(json.dumps({"seen": seen[:6], "climbed": climbed, "log": log.getvalue()}))
