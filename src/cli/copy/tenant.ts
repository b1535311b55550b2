/** `strongroom database copy --tenant`: one tenant moves to a vault that may have others, while both vaults serve. */
import { tenantMeant } from '../../access/tenants/handle.ts';
import { newUuid, type TenantId } from '../../base/ids.ts';
import { pooledRandom } from '../../base/random.ts';
import type { Config } from '../../runtime/config/config.ts';
import {
  orderWaitingEvents,
  removeTenant,
  scopeOf,
  type TenantScope,
} from '../../store/copying/rows.ts';
import {
  beginJournal,
  type CopySource,
  endJournal,
  forgetMove,
  moveStopped,
  noteOpened,
  type OutgoingCopy,
  readOutgoing,
  removeOutgoing,
  stopTenant,
  takeServed,
} from '../../store/copying/source.ts';
import type { CopyTarget } from '../../store/copying/target.ts';
import { abandonIncoming, takeTenantTarget } from '../../store/copying/tenant-target.ts';
import { schemaVersion } from '../../store/migrations/migrate.ts';
import { openReadOnly } from '../../store/open/read-only.ts';
import { awayForGood } from '../../store/outgoing-copy.ts';
import { tenantNamed } from '../../store/queries/tenants.ts';
import { RestoreError } from '../../store/restore-error.ts';
import { explain, withoutStop } from '../terminal/failure.ts';
import { requireOne } from '../terminal/operator.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type Copied, compareAsOfOneMoment, type Moved, move, walk } from './moving.ts';
import { addressOf, type CopyPlaces } from './places.ts';
import {
  requireIntactTenant,
  requireTargetKey,
  rowIn,
  sealForTarget,
  type TenantKeyPlaces,
  tenantsNamed,
} from './tenant-keys.ts';
import { digestsNow, identityOf, requireSame } from './verify.ts';

export interface TenantCopyOptions extends CopyPlaces {
  readonly terminal: Terminal;
  /** As the operator names the tenant. */
  readonly asked: string;
  /** Whether the old vault serves the tenant until its copy is complete. */
  readonly isLive: boolean;
}

interface TenantCopying extends TenantCopyOptions, TenantKeyPlaces {
  readonly scope: TenantScope;
  readonly from: CopySource;
  readonly vaultId: string | null;
}

/** @throws RestoreError, UsageError */
export async function copyTenant(options: TenantCopyOptions): Promise<Copied> {
  const { terminal, source, asked, isLive } = options;
  const tenant = await tenantIn(source, asked);
  const from = await takeServed(addressOf(source), { isStopped: !isLive });
  try {
    const identity = await identityOf(terminal, source);
    const copying = { ...options, ...identity, tenant, scope: scopeOf(tenant), from };
    const earlier = await readOutgoing(from.database, tenant);
    if (earlier?.movedAt != null) {
      await requireTargetKey(options.target);
      return await finishMoved(copying, { ...earlier, movedAt: earlier.movedAt });
    }
    await requireTargetFor(copying);
    await requireIntactTenant(copying, { at: source, name: 'The tenant' });
    const isStopped = earlier !== undefined && earlier.stoppedAt !== null;
    return await (isLive && !isStopped ? copyServed : copyStopped)(copying, earlier);
  } finally {
    await from.release();
  }
}

/**
 * What would otherwise be found when all rows are copied, or after the tenant has left its old vault.
 * @throws RestoreError. Nothing has changed then.
 */
async function requireTargetFor({ source, target, tenant }: TenantCopying): Promise<void> {
  await requireTargetKey(target);
  const name = (await rowIn(source, tenant))?.name ?? '';
  const named = await tenantsNamed(target, name);
  if (named.every((id) => id === tenant)) return;
  throw new RestoreError(
    `Another tenant of the new vault has the name ${name}. If it is the one that the first start created, and nobody ` +
      'uses it, remove it there with strongroom tenant delete. Nothing was changed.',
  );
}

async function tenantIn({ databaseUrl, dataDir }: Config, asked: string): Promise<TenantId> {
  const store = await openReadOnly(databaseUrl ?? dataDir);
  try {
    return requireOne(tenantMeant(await store.select(tenantNamed(asked)), asked));
  } finally {
    await store.close();
  }
}

/** The old vault serves the tenant until nearly the end. */
async function copyServed(
  copying: TenantCopying,
  earlier: OutgoingCopy | undefined,
): Promise<Copied> {
  const { from, scope, terminal, target: config } = copying;
  const begun = earlier && (await takeTarget(copying, earlier.id, false));
  const id = begun ? earlier.id : newUuid(pooledRandom());
  const target = begun ?? (await beginTarget(copying, id));
  try {
    if (!begun) await beginJournal(from.database, scope, id);
    const rows = { ...scope, source: from.database, target };
    await walk(terminal, rows);
    const tables = await compareAsOfOneMoment(rows).catch(explainConflict);
    await requireIntactTenant(copying, { at: config, name: 'The copy' });
    const moved = await move(rows);
    await open(copying, target, moved);
    return { tables, moved, resumed: target.isResumed };
  } finally {
    await target.release();
  }
}

/** The old vault refuses the tenant from the beginning, so that no row of it changes. */
async function copyStopped(
  copying: TenantCopying,
  earlier: OutgoingCopy | undefined,
): Promise<Copied> {
  const { from, scope, terminal, target: config } = copying;
  const isStopped = earlier !== undefined && earlier.stoppedAt !== null;
  const id = isStopped ? earlier.id : newUuid(pooledRandom());
  const target = await beginTarget(copying, id);
  try {
    const begun = performance.now();
    if (!isStopped) await stopTenant(from, scope, id);
    const rows = { ...scope, source: from.database, target };
    await walk(terminal, rows);
    await orderWaitingEvents(rows);
    const tables = await digestsNow(from.database, scope);
    const copied = await digestsNow(target.database, scope);
    await Promise.resolve()
      .then(() => requireSame(tables, copied))
      .catch(explainConflict);
    await requireIntactTenant(copying, { at: config, name: 'The copy' });
    const movedAt = await moveStopped(from.database, scope.tenant);
    const moved = { movedAt, stoppedMs: Math.round(performance.now() - begun) };
    await open(copying, target, moved);
    return { tables, moved, resumed: target.isResumed };
  } finally {
    await target.release();
  }
}

function takeTarget({ vaultId, tenant, target }: TenantCopying, id: string, begin: boolean) {
  const copy = JSON.stringify({ vault: vaultId, schema: schemaVersion, tenant, of: id });
  const { freeBytesMin } = target;
  return takeTenantTarget(addressOf(target), { tenant, copy, begin, freeBytesMin });
}

async function beginTarget(copying: TenantCopying, id: string): Promise<CopyTarget> {
  const target = await takeTarget(copying, id, true);
  if (target) return target;
  throw new RestoreError('The copy could not begin.');
}

/** What two tenants of one vault cannot both have: a name, a key, the address of a proxy, or a host. */
function explainConflict(error: unknown): never {
  if (!(error instanceof RestoreError)) throw error;
  throw new RestoreError(
    `${error.message} Another tenant of the target may have the same name, host, or key. Until that is changed, the ` +
      'tenant cannot move there. Give the copy up with --abandon, or run the same command again.',
    { cause: error },
  );
}

/** The tenant is in its new vault alone by now. Until this is done, it is served nowhere. */
async function open(copying: TenantCopying, target: CopyTarget, moved: Moved): Promise<void> {
  const { from, scope } = copying;
  try {
    await sealForTarget(copying, moved.movedAt);
    await target.serve();
    await noteOpened(from.database, scope.tenant);
  } catch (error) {
    throw new RestoreError(
      `The tenant moved at ${new Date(moved.movedAt).toISOString()}, and the new vault could not open it: ` +
        `${withoutStop(explain(error))}. Until that is done, the tenant is served nowhere. Run the same command ` +
        'again: it only opens the tenant.',
      { cause: error },
    );
  }
}

/** Of a copy that was interrupted after the source had stopped for good. */
async function finishMoved(
  copying: TenantCopying,
  { id, movedAt, openedAt }: OutgoingCopy & { readonly movedAt: number },
): Promise<Copied> {
  const { from, scope } = copying;
  const moved = { movedAt };
  const tables = await digestsNow(from.database, scope);
  const target = await takeTarget(copying, id, false);
  if (target) {
    try {
      await open(copying, target, moved);
    } finally {
      await target.release();
    }
  } else if ((await rowIn(copying.target, scope.tenant))?.away_until !== null) {
    throw new RestoreError(
      'The tenant has moved to another vault already, and this one does not serve it. Name the vault that it moved to.',
    );
  } else if (openedAt === null) {
    await noteOpened(from.database, scope.tenant);
  }
  return { tables, moved, resumed: true };
}

/** What {@link abandonTenant} found. */
export interface AbandonedTenant {
  readonly source: boolean;
  /** Rows that were removed. */
  readonly target: number | undefined;
}

/** The old vault serves the tenant again, and the new one has nothing of it. @throws RestoreError once it has moved. */
export async function abandonTenant(
  source: Config,
  target: Config | undefined,
  asked: string,
): Promise<AbandonedTenant> {
  const tenant = await tenantIn(source, asked);
  const from = await takeServed(addressOf(source), { isStopped: true });
  try {
    const earlier = await readOutgoing(from.database, tenant);
    if (earlier?.movedAt != null) {
      throw new RestoreError('The tenant has moved to another vault already. Nothing was changed.');
    }
    const removed = target && (await abandonIncoming(addressOf(target), tenant));
    if (earlier) await endJournal(from.database, scopeOf(tenant));
    return { source: earlier !== undefined, target: removed };
  } finally {
    await from.release();
  }
}

/**
 * Removes what a tenant that has moved left in its old vault.
 * @returns how many rows, or `undefined` where the tenant has not moved away.
 * @throws RestoreError while the new vault does not serve it.
 */
export async function forgetTenant(config: Config, asked: string): Promise<number | undefined> {
  const tenant = await tenantIn(config, asked);
  if (Number((await rowIn(config, tenant))?.away_until) !== awayForGood) return undefined;
  const from = await takeServed(addressOf(config), { isStopped: true });
  try {
    const scope = scopeOf(tenant);
    const earlier = await readOutgoing(from.database, tenant);
    // A vault that was restored from a backup knows from the row of the tenant alone that it has moved.
    if (earlier && earlier.openedAt === null) {
      throw new RestoreError(
        'The tenant is moving to another vault, which does not serve it yet. Run strongroom database copy again, or ' +
          'give the copy up with --abandon.',
      );
    }
    await forgetMove(from.database, scope);
    const removed = await removeTenant(from.database, scope);
    await removeOutgoing(from.database, tenant);
    return removed;
  } finally {
    await from.release();
  }
}
