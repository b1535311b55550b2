/** Tenants for tests of the HTTP interface: the tests of a suite share a vault, each has its own tenant. */
import { randomUUID } from 'node:crypto';
import { after, before } from 'node:test';
import { createTenantWithKey } from '../../src/access/tenants/bootstrap.ts';
import type { TenantId } from '../../src/base/ids.ts';
import { hashApiKey } from '../../src/keys/api-key.ts';
import { giveHost, takeHost } from '../../src/proxies/tenant-hosts.ts';
import { systemEntry } from '../../src/rules/log-entries.ts';
import { perform } from '../../src/rules/operation.ts';
import { proven } from '../../src/rules/proven-row.ts';
import type { Quotas, SettingName } from '../../src/rules/settings.ts';
import type { TenantType } from '../../src/rules/tenant.ts';
import type { LogBlock } from '../../src/store/log-chain/block.ts';
import { storedIn } from '../../src/store/queries/stored.ts';
import { type Row, shapes, type Table } from '../../src/store/tables.ts';
import { type Content, entriesOf } from './blocks.ts';
import type { Engine } from './engines.ts';
import {
  createApplication,
  type Received,
  revealEverything,
  type Sent,
  startVault,
  type TestVault,
  type TestVaultOptions,
} from './vault.ts';

export type Given = Readonly<Record<string, unknown>>;

export interface TestTenant {
  readonly vault: TestVault;
  readonly id: TenantId;
  readonly managementKey: string;
  /** Of an application that may do everything with tokens and sees them in plaintext. */
  readonly key: string;
  /** With {@link key} unless another is given. */
  send(method: string, path: string, sent?: Sent): Promise<Received>;
  /** Creates a token and fails unless it was created. */
  token(body: Given): Promise<Received>;
  /** The key of a new application of this tenant; see {@link TestVault.application}. */
  application(given?: Given): Promise<string>;
  /** The key of an application with one rule, {@link revealEverything} unless given otherwise. */
  holder(rule: Given): Promise<string>;
  /** Changes the tenant's settings, as of now. */
  set(settings: Partial<Record<SettingName, string>>): Promise<void>;
  /** Changes the tenant's quotas, as of now. */
  setQuotas(quotas: Partial<Quotas>): Promise<void>;
  /** Gives the tenant names for its proxies, as the operator does, as of now. */
  giveHosts(...names: readonly string[]): Promise<void>;
  /** Takes them from the tenant, as of now. */
  takeHosts(...names: readonly string[]): Promise<void>;
  /** What the store holds of the tenant; of the log its entries. */
  rows<T extends Table>(table: T): Promise<Content<T>[]>;
  /** What the log says of an entity type: `create`, `read denied`, in alphabetical order. */
  logged(entityType?: string): Promise<string[]>;
  /** How many tokens, search terms, stored replies and log entries there are. */
  counts(): Promise<Readonly<Record<string, number>>>;
}

/** Starts the suite's vault and gives the maker of tenants in it. Call it inside `onBothEngines`. */
export function tenantsOf(
  engine: Engine,
  options: TestVaultOptions = {},
): () => Promise<TestTenant> {
  const borrowed: (() => void | Promise<void>)[] = [];
  let vault: TestVault | undefined;
  before(async () => {
    vault = await startVault({ after: (give) => borrowed.push(give) }, engine, options);
  });
  after(async () => {
    for (const give of borrowed.reverse()) await give();
  });
  return async () => {
    if (vault === undefined) throw new Error('the vault of the suite did not start');
    return newTenant(vault);
  };
}

/** How long the service may go by a tenant or an application as it was before. */
const staleMsMax = 1000;

/**
 * The first use of a key is noted beside the request, and may be committed after its answer. Resolves
 * once it is; from then on nothing of the key changes for an hour.
 */
export async function untilUsed(
  { rows }: Pick<TestTenant, 'rows'>,
  ...keys: readonly string[]
): Promise<void> {
  const hashes = new Set(keys.map(hashApiKey));
  const isUnused = ({ key_hash, last_used_at }: Row<'api_keys'>) =>
    hashes.has(key_hash) && last_used_at === null;
  while ((await rows('api_keys')).some(isUnused)) {
    // The embedded engine reads without a turn of the event loop, and shows the same within one.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export async function newTenant(vault: TestVault, type: TenantType = 'test'): Promise<TestTenant> {
  const { store } = vault.running.vault;
  const made = await createTenantWithKey(vault.running.vault, {
    tenant: randomUUID(),
    type,
    key: undefined,
  });
  const { id } = made?.tenant ?? {};
  const managementKey = made?.newKey;
  if (id === undefined || managementKey === undefined) throw new Error('no tenant was created');
  const application: TestTenant['application'] = (given) =>
    createApplication(vault.url, given, managementKey);
  const key = await application();
  const send: TestTenant['send'] = (method, path, sent) =>
    vault.send(method, path, { key, ...sent });
  const rows = async <T extends Table>(table: T) => {
    // Of no tenant.
    if (!shapes[table].columns.includes('tenant_id')) return [];
    const stored = await store.select((db) =>
      db
        .selectFrom(table as 'logs')
        .selectAll()
        .where('tenant_id', '=', storedIn<TenantId>(table, 'tenant_id', id)),
    );
    if (table !== 'logs') return stored as unknown as Content<T>[];
    // A tenant has several streams, and what the engine gives first depends on how it looks for them.
    const blocks = (stored as LogBlock[]).toSorted((one, two) => one.first_at - two.first_at);
    return entriesOf(blocks) as unknown as Content<T>[];
  };
  const replace = async (
    columns: Partial<Row<'tenants'>>,
    due_work: readonly Row<'due_work'>[] = [],
  ) => {
    const [row] = await rows('tenants');
    if (row === undefined) throw new Error('the tenant has no row');
    const tenant = await vault.running.vault.tenants.find(id);
    if (tenant === undefined) throw new Error('the tenant is altered or gone');
    const changed = { ...row, ...columns, version: row.version + 1 };
    const tenants = [proven(tenant, 'tenants', changed)];
    const at = vault.clock.now();
    const entry = systemEntry({ tenant: id, at, entity: 'tenant', id, operation: 'update' });
    const outcome = await store.commit({
      replace: { tenants },
      insert: { due_work },
      entries: [entry],
    });
    if (outcome.conflict !== undefined) throw new Error(outcome.conflict);
    vault.clock.advance(staleMsMax);
  };
  const changeHosts = async (hosts: readonly string[], change: typeof giveHost) => {
    const tenant = await vault.running.vault.tenants.find(id);
    if (tenant === undefined) throw new Error('the tenant is altered or gone');
    const tools = { ...vault.running.vault, names: { own: [], proxyDomain: undefined } };
    const operator = { tenant, application: null };
    for (const host of hosts)
      await perform({ store, actor: undefined }, change(tools, operator, host));
    vault.clock.advance(staleMsMax);
  };
  await untilUsed({ rows }, managementKey);
  return {
    vault,
    id,
    managementKey,
    key,
    send,
    token: async (body) => {
      const created = await send('POST', '/tokens', { body });
      if (created.status !== 201) throw new Error(`no token: ${created.text}`);
      return created;
    },
    application,
    holder: (rule) => application({ rules: [{ ...revealEverything, ...rule }] }),
    set: (settings) => replace({ settings: JSON.stringify(settings) }),
    setQuotas: (quotas) =>
      replace({ quotas: JSON.stringify(quotas) }, [
        { tenant_id: id, work: 'old logs', due_at: vault.clock.now() },
      ]),
    giveHosts: (...hosts) => changeHosts(hosts, giveHost),
    takeHosts: (...hosts) => changeHosts(hosts, takeHost),
    rows,
    logged: async (entityType = 'token') =>
      (await rows('logs'))
        .filter((entry) => entry.entity_type === entityType)
        .map(({ operation, result }) =>
          result === 'success' ? operation : `${operation} ${result}`,
        )
        .sort(),
    counts: async () => ({
      tokens: (await rows('tokens')).length,
      search_terms: (await rows('search_terms')).length,
      replies: (await rows('replies')).length,
      // What the service does by itself, and that a key is in use, is noted beside the requests.
      logs: (await rows('logs')).filter(
        ({ actor_type, operation, entity_type }) =>
          actor_type !== 'system' && operation !== 'use' && entity_type !== 'alert',
      ).length,
    }),
  };
}
