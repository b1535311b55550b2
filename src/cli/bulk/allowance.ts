/** What the key of an import may do, and what room its tenant has: for the lines that a dry run looks at. */

import { isObject, type Json } from '../../base/json.ts';
import { parsePermissions, parseRules, type WireRule } from '../../rules/access-rules.ts';
import type { HolderKind } from '../../rules/permissions.ts';
import { type AccessSubject, decide, policyOf } from '../../rules/policy.ts';
import type { TokenRequest } from '../../tokens/contents/contents.ts';
import { ResponseError } from '../terminal/response-error.ts';
import { textOf, type VaultClient } from './vault-client.ts';

export interface ImportAllowance {
  /** What could not be found out, in words. */
  readonly unknown: readonly string[];
  /** Why the vault would refuse the token, if it would. */
  refusalOf(place: AccessSubject): string | undefined;
  /** Counts the token against the quotas. @returns which of them it exceeds. */
  take(request: TokenRequest): string | undefined;
}

const forbidden = 403;

/** @param manager with a key that may read quotas and usage, which keys that create tokens may not. */
export async function allowanceOf(
  client: VaultClient,
  manager: VaultClient | undefined,
): Promise<ImportAllowance> {
  const application = await read(client, '/applications/key');
  const policy = application && policyIn(application);
  const quotas = manager && (await read(manager, '/tenants/self'))?.['quotas'];
  const usage = manager && (await read(manager, '/tenants/self/reports/usage'))?.['storage'];
  const room = isObject(quotas) ? roomIn(quotas, usage) : undefined;
  let bytes = 0;
  return {
    unknown: [
      ...(policy ? [] : ['Permissions were not compared: the key is that of a session.']),
      ...(room === undefined
        ? [
            'Quotas were not compared: that needs --management-key-file, with tenant:read and report:read.',
          ]
        : []),
    ],
    refusalOf: (place) =>
      policy === undefined || decide(policy, 'token:create', place)
        ? undefined
        : `the key has no token:create in ${place.container}`,
    take: ({ data }) => {
      // At least as many are stored: next to the data there are its id, its metadata, and what finds it.
      bytes += Buffer.byteLength(JSON.stringify(data ?? null));
      if (room === undefined || bytes <= room) return undefined;
      return `the tenant has room for ${room} bytes more (quota token_storage)`;
    },
  };
}

/** `undefined` where the key may not read it. */
async function read(
  client: VaultClient,
  path: string,
): Promise<Readonly<Record<string, Json>> | undefined> {
  try {
    const { request, pendingResponse } = client.open('GET', path);
    request.end();
    const body = JSON.parse(await textOf(await pendingResponse)) as Json;
    return isObject(body) ? (body as Readonly<Record<string, Json>>) : undefined;
  } catch (error) {
    if (error instanceof ResponseError && error.status === forbidden) return undefined;
    throw error;
  }
}

function policyIn({ type, permissions, rules }: Readonly<Record<string, Json>>) {
  const kind = type as HolderKind;
  return policyOf({
    permissions: parsePermissions((permissions ?? []) as readonly string[], kind),
    rules: parseRules((rules ?? []) as unknown as readonly WireRule[], { kind }),
  });
}

function roomIn(quotas: object, usage: Json | undefined): number | undefined {
  if (usage !== undefined && !isObject(usage)) return undefined;
  const max = Number((quotas as Readonly<Record<string, Json>>)['token_storage']);
  return Math.max(0, max - Number(usage?.['stored_bytes'] ?? 0));
}
