/**
 * Data that a browser encrypted for the vault and its caller passed on: one value, or several by name. Each is
 * decided like a token intent, by the containers of its type and of the contents that the vault recognizes.
 */

import { usedTwice } from '../../access/client-keys/open-encrypted.ts';
import {
  denyEncrypted,
  type EncryptedTools,
  useEncrypted,
} from '../../access/client-keys/use-encrypted.ts';
import { VaultError } from '../../base/errors.ts';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { failureOf } from '../../rules/log-entries.ts';
import type { Refused } from '../../rules/operation.ts';
import type { Grant } from '../../rules/policy.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { Row } from '../../store/tables.ts';
import { recognizedIn } from '../../tokens/contents/recognized.ts';
import {
  parseTokenType,
  type TokenTypeName,
  tokenTypes,
} from '../../tokens/contents/token-types.ts';
import { invalidCall } from './called-proxy.ts';
import { encryptedEntry } from './entries.ts';
import type { ProxyCall } from './proxy-call.ts';
import { accessOf } from './use-tokens.ts';

/** Decrypting one entry takes a millisecond. */
const entriesMax = 10;

export interface EncryptedData {
  /** Each value has its `type` and its `data` in place of the encrypted string. */
  readonly value: Json | undefined;
  /** One for each value. */
  readonly entries: readonly LogEntry[];
  /** The entries to write if nothing is sent in the end. */
  readonly failures: readonly LogEntry[];
  readonly uses: readonly Row<'client_key_uses'>[];
}

interface EncryptedEntry {
  readonly type: TokenTypeName;
  readonly jwe: string;
  readonly rest: JsonObject;
}

const nothingEncrypted = { value: undefined, entries: [], failures: [], uses: [] };

type Opened = Omit<EncryptedData, 'value'> & { readonly data: Json };

/**
 * Returns all values, or the refusal of the first that the caller may not use or that cannot be decrypted.
 * @throws VaultError `invalid_proxy_request` naming the header, `integrity` for a key that was altered.
 */
export async function openEncryptedData(
  tools: EncryptedTools,
  call: ProxyCall,
): Promise<EncryptedData | Refused> {
  if (call.encrypted === undefined) return nothingEncrypted;
  const { header, text } = call.encrypted;
  const given = objectOf(text, header);
  if (isEncrypted(given)) {
    const opened = await openEntry(tools, call, { header, json: given });
    return 'refusal' in opened ? opened : { ...opened, value: opened.data };
  }
  const named = Object.entries(given);
  if (named.length > entriesMax) {
    throw invalidCall(header, `must have at most ${entriesMax} entries`);
  }
  const all: Opened[] = [];
  for (const [, json] of named) {
    const opened = await openEntry(tools, call, { header, json });
    if ('refusal' in opened) return refusedAfter(opened, all);
    all.push(opened);
  }
  const uses = all.flatMap((one) => one.uses);
  if (new Set(uses.map((use) => use.client_key_id + use.jti_digest)).size < uses.length) {
    const [first, ...others] = failuresOf(all);
    if (first) return { change: { entries: [first, ...others] }, refusal: usedTwice(header) };
  }
  return {
    value: Object.fromEntries(named.map(([name], index) => [name, all[index]?.data ?? null])),
    entries: all.flatMap((one) => one.entries),
    failures: failuresOf(all),
    uses,
  };
}

interface EntryToOpen {
  readonly header: string;
  readonly json: Json | undefined;
}

async function openEntry(
  tools: EncryptedTools,
  call: ProxyCall,
  { header, json }: EntryToOpen,
): Promise<Opened | Refused> {
  const { caller } = call;
  const { jwe, type, rest } = entryOf(json, header);
  const decided = decideFor(call, type);
  if (decided instanceof VaultError) return denyEncrypted(tools, caller, { jwe, refusal: decided });
  const opened = await useEncrypted(tools, caller, { jwe, path: header, basis: decided });
  if ('refusal' in opened) return opened;
  const data = opened.data.reveal();
  const attempt = { entity: 'key', id: opened.key, operation: 'use' };
  const failure = failureOf(caller, tools.clock.now(), attempt);
  // The caller names the type. Without this check, a caller could choose the deciding container regardless of the
  // data.
  if (!fits(type, data)) {
    const refusal = invalidCall(header, `must hold data of the type ${type} when it is opened`);
    return { change: { entries: [failure] }, refusal };
  }
  for (const recognized of recognizedIn(data)) {
    const hidden = decideFor(call, recognized);
    if (hidden instanceof VaultError) return denyEncrypted(tools, caller, { jwe, refusal: hidden });
  }
  return {
    data: { ...rest, type, data },
    entries: [encryptedEntry(call, tools.clock.now(), opened.key)],
    failures: [failure],
    uses: opened.use ? [opened.use] : [],
  };
}

function fits(type: TokenTypeName, data: Json): boolean {
  try {
    tokenTypes[type].parseData(data);
    return true;
  } catch (error) {
    if (error instanceof VaultError) return false;
    throw error;
  }
}

/** The caller's grant for data of the type in this call, or the reason for a refusal. */
function decideFor({ caller, proxy }: ProxyCall, type: TokenTypeName): Grant | VaultError {
  if (caller.anonymous && !proxy.allowEncrypted) {
    const reason =
      'The proxy takes no encrypted data from callers without a key (allow_encrypted).';
    return new VaultError('forbidden', { public: reason });
  }
  const { container } = tokenTypes[type];
  const { access, permission } = accessOf(proxy);
  const grant = access.grant(caller.policy, { id: undefined, container });
  if (grant) return grant;
  return new VaultError('forbidden', {
    public: `The caller lacks the permission ${permission} for encrypted data of the type ${type}.`,
  });
}

function refusedAfter(refused: Refused, opened: readonly Opened[]): Refused {
  const [first, ...others] = refused.change.entries;
  return { ...refused, change: { entries: [first, ...others, ...failuresOf(opened)] } };
}

function failuresOf(all: readonly Opened[]): readonly LogEntry[] {
  return all.flatMap(({ failures }) => failures);
}

function entryOf(json: Json | undefined, header: string): EncryptedEntry {
  if (!isObject(json) || !isEncrypted(json)) throw malformed(header);
  const { encrypted, type: name, ...rest } = json;
  const type = typeof name === 'string' ? parseTokenType(name) : undefined;
  if (type === undefined) {
    throw invalidCall(header, `must have a type: one of ${Object.keys(tokenTypes).join(', ')}`);
  }
  return { type, jwe: String(encrypted), rest };
}

function isEncrypted(json: JsonObject): boolean {
  return Object.hasOwn(json, 'encrypted') && typeof json['encrypted'] === 'string';
}

function objectOf(text: string, header: string): JsonObject {
  try {
    const json = JSON.parse(Buffer.from(text, 'base64').toString('utf8')) as Json;
    if (isObject(json)) return json;
  } catch {
    // The message of JSON.parse quotes the input.
  }
  throw malformed(header);
}

function malformed(header: string) {
  return invalidCall(header, 'must be base64 of JSON with type and encrypted, or of such by name');
}
