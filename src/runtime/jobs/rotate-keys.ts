/**
 * Carries out rotations of tenants' keys. Servers look every second for one that no process works on. Several
 * rotations proceed side by side: no step waits for another tenant.
 */

import { isBegun } from '../../access/key-rotations/begun.ts';
import { openRotations } from '../../access/key-rotations/open-rotations.ts';
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
import { instantAfter, second } from '../../base/clock.ts';
import { integrityError } from '../../base/errors.ts';
import { newUuid, type TenantId } from '../../base/ids.ts';
import type { Change } from '../../store/change.ts';
import { waitMsMax } from '../../store/commit/queue.ts';
import type { RotationKind } from '../../store/key-tables.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
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

export interface KeyRotationTools extends JobTools {
  readonly vaultKeys: VaultKeys;
  /** True where no other process can use the keys: no server has to follow a step before the next one. */
  readonly isAlone?: () => boolean;
}

export function rotateTenantKeys(tools: KeyRotationTools): Job {
  const { store, clock, random, timer = systemTimer, isAlone = () => false } = tools;
  const holder = String(newUuid<TenantId>(random));
  /** When this process first saw each rotation in its phase. */
  const seen = new Map<string, number>();

  /** Whether the row has been saying the same for so long, as far as this process saw. */
  function isFollowed(rotation: Rotation, afterMs = followMs): boolean {
    if (isAlone()) return true;
    const now = timer.now();
    const name = nameOf(rotation);
    const since = seen.get(name) ?? now;
    seen.set(name, since);
    return now - since >= afterMs;
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

  /** Whether the rotation has proceeded. */
  async function commit(change: Change | undefined): Promise<boolean> {
    if (change === undefined) return false;
    const { conflict } = await store.commit(change);
    return conflict === undefined;
  }

  async function seal(rotation: Rotation, stopping: AbortSignal): Promise<boolean> {
    const tenant = await tools.tenants.find(rotation.tenant_id);
    if (tenant === undefined) return false;
    const held = await hold(rotation);
    if (held === undefined) return false;
    let current: Rotation = held;
    if (current.rows_total === null) {
      const rows_total = await countOutdated(tools, tenant);
      const counted = await note(current, { rows_total });
      if (counted === undefined) return true;
      current = counted;
    }
    const wasFollowed = isFollowed(current);
    if (wasFollowed && tenant.keyring.overlappedSecret('fingerprint') !== undefined) {
      return commit(await endOverlap(tools, current));
    }
    let done = current.rows_done;
    const pass = await sealOutdated({ ...tools, timer }, stopping, {
      tenant,
      onPage: async (count) => {
        done += count;
        if (rotation.is_paused === 1) return false;
        const left = current.until - clock.now();
        if (left > renewalMs) return true;
        const noted = await note(current, { rows_done: done });
        if (noted) current = noted;
        return noted !== undefined;
      },
    });
    if (pass.outcome === 'stopped') return false;
    if (pass.resealed > 0 || pass.changed > 0) {
      await note(current, { rows_done: done });
      return true;
    }
    if (!wasFollowed) return false;
    while (await removeClaims(store, current.tenant_id)) if (stopping.aborted) return false;
    const { unreadable } = pass;
    return commit(finishRotation(tools, current, { rows_done: done, unreadable }));
  }

  /** @throws VaultError `integrity` for a rotation that the vault did not begin, which is over then. */
  async function requireBegun(rotation: Rotation): Promise<void> {
    const { tenant_id: id, purpose } = rotation;
    const tenant = await tools.tenants.find(id);
    if (tenant === undefined || (await isBegun(store, tenant, rotation))) return;
    const at = clock.now();
    const over = { phase: 'finished', phase_at: at, finished_at: at, until: at } as const;
    await store.record({ amend: { key_rotations: [amended(rotation, over)] } });
    throw integrityError(
      `a rotation of the ${purpose} key of tenant ${id} was begun outside the vault, and is ended`,
      { altered: { entity: 'keyring', id } },
    );
  }

  async function step(
    rotation: Rotation,
    open: readonly Rotation[],
    stopping: AbortSignal,
  ): Promise<boolean> {
    switch (rotation.phase) {
      case 'waiting':
        if (!isNext(rotation, open)) return false;
        await requireBegun(rotation);
        return commit(await introduceKeys(tools, rotation));
      case 'announced':
        return (
          isFollowed(rotation, introducedMs[rotation.purpose]) &&
          commit(await activateKeys(tools, rotation))
        );
      case 'sealing':
        return seal(rotation, stopping);
      case 'finished':
        return false;
    }
  }

  /** @returns how many steps were done. */
  async function proceed(stopping: AbortSignal): Promise<number> {
    const failures = createFailures(store);
    let steps = 0;
    for (let hasProceeded = true; hasProceeded && !stopping.aborted; ) {
      hasProceeded = false;
      const { open, over } = await openRotations({ store, clock }, tenantsMax);
      await byTenant(over, (notes) => store.record({ remove: { due_work: notes } }));
      forgetOthers(seen, open);
      for (const rotation of open) {
        if (stopping.aborted) break;
        if (rotation.is_paused === 1 || isOfAnother(rotation)) continue;
        if (await failures.attempt(() => step(rotation, open, stopping))) {
          hasProceeded = true;
          steps += 1;
        }
      }
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

function nameOf({ tenant_id, purpose, phase, started_at }: Rotation): string {
  return `${tenant_id} ${purpose} ${started_at} ${phase}`;
}

function forgetOthers(seen: Map<string, number>, open: readonly Rotation[]): void {
  const names = new Set(open.map(nameOf));
  for (const name of seen.keys()) if (!names.has(name)) seen.delete(name);
}
