/** What makes a row of the key directory ours: whoever can only write to the database opens nothing with it. */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Keyring } from './keyring.ts';
import { encodeParts } from './parts.ts';

/** Whom a key stands for, as its row says. */
export interface KeyHolder {
  readonly key_hash: string;
  readonly tenant_id: string;
  readonly application_id: string;
  readonly session_id: string | null;
  readonly key_id: string;
}

/** Shared with the search terms, which are made of two parts each, so that none of them is a proof. */
const purpose = 'search';

/** The version of the tenant's secret, a dot, and base64url of HMAC-SHA-256 over the holder. */
export function proveHolder(keyring: Keyring, holder: KeyHolder): string {
  const secret = keyring.secret(purpose);
  const tag = tagOf(secret, holder).toString('base64url');
  return `${keyring.activeVersion(purpose)}.${tag}`;
}

/** False when the row was not made by this tenant's vault, or was pointed at somebody else since. */
export function holderProven(keyring: Keyring, holder: KeyHolder, proof: string): boolean {
  const [version, tag = ''] = proof.split('.', 2);
  const secret = keyring.secret(purpose, Number(version));
  if (secret === undefined) return false;
  const given = Buffer.from(tag, 'base64url');
  const expected = tagOf(secret, holder);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function tagOf(secret: KeyObject, holder: KeyHolder): Buffer {
  const { key_hash, tenant_id, application_id, session_id, key_id } = holder;
  const parts = ['api key', key_hash, tenant_id, application_id, session_id ?? '', key_id];
  return createHmac('sha256', secret).update(encodeParts(parts)).digest();
}
