/** A reactor as callers see it. */

import { formatTimestamp } from '../../lib/dates.ts';
import type { Caller } from '../../rules/caller.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Permission } from '../../rules/permissions.ts';
import { holds } from '../../rules/policy.ts';
import type { Row } from '../../store/tables.ts';
import type { CodeRuntime } from '../../transforms/code-runtime.ts';
import { openReactor } from './row.ts';

/** The values of a configuration are for those who may change them; others see the names. */
export const configurationPermission = 'reactor:update';

/**
 * As much as the caller may see.
 * @param by the permission for which it is opened.
 * @throws VaultError `integrity` when the row was altered.
 */
export function viewReactor(caller: Caller, row: Row<'reactors'>, by: Permission): object {
  const { configuration } = openReactor(openerFor(caller, by), row).reveal();
  const view = viewWithoutValues(caller, row, by);
  return holds(caller.policy, configurationPermission) ? { ...view, configuration } : view;
}

/** The reactor with the names of its configuration alone. */
export function viewWithoutValues(caller: Caller, row: Row<'reactors'>, by: Permission): object {
  const { configuration, application_id, runtime, allowed_hosts, code } = openReactor(
    openerFor(caller, by),
    row,
  ).reveal();
  return {
    id: row.reactor_id,
    tenant_id: row.tenant_id,
    name: row.name,
    code,
    configuration: Object.fromEntries(Object.keys(configuration).map((name) => [name, null])),
    ...(application_id && { application: { id: application_id } }),
    runtime: viewRuntime(runtime),
    ...(allowed_hosts && { allowed_hosts }),
    state: 'active',
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    ...(row.modified_by !== null && { modified_by: row.modified_by }),
    ...(row.modified_at !== null && { modified_at: formatTimestamp(row.modified_at) }),
  };
}

/** Of the older image no more than it has. */
function viewRuntime({ image, timeout, ...newer }: CodeRuntime): object {
  const common = { image, ...(timeout !== null && { timeout }) };
  return image === 'node22' ? { ...common, ...newer } : common;
}
