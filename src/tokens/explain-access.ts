/** Explaining access: which rule decides about a token or a container for a key, why, and what the key is shown. */

import { keyOfTenant, noKey } from '../access/applications/queries.ts';
import { type AccessRequest, accessOf, readAccess } from '../access/applications/row.ts';
import { authorityOf } from '../access/authority.ts';
import type { Clock, Instant } from '../base/clock.ts';
import { type Container, containerForm, parseContainer } from '../base/container.ts';
import { invalid } from '../base/errors.ts';
import type { Caller } from '../rules/caller.ts';
import { explainDecision } from '../rules/explanation.ts';
import { entryOf } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import { type Permission, parsePermission, permissions } from '../rules/permissions.ts';
import { type Access, type AccessSubject, type Policy, policyOf } from '../rules/policy.ts';
import { provenRow, requireProven } from '../rules/proven-row.ts';
import { rowOf } from '../rules/stored-resource.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { maskOf } from './contents/view.ts';
import { liveToken } from './queries.ts';

/** One of the first two, and for a permission on tokens `token_id` or `container`. */
export interface AccessQuestion extends AccessRequest {
  readonly application_id?: string | null;
  readonly key_id?: string | null;
  readonly permission: string;
  readonly token_id?: string | null;
  readonly container?: string | null;
}

export interface Explaining {
  readonly store: Store;
  readonly clock: Clock;
}

/**
 * From the decision `not_found` for an application, a key or a token that is not there.
 * @throws VaultError `validation_failed` when the question names too little or too much.
 */
export function explainAccess(
  { store, clock }: Explaining,
  caller: Caller,
  question: AccessQuestion,
): Decide {
  const permission = readPermission(question);
  const container = readContainer(question);
  checkHolder(question);
  const isProposal = proposes(question);
  return async () => {
    const now = clock.now();
    const tenant = caller.tenant.id;
    const stored = await holderOf(store, { tenant: caller.tenant, question, now });
    const holder = isProposal ? proposed(stored, question) : stored;
    const found =
      question.token_id && (await liveToken(store, { tenant, id: question.token_id, now }));
    const token = found && requireProven(caller.tenant, 'tokens', found);
    const subject = token ? { id: token.token_id, container: token.container } : container;
    const { application, session } = holder;
    const fact = {
      entity: 'application',
      id: application.application_id,
      operation: 'explain',
    } as const;
    const asked = entryOf(caller, now, fact);
    // The response says that a token exists, where it is, and of which type.
    const named =
      token && ({ entity: 'token', id: token.token_id, container: token.container } as const);
    return {
      change: {
        entries: named
          ? [asked, entryOf(caller, now, { ...named, operation: 'explain' })]
          : [asked],
      },
      reply: {
        status: 200,
        body: {
          application: {
            id: application.application_id,
            name: application.name,
            type: application.type,
          },
          ...(session && { session: { id: session.session_id } }),
          permission,
          ...(token && { token: { id: token.token_id, type: token.type } }),
          ...(subject && { container: subject.container }),
          ...explainDecision({
            ...holder,
            permission,
            subject,
            masked: !token || maskOf(token) !== undefined,
          }),
        },
      },
    };
  };
}

function readPermission({ permission: text, token_id, container }: AccessQuestion): Permission {
  const permission = parsePermission(text);
  if (permission === undefined) throw invalid('permission', 'is not a known permission');
  const named = [token_id, container].filter((one) => typeof one === 'string').length;
  if (permissions[permission].token && named !== 1) {
    throw invalid('token_id', 'give either token_id or container');
  }
  if (!permissions[permission].token && named > 0) {
    throw invalid(
      'permission',
      'is not about tokens, so it cannot be combined with token_id or container',
    );
  }
  return permission;
}

function readContainer({ container: text }: AccessQuestion): AccessSubject | undefined {
  if (typeof text !== 'string') return undefined;
  const container: Container | undefined = parseContainer(text);
  if (container === undefined) throw invalid('container', containerForm);
  return { id: undefined, container };
}

function checkHolder({ application_id, key_id }: AccessQuestion): void {
  if ((typeof application_id === 'string') === (typeof key_id === 'string')) {
    throw invalid('application_id', 'give either application_id or key_id');
  }
}

/** Whether the question is about other permissions and rules than those that are stored. */
function proposes({ permissions, rules, application_id }: AccessQuestion): boolean {
  const given = [permissions, rules].some((one) => one !== undefined && one !== null);
  if (given && typeof application_id !== 'string') {
    throw invalid('application_id', 'is required with permissions or rules');
  }
  return given;
}

/** The same application with the access of the question, as if it were updated. */
function proposed(
  holder: ExplainedHolder,
  { permissions, rules }: AccessQuestion,
): ExplainedHolder {
  const access = readAccess({ permissions, rules } as AccessRequest, holder.application.type);
  return { ...holder, access, policy: policyOf(access) };
}

interface ExplainedHolder {
  readonly application: Row<'applications'>;
  readonly session: Row<'sessions'> | undefined;
  readonly access: Access;
  readonly policy: Policy;
}

interface HolderQuery {
  readonly tenant: Tenant;
  readonly question: AccessQuestion;
  readonly now: Instant;
}

async function holderOf(
  store: Store,
  { tenant, question, now }: HolderQuery,
): Promise<ExplainedHolder> {
  const { key_id } = question;
  const key = typeof key_id === 'string' ? await keyOfTenant(store, tenant, key_id) : undefined;
  const id = key?.application_id ?? question.application_id ?? '';
  const application = await rowOf(store, 'applications', { tenant, id });
  if (!key || key.session_id === null) {
    const access = accessOf(application);
    return { application, session: undefined, access, policy: policyOf(access) };
  }
  const named = { tenant_id: tenant.id, session_id: key.session_id };
  const session = await provenRow(store, tenant, { table: 'sessions', key: named });
  if (!session) throw noKey();
  const credential = {
    application: application.application_id,
    key: key.key_id,
    session: key.session_id,
  };
  const authority = await authorityOf(store, tenant, { credential, now });
  if ('ended' in authority) throw noKey();
  return { application, session, access: accessOf(session), policy: authority.policy };
}
