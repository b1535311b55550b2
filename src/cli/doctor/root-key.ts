/** The root key: its source responds, it opens what is stored, and whether a rotation is under way. */
import { existsSync } from 'node:fs';
import { readVaultKeys } from '../../access/keyrings/open-vault-keys.ts';
import { rotationName, vaultKeysIn } from '../../access/keyrings/vault-key-rows.ts';
import type { ProcessVaultKeys, VaultKeys } from '../../access/keyrings/vault-keys.ts';
import { isRootKeyBesideProduction } from '../../access/tenants/root-key-place.ts';
import { day, systemClock } from '../../base/clock.ts';
import { isIntegrityError, VaultError } from '../../base/errors.ts';
import { pooledRandom } from '../../base/random.ts';
import { shamirName } from '../../keys/root/shamir.ts';
import { isLocal, openRootKeys, type RootKeys } from '../../keys/root/sources.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import type { Config } from '../../runtime/config/config.ts';
import { lentKeys } from '../../runtime/lent-keys.ts';
import { askServer } from '../../runtime/root-key-socket.ts';
import type { ReadOnlyStore } from '../../store/open/read-only.ts';
import { rootVaultKeys } from '../../store/queries/vault-keys.ts';
import { type Unproven, unverifiedColumns } from '../../store/stored-row.ts';
import { explain } from '../terminal/failure.ts';
import { type Finding, reporter } from './finding.ts';
import { checkRotations, KeyAges } from './keys.ts';
import { checkProxies, proxyTenantsMax } from './proxies.ts';

const restoreKey =
  'Restore the root key of this database from its backup, as STRONGROOM_ROOT_KEY_FILE or STRONGROOM_ROOT_KEY.';

/** Keyrings that are opened where each of them is a call to a service. */
const remoteTenantsMax = 8;

const tools = { clock: systemClock, random: pooledRandom(), createIfMissing: false };

export async function checkRootKey(
  config: Config,
  store: ReadOnlyStore,
  tenants: readonly Unproven<'tenants'>[],
): Promise<readonly Finding[]> {
  if (tenants.length === 0) return checkNewRootKey(config);
  const { problem } = reporter('root key');
  const seal = config.rootKey.source === shamirName ? await checkSeal(config) : [];
  if (seal.some(({ status }) => status !== 'ok')) return seal;
  let roots: RootKeys;
  try {
    roots = await openRootKeys({
      ...config.rootKey,
      ...tools,
      sharedKeys: lentKeys(config.dataDir),
    });
  } catch (error) {
    return [problem(explain(error), restoreKey)];
  }
  try {
    const vaultKeys = await readVaultKeys({ ...tools, store, roots });
    const tried = isLocal(roots.chosen) ? tenants : tenants.slice(0, remoteTenantsMax);
    const ages = new KeyAges({ ...tools, ...config });
    const { opened, tenants: examined } = vaultKeys
      ? await openTenants(vaultKeys, tried, ages)
      : { opened: 0, tenants: [] };
    if (vaultKeys === undefined || opened === 0) {
      return [problem(`${roots.chosen.origin}: it opens the keys of no tenant`, restoreKey)];
    }
    return [
      ...seal,
      ...(await checkRotation(store, roots, vaultKeys)),
      ...(await describeKey(roots, { opened, tried: tried.length, all: tenants.length })),
      ...(await checkRootAge(config, vaultKeys)),
      ...(await checkPlace(config, store)),
      ...(await ages.report(store, { ...tools, ...config, tenants: tenants.length })),
      ...(await checkRotations(store, { ...tools, unfinished: ages.unfinished })),
      ...(await checkProxies(store, examined)),
    ];
  } catch (error) {
    const advice =
      config.rootKey.source === shamirName
        ? 'Start the server, and give it the shares with strongroom unseal.'
        : 'Repair its source; running servers go on.';
    return [problem(explainUnreachable(error), advice)];
  } finally {
    roots.close();
  }
}

interface OpenedCount {
  readonly opened: number;
  readonly tried: number;
  readonly all: number;
}

async function describeKey(
  { chosen }: RootKeys,
  { opened, tried, all }: OpenedCount,
): Promise<readonly Finding[]> {
  const { ok, problem } = reporter('root key');
  const { keyId } = await chosen.current();
  const which = tried === all ? 'all tenants' : `${tried} tenants that were tried`;
  return [
    opened === tried
      ? ok(`${chosen.origin}: it opens the keys of ${which} (key ${keyId})`)
      : problem(
          `it opens the keys of ${opened} of ${tried} tenants: the others were altered`,
          'Find out who wrote to the database (strongroom logs verify --state), and restore their rows.',
        ),
  ];
}

/** A rotation that is under way, and a database whose keys another source wraps than the configured one. */
async function checkRotation(
  store: ReadOnlyStore,
  roots: RootKeys,
  vaultKeys: ProcessVaultKeys,
): Promise<readonly Finding[]> {
  const { warning } = reporter('root key');
  const rows = await store.select(rootVaultKeys);
  const rotation = rows.find(({ name }) => name === rotationName);
  const { current } = await vaultKeys.refresh();
  const header = current?.stored.header;
  const wrapping = header && (await roots.unwrapping(header));
  const { current: stored } = vaultKeysIn(rows);
  return [
    ...(rotation
      ? [
          warning(
            `a rotation is under way, begun ${new Date(rotation.created_at).toISOString()}`,
            'If it does not finish by itself, run strongroom keys rotate root.',
          ),
        ]
      : []),
    ...(stored.length > 1
      ? [
          warning(
            `the database has ${stored.length} rows of the vault's own key, of which the vault wrote one`,
            'Find out who wrote to the database. strongroom keys rotate root removes the others.',
          ),
        ]
      : []),
    ...(wrapping && wrapping.source !== roots.chosen.source
      ? [
          warning(
            `the keys in the database are wrapped by ${wrapping.origin}, not by ${roots.chosen.origin}`,
            `Set STRONGROOM_ROOT_KEY_SOURCE=${wrapping.source} on all servers.`,
          ),
        ]
      : []),
  ];
}

/** A server of shares: whether people have unsealed it. */
async function checkSeal({ dataDir }: Config): Promise<readonly Finding[]> {
  const { ok, problem } = reporter('seal');
  const advice = 'Start the server, and give it the shares with strongroom unseal.';
  try {
    const { sealed, given, needed } = await askServer(dataDir, { operation: 'status' });
    if (sealed === false) return [ok('the server of this data directory is unsealed')];
    return [problem(`the server is sealed: ${given} of ${needed} shares are given`, advice)];
  } catch (error) {
    return [problem(explain(error), advice)];
  }
}

/** The root key has no limit of its own. */
async function checkRootAge(
  { keyMaxAgeMs }: Config,
  vaultKeys: ProcessVaultKeys,
): Promise<readonly Finding[]> {
  const { ok, warning } = reporter('root key');
  const { current } = await vaultKeys.refresh();
  if (current === undefined) return [];
  const ageMs = tools.clock.now() - current.stored.row.created_at;
  const text = `it has been in use for ${Math.max(0, Math.floor(ageMs / day))} days`;
  if (ageMs < keyMaxAgeMs) return [ok(text)];
  return [
    warning(`${text}, longer than STRONGROOM_KEY_MAX_AGE`, 'Run strongroom keys rotate root.'),
  ];
}

async function checkPlace(config: Config, store: ReadOnlyStore): Promise<readonly Finding[]> {
  const { warning } = reporter('root key');
  const engine = config.databaseUrl === undefined ? 'sqlite' : 'postgres';
  const isExposed = await isRootKeyBesideProduction({ engine, select: store.select }, config);
  if (!isExposed) return [];
  return [
    warning(
      'it is in the data directory, next to the database of a production tenant',
      'Move it elsewhere with STRONGROOM_ROOT_KEY_FILE, or take it from STRONGROOM_ROOT_KEY.',
    ),
  ];
}

/** Over an empty store a root key may still be missing. */
export async function checkNewRootKey({
  rootKey,
  rootKeyFile,
}: Config): Promise<readonly Finding[]> {
  const { ok, problem } = reporter('root key');
  if (rootKey.source === 'file' && !existsSync(rootKeyFile)) {
    return [ok(`there is none yet; the first start creates ${rootKeyFile}`)];
  }
  try {
    const roots = await openRootKeys({ ...rootKey, ...tools });
    await roots.chosen.current();
    roots.close();
    return [ok(`${roots.chosen.origin}: it is valid`)];
  } catch (error) {
    const advice = 'Repair or remove it. Nothing is encrypted under it yet.';
    return [problem(explainUnreachable(error), advice)];
  }
}

interface OpenedTenants {
  readonly opened: number;
  /** The first of them. */
  readonly tenants: readonly TenantKeys[];
}

async function openTenants(
  keys: VaultKeys,
  rows: readonly Unproven<'tenants'>[],
  ages: KeyAges,
): Promise<OpenedTenants> {
  const tenants: TenantKeys[] = [];
  let opened = 0;
  for (const row of rows) {
    // The root key verifies the keyring, whatever the rest of the row says.
    const columns = unverifiedColumns(row);
    const { tenant_id: tenant, keyring: wrapped } = columns;
    try {
      const keyring = await keys.openKeyring({ tenant, wrapped });
      ages.add(columns, keyring);
      opened++;
      if (tenants.length < proxyTenantsMax) tenants.push({ id: tenant, keyring });
    } catch (error) {
      if (!isIntegrityError(error)) throw error;
    }
  }
  return { opened, tenants };
}

/** The internal text of a source names the cause, and no value. */
function explainUnreachable(error: unknown): string {
  return error instanceof VaultError && error.code === 'unavailable'
    ? error.message
    : explain(error);
}
