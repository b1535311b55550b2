/**
 * Carries out rotations of tenants' keys. Servers look every second for one that no process works on. Several
 * rotations proceed side by side: no step waits for another tenant.
 */

import { isBegun, isPausedInLog } from '../../access/key-rotations/begun.ts';
import { type KeyringStep, keyringStep } from '../../access/key-rotations/keyring-step.ts';
import { type OpenRotations, openRotations } from '../../access/key-rotations/open-rotations.ts';
import { restoreRotation } from '../../access/key-rotations/restore-row.ts';
import {
  activateKeys,
  amended,
  endOverlap,
  finishRotation,
  introduceKeys,
  type Rotation,
  removeClaims,
} from '../../access/key-rotations/rotation.ts';
import type { VaultKeys } from '../../access/keyrings/vault-keys.ts';
import { tenantRowOf } from '../../access/tenants/read.ts';
import { instantAfter, second } from '../../base/clock.ts';
import { integrityError, type VaultError } from '../../base/errors.ts';
import { newUuid } from '../../base/ids.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import { waitMsMax } from '../../store/commit/queue.ts';
import type { RotationKind, RotationPhase } from '../../store/key-tables.ts';
import { createFailures, type TenantFailures } from '../../store/per-tenant/failures.ts';
import { byTenant } from '../../store/per-tenant/record.ts';
import type { JobTools } from './batches.ts';
import { systemTimer } from './pace.ts';
import type { Job } from './runner.ts';
import { countOutdated, sealOutdated } from './seal-outdated.ts';

/**
 * For as long a server may still act on an earlier keyring: it reads a tenant's row every second, and what it has
 * decided waits for its commit.
 */
const followMs = second + waitMsMax;

/** How long new keys are known before they are used. Before a value has two fingerprints, all servers must claim it. */
const introducedMs: Readonly<Record<RotationKind, number>> = {
  data: 2 * second,
  search: 2 * second,
  fingerprint: followMs,
  period: 2 * second,
  webhooks: 2 * second,
  log: 2 * second,
};

/** Tenants whose rotations proceed side by side. */
const tenantsMax = 500;

/** Another process takes over this long after the one that worked on a rotation was killed. */
const leaseMs = 6 * second;
/** A longer lease means that a clock was set back, or that the row was altered. */
const leaseMsMax = 3 * leaseMs;
const renewalMs = 4 * second;

/** How often a process compares the rows of rotations with the keyrings that it has opened. */
const comparedMs = 10 * second;
/** For as long a process believes a row that says that its rotation is paused. */
const pauseBelievedMs = 10 * second;

export interface KeyRotationTools extends JobTools {
  readonly vaultKeys: VaultKeys;
  /** The name under which the process holds the rotations that it works on. */
  readonly holder?: string;
  /** True where no other process can use the keys: no server has to follow a step before the next one. */
  readonly isAlone?: () => boolean;
}

export function rotateTenantKeys(tools: KeyRotationTools): Job {
  const { store, clock, random, timer = systemTimer, isAlone = () => false } = tools;
  const { holder = newUuid(random) } = tools;
  /** When this process first saw each rotation in its phase. */
  const seen = new Map<string, { readonly as: string; readonly since: number }>();
  /** When the log said of a rotation that it is paused. */
  const pausedAt = new Map<string, number>();
  let comparedAt = Number.NEGATIVE_INFINITY;

  /** Whether the keyring has been saying the same for so long, as far as this process saw. */
  function isFollowed(rotation: Rotation, { keyring }: Tenant, afterMs = followMs): boolean {
    if (isAlone()) return true;
    const now = timer.now();
    const keys = Object.values(keyring.versions).reduce((sum, { length }) => sum + length, 0);
    const as = `${keys} ${keyringStep(keyring)?.phase}`;
    const name = nameOf(rotation);
    const known = seen.get(name);
    if (known?.as === as) return now - known.since >= afterMs;
    seen.set(name, { as, since: now });
    return false;
  }

  function isOfAnother({ holder: other, until }: Rotation): boolean {
    const left = until - clock.now();
    return other !== holder && left > 0 && left <= leaseMsMax;
  }

  /** The row as this process holds it; `undefined` when another one was faster. */
  async function hold(rotation: Rotation): Promise<Rotation | undefined> {
    const left = rotation.until - clock.now();
    if (rotation.holder === holder && left > renewalMs) return rotation;
    return note(rotation, {});
  }

  async function note(
    rotation: Rotation,
    changes: Partial<Rotation>,
  ): Promise<Rotation | undefined> {
    const until = instantAfter(clock.now(), leaseMs);
    const { was_revision: _was, ...next } = amended(rotation, { ...changes, holder, until });
    const amend = { key_rotations: [{ ...next, was_revision: rotation.revision }] };
    const { conflict } = await store.record({ amend });
    return conflict === undefined ? ({ ...rotation, ...next } as Rotation) : undefined;
  }

  /** In the row as it is now: where this process stops, the rotation may have been paused, or is of another one. */
  async function noteRowsDone({ tenant_id, purpose }: Rotation, rows_done: number): Promise<void> {
    const row = await store.get('key_rotations', { tenant_id, purpose });
    if (row?.holder !== holder || row.phase === 'finished' || row.rows_done >= rows_done) return;
    await store.record({ amend: { key_rotations: [amended(row, { rows_done })] } });
  }

  /** Whether the rotation has proceeded. */
  async function commit(change: Change | undefined): Promise<boolean> {
    if (change === undefined) return false;
    const { conflict } = await store.commit(change);
    return conflict === undefined;
  }

  async function seal(rotation: Rotation, tenant: Tenant, stopping: AbortSignal): Promise<boolean> {
    const held = await hold(rotation);
    if (held === undefined) return false;
    let current: Rotation = held;
    if (current.rows_total === null) {
      const rows_total = await countOutdated(tools, tenant);
      const counted = await note(current, { rows_total });
      if (counted === undefined) return true;
      current = counted;
    }
    const wasFollowed = isFollowed(current, tenant);
    if (wasFollowed && tenant.keyring.overlappedSecret('fingerprint') !== undefined) {
      return commit(await endOverlap(tools, current));
    }
    let done = current.rows_done;
    const pass = await sealOutdated({ ...tools, timer }, stopping, {
      tenant,
      onPage: async (count) => {
        done += count;
        const left = current.until - clock.now();
        if (left > renewalMs) return true;
        const noted = await note(current, { rows_done: done });
        if (noted) current = noted;
        return noted !== undefined;
      },
    });
    if (pass.outcome === 'stopped') {
      await noteRowsDone(current, done);
      return false;
    }
    if (pass.resealed > 0 || pass.changed > 0) {
      await note(current, { rows_done: done });
      return true;
    }
    if (!wasFollowed) return false;
    while (await removeClaims(store, current.tenant_id)) if (stopping.aborted) return false;
    const { unreadable } = pass;
    return commit(await finishRotation(tools, current, { rows_done: done, unreadable }));
  }

  /**
   * How far the rotation is. Once new keys are in the keyring, the keyring tells, and before that the log. `undefined`
   * when another process has just proceeded.
   * @throws VaultError `integrity` for a rotation that the vault did not begin, which is over then.
   */
  async function phaseOf(rotation: Rotation, tenant: Tenant): Promise<RotationPhase | undefined> {
    const { tenant_id, purpose, revision } = rotation;
    const own = (step: KeyringStep | undefined) =>
      step?.purpose === purpose ? step.phase : undefined;
    const known = own(keyringStep(tenant.keyring));
    if (known) return known;
    // The row may have been read after the keyring.
    const { tenants } = tools;
    const keyring = await tenants.keyringOf(await tenantRowOf(tenants, tenant));
    const step = keyringStep(keyring);
    if (own(step)) return undefined;
    if (rotation.phase === 'waiting') {
      // Its row was removed outside the vault, and is written again.
      if (step !== undefined) return undefined;
      if (await isBegun(store, tenant, rotation)) return 'waiting';
    }
    const row = await store.get('key_rotations', { tenant_id, purpose });
    if (row?.revision !== revision) return undefined;
    const at = clock.now();
    const over = { phase: 'finished', phase_at: at, finished_at: at, until: at } as const;
    await store.record({ amend: { key_rotations: [amended(rotation, over)] } });
    throw alteredRow(
      rotation,
      `a rotation of the ${purpose} key of tenant ${tenant_id} was begun outside the vault, and is ended`,
    );
  }

  /** @throws VaultError `integrity` when it was paused outside the vault. It is resumed then. */
  async function isPaused(rotation: Rotation, tenant: Tenant): Promise<boolean> {
    const name = nameOf(rotation);
    if (rotation.is_paused !== 1) {
      pausedAt.delete(name);
      return false;
    }
    const now = timer.now();
    if (now - (pausedAt.get(name) ?? Number.NEGATIVE_INFINITY) < pauseBelievedMs) return true;
    if (await isPausedInLog(store, tenant, rotation)) {
      pausedAt.set(name, now);
      return true;
    }
    const { conflict } = await store.record({
      amend: { key_rotations: [amended(rotation, { is_paused: 0 })] },
    });
    // It was resumed meanwhile.
    if (conflict !== undefined) return true;
    const { purpose, tenant_id } = rotation;
    throw alteredRow(
      rotation,
      `the rotation of the ${purpose} key of tenant ${tenant_id} was paused outside the vault, and goes on`,
    );
  }

  async function step(
    rotation: Rotation,
    open: readonly Rotation[],
    stopping: AbortSignal,
  ): Promise<boolean> {
    const tenant = await tools.tenants.find(rotation.tenant_id);
    if (tenant === undefined || (await isPaused(rotation, tenant))) return false;
    if (isOfAnother(rotation)) return false;
    const isUnderWay = keyringStep(tenant.keyring)?.purpose === rotation.purpose;
    if (!isUnderWay && rotation.phase === 'waiting' && !isNext(rotation, open)) return false;
    switch (await phaseOf(rotation, tenant)) {
      case 'waiting':
        return commit(await introduceKeys(tools, rotation));
      case 'announced':
        return (
          isFollowed(rotation, tenant, introducedMs[rotation.purpose]) &&
          commit(await activateKeys(tools, rotation))
        );
      case 'sealing':
        return seal(rotation, tenant, stopping);
      default:
        return false;
    }
  }

  /** For {@link compare}: on this thread nobody else may ask for the keyring that a step has written. */
  async function noteKeyring({ tenant_id }: Rotation): Promise<void> {
    const { tenants } = tools;
    const tenant = await tenants.find(tenant_id);
    if (tenant) await tenants.keyringOf(await tenantRowOf(tenants, tenant));
  }

  /**
   * Rotations that the keyrings say are under way go on, whatever their rows say.
   * @returns whether any row was written.
   */
  async function compare(
    { open, isWhole }: OpenRotations,
    failures: TenantFailures,
  ): Promise<boolean> {
    if (!isWhole || (!isAlone() && timer.now() - comparedAt < comparedMs)) return false;
    let restored = false;
    comparedAt = timer.now();
    const known = new Set(open.map(nameOf));
    for (const [tenant_id, keyring] of tools.tenants.opened()) {
      const unfinished = keyringStep(keyring);
      if (unfinished === undefined) continue;
      const { purpose } = unfinished;
      if (known.has(nameOf({ tenant_id, purpose }))) continue;
      await failures.attempt(async () => {
        if (!(await restoreRotation(tools, tenant_id))) return;
        restored = true;
        failures.add(
          alteredRow(
            { tenant_id },
            `the row of a rotation of the ${purpose} key of tenant ${tenant_id} was altered or removed outside the ` +
              'vault; the rotation goes on',
          ),
        );
      });
    }
    return restored;
  }

  /** @returns how many steps were done. */
  async function proceed(stopping: AbortSignal): Promise<number> {
    const failures = createFailures(store);
    let steps = 0;
    for (let hasProceeded = true; hasProceeded && !stopping.aborted; ) {
      hasProceeded = false;
      const rotations = await openRotations({ store, clock }, tenantsMax);
      const { open, over } = rotations;
      await byTenant(over, (notes) => store.record({ remove: { due_work: notes } }));
      for (const times of [seen, pausedAt]) forgetOthers(times, open);
      for (const rotation of open) {
        if (stopping.aborted) break;
        if (await failures.attempt(() => step(rotation, open, stopping))) {
          hasProceeded = true;
          steps += 1;
          await failures.attempt(() => noteKeyring(rotation));
        }
      }
      if (!hasProceeded && (await compare(rotations, failures))) hasProceeded = true;
    }
    failures.report();
    return steps;
  }

  return { name: 'rotate keys of tenants', everyMs: second, run: proceed };
}

/** Rotations of a tenant follow one another. */
function isNext({ tenant_id, purpose }: Rotation, open: readonly Rotation[]): boolean {
  const ofTenant = open.filter((other) => other.tenant_id === tenant_id);
  if (ofTenant.some(({ phase }) => phase !== 'waiting')) return false;
  return ofTenant[0]?.purpose === purpose;
}

function nameOf({ tenant_id, purpose }: Pick<Rotation, 'tenant_id' | 'purpose'>): string {
  return `${tenant_id} ${purpose}`;
}

function forgetOthers(times: Map<string, unknown>, open: readonly Rotation[]): void {
  const names = new Set(open.map(nameOf));
  for (const name of times.keys()) if (!names.has(name)) times.delete(name);
}

function alteredRow({ tenant_id }: Pick<Rotation, 'tenant_id'>, message: string): VaultError {
  return integrityError(message, { altered: { entity: 'keyring', id: tenant_id } });
}
