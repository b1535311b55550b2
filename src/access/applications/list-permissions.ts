/** Listing the permissions there are. */
import type { Clock } from '../../base/clock.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { type ApplicationKind, type PermissionRow, permissions } from '../../rules/permissions.ts';

/** All permissions, or those that a kind of application may hold. */
export function listPermissions(
  { clock }: { readonly clock: Clock },
  caller: Caller,
  kind: ApplicationKind | undefined,
): Decide {
  const rows = Object.entries<PermissionRow>(permissions).filter(
    ([, { kinds }]) => kind === undefined || kinds.includes(kind),
  );
  return async () => ({
    change: {
      entries: [
        entryOf(caller, clock.now(), {
          entity: 'permission',
          id: caller.tenant.id,
          operation: 'list',
        }),
      ],
    },
    reply: {
      status: 200,
      body: rows.map(([type, { description, kinds }]) => ({
        type,
        description,
        application_types: kinds,
      })),
    },
  });
}
