/** A tenant moves between two vaults that serve: nothing of it is lost or doubled, and no other tenant notices. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTenantWithKey } from '../../src/access/tenants/bootstrap.ts';
import { readConfig } from '../../src/runtime/config/config.ts';
import { openVault } from '../../src/runtime/open-vault.ts';
import { newRootKey } from '../support/backups.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { type EngineName, engineOf, type Place } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import {
  beginCommand,
  type Environment,
  environmentOf,
  runCommand,
  spawnVault,
} from '../support/process.ts';
import { type Below, seeded } from '../support/random.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, type Received, request } from '../support/vault.ts';

const elsewhere = { sqlite: 'postgres', postgres: 'sqlite' } as const;
const skip = notOnCitus('has no triggers on distributed tables');

interface Cell {
  readonly place: Place;
  readonly environment: Environment;
  readonly url: string;
}

async function startCell(t: Lender, name: EngineName): Promise<Cell> {
  const place = await engineOf(name).place(t);
  const names = { STRONGROOM_BOOTSTRAP_TENANT: `first of ${name}` };
  const bootstrapKey = { STRONGROOM_BOOTSTRAP_KEY: `${managementKey}.${name}` };
  const environment = environmentOf(place, newRootKey(), names, bootstrapKey);
  const { url } = await spawnVault(t, environment);
  return { place, environment, url };
}

interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly manager: string;
  /** Of an application that may read and write tokens. */
  readonly key: string;
}

async function createTenants(cell: Cell, count: number): Promise<readonly Tenant[]> {
  const vault = await openVault(readConfig(cell.environment));
  const made: { readonly id: string; readonly name: string; readonly manager: string }[] = [];
  try {
    for (let index = 0; index < count; index++) {
      const name = `tenant ${index}`;
      const settings = { tenant: name, type: 'test', key: undefined } as const;
      const { tenant, newKey = '' } = await createTenantWithKey(vault, settings);
      made.push({ id: tenant.id, name, manager: newKey });
    }
  } finally {
    await vault.close();
  }
  return Promise.all(
    made.map(async (one) => ({ ...one, key: await createApplication(cell.url, {}, one.manager) })),
  );
}

const addressOf = ({ databaseUrl, dataDir }: Place): string => databaseUrl ?? dataDir;

/** With the root key of the source in variables, and that of the target in a file. */
function moving(t: Lender, [from, to]: readonly [Cell, Cell], ...more: readonly string[]) {
  const file = join(temporaryDirectory(t), 'target.env');
  writeFileSync(
    file,
    `# the new vault\nSTRONGROOM_ROOT_KEY=${to.environment['STRONGROOM_ROOT_KEY']}\n`,
  );
  const places = ['--from', addressOf(from.place), '--to', addressOf(to.place)];
  return ['database', 'copy', '--json', ...places, '--to-env', file, ...more];
}

/** What leads clients to the vault of their tenant, and what they were promised. */
class Router {
  readonly #cellOf = new Map<string, Cell>();
  /** By the serial in the metadata of each token. */
  readonly promised = new Map<string, Set<string>>();
  /** Tenants whose requests got 503. */
  readonly refused = new Set<string>();

  route(tenant: Tenant, cell: Cell): void {
    this.#cellOf.set(tenant.id, cell);
  }

  urlOf(tenant: Tenant): string {
    return this.#cellOf.get(tenant.id)?.url ?? '';
  }

  /** Sends until it is done, as clients do, under one idempotency key. */
  async create(tenant: Tenant): Promise<void> {
    const serial = randomUUID();
    const body = { type: 'token', data: { serial }, metadata: { serial } };
    const headers = { 'svc-idempotency-key': serial };
    for (;;) {
      const url = `${this.urlOf(tenant)}/tokens`;
      const answer = await request(url, 'POST', { key: tenant.key, body, headers });
      if (this.#isToRepeat(tenant, answer)) continue;
      assert.equal(answer.status, 201, answer.text);
      this.#promisedTo(tenant).add(serial);
      return;
    }
  }

  async list(tenant: Tenant): Promise<void> {
    const url = `${this.urlOf(tenant)}/v2/tokens?size=5`;
    const answer = await request(url, 'GET', { key: tenant.key });
    if (!this.#isToRepeat(tenant, answer)) assert.equal(answer.status, 200, answer.text);
  }

  #isToRepeat(tenant: Tenant, { status, headers, text }: Received): boolean {
    if (status !== 503) return false;
    assert.ok(headers.get('retry-after'), text);
    this.refused.add(tenant.id);
    return true;
  }

  #promisedTo({ id }: Tenant): Set<string> {
    const known = this.promised.get(id) ?? new Set<string>();
    this.promised.set(id, known);
    return known;
  }

  /** Exactly what was acknowledged, once each. */
  async check(tenant: Tenant): Promise<void> {
    const found: string[] = [];
    let start = '';
    do {
      const url = `${this.urlOf(tenant)}/v2/tokens?size=100${start && `&start=${start}`}`;
      const { status, body, text } = await request(url, 'GET', { key: tenant.key });
      assert.equal(status, 200, text);
      for (const { metadata, data } of body.data) {
        assert.equal(data.serial, metadata.serial);
        found.push(metadata.serial);
      }
      start = body.pagination.next ?? '';
    } while (start !== '');
    assert.deepEqual(found.toSorted(), [...this.#promisedTo(tenant)].toSorted(), tenant.name);
  }
}

/** Until it is over; each worker writes to a tenant and reads from another. */
async function load(
  router: Router,
  tenants: readonly Tenant[],
  below: Below,
  isOver: () => boolean,
) {
  const worker = async () => {
    while (!isOver()) {
      const [one, other] = [tenants[below(tenants.length)], tenants[below(tenants.length)]];
      if (one && other) await Promise.all([router.create(one), router.list(other)]);
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
}

const tenantCount = 100;
/** Those that move, each of them also under load of its own. */
const moves = [['--live'], [], ['--live']] as const;

for (const engine of ['sqlite', 'postgres'] as const) {
  test(`tenants of a vault on ${engine} move to another under load`, { skip }, async (t) => {
    const below = seeded(t);
    const [from, to] = [await startCell(t, engine), await startCell(t, elsewhere[engine])];
    const tenants = await createTenants(from, tenantCount);
    const router = new Router();
    for (const tenant of tenants) router.route(tenant, from);
    const leaving = tenants.slice(0, moves.length);
    let isOver = false;
    // Half of all requests are of tenants that move.
    const busy = [...tenants, ...leaving.flatMap((one) => Array(30).fill(one) as Tenant[])];
    const loaded = load(router, busy, below, () => isOver);
    try {
      for (const [index, tenant] of leaving.entries()) {
        const words = moving(t, [from, to], '--tenant', tenant.name, ...(moves[index] ?? []));
        const killed = beginCommand(t, words, from.environment);
        const until = performance.now() + below(killedWithinMs);
        while (performance.now() < until) await nextLook();
        await killed.kill();
        const { code, stdout, stderr } = await runCommand(words, from.environment);
        assert.equal(code, 0, stderr);
        assert.ok(Date.parse(JSON.parse(stdout).moved_at) > 0, stdout);
        router.route(tenant, to);
      }
    } finally {
      isOver = true;
    }
    await loaded;
    const others = [...router.refused].filter((id) => leaving.every((one) => one.id !== id));
    assert.deepEqual(others, [], 'no other tenant notices');
    for (const tenant of tenants) await router.check(tenant);

    for (const tenant of leaving) {
      const { key, manager } = tenant;
      const late = await request(`${from.url}/v2/tokens`, 'GET', { key });
      assert.equal(late.status, 503);
      assert.match(late.text, /to another vault/);
      assert.ok(late.headers.get('retry-after'));
      const log = await request(`${to.url}/logs?entity_type=tenant`, 'GET', { key: manager });
      assert.match(log.text, /from another vault/);
    }
    for (const { environment } of [from, to]) {
      const verified = await runCommand(['logs', 'verify', '--state'], environment);
      assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    }
    const [first] = leaving;
    assert.ok(first);
    const again = moving(t, [from, to], '--tenant', first.id, '--live');
    assert.equal((await runCommand(again, from.environment)).code, 0, 'that is no failure');
    const moved = await runCommand(['tenant', 'list'], from.environment);
    assert.equal(moved.stdout.match(/ test, moved\b/g)?.length, leaving.length, moved.stdout);
    const removed = ['tenant', 'delete', '--yes', '--json', '--tenant', first.name];
    const forgotten = await runCommand(removed, from.environment);
    assert.equal(forgotten.code, 0, forgotten.stderr);
    assert.ok(JSON.parse(forgotten.stdout).removed_rows > 10, forgotten.stdout);
    const back = moving(t, [to, from], '--tenant', first.name, '--live');
    const returned = await runCommand(back, to.environment);
    assert.equal(returned.code, 0, returned.stderr);
    router.route(first, from);
    await router.check(first);
    await router.create(first);
    // The keys that a tenant left here would still open with the root key before.
    const keyFile = join(temporaryDirectory(t), 'new.key');
    writeFileSync(keyFile, newRootKey()['STRONGROOM_ROOT_KEY'] ?? '', { mode: 0o600 });
    const rotated = await runCommand(['keys', 'rotate', 'root', '--to', 'file'], {
      ...from.environment,
      STRONGROOM_ROOT_KEY_SOURCE: 'environment',
      STRONGROOM_ROOT_KEY_FILE: keyFile,
    });
    assert.match(rotated.stderr, /2 tenants moved to other vaults/);
  });
}

/** About as long as the move of a tenant takes. */
const killedWithinMs = 3_000;

test('a move that cannot be made says why, changes nothing, and can be given up', {
  skip,
}, async (t) => {
  const [from, to] = [await startCell(t, 'sqlite'), await startCell(t, 'postgres')];
  const [tenant] = await createTenants(from, 1);
  assert.ok(tenant);
  const empty = { ...to, place: await engineOf('sqlite').place(t) };
  const unreachable = { ...to, place: { ...to.place, databaseUrl: 'postgres://127.0.0.1:1/none' } };
  const selected = ['--tenant', tenant.name];
  const unnamed = moving(t, [from, to], ...selected);
  const file = unnamed[unnamed.indexOf('--to-env') + 1] ?? '';
  const refused = async (words: readonly string[], why: RegExp) => {
    const { code, stderr } = await runCommand(words, from.environment);
    assert.notEqual(code, 0);
    assert.match(stderr, why);
  };
  await refused(moving(t, [from, empty], ...selected), /no vault in the target/);
  await refused(moving(t, [from, unreachable], ...selected), /cannot be reached/);
  await refused(moving(t, [from, to], '--tenant', 'nobody'), /no tenant/);
  await refused(moving(t, [from, to], ...selected, '--without-sessions'), /cannot be combined/);
  writeFileSync(file, 'no variable');
  await refused(unnamed, /line 1 of --to-env/);

  const list = () => request(`${from.url}/v2/tokens`, 'GET', { key: tenant.key });
  for (const flags of [[], ['--live']]) {
    const withKeyOfSource = moving(t, [from, { ...from, place: to.place }], ...selected, ...flags);
    await refused(withKeyOfSource, /needs its own root key, which --to-env names: .*Provide that/);
    assert.equal((await list()).status, 200, 'it has not moved');
  }

  const operate = async ({ environment }: Cell, ...words: readonly string[]) => {
    const { code, stdout, stderr } = await runCommand(['tenant', ...words], environment);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  await operate(to, 'create', '--name', tenant.name);
  await refused(moving(t, [from, to], ...selected), /Another tenant .* has the name tenant 0\./);
  assert.equal((await list()).status, 200, 'nothing was copied');
  await operate(to, 'delete', '--tenant', tenant.name, '--yes');

  await operate(from, 'hosts', 'add', 'pay.example', ...selected);
  await operate(to, 'create', '--name', 'other');
  await operate(to, 'hosts', 'add', 'pay.example', '--tenant', 'other');
  await refused(
    moving(t, [from, to], ...selected),
    /Another tenant of the target may have the same name/,
  );
  assert.equal((await list()).status, 503, 'without --live it is refused until the copy ends');
  const whereIs = async (cell: Cell) => {
    const lines = (await operate(cell, 'list', '--json')).trim().split('\n');
    const listed: { name: string; moved?: boolean; moving?: boolean }[] = lines.map((line) =>
      JSON.parse(line),
    );
    const one = listed.find(({ name }) => name === tenant.name);
    return one && [one.moved, one.moving];
  };
  assert.deepEqual(await whereIs(from), [undefined, true], 'it can be given up');
  assert.deepEqual(await whereIs(to), [undefined, true]);
  const abandoned = await runCommand(
    moving(t, [from, to], ...selected, '--abandon'),
    from.environment,
  );
  assert.equal(JSON.parse(abandoned.stdout).abandoned, true, abandoned.stderr);
  assert.equal((await list()).status, 200, 'a vault looks again within a second');
  assert.deepEqual(await whereIs(from), [undefined, undefined]);
  assert.equal(await whereIs(to), undefined);
  for (const { environment } of [from, to]) {
    const verified = await runCommand(['logs', 'verify', '--state', '--json'], environment);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    assert.doesNotMatch(verified.stdout, /incoming/, 'nothing of it is left');
  }
});
