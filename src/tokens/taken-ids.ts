/** Stored tokens that hold the ids which a request specifies: large ones are read one at a time. */
import type { Instant } from '../base/clock.ts';
import { isIntegrityError, type VaultError } from '../base/errors.ts';
import type { TokenId } from '../base/ids.ts';
import type { Caller } from '../rules/caller.ts';
import { requireProven } from '../rules/proven-row.ts';
import type { TokenState } from '../store/queries/tokens.ts';
import type { Store } from '../store/store.ts';
import { hasExpired } from './contents/contents.ts';
import { sealedBy } from './contents/sealed-row.ts';
import type { PreparedToken } from './prepare.ts';
import { tokenStatesOf } from './queries.ts';

/** A token without what may be large. */
export interface TakenId extends TokenState {
  /** Of one that has expired, the version of the key that sealed it. */
  readonly data_version?: number;
  /** Why it cannot make way, though it has expired: it was altered, perhaps its expiry. */
  readonly flaw?: VaultError;
}

export type TakenIds = ReadonlyMap<TokenId, TakenId>;

export const noTakenIds: TakenIds = new Map();

/** Looked for only once an id was found to be taken: nearly every id is new. */
export async function takenIdsOf(
  store: Store,
  { tenant }: Caller,
  { all, now }: { readonly all: readonly PreparedToken[]; readonly now: Instant },
): Promise<TakenIds> {
  const ids = all.map(({ ids }) => ids.next(false).value);
  const takenIds = new Map<TokenId, TakenId>();
  for (const state of await tokenStatesOf(store, tenant.id, ids)) {
    const holder = hasExpired(state, now) ? await judged(store, tenant, state) : state;
    if (holder) takenIds.set(holder.token_id, holder);
  }
  return takenIds;
}

/** An expired one may be removed by the vault itself, so it is read whole. `undefined` where it is gone. */
async function judged(
  store: Store,
  tenant: Caller['tenant'],
  { token_id }: TokenState,
): Promise<TakenId | undefined> {
  const row = await store.get('tokens', { tenant_id: tenant.id, token_id });
  if (row === undefined) return undefined;
  const { tenant_id, version, type, container, created_by } = row;
  const { expires_at, created_at, modified_at } = row;
  const times = { expires_at, created_at, modified_at };
  const data_version = sealedBy(row);
  const state = {
    ...{ tenant_id, token_id, version, type, container, created_by, data_version },
    ...times,
  };
  try {
    requireProven(tenant, 'tokens', row);
    return state;
  } catch (error) {
    if (!isIntegrityError(error)) throw error;
    return { ...state, flaw: error };
  }
}
