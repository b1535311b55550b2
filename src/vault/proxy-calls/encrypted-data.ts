/** What a browser encrypted for the vault and its caller passed on: one value, or several by name. */
import { isObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { OpenEncrypted } from '../client-keys/open-encrypted.ts';
import { invalidCall } from './called-proxy.ts';

/** Opening one takes a millisecond. */
const entriesMax = 10;

/**
 * Each with its `type` and its `data` in place of what was encrypted.
 * @throws VaultError `invalid_proxy_request` naming the header, and what opening throws.
 */
export async function openEncryptedData(
  open: OpenEncrypted,
  tenant: Tenant,
  { text, header }: { readonly text: string; readonly header: string },
): Promise<Json> {
  const given = objectOf(text, header);
  if (isEncrypted(given)) return opened(given, header);
  const entries = Object.entries(given);
  if (entries.length > entriesMax) {
    throw invalidCall(header, `must have at most ${entriesMax} entries`);
  }
  const values: [string, Json][] = [];
  for (const [name, entry] of entries) {
    if (!isObject(entry) || !isEncrypted(entry)) throw malformed(header);
    values.push([name, await opened(entry, header)]);
  }
  return Object.fromEntries(values);

  async function opened({ encrypted, ...rest }: JsonObject, path: string): Promise<Json> {
    const data = await open(tenant, String(encrypted), path);
    return { ...rest, data: data.reveal() };
  }
}

function isEncrypted(json: JsonObject): boolean {
  return Object.hasOwn(json, 'encrypted') && typeof json['encrypted'] === 'string';
}

function objectOf(text: string, header: string): JsonObject {
  try {
    const json = JSON.parse(Buffer.from(text, 'base64').toString('utf8')) as Json;
    if (isObject(json)) return json;
  } catch {
    // What JSON.parse says quotes the text.
  }
  throw malformed(header);
}

function malformed(header: string) {
  return invalidCall(header, 'must be base64 of JSON with type and encrypted, or of such by name');
}
