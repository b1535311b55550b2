/** What needs somebody's attention in a tenant: each room finds the problems of its own subject. */
import { FairAdmission, runInTurn } from '../base/admission.ts';
import { type Clock, type Instant, second } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { Caller } from './caller.ts';
import { entryOf } from './log-entries.ts';
import type { Decide } from './operation.ts';
import type { Permission } from './permissions.ts';
import { holds } from './policy.ts';
import type { Tenant } from './tenant.ts';

export const problemKinds = [
  'altered_row',
  'altered_log',
  'unverified_log',
  'old_key',
  'key_rotation',
  'unused_key',
  'certificate',
  'webhook',
  'deliveries',
  'quota',
] as const;

export interface TenantProblem {
  readonly kind: (typeof problemKinds)[number];
  /** `problem` for what does not work now, `warning` for what soon may not. */
  readonly severity: 'warning' | 'problem';
  readonly message: string;
  /** How to fix it. */
  readonly advice: string;
  /** What it is about, as the log names it. */
  readonly entity_type: string;
  readonly entity_id: string;
}

/** Looks at one subject. */
export interface ProblemCheck<Tools> {
  /** A caller without it learns nothing of the subject here either. */
  readonly permission: Permission;
  readonly find: (tools: Tools, tenant: Tenant, now: Instant) => Promise<readonly TenantProblem[]>;
}

/** Of each kind: the others follow once these are fixed. */
export const problemsMax = 100;

const waitMsMax = 10 * second;

/** Reports that are under way together, of a server's thread. */
const reportsAtOnce = 4;

/** Of one tenant one report is under way at a time, and so many more wait. */
const ofTenant = { underWayMax: 1, waitingMax: 20 } as const;

/**
 * The worst first. The response names the permissions without which something was not looked at. A report makes about a
 * dozen queries: one follows another, so that no tenant has more than one of the database's sessions for its reports.
 */
export function problemReports<Tools extends { readonly clock: Clock }>(
  tools: Tools,
  checks: readonly ProblemCheck<Tools>[],
): (caller: Caller) => Decide {
  const admission = new FairAdmission({
    now: () => performance.now(),
    waitMsMax,
    limits: { underWayMax: reportsAtOnce },
  });

  async function found(caller: Caller, now: Instant): Promise<readonly TenantProblem[]> {
    const problems: TenantProblem[] = [];
    for (const { permission, find } of checks) {
      if (!holds(caller.policy, permission)) continue;
      problems.push(...(await find(tools, caller.tenant, now)).slice(0, problemsMax));
    }
    return problems.sort((one, other) => Number(isWarning(one)) - Number(isWarning(other)));
  }

  return (caller) => async () => {
    const { tenant, policy } = caller;
    const now = tools.clock.now();
    const problems = await runInTurn(
      admission,
      admission.part(admission.root, tenant.id, ofTenant),
      {
        work: () => found(caller, now),
        errorOf: tooManyReports,
      },
    );
    const closed = checks.filter(({ permission }) => !holds(policy, permission));
    const fact = { entity: 'tenant', id: tenant.id, operation: 'report' } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: {
        status: 200,
        body: {
          problems,
          not_checked: [...new Set(closed.map(({ permission }) => permission))].sort(),
        },
      },
    };
  };
}

function tooManyReports(): VaultError {
  return new VaultError('too_many_requests', {
    public: 'Too many reports of this tenant wait; try again in 1 s.',
    headers: { 'retry-after': '1' },
  });
}

const isWarning = ({ severity }: TenantProblem) => severity === 'warning';
