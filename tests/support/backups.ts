/** Vaults that are backed up and restored by the operator's commands, with every kind of row in them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Engine, type EngineName, engineOf, type Place } from './engines.ts';
import {
  type Environment,
  environmentOf,
  type Finished,
  runCommand,
  spawnVault,
} from './process.ts';
import { contentOf } from './rows.ts';
import { type Lender, temporaryDirectory } from './temporary.ts';
import { createApplication, managementKey, type Received, request } from './vault.ts';

/** Of a vault that was stopped. */
export interface FilledVault {
  readonly engine: Engine;
  readonly place: Place;
  readonly rootKey: Environment;
  /** What a caller reads of it, by path. */
  readonly reads: readonly { readonly path: string; readonly key: string; readonly text: string }[];
  /** A request that was answered under an idempotency key. */
  readonly repeatable: { readonly key: string; readonly id: string };
}

export function newRootKey(): Environment {
  return { STRONGROOM_ROOT_KEY: randomBytes(32).toString('base64') };
}

const idempotencyKey = 'a key of at least 22 characters';
const order = { type: 'token', data: 'repeated once', metadata: { kind: 'order' } };

async function repeat(url: string, key: string): Promise<Received> {
  const headers = { 'SVC-IDEMPOTENCY-KEY': idempotencyKey };
  return request(`${url}/tokens`, 'POST', { key, body: order, headers });
}

/** Creates a thing of each kind through the API, and reads it. */
export async function filledVault(t: Lender, name: EngineName): Promise<FilledVault> {
  const engine = engineOf(name);
  const place = await engine.place(t);
  const rootKey = newRootKey();
  const vault = await spawnVault(t, environmentOf(place, rootKey));
  const { url } = vault;
  const send = async (path: string, key: string, body: unknown) => {
    const response = await request(url + path, 'POST', { key, body });
    assert.ok(response.status < 300, `${path}: ${response.text}`);
    return response.body;
  };
  const key = await createApplication(url);
  const manager = managementKey;
  const card = {
    type: 'card',
    data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2040, cvc: '123' },
    metadata: { kind: 'card', name: 'ünï "quoted" \\ text' },
    search_indexes: ['{{ data.number }}', '{{ data.number | slice: -4, 4 }}'],
  };
  const paths: (readonly [string, string])[] = [];
  const { id: cardId } = await send('/tokens', key, card);
  const { id: largeId } = await send('/tokens', key, { type: 'token', data: 'x'.repeat(200_000) });
  paths.push([`/tokens/${cardId}`, key], [`/tokens/${largeId}`, key], ['/v2/tokens?size=50', key]);
  const { id: applicationId } = await send('/applications', manager, {
    name: 'another',
    type: 'public',
    permissions: ['token:create'],
  });
  const { id: proxyId } = await send('/proxies', manager, {
    name: 'forward',
    destination_url: 'https://destination.example.com',
    configuration: { SECRET: 'value' },
  });
  const { id: webhookId } = await send('/webhooks', manager, {
    name: 'events',
    url: 'https://events.example.com/hook',
    events: ['token.created'],
  });
  const creator = await createApplication(url, { permissions: ['token-intent:create'] });
  const { id: intentId } = await send('/token-intents', creator, {
    type: 'token',
    data: 'intended',
  });
  assert.ok(intentId);
  for (const path of [
    `/applications/${applicationId}`,
    '/applications',
    `/proxies/${proxyId}`,
    `/webhooks/${webhookId}`,
    '/tenants/self',
  ]) {
    paths.push([path, manager]);
  }
  const { id } = (await repeat(url, key)).body;
  for (let index = 0; index < 30; index++)
    await send('/tokens', key, { type: 'token', data: index });
  const reads = [];
  for (const [path, reader] of paths) {
    const { status, text } = await request(url + path, 'GET', { key: reader });
    assert.equal(status, 200, `${path}: ${text}`);
    reads.push({ path, key: reader, text });
  }
  vault.terminate();
  await vault.finished;
  return { engine, place, rootKey, reads, repeatable: { key, id } };
}

/** Backs a vault up into a new directory. */
export async function backedUp(t: Lender, { place, rootKey }: FilledVault): Promise<string> {
  const directory = join(temporaryDirectory(t), 'backup');
  const { code, stderr } = await runCommand(['backup', directory], environmentOf(place, rootKey));
  assert.equal(code, 0, stderr);
  return directory;
}

export function restore(
  directory: string,
  place: Place,
  rootKey: Environment,
  ...flags: readonly string[]
): Promise<Finished> {
  return runCommand(['restore', directory, ...flags], environmentOf(place, rootKey));
}

/** Every row, as both engines write it: one of them numbers waiting events in a column of its own. */
export async function rowsIn(engine: Engine, place: Place): Promise<string[]> {
  const lines = await contentOf(engine, place);
  return lines.map((line) => line.replace(/"rowid":"?\d+"?,/, '')).sort();
}

interface Elsewhere {
  readonly engine: Engine;
  readonly place: Place;
  /** The rows of the vault. */
  readonly before: readonly string[];
}

/** Every row, read and replay of the vault is there in another place, its log is intact, and it goes on. */
export async function assertSameVault(
  t: Lender,
  { rootKey, reads, repeatable }: FilledVault,
  { engine, place, before }: Elsewhere,
): Promise<void> {
  const environment = environmentOf(place, rootKey);
  const after = new Set(await rowsIn(engine, place));
  assert.deepEqual(
    before.filter((row) => !after.has(row)),
    [],
    'every row is as it was',
  );
  const intact = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(intact.code, 0, intact.stdout + intact.stderr);
  const running = await spawnVault(t, environment);
  for (const { path, key, text } of reads) {
    const read = await request(running.url + path, 'GET', { key });
    assert.deepEqual([path, read.status, read.text], [path, 200, text]);
  }
  const again = await repeat(running.url, repeatable.key);
  assert.equal(again.body.id, repeatable.id, 'an idempotency key still replays');
  const found = await request(`${running.url}/v2/tokens/search`, 'POST', {
    key: repeatable.key,
    body: { query: 'data:4242424242424242' },
  });
  assert.equal(found.body.data?.length, 1, found.text);
  const created = await request(`${running.url}/applications`, 'POST', {
    key: managementKey,
    body: { name: 'later', type: 'private', permissions: ['token:create'] },
  });
  assert.equal(created.status, 201);
  running.terminate();
  await running.finished;
  const later = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(later.code, 0, later.stdout + later.stderr);
}
