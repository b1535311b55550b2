/** What makes a row ours: whoever can only write to the database makes none that the vault believes. */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Keyring } from './keyring.ts';
import { encodeParts } from './parts.ts';

const purpose = 'row';

/** The version of the tenant's secret, a dot, and base64url of HMAC-SHA-256 over the table and the row. */
export function proveRow(keyring: Keyring, table: string, row: string): string {
  const tag = tagOf(keyring.secret(purpose), table, row).toString('base64url');
  return `${keyring.activeVersion(purpose)}.${tag}`;
}

/** False when the row was not made by this tenant's vault, or was altered since. */
export function rowProven(
  keyring: Keyring,
  { table, row, proof }: { readonly table: string; readonly row: string; readonly proof: string },
): boolean {
  const [version, tag = ''] = proof.split('.', 2);
  const secret = keyring.secret(purpose, Number(version));
  if (secret === undefined) return false;
  const given = Buffer.from(tag, 'base64url');
  const expected = tagOf(secret, table, row);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function tagOf(secret: KeyObject, table: string, row: string): Buffer {
  return createHmac('sha256', secret)
    .update(encodeParts([table, row]))
    .digest();
}
