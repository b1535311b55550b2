/** A token intent as it is stored and as it is shown: its data is sealed, and no answer holds it. */
import { openText, type Sealed, sealText } from '../../crypto/envelope.ts';
import { newEvaluation } from '../../expressions/evaluation.ts';
import { type Instant, instantAfter } from '../../lib/clock.ts';
import { formatTimestamp } from '../../lib/dates.ts';
import type { TokenIntentId } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
import type { Random } from '../../lib/random.ts';
import { Secret } from '../../lib/secret.ts';
import type { Row } from '../../store/tables.ts';
import type { Caller } from '../access/caller.ts';
import type { Tenant } from '../tenants/tenants.ts';
import { codeExpiryOf, withoutCode } from '../tokens/card-code.ts';
import type { Contents } from '../tokens/contents.ts';
import { fingerprintOfContents } from '../tokens/row.ts';
import { summaryOf, type TokenTypeName } from '../tokens/types.ts';

export interface NewTokenIntent {
  readonly id: TokenIntentId;
  readonly contents: Contents;
  readonly now: Instant;
  readonly random: Random;
}

/** @throws VaultError `validation_failed` when the data gives nothing to fingerprint. */
export function tokenIntentRow(caller: Caller, intent: NewTokenIntent): Row<'token_intents'> {
  const { id, contents, now, random } = intent;
  const { tenant } = caller;
  const codeExpiry = codeExpiryOf(contents, tenant.quotas, now);
  const codeIsGone = codeExpiry !== null && codeExpiry <= now;
  const data = codeIsGone ? withoutCode(contents.type, contents.data) : contents.data;
  return {
    tenant_id: tenant.id,
    token_intent_id: id,
    version: 1,
    type: contents.type,
    data: sealIntent(tenant, id, data, random),
    fingerprint: fingerprintOfContents(tenant, { contents, evaluation: newEvaluation() }),
    code_expires_at: codeIsGone ? null : codeExpiry,
    created_by: caller.application,
    created_at: now,
    expires_at: instantAfter(now, tenant.quotas.token_intent_retention),
  };
}

/** The data, without a card code whose time is over. */
export function openIntent(tenant: Tenant, row: Row<'token_intents'>, now: Instant): Secret<Json> {
  const binding = bindingOf(tenant, row.token_intent_id);
  const text = openText(tenant.keyring.sealing('data'), binding, row.data);
  const data = JSON.parse(text.reveal()) as Json;
  const codeIsGone = row.code_expires_at !== null && row.code_expires_at <= now;
  return new Secret(codeIsGone ? withoutCode(row.type as TokenTypeName, data) : data);
}

/** What a conversion takes over: everything but the card code. */
export function dataForToken(tenant: Tenant, row: Row<'token_intents'>): Json {
  return withoutCode(row.type as TokenTypeName, openIntent(tenant, row, row.created_at).reveal());
}

/** An intent whose card code is gone, with data that was sealed without it. */
export function intentWithoutCode(
  tenant: Tenant,
  row: Row<'token_intents'>,
  random: Random,
): Row<'token_intents'> {
  return {
    ...row,
    version: row.version + 1,
    data: sealIntent(tenant, row.token_intent_id, dataForToken(tenant, row), random),
    code_expires_at: null,
  };
}

/** What the API shows: what may be said of the data, never the data. */
export function viewTokenIntent(tenant: Tenant, row: Row<'token_intents'>, now: Instant) {
  return {
    id: row.token_intent_id,
    tenant_id: row.tenant_id,
    type: row.type,
    ...summaryOf(row.type as TokenTypeName, openIntent(tenant, row, now).reveal()),
    fingerprint: row.fingerprint,
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestamp(row.expires_at),
  };
}

function sealIntent(tenant: Tenant, id: TokenIntentId, data: Json, random: Random): Sealed {
  const keys = tenant.keyring.sealing('data');
  return sealText(keys, bindingOf(tenant, id), JSON.stringify(data), random);
}

/** A field of its own: the data of an intent is never taken for that of a token with the same id. */
function bindingOf(tenant: Tenant, id: TokenIntentId) {
  return { tenant: tenant.id, id, field: 'token_intent.data' };
}
