/** The log is proven, block by block, to be what the vault wrote, under the keys of the tenants. */

import { VaultError } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import type { Keyring } from '../keys/keyring.ts';
import type { Keys } from '../rules/proven-row.ts';
import type { Tenant, Tenants } from '../rules/tenant.ts';
import type { Change } from '../store/change.ts';
import type { CommitStep } from '../store/commit/steps.ts';
import type { LogBlock } from '../store/log-chain/block.ts';
import { isProven, type Prover } from '../store/log-chain/proof.ts';
import { changesExplainedRows } from '../store/row-states.ts';
import { createGrowth, type GrowthTools } from './growth.ts';

export interface ProvingTools extends GrowthTools {
  readonly tenants: Pick<Tenants, 'findForRequest' | 'known' | 'keyringOf'>;
}

/**
 * The chain of hashes needs no key, so an attacker with write access to the database can add a block that explains
 * an altered row. Without the tenant's key the attacker cannot prove the block.
 */
export function proving({ tenants, ...growing }: ProvingTools): CommitStep {
  const growth = createGrowth(growing);
  const provers = new WeakMap<Keyring, Prover>();

  async function proverOf(tenant: TenantId, change: Change): Promise<Prover | undefined> {
    const made = change.insert?.tenants?.find(({ tenant_id }) => tenant_id === tenant);
    if (made) return proverIn(tenant, await tenants.keyringOf(made));
    // A tenant that comes from another vault is not served here before its row has the keys of this one.
    const coming = change.replace?.tenants?.find(({ tenant_id }) => tenant_id === tenant);
    if (coming && coming.away_until !== null) {
      return proverIn(tenant, await tenants.keyringOf(coming));
    }
    const found = await tenants.findForRequest(tenant);
    return found && proverWith(found);
  }

  function proverWith({ id, keyring }: Tenant): Prover {
    const prover = provers.get(keyring) ?? proverIn(id, keyring);
    provers.set(keyring, prover);
    return prover;
  }

  /** `undefined` where something has to be read or noted first. */
  function knownProvers(change: Change): readonly Prover[] | undefined {
    if (change.insert?.tenants) return undefined;
    const known: Prover[] = [];
    for (const id of tenantsOf(change)) {
      const tenant = tenants.known(id);
      if (tenant === undefined || !growth.isNoted(id)) return undefined;
      known.push(proverWith(tenant));
    }
    return known;
  }

  async function proversOf(change: Change): Promise<readonly Prover[]> {
    const found: Prover[] = [];
    for (const tenant of tenantsOf(change)) {
      const prover = await proverOf(tenant, change);
      if (prover) {
        found.push(prover);
        if (!growth.isNoted(tenant)) await growth.note(tenant);
      } else if (changesExplainedRows(change)) {
        throw tenantGone();
      }
    }
    return found;
  }

  return {
    // Nearly every commit passes here, even that of a read: cached values are not awaited.
    prepare: (change) => {
      const provers = knownProvers(change);
      return provers
        ? { ...change, provers }
        : proversOf(change).then((read) => ({ ...change, provers: read }));
    },
  };
}

/** Whether the vault wrote the whole block at this place; only then are its statements about rows true. */
export function isOwnBlock({ keyring }: Keys, block: LogBlock): boolean {
  return isProven(block, (version) => keyring.secret('row', version));
}

function tenantsOf({ entries }: Change): Iterable<TenantId> {
  const [{ tenant_id: first }] = entries;
  // Nearly every change has one entry.
  return entries.length === 1 || entries.every(({ tenant_id }) => tenant_id === first)
    ? [first]
    : new Set(entries.map(({ tenant_id }) => tenant_id));
}

function proverIn(tenant_id: TenantId, keyring: Keyring): Prover {
  return { tenant_id, version: keyring.activeVersion('row'), key: keyring.secret('row') };
}

function tenantGone(): VaultError {
  return new VaultError('unauthenticated', {
    public: 'Send a valid API key in the header SVC-API-KEY.',
    internal: 'the tenant was deleted or altered before its change was committed',
  });
}
