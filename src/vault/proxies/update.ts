/** Updating a proxy: replaced as a whole, or by JSON merge patch. Its key stays. */

import { isDeepStrictEqual } from 'node:util';
import type { Json, JsonObject } from '../../lib/json.ts';
import { mergePatch } from '../../lib/merge-patch.ts';
import type { Caller } from '../../rules/caller.ts';
import { hostOfKey } from '../../rules/host-names.ts';
import { requireLinkedApplication } from '../../rules/linked-application.ts';
import { entryOf } from '../../rules/log-entries.ts';
import { openerFor } from '../../rules/openings.ts';
import type { CompletedOperation, Decide, Refused } from '../../rules/operation.ts';
import type { Row } from '../../store/tables.ts';
import { refusalOfLending } from './check-lending.ts';
import type { ProxyWriting } from './create.ts';
import type { ProxySettings } from './definition.ts';
import { addressesToChange, proxyOf, requireGiven } from './queries.ts';
import { type ProxyRequest, parseProxy } from './request.ts';
import { openProxy, type ProxyBody, proxyRow } from './row.ts';
import { viewProxy } from './view.ts';

/**
 * What the request does not give is as it would be in a new proxy, the client's certificate among it.
 * From the decision `not_found`, `conflict`, `validation_failed`, or `integrity` when the proxy was altered.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function replaceProxy(
  tools: ProxyWriting,
  caller: Caller,
  { id, proxy }: { readonly id: string; readonly proxy: ProxyRequest },
): Decide {
  const settings = parseProxy(proxy, tools.names);
  return async () => {
    const row = await proxyOf(tools.store, caller.tenant.id, id);
    const before = openProxy(openerFor(caller, 'proxy:update'), row).reveal();
    const replaced = await replacement(tools, caller, { row, before, settings, isHostGiven: true });
    if ('refusal' in replaced) return replaced;
    const { change, updated } = replaced;
    const viewing = { caller, by: 'proxy:update' } as const;
    return { change, reply: { status: 200, body: viewProxy(tools.names, viewing, updated) } };
  };
}

export type ProxyPatch = { readonly [A in keyof ProxyRequest]?: ProxyRequest[A] | null };

/** From the decision `not_found`, `conflict`, `validation_failed`, or `integrity` when the proxy was altered. */
export function patchProxy(
  tools: ProxyWriting,
  caller: Caller,
  { id, patch }: { readonly id: string; readonly patch: ProxyPatch },
): Decide {
  return async () => {
    const row = await proxyOf(tools.store, caller.tenant.id, id);
    const body = openProxy(openerFor(caller, 'proxy:update'), row).reveal();
    const settings = parseProxy(patched(wireOf(row, body), patch), tools.names);
    const replaced = await replacement(tools, caller, {
      row,
      before: body,
      settings,
      isHostGiven: patch.proxy_host !== undefined,
    });
    if ('refusal' in replaced) return replaced;
    return { change: replaced.change, reply: { status: 204 } };
  };
}

/** The proxy as a request would have to give it. */
function wireOf({ name, host }: Row<'proxies'>, { definition }: ProxyBody): ProxyRequest {
  const { application_id, ...rest } = definition;
  return {
    ...rest,
    name,
    proxy_host: host,
    application: application_id === null ? null : { id: application_id },
  };
}

/** RFC 7386: null removes, and configuration is merged entry by entry. Lists are replaced. */
function patched(proxy: ProxyRequest, patch: ProxyPatch): ProxyRequest {
  const target: Record<string, unknown> = { ...proxy };
  // A list that is stored gives way to the older attribute for one transform.
  for (const side of ['request', 'response'] as const) {
    if (patch[`${side}_transform`] !== undefined) delete target[`${side}_transforms`];
  }
  const merged = mergePatch(target as JsonObject, patch as Json);
  return merged as unknown as ProxyRequest;
}

interface ProxyReplacement {
  readonly row: Row<'proxies'>;
  readonly before: ProxyBody;
  readonly settings: ProxySettings;
  /** Whether the request says what the host is to be: a proxy of an older release may have one that was not given. */
  readonly isHostGiven: boolean;
}

async function replacement(
  tools: ProxyWriting,
  caller: Caller,
  { row, before, settings: { name, definition, ...settings }, isHostGiven }: ProxyReplacement,
): Promise<(Pick<CompletedOperation, 'change'> & { readonly updated: Row<'proxies'> }) | Refused> {
  const { store, clock, random, names } = tools;
  const { tenant } = caller;
  const { key } = before;
  // The name that it has by itself is not stored.
  const host = settings.host === hostOfKey(key, names) ? null : settings.host;
  if (!isDeepStrictEqual(before.definition, definition)) {
    const attempt = { entity: 'proxy', id: row.proxy_id, operation: 'update' } as const;
    const refused = await refusalOfLending(tools, caller, { ...attempt, definition });
    if (refused) return refused;
  }
  const now = clock.now();
  await requireLinkedApplication(store, tenant, definition.application_id);
  const updated = proxyRow(
    { tenant, body: { key, definition }, random },
    {
      ...row,
      version: row.version + 1,
      name,
      host,
      modified_by: caller.application,
      modified_at: now,
    },
  );
  const fact = { entity: 'proxy', id: row.proxy_id, operation: 'update' } as const;
  if (isHostGiven) await requireGiven(store, tenant, host);
  const addresses = isHostGiven
    ? await addressesToChange(store, { before: row, after: updated })
    : {};
  const change = {
    replace: { proxies: [updated] },
    ...addresses,
    entries: [entryOf(caller, now, fact)],
  } as const;
  return { change, updated };
}
