"""The public product's Python SDK 7.4 over a running vault. It reads keys and the URL as JSON, and prints what works."""

import json
import sys
import time
import traceback
from typing import Any, Callable

from basis_theory import AccessRule, BasisTheory, Condition
from basis_theory.core.api_error import ApiError

given = json.load(sys.stdin)
CARD = {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030, "cvc": "123"}


def client(key: str) -> BasisTheory:
    return BasisTheory(base_url=given["url"], api_key=key, max_retries=0)


private, manager, public = client(given["private"]), client(given["management"]), client(given["public"])


def refused(status: int, action: Callable[[], Any]) -> None:
    try:
        action()
    except ApiError as error:
        assert error.status_code == status, error
        return
    raise AssertionError(f"no {status}")


def ready(read: Callable[[], Any]) -> Any:
    until = time.monotonic() + 20
    while True:
        try:
            return read()
        except ApiError as error:
            assert error.status_code == 404 and time.monotonic() < until, error
            time.sleep(0.02)


def tokens() -> None:
    settings: Any = {
        "type": "card",
        "data": CARD,
        "mask": {"number": "{{ data.number, reveal_last: 4 }}"},
        "metadata": {"order": "1"},
        "search_indexes": ["{{ data.number | last4 }}"],
        "containers": ["/pci/high/"],
        "expires_at": "8/26/2030 7:23:57 PM -07:00",
    }
    created = private.tokens.create(**settings, idempotency_key="once")
    assert private.tokens.create(**settings, idempotency_key="once").id == created.id
    assert created.mask == settings["mask"] and created.card and created.card.brand == "visa", created
    assert private.tokens.get(created.id).data["number"] == CARD["number"]
    changed = private.tokens.update(created.id, data={"expiration_year": 2031}, metadata={"order": "2"})
    assert changed.metadata == {"order": "2"}
    assert [one.id for one in private.tokens.list_v2(type="card", size=1)] == [created.id]
    for query in ("data:4242", "metadata.order:2"):
        assert [one.id for one in private.tokens.search_v2(query=query)] == [created.id], query
    private.tokens.delete(created.id)
    refused(404, lambda: private.tokens.get(created.id))


def tokenize() -> None:
    made = private.tokens.tokenize(request={"name": "Ada", "card": {"type": "card", "data": CARD}})
    body = {"name": "{{ %s }}" % made["name"], "tokens": ["{{ %s }}" % made["card"]["id"]]}
    plain: Any = private.tokens.detokenize(request=body)
    assert plain["name"] == "Ada" and plain["tokens"][0]["number"] == CARD["number"], plain


def token_intents() -> None:
    intent = public.token_intents.create(type="card", data=CARD)
    assert private.token_intents.get(intent.id).id == intent.id
    created = private.tokens.create(token_intent_id=intent.id)
    assert private.tokens.get(created.id).data["number"] == CARD["number"]
    other = public.token_intents.create(type="token", data="a secret")
    private.token_intents.delete(other.id)
    refused(404, lambda: private.token_intents.get(other.id))


def applications() -> None:
    created = manager.applications.create(name="a", type="private", permissions=["token:read"])
    assert manager.applications.get(created.id).name == "a"
    assert manager.applications.update(created.id, name="b", permissions=["token:read"]).name == "b"
    assert created.id in [one.id for one in manager.applications.list(size=100)]
    key = manager.application_keys.create(created.id)
    assert manager.application_keys.get(created.id, key.id).id == key.id
    assert len(list(manager.application_keys.list(created.id))) == 2
    manager.application_keys.delete(created.id, key.id)
    manager.applications.delete(created.id)
    refused(404, lambda: manager.applications.get(created.id))
    assert private.applications.get_by_key().type == "private"
    templates = manager.application_templates
    assert templates.get(templates.list()[0].id).id
    assert len(manager.permissions.list()) > 10


def sessions() -> None:
    session = public.sessions.create()
    rule = AccessRule(
        description="creates",
        priority=1,
        transform="mask",
        permissions=["token:create"],
        conditions=[Condition(attribute="container", operator="starts_with", value="/")],
    )
    private.sessions.authorize(nonce=session.nonce, rules=[rule])
    assert client(session.session_key).tokens.create(type="token", data="from a page").id


def proxies() -> None:
    target = "https://api.example.com/v1"
    created = manager.proxies.create(name="p", destination_url=target)
    assert manager.proxies.get(created.id).destination_url == target
    manager.proxies.update(created.id, name="q", destination_url=target)
    manager.proxies.patch(created.id, name="r")
    assert [one.name for one in manager.proxies.list(name="r")] == ["r"]
    manager.proxies.delete(created.id)
    refused(404, lambda: manager.proxies.get(created.id))


def reactors() -> None:
    code = "module.exports = async (req) => ({ raw: req.args });"
    created = manager.reactors.create(name="r", code=code)
    assert manager.reactors.get(created.id).code == code
    manager.reactors.update(created.id, name="s", code=code)
    manager.reactors.patch(created.id, name="t")
    assert [one.name for one in manager.reactors.list(name="t")] == ["t"]
    response = private.reactors.react(created.id, request={"args": {"key": "value"}})
    assert response.raw == {"key": "value"}, response
    accepted = private.reactors.react_async(created.id, request={"args": {"key": "value"}})
    result = ready(lambda: private.reactors.results.get(created.id, accepted.async_reactor_request_id))
    assert result["raw"] == {"key": "value"}, result
    manager.reactors.delete(created.id)
    refused(404, lambda: manager.reactors.get(created.id))


def webhooks() -> None:
    manager.webhooks.ping()
    assert "token.created" in manager.webhooks.events.list()
    created = manager.webhooks.create(name="w", url="https://hooks.example.com/a", events=["token.created"])
    assert manager.webhooks.get(created.id).name == "w"
    manager.webhooks.update(created.id, name="v", url="https://hooks.example.com/a", events=["token.created"])
    assert [one.name for one in manager.webhooks.list().data] == ["v"]
    manager.webhooks.delete(created.id)
    refused(404, lambda: manager.webhooks.get(created.id))


def keys() -> None:
    created = manager.keys.create()
    assert manager.keys.get(created.id).id == created.id
    assert created.id in [one.id for one in manager.keys.list()]
    manager.keys.delete(created.id)
    refused(404, lambda: manager.keys.get(created.id))


def enrichments() -> None:
    bank = {"routing_number": "021000021", "account_number": "00001"}
    account = private.tokens.create(type="bank", data=bank)
    assert private.enrichments.bank_account_verify(token_id=account.id).status == "enabled"
    assert private.enrichments.card_details(bin="424242").brand == "visa"


def logs() -> None:
    assert next(iter(manager.logs.list(size=2))).entity_type
    assert len(manager.logs.get_entity_types()) > 5


def tenant() -> None:
    name = manager.tenants.self_.get().name
    assert manager.tenants.self_.update(name=f"{name} 2").name == f"{name} 2"
    assert manager.tenants.self_.get_usage_reports().token_report["total_tokens"] > 0


outcomes = {}
parts = (
    tokens,
    tokenize,
    token_intents,
    applications,
    sessions,
    proxies,
    reactors,
    webhooks,
    keys,
    enrichments,
    logs,
    tenant,
)
for one in parts:
    try:
        one()
        outcomes[one.__name__] = "works"
    except Exception:
        outcomes[one.__name__] = traceback.format_exc(limit=-2)
print(json.dumps(outcomes))
