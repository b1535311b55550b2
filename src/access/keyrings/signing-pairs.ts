/**
 * The key pairs with which the vault signs messages to webhooks, by number. All tenants share number 1, which is
 * created at its first use. A rotation gives a tenant a pair of its own, under the next number that is free.
 */
import { type Clock, hour, type Instant } from '../../base/clock.ts';
import { integrityError } from '../../base/errors.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { Keyring, KeyVersion } from '../../keys/keyring.ts';
import { newWebhookKey, type WebhookKey, webhookKeyOf } from '../../keys/webhook-signatures.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { newestPairNames, vaultKeyNamed } from '../../store/queries/vault-keys.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { guardedBy, type KeyGuard, type VaultKeys } from './vault-keys.ts';

/** The pair that all tenants share until they rotate it. */
const sharedPair = 1;

/** Receivers see it in `SVC-SIGNATURE-VERSION`, after the dot. */
function pairName(pair: number): string {
  return `webhooks.v${pair}`;
}

const pairForm = /^webhooks\.v([1-9][0-9]{0,8})$/;

/** The place of a pair, which belongs to no tenant: its public key is shown to all who ask. */
const bindingOf = (pair: number) => ({ tenant: '', id: pairName(pair), field: 'private_key' });

/** The number of the pair of a webhook key. */
export function pairOf({ pair = sharedPair }: Pick<KeyVersion, 'pair'>): number {
  return pair;
}

/** A pair as it signs. */
export interface SigningPair extends WebhookKey {
  readonly pair: number;
}

export interface SigningPairs {
  /**
   * The public key of a pair, as PEM; `undefined` where there is none of that number.
   * @throws VaultError `integrity` if it was altered outside the vault.
   */
  publicKey(pair: number): Promise<string | undefined>;
  /** The vault's own pair, number 1, which signs what is of no tenant. @throws VaultError `integrity` likewise. */
  own(): Promise<SigningPair>;
  /**
   * The pairs that sign for the tenant now: during the overlap of a rotation the one before, and then the active one.
   * @throws VaultError `integrity` if one was altered outside the vault, or is missing.
   */
  of(tenant: Pick<Tenant, 'keyring'>): Promise<readonly SigningPair[]>;
}

export interface SigningPairTools {
  readonly store: Store;
  readonly vaultKeys: VaultKeys;
  readonly clock: Clock;
}

/** A private key that nothing signs with any more stays in memory for at most as long. */
const openedMsMax = hour;
const openedMax = 1_000;

export function createSigningPairs({ store, vaultKeys, clock }: SigningPairTools): SigningPairs {
  const opened = new ExpiringMap<number, Promise<SigningPair | undefined>>({
    clock,
    ageMsMax: openedMsMax,
    entriesMax: openedMax,
  });

  async function makeShared(): Promise<void> {
    const text = await newWebhookKey();
    const { bytes: private_key, guard } = await vaultKeys.seal({
      binding: bindingOf(sharedPair),
      text,
    });
    const { remove, insert } = guardedBy(guard);
    const row = { name: pairName(sharedPair), private_key, created_at: clock.now() };
    // A conflict means that another server has stored a key, which is then the only one, or that the key under which
    // this one is sealed was replaced.
    await store.record({
      remove: { vault_keys: remove },
      insert: { vault_keys: [...insert, row] },
    });
  }

  async function read(pair: number): Promise<SigningPair | undefined> {
    for (;;) {
      const row = await store.get('vault_keys', { name: pairName(pair) });
      if (row) {
        const sealed = row.private_key;
        const binding = bindingOf(pair);
        const pem = await vaultKeys.open({ job: 'sign deliveries', binding, sealed });
        return { ...webhookKeyOf(pem), pair };
      }
      if (pair !== sharedPair) return undefined;
      await makeShared();
    }
  }

  function find(pair: number): Promise<SigningPair | undefined> {
    const known = opened.get(pair);
    if (known) return known;
    const reading = read(pair);
    opened.set(pair, reading);
    reading.then(
      (found) => found ?? opened.delete(pair),
      () => opened.delete(pair),
    );
    return reading;
  }

  async function required(pair: number): Promise<SigningPair> {
    const found = await find(pair);
    if (found) return found;
    throw integrityError(`the row ${pairName(pair)} of vault_keys is missing`);
  }

  return {
    publicKey: async (pair) => (await find(pair))?.publicKey,
    of: ({ keyring }) =>
      Promise.all(keyring.signingVersions(clock.now()).map((version) => required(pairOf(version)))),
    own: () => required(sharedPair),
  };
}

/** A pair that is about to be stored, and the row of the key that seals it. */
export interface NewSigningPair {
  readonly pair: number;
  readonly row: Row<'vault_keys'>;
  readonly guard: KeyGuard;
}

/** A pair under the next number that is free. To store it conflicts if another one has taken the number meanwhile. */
export async function newSigningPair({
  store,
  vaultKeys,
  clock,
}: SigningPairTools): Promise<NewSigningPair> {
  const names = await store.select(newestPairNames);
  const pair = Math.max(sharedPair, ...names.map(numberIn)) + 1;
  const text = await newWebhookKey();
  const { bytes: private_key, guard } = await vaultKeys.seal({ binding: bindingOf(pair), text });
  return { pair, guard, row: { name: pairName(pair), private_key, created_at: clock.now() } };
}

/** A vault, as far as its pairs are read. */
export interface PairPlace {
  readonly store: Pick<Store, 'select'>;
  readonly vaultKeys: VaultKeys;
}

export interface CarriedPairs {
  readonly keyring: Keyring;
  readonly rows: readonly Row<'vault_keys'>[];
  readonly guards: readonly KeyGuard[];
}

export interface CarriedTenant {
  readonly keyring: Keyring;
  readonly from: PairPlace;
  readonly to: PairPlace;
  readonly now: Instant;
}

/**
 * The pairs of a tenant that goes to another vault, under numbers that are free there. A pair that the tenant shares
 * stays with those who share it, and the tenant gets one of its own, unless both vaults share the same one.
 */
export async function carryPairs({ keyring, from, to, now }: CarriedTenant): Promise<CarriedPairs> {
  const names = await to.store.select(newestPairNames);
  let next = Math.max(sharedPair, ...names.map(numberIn)) + 1;
  const signing = new Set(keyring.signingVersions(now));
  const numbers = new Map<number, number>();
  const rows: Row<'vault_keys'>[] = [];
  const guards = new Map<string, KeyGuard>();
  for (const version of keyring.versions.webhook) {
    const pair = pairOf(version);
    const [own, theirs] = [await textOfPair(from, pair), await textOfPair(to, pair)];
    const isShared = pair === sharedPair;
    if (own === theirs || (isShared && !signing.has(version))) continue;
    const number = !isShared && theirs === undefined ? pair : next++;
    numbers.set(version.version, number);
    const text = isShared ? await newWebhookKey() : own;
    if (text === undefined) continue;
    const { bytes, guard } = await to.vaultKeys.seal({ binding: bindingOf(number), text });
    guards.set(guard.name, guard);
    rows.push({ name: pairName(number), private_key: bytes, created_at: now });
  }
  return { keyring: keyring.withPairs(numbers), rows, guards: [...guards.values()] };
}

const numberIn = ({ name }: Pick<Row<'vault_keys'>, 'name'>): number =>
  Number(pairForm.exec(name)?.[1] ?? sharedPair);

/** `undefined` where the vault has no pair of that number. */
async function textOfPair(
  { store, vaultKeys }: PairPlace,
  pair: number,
): Promise<string | undefined> {
  const [row] = await store.select(vaultKeyNamed(pairName(pair)));
  if (row === undefined) return undefined;
  const binding = bindingOf(pair);
  return vaultKeys.open({ job: 'sign deliveries', binding, sealed: row.private_key });
}

/**
 * The row of a tenant's own pair without its private key. The public key goes on being shown, for what was signed.
 * `undefined` for the pair that tenants share, which others may sign with, and for one that is missing.
 */
export async function onlyPublicPair(
  { store, vaultKeys }: Pick<SigningPairTools, 'store' | 'vaultKeys'>,
  pair: number,
): Promise<Row<'vault_keys'> | undefined> {
  const row =
    pair === sharedPair ? undefined : await store.get('vault_keys', { name: pairName(pair) });
  if (row === undefined) return undefined;
  const binding = bindingOf(pair);
  const pem = await vaultKeys.open({ job: 'sign deliveries', binding, sealed: row.private_key });
  const text = webhookKeyOf(pem).publicKey;
  const { bytes: private_key } = await vaultKeys.seal({ binding, text });
  return { ...row, private_key };
}

/** The rows of the pairs that are a tenant's alone, which go with the tenant. */
export function ownPairRows({ versions }: Keyring): readonly Pick<Row<'vault_keys'>, 'name'>[] {
  return versions.webhook
    .map(pairOf)
    .filter((pair) => pair !== sharedPair)
    .map((pair) => ({ name: pairName(pair) }));
}
