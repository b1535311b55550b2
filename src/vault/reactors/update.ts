/** Updating a reactor: replaced as a whole, or by JSON merge patch. */

import { isDeepStrictEqual } from 'node:util';
import type { Json, JsonObject } from '../../lib/json.ts';
import { mergePatch } from '../../lib/merge-patch.ts';
import type { Caller } from '../../rules/caller.ts';
import { requireLinkedApplication } from '../../rules/linked-application.ts';
import { entryOf } from '../../rules/log-entries.ts';
import { openerFor } from '../../rules/openings.ts';
import type { CompletedOperation, Decide, Refused } from '../../rules/operation.ts';
import type { Row } from '../../store/tables.ts';
import { refusalOfRights, refusalWhereOff } from '../code/check.ts';
import { type ReactorWriting, requireUsable } from './create.ts';
import type { ReactorDefinition, ReactorSettings } from './definition.ts';
import { reactorOf } from './queries.ts';
import { parseReactor, type ReactorRequest } from './request.ts';
import { openReactor, reactorRow } from './row.ts';
import { viewReactor } from './view.ts';

/**
 * What the request does not give is as it would be in a new reactor. From the decision `not_found`, what
 * creating is refused with, or `integrity` when the reactor was altered.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function replaceReactor(
  tools: ReactorWriting,
  caller: Caller,
  { id, reactor }: { readonly id: string; readonly reactor: ReactorRequest },
): Decide {
  const settings = parseReactor(reactor);
  return async () => {
    const row = await reactorOf(tools.store, caller.tenant.id, id);
    const before = openReactor(openerFor(caller, 'reactor:update'), row).reveal();
    const replaced = await replacement(tools, caller, { row, before, settings });
    if ('refusal' in replaced) return replaced;
    const { change, updated } = replaced;
    return { change, reply: { status: 200, body: viewReactor(caller, updated, 'reactor:update') } };
  };
}

export type ReactorPatch = { readonly [A in keyof ReactorRequest]?: ReactorRequest[A] | null };

/** From the decision what replacing is refused with. */
export function patchReactor(
  tools: ReactorWriting,
  caller: Caller,
  { id, patch }: { readonly id: string; readonly patch: ReactorPatch },
): Decide {
  return async () => {
    const row = await reactorOf(tools.store, caller.tenant.id, id);
    const before = openReactor(openerFor(caller, 'reactor:update'), row).reveal();
    const merged = mergePatch(wireOf(row, before) as JsonObject, patch as Json);
    const settings = parseReactor(merged as unknown as ReactorRequest);
    const replaced = await replacement(tools, caller, { row, before, settings });
    if ('refusal' in replaced) return replaced;
    return { change: replaced.change, reply: { status: 204 } };
  };
}

/** The reactor as a request would have to give it. RFC 7386 merges its configuration entry by entry. */
function wireOf({ name }: Row<'reactors'>, definition: ReactorDefinition): object {
  const { application_id, runtime, ...rest } = definition;
  const { image, timeout, ...newer } = runtime;
  return {
    ...rest,
    name,
    runtime: { image, timeout, ...(image === 'node22' && newer) },
    application: application_id === null ? null : { id: application_id },
  };
}

interface ReactorReplacement {
  readonly row: Row<'reactors'>;
  readonly before: ReactorDefinition;
  readonly settings: ReactorSettings;
}

type ReplacedReactor = Pick<CompletedOperation, 'change'> & { readonly updated: Row<'reactors'> };

async function replacement(
  tools: ReactorWriting,
  caller: Caller,
  { row, before, settings: { name, definition } }: ReactorReplacement,
): Promise<ReplacedReactor | Refused> {
  const { store, clock, random } = tools;
  const { tenant } = caller;
  const { reactor_id: id } = row;
  const attempt = { entity: 'reactor', id, operation: 'update' } as const;
  const isOff = refusalWhereOff(tools, caller, attempt);
  if (isOff) return isOff;
  if (!isDeepStrictEqual(before, definition)) {
    // Whoever takes the rights away needs none.
    const refused = refusalOfRights(tools, caller, { ...attempt, ...definition });
    if (refused) return refused;
    await requireLinkedApplication(store, tenant, definition.application_id);
    await requireUsable(tools, caller, definition);
  }
  const now = clock.now();
  const updated = reactorRow(
    { tenant, definition, random },
    {
      ...row,
      version: row.version + 1,
      name,
      modified_by: caller.application,
      modified_at: now,
    },
  );
  const change = {
    replace: { reactors: [updated] },
    entries: [entryOf(caller, now, { entity: 'reactor', id, operation: 'update' })],
  } as const;
  return { change, updated };
}
