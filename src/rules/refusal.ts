/** Refusals: the effect of a request that lacks a permission, or names something that does not exist. */
import type { Instant } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { Caller } from './caller.ts';
import { type AttemptedOperation, denialOf } from './log-entries.ts';
import type { Refused } from './operation.ts';
import type { Permission } from './permissions.ts';

export interface Refusal {
  readonly entity: string;
  /** `*` where no entity was named. */
  readonly id: string;
  readonly permission: Permission;
  /** Where the named token is. */
  readonly container?: string | undefined;
}

/** The effect of a refused request: its entry in the log, and a 403 that says which permission it lacks. */
export function refuse(
  caller: Caller,
  at: Instant,
  { permission, ...attempted }: Refusal,
): Refused {
  const operation = permission.slice(permission.lastIndexOf(':') + 1);
  return deny(caller, at, { ...attempted, operation }, lacksPermission(permission));
}

/** The effect of a request that is refused for another reason than a permission. */
export function forbid(
  caller: Caller,
  at: Instant,
  { message, ...denial }: AttemptedOperation & { readonly message: string },
): Refused {
  return deny(caller, at, denial, new VaultError('forbidden', { public: message }));
}

/** The effect of a refused request: its entry in the log, and the refusal. */
export function deny(
  caller: Caller,
  at: Instant,
  denial: AttemptedOperation,
  refusal: VaultError,
): Refused {
  return { change: { entries: [denialOf(caller, at, denial)] }, refusal };
}

export function lacksPermission(permission: Permission): VaultError {
  return new VaultError('forbidden', {
    public: `The key lacks the permission ${permission} here.`,
  });
}
