/** Rights that change between a decision and its commit. */
import { isDeepStrictEqual } from 'node:util';
import { VaultError } from '../base/errors.ts';
import type { Caller } from '../rules/caller.ts';

/** @throws VaultError `conflict` where the caller may by now do something else than when it was decided. */
export function requireSameRights(decided: Caller, now: Caller): void {
  if (isDeepStrictEqual(rightsOf(decided), rightsOf(now))) return;
  throw new VaultError('conflict', {
    public: 'The rights of the caller changed before this was stored. Send it again.',
  });
}

function rightsOf({ policy, authorizer }: Caller): object {
  return { policy, authorizer };
}
