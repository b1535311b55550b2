/** Listing reactors, newest first. */
import type { Caller } from '../../rules/caller.ts';
import { listNamed, type NamedQuery } from '../../rules/offset-page.ts';
import type { Decide } from '../../rules/operation.ts';
import { reactorCount, reactorPage } from '../../store/queries/reactors.ts';
import type { Row } from '../../store/tables.ts';
import type { ReactorReading } from './create.ts';
import { viewReactor } from './view.ts';

const list = {
  entity: 'reactor',
  route: 'GET /reactors',
  count: reactorCount,
  page: reactorPage,
  idOf: (row: Row<'reactors'>) => row.reactor_id,
  view: (caller: Caller, row: Row<'reactors'>) => viewReactor(caller, row, 'reactor:read'),
} as const;

/**
 * From the decision `integrity` when a reactor of the page was altered.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function listReactors(tools: ReactorReading, caller: Caller, query: NamedQuery): Decide {
  return listNamed(tools, caller, { query, list });
}
