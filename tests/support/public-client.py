"""The public product's Python SDK 3.0 over a running vault. It reads keys and the URL as JSON, and prints what works."""

import importlib
import json
import sys
import time
import traceback
from typing import Any, Callable

import basistheory
from basistheory.api import (
    application_keys_api,
    application_templates_api,
    applications_api,
    detokenize_api,
    enrichments_api,
    logs_api,
    permissions_api,
    proxies_api,
    reactors_api,
    sessions_api,
    tenants_api,
    tokenize_api,
    tokens_api,
)
from basistheory.request_options import RequestOptions

given = json.load(sys.stdin)
CARD = {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030, "cvc": "123"}


def client(key: str) -> basistheory.ApiClient:
    return basistheory.ApiClient(basistheory.Configuration(host=given["url"], api_key=given[key]))


private, manager, public = client("private"), client("management"), client("public")


def request(module: str, class_name: str, /, **attributes: Any) -> Any:
    return getattr(importlib.import_module(f"basistheory.model.{module}"), class_name)(**attributes)


def not_found(read: Callable[[], Any]) -> None:
    try:
        read()
    except basistheory.exceptions.NotFoundException:
        return
    raise AssertionError("it is still there")


def ready(read: Callable[[], Any]) -> Any:
    until = time.monotonic() + 20
    while True:
        try:
            return read()
        except basistheory.exceptions.NotFoundException:
            assert time.monotonic() < until, "the result is never there"
            time.sleep(0.02)


def tokens() -> None:
    # Request options stay on the client for all of its later requests, idempotency keys included.
    api = tokens_api.TokensApi(client("private"))
    body = request(
        "create_token_request",
        "CreateTokenRequest",
        type="card",
        data=CARD,
        mask={"number": "{{ data.number, reveal_last: 4 }}"},
        metadata={"order": "1"},
        search_indexes=["{{ data.number | last4 }}"],
        containers=["/pci/high/"],
        expires_at="8/26/2030 7:23:57 PM -07:00",
    )
    another = request("create_token_request", "CreateTokenRequest", type="token", data="another value")
    options = RequestOptions(idempotency_key="once", correlation_id="trace-python")
    created = api.create(create_token_request=body, request_options=options)
    assert api.create(create_token_request=body, request_options=options).id == created.id
    assert api.get_by_id(created.id).data["number"] == CARD["number"]
    assert api.create(create_token_request=another).id == created.id, "the idempotency key stays"
    api = tokens_api.TokensApi(private)
    change = request("update_token_request", "UpdateTokenRequest", data={"expiration_year": 2031}, metadata={"order": "2"})
    assert api.update(created.id, update_token_request=change).metadata == {"order": "2"}
    assert [one.id for one in api.get(id=[created.id]).data] == [created.id]
    assert [one.id for one in api.get_v2(size=1).data] == [created.id]
    found = api.search(search_tokens_request=request("search_tokens_request", "SearchTokensRequest", query="data:4242"))
    assert [one.id for one in found.data] == [created.id]
    query = request("search_tokens_request_v2", "SearchTokensRequestV2", query="metadata.order:2")
    assert [one.id for one in api.search_v2(search_tokens_request_v2=query).data] == [created.id]
    api.delete(created.id)
    not_found(lambda: api.get_by_id(created.id))


def tokenize() -> None:
    made = tokenize_api.TokenizeApi(private).tokenize(body={"name": "Ada", "card": {"type": "card", "data": CARD}})
    body = {"name": "{{ %s }}" % made["name"], "tokens": ["{{ %s }}" % made["card"]["id"]]}
    api = detokenize_api.DetokenizeApi(private)
    assert api.detokenize(body=body) is None, "this release of the SDK drops the response"
    plain = json.loads(api.detokenize(body=body, _preload_content=False).data)
    assert plain["name"] == "Ada" and plain["tokens"][0]["number"] == CARD["number"], plain


def applications() -> None:
    api, keys = applications_api.ApplicationsApi(manager), application_keys_api.ApplicationKeysApi(manager)
    create = request(
        "create_application_request", "CreateApplicationRequest", name="a", type="private", permissions=["token:read"]
    )
    created = api.create(create_application_request=create)
    assert api.get_by_id(created.id).name == "a"
    update = request("update_application_request", "UpdateApplicationRequest", name="b", permissions=["token:read"])
    assert api.update(created.id, update_application_request=update).name == "b"
    assert created.id in [one.id for one in api.get(size=100).data]
    key = keys.create(created.id)
    assert keys.get_by_id(created.id, key.id).id == key.id and len(keys.get(created.id)) == 2
    keys.delete(created.id, key.id)
    api.delete(created.id)
    not_found(lambda: api.get_by_id(created.id))
    assert applications_api.ApplicationsApi(private).get_by_key().type == "private"
    templates = application_templates_api.ApplicationTemplatesApi(manager)
    assert templates.get_by_id(templates.get()[0].id).id
    assert len(permissions_api.PermissionsApi(manager).get()) > 10


def sessions() -> None:
    session = sessions_api.SessionsApi(public).create()
    grant = request("authorize_session_request", "AuthorizeSessionRequest", nonce=session.nonce, permissions=["token:create"])
    sessions_api.SessionsApi(private).authorize(authorize_session_request=grant)
    page = basistheory.ApiClient(basistheory.Configuration(host=given["url"], api_key=session.session_key))
    body = request("create_token_request", "CreateTokenRequest", type="token", data="from a page")
    assert tokens_api.TokensApi(page).create(create_token_request=body).id


def proxies() -> None:
    api = proxies_api.ProxiesApi(manager)
    target = "https://api.example.com/v1"
    create = request("create_proxy_request", "CreateProxyRequest", name="p", destination_url=target)
    created = api.create(create_proxy_request=create)
    assert api.get_by_id(created.id).destination_url == target
    api.update(
        created.id, update_proxy_request=request("update_proxy_request", "UpdateProxyRequest", name="q", destination_url=target)
    )
    api.patch(created.id, patch_proxy_request=request("patch_proxy_request", "PatchProxyRequest", name="r"))
    assert [one.name for one in api.get(name="r").data] == ["r"]
    api.delete(created.id)
    not_found(lambda: api.get_by_id(created.id))


def reactors() -> None:
    api = reactors_api.ReactorsApi(manager)
    code = "module.exports = async (req) => ({ raw: req.args });"
    created = api.create(create_reactor_request=request("create_reactor_request", "CreateReactorRequest", name="r", code=code))
    assert api.get_by_id(created.id).code == code
    api.patch(created.id, patch_reactor_request=request("patch_reactor_request", "PatchReactorRequest", name="s"))
    react = request("react_request", "ReactRequest", args={"key": "value"})
    caller = reactors_api.ReactorsApi(private)
    assert caller.react(created.id, react_request=react).raw == {"key": "value"}
    later = request("react_request_async", "ReactRequestAsync", args={"key": "value"})
    accepted = caller.react_async(created.id, react_request_async=later, _preload_content=False)
    request_id = json.loads(accepted.data)["asyncReactorRequestId"]
    result = ready(lambda: caller.result_get_by_id(created.id, request_id))
    assert result["raw"] == {"key": "value"}, result
    api.delete(created.id)
    not_found(lambda: api.get_by_id(created.id))


def others() -> None:
    body = request(
        "create_token_request",
        "CreateTokenRequest",
        type="bank",
        data={"routing_number": "021000021", "account_number": "00001"},
    )
    account = tokens_api.TokensApi(private).create(create_token_request=body)
    ask = request("bank_verification_request", "BankVerificationRequest", token_id=account.id)
    enrichments = enrichments_api.EnrichmentsApi(private)
    verified = enrichments.bank_account_verify(bank_verification_request=ask, _preload_content=False)
    assert json.loads(verified.data)["status"] == "enabled"
    logs = logs_api.LogsApi(manager)
    assert len(logs.get(size=2).data) == 2 and len(logs.get_entity_types()) > 5
    api = tenants_api.TenantsApi(manager)
    name = api.get().name
    assert api.update(update_tenant_request=request("update_tenant_request", "UpdateTenantRequest", name=f"{name} 2")).name
    assert api.get_tenant_usage_report().token_report.total_tokens > 0


outcomes = {}
for one in (tokens, tokenize, applications, sessions, proxies, reactors, others):
    try:
        one()
        outcomes[one.__name__] = "works"
    except Exception:
        outcomes[one.__name__] = traceback.format_exc(limit=-2)
print(json.dumps(outcomes))
