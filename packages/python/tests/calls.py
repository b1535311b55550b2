"""What this package sends in calls of proxies. It prints the results as JSON."""

from __future__ import annotations

import json

import httpx
from strongroom import ConfigurationError, Strongroom

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
print(json.dumps({"seen": seen, "climbed": [path for path in climbing if path not in refused]}))
