/** What proves that the vault wrote a row: write access to the database is not enough to make one. */
import { type KeyObject, timingSafeEqual } from 'node:crypto';
import { hmacSha256 } from './digest.ts';
import type { Keyring } from './keyring.ts';
import { encodeParts } from './parts.ts';

const purpose = 'row';

/** The version of the tenant's secret, a dot, and base64url of HMAC-SHA-256 over the table and the row. */
export function proveRow(keyring: Keyring, table: string, row: string): string {
  const version = keyring.activeVersion(purpose);
  return proofOf(keyring.secret(purpose), version, encodeParts([table, row]));
}

/** False when the row was not made by this tenant's vault, or was altered since. */
export function rowProven(
  keyring: Keyring,
  { table, row, proof }: { readonly table: string; readonly row: string; readonly proof: string },
): boolean {
  const version = Number.parseInt(proof, 10);
  const secret = keyring.secret(purpose, version);
  if (secret === undefined) return false;
  const given = Buffer.from(proof);
  const expected = Buffer.from(proofOf(secret, version, encodeParts([table, row])));
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function proofOf(secret: KeyObject, version: number, bytes: Uint8Array): string {
  return `${version}.${hmacSha256(secret, bytes).toString('base64url')}`;
}
