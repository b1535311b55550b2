/** A person as stored, and as responses show it. */
import type { ApplicationId, PersonId } from '../../base/ids.ts';
import { viewHistory } from '../../rules/stored-resource.ts';
import type { RemovedRow } from '../../store/change.ts';
import type { Row } from '../../store/tables.ts';

/** The applications as which the person may act. */
export function rolesOf({ application_ids }: Pick<Row<'people'>, 'application_ids'>) {
  const ids: readonly ApplicationId[] = JSON.parse(application_ids);
  return ids;
}

export function viewPerson(row: Row<'people'>): object {
  return {
    id: row.person_id satisfies PersonId,
    tenant_id: row.tenant_id,
    name: row.name,
    applications: rolesOf(row),
    ...viewHistory(row),
  };
}

type SessionNames = Pick<
  Row<'console_sessions'>,
  'tenant_id' | 'secret_hash' | 'session_id' | 'version'
>;

/** As a change removes it: the log names it by its id. */
export function removedSession(row: SessionNames): RemovedRow<'console_sessions'> {
  const { tenant_id, secret_hash, session_id, version } = row;
  return { tenant_id, secret_hash, session_id, version };
}

type LinkNames = Pick<Row<'console_links'>, 'tenant_id' | 'code_hash' | 'link_id' | 'version'>;

/** The same for a link. */
export function removedLink(row: LinkNames): RemovedRow<'console_links'> {
  const { tenant_id, code_hash, link_id, version } = row;
  return { tenant_id, code_hash, link_id, version };
}

type MethodNames = Pick<
  Row<'sign_in_methods'>,
  'tenant_id' | 'identity_hash' | 'method_id' | 'version'
>;

/** The same for a sign-in method. */
export function removedMethod(row: MethodNames): RemovedRow<'sign_in_methods'> {
  const { tenant_id, identity_hash, method_id, version } = row;
  return { tenant_id, identity_hash, method_id, version };
}
