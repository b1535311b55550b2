/** Showing that a token is erased: a signed receipt, made from the log. */
import { type TenantReading, tenantRowOf } from '../access/tenants/read.ts';
import { erasedKey, findErasure, issueReceipt, viewReceipt, wrappedBy } from '../audit/erasure.ts';
import { rootContainer } from '../base/container.ts';
import { VaultError } from '../base/errors.ts';
import { parseTokenId } from '../base/ids.ts';
import type { Caller } from '../rules/caller.ts';
import { entryOf, failureOf } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import { decide, holds } from '../rules/policy.ts';
import { deny } from '../rules/refusal.ts';
import type { Store } from '../store/store.ts';

export interface ErasureReading extends TenantReading {
  readonly store: Store;
  readonly keyMaxAgeMs: number;
}

/**
 * From the decision `not_found` for a token that exists, that never was, or whose removal is beyond the retention of
 * the log, or which the caller may not ask about. A caller that may read the log may ask about every token, another
 * one where it could delete the token.
 */
export function readErasure(tools: ErasureReading, caller: Caller, id: string): Decide {
  const { store, tenants, clock, keyMaxAgeMs } = tools;
  const { tenant, policy } = caller;
  return async () => {
    const now = clock.now();
    const token_id = parseTokenId(id);
    if (token_id === undefined) throw notErased();
    const erased = { entity: 'token', id: token_id } as const;
    // In every case, or the time of the response would say what exists.
    const found = await findErasure(store, tenant, erased, now);
    const living = await store.get('tokens', { tenant_id: tenant.id, token_id });
    if (living) {
      const attempt = { ...erased, operation: 'prove' };
      return { change: { entries: [failureOf(caller, now, attempt)] }, refusal: notErased() };
    }
    if (found === undefined) throw notErased();
    const { entry, mark } = found;
    // Earlier releases did not record the container: such a receipt is for those who may delete every token.
    const container = mark.remains?.container ?? rootContainer;
    const mayAsk =
      holds(policy, 'log:read') || decide(policy, 'token:delete', { id: token_id, container });
    // Alike for a token that never was, so that no refusal says what is erased.
    if (!mayAsk) return deny(caller, now, { ...erased, operation: 'delete' }, notErased());
    const row = await tenantRowOf(tenants, tenant);
    const version = mark.remains?.data_version ?? firstVersion;
    const keys = [erasedKey(row, tenant, { purpose: 'data', version, keyMaxAgeMs })];
    const rootKey = wrappedBy(row);
    const receipt = await issueReceipt(store, tenant, { ...erased, entry, keys, rootKey, now });
    if (receipt === undefined) throw notErased();
    return {
      change: { entries: [entryOf(caller, now, { ...erased, operation: 'prove' })] },
      reply: { status: 200, body: viewReceipt(receipt, tenant) },
    };
  };
}

/** Releases that did not record the version had only this one. */
const firstVersion = 1;

function notErased(): VaultError {
  return new VaultError('not_found', {
    public: 'There is no token with this id that was deleted or has expired.',
  });
}
