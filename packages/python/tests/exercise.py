"""What both clients must do with a running vault. It reads its input as JSON, and prints what it has seen as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import pprint
import sys
import traceback
from collections.abc import AsyncIterator
from io import StringIO
from typing import Any

import httpx

from strongroom import (
    UNSET,
    AsyncStrongroom,
    ConfigurationError,
    ConflictError,
    ConnectionError,
    NotAVaultError,
    NotFoundError,
    PermissionError,
    Progress,
    StreamError,
    Strongroom,
    StrongroomError,
    TimeoutError,
    ValidationError,
    WebhookSignatureError,
    verify_webhook,
)

NUMBER = "4242424242424242"
SECRET = "secret value"
CARD = {"number": NUMBER, "expiration_month": 12, "expiration_year": 2030}


def shown(value: Any) -> str:
    """Every way in which a program shows an object without asking for its data."""
    stream = StringIO()
    logger = logging.getLogger("exercise")
    logger.addHandler(logging.StreamHandler(stream))
    logger.warning("%s %r", value, value)
    print(value, [value], file=stream)
    pprint.pprint(value, stream=stream)
    return stream.getvalue() + f"{value} {value!r}"


def failure(call: Any) -> StrongroomError:
    try:
        call()
    except StrongroomError as error:
        text = "".join(traceback.format_exception(error)) + repr(error.__context__)
        assert NUMBER not in text and SECRET not in text, text
        return error
    raise AssertionError("no failure")


class Losing(httpx.HTTPTransport):
    """Loses the response to the first requests of a method, after the vault has done them."""

    def __init__(self, method: str, times: int) -> None:
        super().__init__()
        self.method, self.times = method, times

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if request.method != self.method or self.times == 0:
            return response
        self.times -= 1
        response.read()
        raise httpx.ReadError(SECRET, request=request)


class Cutting(httpx.HTTPTransport):
    """Cuts the first responses of lines off after so many of them."""

    def __init__(self, *after: int) -> None:
        super().__init__()
        self.after = list(after)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if not self.after or "ndjson" not in response.headers.get("content-type", ""):
            return response
        response.read()
        lines = response.text.split("\n")[: self.after.pop(0)]

        class Body(httpx.SyncByteStream):
            def __iter__(self) -> Any:
                yield ("".join(f"{line}\n" for line in lines) + '{"line":').encode()
                raise httpx.RemoteProtocolError("cut")

        return httpx.Response(200, headers={"content-type": "application/x-ndjson"}, stream=Body())


def scripted(*responses: tuple[int, str, dict[str, str]]) -> tuple[Strongroom, list[httpx.Request]]:
    sent: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        status, code, headers = responses[min(len(sent), len(responses)) - 1]
        if status == 200:
            return httpx.Response(200, json={"id": "found"})
        problem = {"type": f"urn:strongroom:problem:{code}", "title": "T", "status": status, "detail": "D"}
        return httpx.Response(status, json=problem, headers=headers)

    client = httpx.Client(transport=httpx.MockTransport(respond))
    return Strongroom(url="https://vault.example.com", api_key="key", http_client=client), sent


def blocking(given: dict[str, Any]) -> None:
    url = given["url"]
    vault = Strongroom(url=url, api_key=given["private_key"])
    admin = Strongroom(url=url, api_key=given["management_key"])
    site = Strongroom(url=url, api_key=given["public_key"])

    version, application = vault.check()
    assert version and application.type == "private"

    created = vault.tokens.create(id="python-card", type="card", data=CARD, metadata={"order": "1", "cart": "c"})
    assert created.card.last4 == "4242" and created["card"]["last4"] == "4242"
    token = vault.tokens.get("python-card")
    assert token.data == CARD and token.data["number"] == NUMBER
    assert token.expires_at is None
    assert json.loads(json.dumps(token))["data"] == CARD
    for one in (token, [token], vault.detokenize({"n": "{{ python-card }}"}), vault.detokenize(["{{ python-card }}"])):
        assert NUMBER not in shown(one), shown(one)
    try:
        token.misspelled
        raise AssertionError("no AttributeError")
    except AttributeError:
        pass
    updated = vault.tokens.update("python-card", metadata={"cart": None}, data={"expiration_year": 2031})
    assert updated.metadata == {"order": "1"}
    assert [one.id for one in vault.tokens.list(type="card", metadata={"order": "1"}, size=1)] == ["python-card"]
    assert [one.id for one in vault.tokens.search(query="metadata.order:1")] == ["python-card"]
    stored = vault.tokenize({"name": "Ada"})
    assert vault.detokenize({"name": f"{{{{ {stored['name']} }}}}"}) == {"name": "Ada"}

    session = site.sessions.create()
    assert session.session_key not in shown(session)
    vault.sessions.authorize(nonce=session.nonce, permissions=["token:create"])
    with Strongroom(url=url, api_key=session.session_key) as page:
        page.tokens.create(type="token", data="from a page")

    invalid = failure(lambda: vault.tokens.create(type="card", data={"number": "1"}, trace_id="trace-1"))
    assert isinstance(invalid, ValidationError) and invalid.trace_id == "trace-1"
    assert list(invalid.problem["errors"]) == ["data.number"]
    assert isinstance(failure(lambda: vault.tokens.get("no-such-token")), NotFoundError)
    assert isinstance(failure(lambda: vault.tokens.get("..")), ConfigurationError)
    taken = failure(lambda: vault.tokens.create(id="python-card", type="token", data=SECRET))
    assert isinstance(taken, ConflictError)
    kind = failure(lambda: vault.applications.create(name="a", type="private", permissions=["token:create"]))
    assert isinstance(kind, PermissionError) and "needs a management key" in str(kind), str(kind)
    assert isinstance(failure(lambda: Strongroom(url="vault", api_key="k")), ConfigurationError)
    plain = failure(lambda: Strongroom(url="http://vault.example.com", api_key="k"))
    assert isinstance(plain, ConfigurationError) and "https" in str(plain), plain
    Strongroom(url="http://vault.example.com", api_key="k", allow_http=True).close()
    gone = failure(lambda: Strongroom(url="http://127.0.0.1:9", api_key="k", retries=0).tokens.get("any"))
    assert isinstance(gone, ConnectionError) and "Check that it runs" in str(gone)
    path = failure(lambda: Strongroom(url=f"{url}/api", api_key="k").tokens.get("any"))
    assert isinstance(path, NotAVaultError), repr(path)

    lossy = Strongroom(url=url, api_key=given["private_key"], http_client=httpx.Client(transport=Losing("POST", 1)))
    once = lossy.tokens.create(type="bank", data={"routing_number": "021000021", "account_number": "00001"})
    assert [one.id for one in vault.tokens.list(type="bank")] == [once.id]
    lossy = Strongroom(url=url, api_key=given["private_key"], http_client=httpx.Client(transport=Losing("DELETE", 1)))
    lossy.tokens.delete(once.id)

    patient, sent = scripted((429, "too_many_requests", {"retry-after": "0"}), (200, "", {}))
    assert patient.tokens.create(type="token", data=1).id == "found"
    keys = {request.headers["svc-idempotency-key"] for request in sent}
    assert len(sent) == 2 and len(keys) == 1
    for status, code in [(400, "validation_failed"), (500, "integrity"), (500, "reactor_failed")]:
        lasting, sent = scripted((status, code, {}))
        assert failure(lambda: lasting.tokens.get("any")).code == code and len(sent) == 1

    requests = [{"type": "token", "data": f"value {n}", "metadata": {"of": "import"}} for n in range(40)]
    requests[9] = {"type": "card", "data": {"number": "4242424242424241"}}
    cut = Strongroom(url=url, api_key=given["private_key"], http_client=httpx.Client(transport=Cutting(3, 0)))
    progress: list[Progress] = []
    results = list(cut.tokens.import_(requests, requests_at_once=25, on_progress=progress.append))
    assert progress == [Progress(25, 1), Progress(40, 1)], progress
    assert [one.line for one in results] == list(range(1, 41))
    assert [one.line for one in results if one.problem] == [10]
    of_import = {one.id for one in vault.tokens.list(metadata={"of": "import"}, size=100)}
    assert of_import == {one.token.id for one in results if one.token}
    exported = {one.id for one in vault.tokens.export(metadata={"of": "import"}, on_progress=progress.append)}
    assert progress[-1].done == len(exported)
    assert exported == of_import
    cut = Strongroom(url=url, api_key=given["private_key"], http_client=httpx.Client(transport=Cutting(5)))
    broken = failure(lambda: list(cut.tokens.export()))
    assert isinstance(broken, StreamError) and broken.done == 5

    proxy = admin.proxies.create(name="p", destination_url=given["destination"], timeout=20)
    body = json.dumps({"number": "{{ python-card | json: '$.number' }}"})
    headers = {"content-type": "application/json"}
    response = vault.proxy.request("POST", "/charges", proxy=proxy.key, content=body, headers=headers)
    assert response.status_code == 402 and response.json() == {"paid": False}
    unknown = failure(lambda: vault.proxy.request("GET", "/", proxy="a" * 38))
    assert isinstance(unknown, NotFoundError)
    above = failure(lambda: vault.proxy.request("GET", "/a/../../tokens/python-card", proxy=proxy.key))
    assert isinstance(above, ConfigurationError)

    seen = admin.proxies.get(proxy.id)
    assert seen.etag == proxy.etag is not None and "etag" not in seen
    changed = admin.proxies.update(proxy.id, timeout=21, if_match=seen.etag)
    assert changed == {} and changed.etag == admin.proxies.get(proxy.id).etag is not None
    stale = failure(lambda: admin.proxies.update(proxy.id, timeout=22, if_match=seen.etag))
    assert isinstance(stale, ConflictError) and stale.code == "precondition_failed"
    assert isinstance(failure(lambda: admin.proxies.delete(proxy.id, if_match=seen.etag)), ConflictError)
    assert admin.proxies.get(proxy.id).timeout == 21

    reactor = admin.reactors.create(name="r", code="module.exports = async (req) => ({ raw: req.args })")
    result = vault.reactors.react(reactor.id, args={"value": SECRET})
    assert result["raw"] == {"value": SECRET} and SECRET not in shown(result)
    assert admin.tenant.usage().token_report.total_tokens > 0
    assert admin.logs.checkpoint().seq >= 1
    person = admin.people.create(name="Ada", applications=[vault.applications.current().id])
    assert [one.id for one in admin.people.list() if one.name == "Ada"] == [person.id]
    link = admin.people.create_link(person.id)
    assert link.code and link.code not in shown(link)
    admin.people.delete(person.id)
    assert admin.tenant.pause_key_rotations() == [] == admin.tenant.resume_key_rotations()
    created_key = admin.applications.create_key(admin.applications.create(
        name="k", type="private", permissions=["token:create"]).id)
    assert created_key.key not in shown(created_key)
    vault.tokens.delete("python-card")
    assert vault.tokens.erasure("python-card").id == "python-card"
    assert repr(UNSET) == "UNSET"


async def not_blocking(given: dict[str, Any]) -> None:
    async with AsyncStrongroom(url=given["url"], api_key=given["private_key"]) as vault:
        created = await asyncio.gather(
            *[vault.tokens.create(type="token", data=f"async {n}", metadata={"of": "async"}) for n in range(5)]
        )
        found = [one.id async for one in vault.tokens.list(metadata={"of": "async"}, size=2)]
        assert sorted(found) == sorted(one.id for one in created)
        assert (await vault.tokens.get(created[0].id)).data == "async 0"
        found = [one.id async for one in vault.tokens.search(query="metadata.of:async")]
        assert len(found) == 5
        requests = [{"type": "token", "data": f"async import {n}"} for n in range(12)]

        async def arriving() -> AsyncIterator[dict[str, Any]]:
            for request in requests:
                yield request

        for source in (requests, arriving()):
            lines = [one.line async for one in vault.tokens.import_(source, requests_at_once=5)]
            assert lines == list(range(1, 13))
        assert len([one async for one in vault.tokens.export()]) >= 17
        try:
            await vault.tokens.get("no-such-token")
            raise AssertionError("no failure")
        except NotFoundError:
            pass
        assert (await vault.check())[1].type == "private"
        assert (await vault.detokenize({"v": f"{{{{ {created[0].id} }}}}"})) == {"v": "async 0"}
        await vault.tokens.delete(created[0].id)


def webhooks(given: dict[str, Any]) -> list[str]:
    webhook = given["webhook"]
    body, headers, secret = webhook["body"], webhook["headers"], webhook["secret"]
    seen = [verify_webhook(body=body, headers=headers, secret=secret).event.type]
    try:
        seen.append(verify_webhook(body=body.encode(), headers=headers, public_key=webhook["public_key"]).event.type)
    except ConfigurationError:
        seen.append("no cryptography")
    else:
        altered = {**headers, "svc-signature": "AAAA"}
        wrong = failure(lambda: verify_webhook(body=body, headers=altered, public_key=webhook["public_key"]))
        assert wrong.code == "wrong_signature"
    for code, change in {
        "wrong_signature": {"body": body + " "},
        "missing_signature": {"headers": {}},
        "old_signature": {"tolerance": -1},
    }.items():
        error = failure(lambda: verify_webhook(**{"body": body, "headers": headers, "secret": secret, **change}))
        assert isinstance(error, WebhookSignatureError) and error.code == code, error
    # A deployment that lost the secret would accept what anybody signs with nothing.
    empty = failure(lambda: verify_webhook(body=body, headers=headers, secret="whsec_"))
    assert isinstance(empty, ConfigurationError), empty
    assert issubclass(TimeoutError, ConnectionError)
    return seen


if __name__ == "__main__":
    parameters = json.load(sys.stdin)
    blocking(parameters)
    asyncio.run(not_blocking(parameters))
    print(json.dumps({"events": webhooks(parameters)}))
