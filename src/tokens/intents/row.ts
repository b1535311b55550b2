/** A token intent as it is stored and as it is shown: its data is sealed, and no response holds it. */

import { type Instant, instantAfter } from '../../base/clock.ts';
import type { Container } from '../../base/container.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { integrityError } from '../../base/errors.ts';
import type { ClientKeyId, TokenIntentId } from '../../base/ids.ts';
import type { Json } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { Secret } from '../../base/secret.ts';
import {
  type BoundRow,
  openBound,
  requireBound,
  sealBound,
  type UnsealedIntent,
} from '../../rules/bound-row.ts';
import type { Caller } from '../../rules/caller.ts';
import { type Opener, openerOf } from '../../rules/openings.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import { codeExpiryOf, withoutCode } from '../contents/card-code.ts';
import type { Contents } from '../contents/contents.ts';
import { versionWithDigests } from '../contents/digest-versions.ts';
import { containersOf, type RecognizedType, recognizedIn } from '../contents/recognized.ts';
import type { OpenedData, SealedData, Sealing } from '../contents/sealed-row.ts';
import { summaryOf, type TokenTypeName, tokenTypes } from '../contents/token-types.ts';

export interface NewTokenIntent {
  readonly id: TokenIntentId;
  readonly contents: Contents;
  /** Null where it is withheld. */
  readonly fingerprint: string | null;
  readonly now: Instant;
  readonly random: Random;
  /** For which a client encrypted the data. */
  readonly clientKey?: ClientKeyId | undefined;
}

export function tokenIntentRow(caller: Caller, intent: NewTokenIntent): Row<'token_intents'> {
  const { id, contents, fingerprint, now, random, clientKey } = intent;
  const { tenant } = caller;
  const codeExpiry = codeExpiryOf(contents, tenant.quotas, now);
  const codeIsGone = codeExpiry !== null && codeExpiry <= now;
  const data = codeIsGone ? withoutCode(contents.type, contents.data) : contents.data;
  const recognized = recognizedIn(contents.data);
  return sealIntent(
    { tenant, data, random },
    {
      tenant_id: tenant.id,
      token_intent_id: id,
      version: 1,
      type: contents.type,
      fingerprint: fingerprint ?? '',
      code_expires_at: codeIsGone ? null : codeExpiry,
      created_by: caller.application,
      created_at: now,
      expires_at: instantAfter(now, tenant.quotas.token_intent_retention),
      client_key_id: clientKey ?? null,
      recognized: recognized.length > 0 ? JSON.stringify(recognized) : null,
    },
  );
}

/** The data, without an expired card code. */
function openIntent(
  opener: Opener,
  found: BoundRow<'token_intents'>,
  now: Instant,
): OpenedData<Row<'token_intents'>> {
  const { row, text } = openBound(opener, 'token_intents', found);
  const data = JSON.parse(text.reveal()) as Json;
  const codeIsGone = row.code_expires_at !== null && row.code_expires_at <= now;
  const stays = codeIsGone ? withoutCode(row.type as TokenTypeName, data) : data;
  return { row, data: new Secret(stays) };
}

/** An intent as masks see it: with that of its type. */
type MaskedIntent = Row<'token_intents'> & { readonly mask: null };

/** The data of an intent, to be opened where it is shown. */
export function sealedIntent(
  opener: Opener,
  found: BoundRow<'token_intents'>,
  now: Instant,
): SealedData<MaskedIntent> {
  return {
    hasMask: tokenTypes[found.type as TokenTypeName]?.mask !== undefined,
    open: () => {
      const { row, data } = openIntent(opener, found, now);
      return { row: { ...row, mask: null }, data };
    },
    require: () => ({ ...requireBound(opener, 'token_intents', found), mask: null }),
  };
}

/**
 * The containers whose rules decide about the intent, before all of the row is read: the default container of the
 * token that it becomes, and those of the types that were recognized in its data.
 * @throws VaultError `integrity` for types that the vault cannot have written.
 */
export function containersOfIntent({
  token_intent_id: id,
  type,
  recognized,
}: Pick<Row<'token_intents'>, 'token_intent_id' | 'type' | 'recognized'>): readonly Container[] {
  const types = recognizedOf(recognized);
  if ([type, ...types].every((one) => Object.hasOwn(tokenTypes, one))) {
    return containersOf(type as TokenTypeName, types);
  }
  throw integrityError('a token intent has a type that does not exist', {
    altered: { entity: 'token_intent', id },
  });
}

function recognizedOf(text: string | null): readonly RecognizedType[] {
  if (text === null) return [];
  try {
    return JSON.parse(text) as RecognizedType[];
  } catch {
    // No type has an empty name.
    return ['' as RecognizedType];
  }
}

/** The data that a conversion takes over: all of it but the card code. */
export function dataForToken(
  opener: Opener,
  found: BoundRow<'token_intents'>,
): OpenedData<Row<'token_intents'>> {
  const { row, data } = openIntent(opener, found, found.created_at);
  return { row, data: new Secret(withoutCode(row.type as TokenTypeName, data.reveal())) };
}

/** An intent whose card code is gone, with data that was sealed without it. */
export function intentWithoutCode(
  tenant: Tenant,
  found: BoundRow<'token_intents'>,
  random: Random,
): Row<'token_intents'> {
  const { row, data: secret } = dataForToken(openerOf('expire card codes', tenant), found);
  const data = secret.reveal();
  const updated = { ...row, version: row.version + 1, code_expires_at: null };
  const version = versionWithDigests(tenant, row);
  return sealIntent({ tenant, data, random, version }, updated);
}

/** The intent in its next version, sealed under the active key, with another fingerprint of the same value. */
export function refingerprinted(
  { tenant, opener, random }: IntentResealing,
  found: BoundRow<'token_intents'>,
  fingerprint: string,
): Row<'token_intents'> {
  const { row, text } = openBound(opener, 'token_intents', found);
  const data = JSON.parse(text.reveal()) as Json;
  const updated = { ...row, version: row.version + 1, fingerprint };
  return sealIntent({ tenant, data, random }, updated);
}

interface IntentResealing {
  readonly tenant: Tenant;
  readonly opener: Opener;
  readonly random: Random;
}

/** The view in the API: a summary of the data, never the data. */
export function viewTokenIntent(opener: Opener, found: BoundRow<'token_intents'>, now: Instant) {
  const { row, data } = openIntent(opener, found, now);
  return {
    id: row.token_intent_id,
    tenant_id: row.tenant_id,
    type: row.type,
    ...summaryOf(row.type as TokenTypeName, data.reveal()),
    ...(row.fingerprint !== '' && { fingerprint: row.fingerprint }),
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestamp(row.expires_at),
  };
}

/** The same for a caller who may see nothing of the data. */
export function viewUnreadIntent(row: Row<'token_intents'>) {
  return {
    id: row.token_intent_id,
    tenant_id: row.tenant_id,
    type: row.type,
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestamp(row.expires_at),
  };
}

function sealIntent(
  { tenant, data, random, version }: Sealing,
  row: UnsealedIntent,
): Row<'token_intents'> {
  const sealing = {
    keyring: tenant.keyring,
    table: 'token_intents',
    row,
    random,
    version,
  } as const;
  return { ...row, data: sealBound(sealing, JSON.stringify(data)) };
}
