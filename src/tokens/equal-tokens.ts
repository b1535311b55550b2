/** Stored tokens that equal the tokens a request creates, read whole only if one of them is taken. */
import type { Instant } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import type { Caller } from '../rules/caller.ts';
import type { Policy } from '../rules/policy.ts';
import { requireProven } from '../rules/proven-row.ts';
import type { Tenant } from '../rules/tenant.ts';
import { type EqualToken, equalTokens, type FingerprintQuery } from '../store/queries/tokens.ts';
import type { Store } from '../store/store.ts';
import { hasExpired } from './contents/contents.ts';
import { type DefinedToken, mayTakeIntent } from './contents/disclosure.ts';
import { sealedBy } from './contents/sealed-row.ts';
import { tokenTypes } from './contents/token-types.ts';
import {
  type ActiveFingerprints,
  PendingTokens,
  type RemovedToken,
  underActiveKey,
} from './pending-tokens.ts';
import type { PreparedToken } from './prepare.ts';
import { equalityOf, equalityWanted, isForeign } from './prepare.ts';
import type { KeyFollowing } from './search/current-keys.ts';

/** Fingerprints in one query. */
const fingerprintsAtOnce = 50;

/** Bytes that all existing tokens of one request may have, as they are stored. */
export const equalBytesMax = 4_194_304;

/** A request that did not send its value takes an equal token only in the container of the new one. */
export function takenOf<T extends { readonly token: DefinedToken }>(
  equals: readonly T[],
  prepared: PreparedToken,
  policy: Policy,
): T | undefined {
  if (!isForeign(prepared)) return equals[0];
  const { contents } = prepared;
  return equals.find(
    ({ token }) => token.container === contents.container && mayTakeIntent(policy, token),
  );
}

/** The stored tokens that equal tokens a request creates. */
export interface StoredEquals {
  /** With those that are taken. */
  readonly pending: PendingTokens;
  /** Equalities for which a stored token is the deduplication target already. */
  readonly targeted: ReadonlySet<string>;
  /** Equalities whose tokens are too large to be read for this request. */
  readonly tooLarge: ReadonlySet<string>;
  /** Expired tokens that are still deduplication targets. */
  readonly expired: ReadonlyMap<string, readonly ExpiredEqual[]>;
}

type ExpiredEqual = EqualToken & RemovedToken;

const noEquals: Omit<StoredEquals, 'pending'> = {
  targeted: new Set(),
  tooLarge: new Set(),
  expired: new Map(),
};

export interface EqualsReading extends KeyFollowing {
  readonly store: Store;
}

/** Of very many equal tokens some are looked at, and of those only the ones that are taken are read. */
export function storedEquals(
  tools: EqualsReading,
  caller: Caller,
  all: readonly PreparedToken[],
  now: Instant,
): StoredEquals | Promise<StoredEquals> {
  return all.some(({ deduplicates }) => deduplicates)
    ? readEquals(tools, caller, all, now)
    : { pending: new PendingTokens(), ...noEquals };
}

async function readEquals(
  tools: EqualsReading,
  { tenant, policy }: Caller,
  all: readonly PreparedToken[],
  now: Instant,
): Promise<StoredEquals> {
  const { store } = tools;
  const active = activeFingerprintsOf(all);
  const stored = await equalsOf(store, tenant.id, all);
  await requireCurrentKeys(tools, tenant);
  const found = stored.map((row) => underActiveKey(row, active));
  if (found.length === 0) return { pending: new PendingTokens(active), ...noEquals };
  const live = found.filter((row) => !hasExpired(row, now));
  const isTarget = ({ deduplicated }: EqualToken) => deduplicated === 1;
  const expired = await unaltered(
    store,
    tenant,
    found.filter((row) => hasExpired(row, now) && isTarget(row)),
  );
  const { readable, tooLarge } = withinBytes(takenAmong(live, all, policy));
  const rows = await Promise.all(
    readable.map(async (equal) => {
      const { tenant_id, token_id } = equal;
      const found = await store.get('tokens', { tenant_id, token_id });
      const row = found && requireProven(tenant, 'tokens', found);
      // One that was changed or removed since is not equal any more.
      const equality = row && equalityOf(underActiveKey(row, active));
      return row && !hasExpired(row, now) && equality === equalityOf(equal) ? [row] : [];
    }),
  );
  const pending = new PendingTokens(active);
  for (const row of rows.flat()) pending.put({ stored: row, row, terms: undefined });
  return {
    pending,
    targeted: new Set(live.filter(isTarget).flatMap((row) => equalityOf(row) ?? [])),
    tooLarge,
    expired: Map.groupBy(expired, (row) => equalityOf(row) ?? ''),
  };
}

/**
 * New fingerprint keys are known for longer than a change waits for its commit before they are used. A request that
 * looked for equal tokens for as long has not looked under them, and would store a second token of one value.
 * @throws VaultError `unavailable`
 */
async function requireCurrentKeys({ tenants }: KeyFollowing, tenant: Tenant): Promise<void> {
  const now = await tenants.find(tenant.id);
  const countOf = ({ keyring }: Tenant) => keyring.versions.fingerprint.length;
  if (now === undefined || countOf(now) === countOf(tenant)) return;
  throw new VaultError('unavailable', {
    public: 'The keys of the tenant were rotated during the request. Nothing was done; try again.',
    internal: `the fingerprint key of tenant ${tenant.id} was rotated during a request`,
    headers: { 'retry-after': '1' },
  });
}

function activeFingerprintsOf(all: readonly PreparedToken[]): ActiveFingerprints {
  const active = new Map<string, string>();
  for (const { fingerprint, otherFingerprints } of all) {
    if (fingerprint === null) continue;
    for (const other of otherFingerprints) active.set(other, fingerprint);
  }
  return active;
}

/**
 * Those that may make way, of which there are few: one at a time, however large they are.
 * @throws VaultError `integrity` for one that was altered: with another expiry it is not removed.
 */
async function unaltered(
  store: Store,
  tenant: Tenant,
  expired: readonly EqualToken[],
): Promise<readonly ExpiredEqual[]> {
  const removable: ExpiredEqual[] = [];
  for (const equal of expired) {
    const { tenant_id, token_id } = equal;
    const row = await store.get('tokens', { tenant_id, token_id });
    if (row) requireProven(tenant, 'tokens', row);
    // One that is gone by now is a conflict, after which the request decides again.
    removable.push({ ...equal, data_version: row ? sealedBy(row) : 0 });
  }
  return removable;
}

/** In the order in which they were found. */
function takenAmong(
  live: readonly EqualToken[],
  all: readonly PreparedToken[],
  policy: Policy,
): readonly EqualToken[] {
  const byEquality = Map.groupBy(live, equalityOf);
  const taken = new Set<EqualToken>();
  for (const one of all) {
    const equality = equalityWanted(one);
    if (equality === undefined) continue;
    const equals = (byEquality.get(equality) ?? []).map((row) => ({ token: definedAs(row), row }));
    const found = takenOf(equals, one, policy);
    if (found) taken.add(found.row);
  }
  return live.filter((row) => taken.has(row));
}

function withinBytes(taken: readonly EqualToken[]) {
  const tooLarge = new Set<string>();
  let bytes = 0;
  const readable = taken.filter((row) => {
    bytes += Number(row.bytes);
    if (bytes > equalBytesMax) tooLarge.add(equalityOf(row) ?? '');
    return bytes <= equalBytesMax;
  });
  return { readable, tooLarge };
}

function definedAs({ token_id, container, ...row }: EqualToken): DefinedToken {
  return {
    token_id,
    container,
    defined: row.defined !== 0 || row.fingerprint_expression !== null,
  };
}

async function equalsOf(
  store: Store,
  tenant: TenantId,
  all: readonly PreparedToken[],
): Promise<readonly EqualToken[]> {
  const wanted = new Map<string, FingerprintQuery>();
  for (const one of all) {
    const equality = equalityWanted(one);
    const { contents, fingerprint, otherFingerprints } = one;
    if (equality === undefined || fingerprint === null) continue;
    const ofType = tokenTypes[contents.type].fingerprint;
    const expression = contents.fingerprintExpression ?? ofType;
    const ofExpression = { expression, ofType: expression === ofType };
    wanted.set(equality, { fingerprint, ...ofExpression });
    for (const other of otherFingerprints) {
      wanted.set(`${equality} ${other}`, { fingerprint: other, ...ofExpression });
    }
  }
  const queries: Promise<EqualToken[]>[] = [];
  const each = [...wanted.values()];
  for (let at = 0; at < each.length; at += fingerprintsAtOnce) {
    queries.push(store.select(equalTokens(tenant, each.slice(at, at + fingerprintsAtOnce))));
  }
  return (await Promise.all(queries)).flat();
}
