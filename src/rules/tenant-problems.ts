/** What needs somebody's attention in a tenant: each room finds the problems of its own subject. */
import type { Clock, Instant } from '../base/clock.ts';
import type { Caller } from './caller.ts';
import { entryOf } from './log-entries.ts';
import type { Decide } from './operation.ts';
import type { Permission } from './permissions.ts';
import { holds } from './policy.ts';
import type { Tenant } from './tenant.ts';

export const problemKinds = [
  'altered_row',
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

/** The worst first. The response names the permissions without which something was not looked at. */
export function reportProblems<Tools extends { readonly clock: Clock }>(
  tools: Tools,
  checks: readonly ProblemCheck<Tools>[],
  caller: Caller,
): Decide {
  const { tenant, policy } = caller;
  return async () => {
    const now = tools.clock.now();
    const isOpen = ({ permission }: ProblemCheck<Tools>) => holds(policy, permission);
    const found = await Promise.all(
      checks.filter(isOpen).map(({ find }) => find(tools, tenant, now)),
    );
    const problems = found.flatMap((ofCheck) => ofCheck.slice(0, problemsMax));
    const closed = checks.filter((check) => !isOpen(check)).map(({ permission }) => permission);
    const fact = { entity: 'tenant', id: tenant.id, operation: 'report' } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: {
        status: 200,
        body: {
          problems: problems.sort(
            (one, other) => Number(isWarning(one)) - Number(isWarning(other)),
          ),
          not_checked: [...new Set(closed)].sort(),
        },
      },
    };
  };
}

const isWarning = ({ severity }: TenantProblem) => severity === 'warning';
