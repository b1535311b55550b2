/** Authority ends with what it came from: whatever is deleted, all that derives from it is void, and nothing else. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { signInPerson } from '../support/people.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { casesOf, seeded } from '../support/random.ts';
import { createReactor, takeDue } from '../support/reactors.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { createStillClock, request, startVault, type TestVault } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });

const second = 1000;
const runs = casesOf({ all: 3, drawn: 1 });

/** Each request has a connection of its own, which the system gives to any of the threads. */
const asksOfThreads = 6;

const keysOfEach = 2;
const pages = 2;
const servers = 2;

/** Of a list that is not known yet, by a number that may exceed it. */
const pick = <T>(all: readonly T[], at: number): T => all[at % all.length] as T;

const any = fc.nat(1000);
const shapes = fc.record({
  sessions: fc.array(fc.record({ creator: any, authorizer: fc.option(any, { freq: 4 }) }), {
    minLength: 1,
    maxLength: 4,
  }),
  calls: fc.array(any, { maxLength: 3 }),
  results: fc.array(any, { maxLength: 2 }),
  replies: fc.array(any, { maxLength: 3 }),
  deleted: any,
  byCommand: fc.nat(4).map((one) => one === 0),
});

type Shape = typeof shapes extends fc.Arbitrary<infer S> ? S : never;

/** Something that gives authority, or that was begun under it. */
interface Node {
  readonly name: string;
  readonly parents: readonly Node[];
  /** How it is deleted, through the interface and, where there is one, by a command. */
  readonly path?: string;
  readonly command?: readonly string[];
}

interface Holder extends Node {
  readonly key: string;
  /** What stored results and responses belong to: all keys of an application, or the session. */
  readonly owner: Node;
  /** Of a session that was never authorized, which may do nothing anyway. */
  readonly isIdle?: true;
}

/** True where it, or what it derives from at any distance, was deleted. */
function isVoid(node: Node, deleted: Node): boolean {
  return node === deleted || node.parents.some((parent) => isVoid(parent, deleted));
}

interface World {
  readonly tenant: TestTenant;
  readonly root: Node;
  readonly applications: readonly Node[];
  readonly holders: readonly Holder[];
  readonly reactor: string;
}

async function newWorld(vault: TestVault, shape: Shape): Promise<World> {
  const tenant = await newTenant(vault);
  const manage = (method: string, path: string, body?: object) =>
    tenant.send(method, path, { key: tenant.managementKey, ...(body && { body }) });
  const root: Node = {
    name: 'tenant',
    parents: [],
    path: '/tenants/self',
    command: ['tenant', 'delete', '--tenant', tenant.id, '--yes'],
  };
  const applications: Node[] = [];
  const application = async (type: string, permissions: readonly string[]): Promise<Holder[]> => {
    const made = await manage('POST', '/applications', { name: type, type, permissions });
    assert.equal(made.status, 201, made.text);
    const { id } = made.body;
    const owner = { name: `${type} application`, parents: [root], path: `/applications/${id}` };
    applications.push(owner);
    const keys = [{ id: made.body.keys[0].id, key: made.body.key }];
    while (keys.length < keysOfEach) {
      keys.push((await manage('POST', `/applications/${id}/keys`)).body);
    }
    return keys.map(({ id: keyId, key }) => ({
      name: `${type} key`,
      parents: [owner],
      path: `${owner.path}/keys/${keyId}`,
      command: ['key', 'delete', '--tenant', tenant.id, '--key', keyId],
      key,
      owner,
    }));
  };
  const times = <T>(count: number, make: () => Promise<T>) =>
    Promise.all(Array.from({ length: count }, make));
  const publics = (await times(pages, () => application('public', ['token:create']))).flat();
  const all = ['token:create', 'token:read', 'reactor:invoke', 'proxy:invoke'];
  const privates = (await times(servers, () => application('private', all))).flat();
  const managements = await application('management', ['application:read']);
  const sessions: Holder[] = [];
  for (const { creator, authorizer } of shape.sessions) {
    const page = pick(publics, creator);
    const { body } = await tenant.send('POST', '/sessions', { key: page.key });
    const [{ id }] = (await manage('GET', '/sessions?size=1')).body.data;
    const server = authorizer === null ? undefined : pick(privates, authorizer);
    if (server) {
      const granted = { nonce: body.nonce, permissions: all };
      const sent = { key: server.key, body: granted };
      assert.equal((await tenant.send('POST', '/sessions/authorize', sent)).status, 200);
    }
    const node: Node = {
      name: server ? 'session' : 'idle session',
      parents: [page, ...(server ? [server] : [])],
      path: `/sessions/${id}`,
    };
    const holder = { ...node, key: body.session_key, ...(!server && { isIdle: true as const }) };
    sessions.push(Object.assign(holder, { owner: holder as Node }));
    // They are listed by the time of their creation.
    vault.clock.advance(1);
  }
  const { id: reactor } = await createReactor(tenant);
  return {
    tenant,
    root,
    applications,
    holders: [...publics, ...privates, ...managements, ...sessions],
    reactor,
  };
}

interface Begun extends Node {
  /** What reads it: any holder with the same owner. */
  readonly owner: Node;
  /** Of a call its id, of a stored response its idempotency key. */
  readonly id: string;
  /** Of a stored response. */
  readonly token?: string;
}

/** TakenIds that may call reactors and create tokens. */
const able = ({ holders }: World): Holder[] =>
  holders.filter(({ name }) => name === 'private key' || name === 'session');

async function callLater(world: World, holder: Holder): Promise<string> {
  const { tenant, reactor } = world;
  const sent = { key: holder.key, body: { args: {} } };
  const accepted = await tenant.send('POST', `/reactors/${reactor}/react-async`, sent);
  assert.equal(accepted.status, 202, accepted.text);
  return accepted.body.asyncReactorRequestId;
}

async function runWaiting({ running }: TestVault): Promise<void> {
  const { reactorRuns } = running.vault;
  for (;;) {
    const begun = await takeDue(reactorRuns);
    await reactorRuns?.settled();
    if (begun === 0) return;
  }
}

async function create(
  { tenant }: World,
  vault: TestVault,
  { key, id }: { key: string; id: string },
) {
  return request(`${vault.url}/tokens`, 'POST', {
    key,
    body: { type: 'token', data: id },
    headers: { connection: 'close', 'svc-idempotency-key': `${tenant.id}-${id}` },
  });
}

async function beginAll(vault: TestVault, world: World, shape: Shape) {
  const holders = able(world);
  const results: Begun[] = [];
  for (const at of shape.results) {
    const { owner, ...holder } = pick(holders, at);
    const id = await callLater(world, { ...holder, owner });
    results.push({ name: 'result', parents: [owner], owner, id });
  }
  await runWaiting(vault);
  const calls: Begun[] = [];
  for (const at of shape.calls) {
    const holder = pick(holders, at);
    const id = await callLater(world, holder);
    calls.push({ name: 'pending call', parents: [holder], owner: holder.owner, id });
  }
  const replies: Begun[] = [];
  for (const [index, at] of shape.replies.entries()) {
    const { owner, key } = pick(holders, at);
    const made = await create(world, vault, { key, id: `reply-${index}` });
    assert.equal(made.status, 201, made.text);
    const token = made.body.id;
    replies.push({ name: 'response', parents: [owner], owner, id: `reply-${index}`, token });
  }
  return { results, calls, replies };
}

/** Waits for the destination, reads a token with the rights that it is lent, and says there whether it could. */
const heldCode = (given: string) => `module.exports = async ({ args, bt }) => {
  const { run, url, token } = ${given};
  await fetch(url + '/held/' + run);
  const read = await bt.tokens.retrieve(token).then(() => 'read', () => 'refused');
  await fetch(url + '/told/' + run + '/' + read).catch(() => {});
  return { raw: {} } }`;

interface Lending {
  readonly token: string;
  readonly reactor: Node & { readonly id: string };
  readonly open: Node & { readonly proxyKey: string };
  readonly closed: Node & { readonly proxyKey: string };
}

/** What lends the rights of an application to code. */
async function newLending({ tenant, root }: World): Promise<Lending> {
  const linked = await tenant.send('POST', '/applications', {
    key: tenant.managementKey,
    body: { name: 'linked', type: 'private', permissions: ['token:read'] },
  });
  const { id } = linked.body;
  const application = { name: 'linked application', parents: [root], path: `/applications/${id}` };
  const lent = { application: { id } };
  const reactor = await createReactor(tenant, { ...lent, code: heldCode('args') });
  const proxy = async (name: string, require_auth: boolean) => {
    const request_transforms = [{ code: heldCode('args.body') }];
    const made = { ...lent, destination_url: url, require_auth, request_transforms };
    const { id: proxyId, key: proxyKey } = await createProxy(tenant, made);
    return { name, parents: [root, application], path: `/proxies/${proxyId}`, proxyKey };
  };
  const path = `/reactors/${reactor.id}`;
  return {
    token: (await tenant.token({ type: 'token', data: 'secret' })).body.id,
    reactor: { name: 'reactor', parents: [root, application], path, id: reactor.id },
    open: await proxy('proxy without a key', false),
    closed: await proxy('proxy', true),
  };
}

interface CodeUnderWay extends Node {
  readonly run: string;
  readonly ended: Promise<unknown>;
}

type Kind = 'call' | 'later call' | 'proxy call' | 'proxy call without a key';

/** Each of them waits for the destination. */
async function beginCode(
  vault: TestVault,
  world: World,
  { lending, holder, kind }: { lending: Lending; holder: Holder; kind: Kind },
): Promise<CodeUnderWay> {
  const { tenant } = world;
  const { reactor, open, closed, token } = lending;
  const run = `${tenant.id}-${kind.replaceAll(' ', '-')}`;
  const args = { run, url, token };
  const { key } = holder;
  const through = ({ proxyKey }: Lending['open'], sent: object) =>
    vault.send('POST', '/proxy', { ...sent, headers: { 'svc-proxy-key': proxyKey }, body: args });
  const begin: { readonly [K in Kind]: () => Promise<unknown> } = {
    call: () => vault.send('POST', `/reactors/${reactor.id}/react`, { key, body: { args } }),
    'later call': async () => {
      const path = `/reactors/${reactor.id}/react-async`;
      const accepted = await vault.send('POST', path, { key, body: { args } });
      assert.equal(accepted.status, 202, accepted.text);
      const { reactorRuns } = vault.running.vault;
      assert.equal(await takeDue(reactorRuns), 1);
      await reactorRuns?.settled();
    },
    'proxy call': () => through(closed, { key }),
    'proxy call without a key': () => through(open, {}),
  };
  const parents: { readonly [K in Kind]: readonly Node[] } = {
    call: [holder, reactor],
    'later call': [holder, reactor],
    'proxy call': [holder, closed],
    'proxy call without a key': [open],
  };
  const waits = held.arrival(run);
  const ended = begin[kind]();
  await Promise.race([waits, ended]);
  return { name: `code of a ${kind}`, parents: parents[kind], run, ended };
}

/** What the destination holds back, and what it was told. */
const held = (() => {
  const arrivals = new Map<string, PromiseWithResolvers<void>>();
  let released = Promise.withResolvers<void>();
  const told = new Set<string>();
  const arrivalOf = (run: string) => {
    const known = arrivals.get(run) ?? Promise.withResolvers<void>();
    arrivals.set(run, known);
    return known;
  };
  destination.behave(async ({ request: { url: path = '' }, response }) => {
    const [, what, run = '', outcome] = path.split('/');
    if (what === 'told') told.add(`${run} ${outcome}`);
    if (what === 'held') {
      arrivalOf(run).resolve();
      await released.promise;
    }
    response.end();
  });
  return {
    arrival: (run: string) => arrivalOf(run).promise,
    release: () => {
      released.resolve();
      released = Promise.withResolvers<void>();
    },
    hasRead: (run: string) => told.has(`${run} read`),
  };
})();

const kinds: readonly Kind[] = ['call', 'later call', 'proxy call', 'proxy call without a key'];

/** What code under way derives from, at any distance. */
function ancestorsOf(node: Node): readonly Node[] {
  return node.parents.flatMap((parent) => [parent, ...ancestorsOf(parent)]);
}

const codeShapes = fc.record({
  creator: any,
  authorizer: any,
  holders: fc.array(any, { minLength: kinds.length, maxLength: kinds.length }),
  deleted: any,
  byCommand: fc.boolean(),
});

async function codeHoldsOn(t: TestContext, servers: readonly TestVault[]): Promise<void> {
  const [one, ...others] = servers;
  assert.ok(one);
  const last = others[0] ?? one;
  await fc.assert(
    fc.asyncProperty(codeShapes, async ({ creator, authorizer, holders, deleted, byCommand }) => {
      const nothing = { calls: [], results: [], replies: [], deleted, byCommand };
      const world = await newWorld(one, { ...nothing, sessions: [{ creator, authorizer }] });
      const lending = await newLending(world);
      const underWay: CodeUnderWay[] = [];
      for (const [index, kind] of kinds.entries()) {
        const holder = pick(able(world), holders[index] ?? 0);
        underWay.push(await beginCode(last, world, { lending, holder, kind }));
      }
      const node = pick([...new Set(underWay.flatMap(ancestorsOf))], deleted);
      await remove(one, world, { node, byCommand });
      one.clock.advance(second);
      held.release();
      await Promise.allSettled(underWay.map(({ ended }) => ended));
      for (const code of underWay) {
        const what = `${code.name} after its ${node.name}`;
        assert.equal(held.hasRead(code.run), !isVoid(code, node), what);
      }
    }),
    { numRuns: runs, seed: seeded(t)(2 ** 31), endOnFailure: true },
  );
}

async function remove(vault: TestVault, world: World, { node, byCommand }: Removal) {
  if (byCommand && node.command) {
    const { code, stderr } = await runCommand(node.command, environmentOf(vault.place));
    assert.equal(code, 0, stderr);
    return;
  }
  const sent = { key: world.tenant.managementKey };
  const removed = await vault.send('DELETE', node.path ?? '', sent);
  assert.equal(removed.status, 204, removed.text);
}

interface Removal {
  readonly node: Node;
  readonly byCommand: boolean;
}

/** On every thread of the server, as far as connections meet them. */
async function statuses(vault: TestVault, key: string): Promise<readonly number[]> {
  const asks = Array.from({ length: asksOfThreads }, () =>
    request(`${vault.url}/permissions`, 'GET', { key, headers: { connection: 'close' } }),
  );
  return [...new Set((await Promise.all(asks)).map(({ status }) => status))];
}

async function checkHolders(vault: TestVault, { holders }: World, deleted: Node): Promise<void> {
  for (const holder of holders) {
    const found = await statuses(vault, holder.key);
    const what = `${holder.name} after its ${deleted.name}: ${found}`;
    if (!isVoid(holder, deleted)) assert.deepEqual(found, [holder.isIdle ? 403 : 200], what);
    else
      assert.ok(
        found.every((one) => one === 401 || (one === 403 && !holder.isIdle)),
        what,
      );
  }
}

/** What a holder that stands can still read of it. */
async function checkStored(
  vault: TestVault,
  world: World,
  { begun, deleted }: Stored,
): Promise<void> {
  for (const one of [...begun.results, ...begun.replies]) {
    const readers = able(world).filter(({ owner }) => owner === one.owner);
    for (const reader of readers) {
      const read =
        one.name === 'result'
          ? await vault.send('GET', `/reactors/${world.reactor}/results/${one.id}`, {
              key: reader.key,
            })
          : await create(world, vault, { key: reader.key, id: one.id });
      const what = `${one.name} for a ${reader.name} after the ${deleted.name}: ${read.text}`;
      const isGone = isVoid(reader, deleted);
      if (isGone) assert.ok([401, 403].includes(read.status), what);
      else assert.ok([200, 201].includes(read.status), what);
      if (isVoid(one, deleted)) assert.ok(isGone, what);
      if (!isGone && one.token) assert.equal(read.body.id, one.token, what);
    }
  }
}

interface Stored {
  readonly begun: Awaited<ReturnType<typeof beginAll>>;
  readonly deleted: Node;
}

/** The log says of each call whether its code was run to its end. */
async function checkCalls(
  vault: TestVault,
  world: World,
  { begun, deleted }: Stored,
): Promise<void> {
  await runWaiting(vault);
  const messages = (await world.tenant.rows('logs')).map(({ message }) => message);
  for (const call of begun.calls) {
    const isDone = messages.some((one) => one.startsWith(`Reactor completed: async ${call.id}`));
    assert.equal(isDone, !isVoid(call, deleted), `${call.name} after the ${deleted.name}`);
  }
}

async function checkList(vault: TestVault, world: World, deleted: Node): Promise<void> {
  if (deleted === world.root) return;
  const list = await vault.send('GET', '/sessions?size=100', { key: world.tenant.managementKey });
  const live = world.holders.filter((one) => /session$/.test(one.name) && !isVoid(one, deleted));
  const paths = list.body.data.map(({ id }: { id: string }) => `/sessions/${id}`);
  assert.deepEqual(new Set(paths), new Set(live.map(({ path }) => path)));
  assert.equal(list.body.pagination.total_items, live.length);
}

/** By their number: each of two applications of a kind has two keys, as {@link newWorld} makes them. */
const sessionsOfKeys: Shape['sessions'] = [
  { creator: 0, authorizer: 0 },
  { creator: 1, authorizer: 0 },
  { creator: 2, authorizer: 1 },
  { creator: 2, authorizer: 2 },
  { creator: 3, authorizer: 3 },
];

/** Each kind of ancestor that a session has, where another session still stands without it. */
async function eachAncestor(servers: readonly TestVault[]): Promise<void> {
  const [one] = servers;
  assert.ok(one);
  const nothing = { calls: [], results: [], replies: [], deleted: 0, byCommand: false };
  const world = await newWorld(one, { ...nothing, sessions: sessionsOfKeys });
  const named = (name: string) => world.holders.filter((holder) => holder.name === name);
  const [publics, privates, sessions] = ['public key', 'private key', 'session'].map(named);
  const order = [
    publics?.[0],
    publics?.[1]?.parents[0],
    privates?.[1],
    sessions?.[3],
    privates?.[3]?.parents[0],
  ];
  const deleted = new Set<Node>();
  const isEnded = (node: Node): boolean => deleted.has(node) || node.parents.some(isEnded);
  for (const node of order) {
    assert.ok(node);
    const standing = sessions?.filter((session) => !isEnded(session)).length;
    await remove(one, world, { node, byCommand: false });
    deleted.add(node);
    assert.notEqual(sessions?.filter((session) => !isEnded(session)).length, standing);
    one.clock.advance(second);
    for (const vault of servers) {
      for (const holder of world.holders) {
        const [status, ...others] = await statuses(vault, holder.key);
        assert.deepEqual(others, []);
        assert.equal(status === 200, !isEnded(holder), `${holder.name} after the ${node.name}`);
      }
    }
  }
}

/** What a session in the console derives from. */
const ancestorsInConsole = ['key', 'maker', 'person', 'role', 'session'] as const;

/** For each of them a tenant, in which the session of another person still stands without it. */
async function eachAncestorInConsole(servers: readonly TestVault[]): Promise<void> {
  const [one] = servers;
  assert.ok(one);
  for (const deleted of ancestorsInConsole) {
    const tenant = await newTenant(one);
    const manage = async (method: string, path: string, body?: object) => {
      const received = await tenant.send(method, path, { key: tenant.managementKey, body });
      assert.ok(received.status < 300, received.text);
      return received.body;
    };
    const made = (type: string, permissions: readonly string[]) =>
      manage('POST', '/applications', { name: type, type, permissions });
    const { id: role } = await made('private', ['token:read']);
    const { id: otherRole } = await made('private', ['token:read']);
    const maker = await made('management', ['person:create']);
    const person = await signInPerson(one.url, maker.key, { applications: [role] });
    const applications = [otherRole];
    const other = await signInPerson(one.url, tenant.managementKey, { applications });
    const [session] = await manage('GET', `/people/${person.id}/sessions`);
    const paths: Readonly<Record<typeof deleted, string>> = {
      key: `/applications/${maker.id}/keys/${maker.keys[0].id}`,
      maker: `/applications/${maker.id}`,
      person: `/people/${person.id}`,
      role: `/applications/${role}`,
      session: `/people/${person.id}/sessions/${session.id}`,
    };
    const found = (vault: TestVault) =>
      Promise.all(
        [person.headersAs(role), other.headersAs(otherRole)].map(
          async (headers) => (await vault.send('GET', '/tokens?size=1', { headers })).status,
        ),
      );
    for (const vault of servers) assert.deepEqual(await found(vault), [200, 200]);
    await manage('DELETE', paths[deleted]);
    one.clock.advance(second);
    for (const vault of servers) {
      const [status = 0, another] = await found(vault);
      assert.ok([401, 403].includes(status), `${status} after the ${deleted}`);
      assert.equal(another, 200, `of another person after the ${deleted}`);
    }
  }
}

type Start = (t: TestContext, engine: Engine) => Promise<readonly TestVault[]>;

/** Two servers of one PostgreSQL, or the one server of an embedded database. */
const everyServer: Start = async (t, engine) => {
  const clock = createStillClock();
  const one = await startVault(t, engine, { clock, environment });
  if (engine.name === 'sqlite') return [one];
  return [one, await startVault(t, engine, { clock, environment, place: one.place })];
};

/** No test begins the calls that wait where several threads answer, so there are none. */
const twoThreads: Start = async (t, engine) => [
  await startVault(t, engine, {
    clock: createStillClock(),
    environment: { STRONGROOM_THREADS: '2' },
  }),
];

async function holdsOn(t: TestContext, servers: readonly TestVault[]): Promise<void> {
  const [one, ...others] = servers;
  assert.ok(one);
  const bystander = await newTenant(one);
  const hasCalls = one.running.vault.reactorRuns !== undefined;
  await fc.assert(
    fc.asyncProperty(shapes, async (given) => {
      const shape = hasCalls ? given : { ...given, calls: [], results: [] };
      const world = await newWorld(one, shape);
      const begun = await beginAll(one, world, shape);
      // All servers know all keys as well as they ever will.
      for (const vault of servers) {
        for (const { key } of world.holders) await statuses(vault, key);
      }
      const nodes = [world.root, ...world.applications, ...world.holders];
      const node = pick(nodes, shape.deleted);
      const byCommand = shape.byCommand && node.command !== undefined;
      await remove(one, world, { node, byCommand });
      if (!byCommand) await checkHolders(one, world, node);
      one.clock.advance(second);
      for (const vault of servers) {
        await checkHolders(vault, world, node);
        await checkStored(vault, world, { begun, deleted: node });
      }
      const last = others[0] ?? one;
      await checkList(last, world, node);
      if (hasCalls) await checkCalls(last, world, { begun, deleted: node });
      assert.deepEqual(await statuses(one, bystander.key), [200]);
    }),
    // A smaller world is no easier to understand than the one that failed.
    { numRuns: runs, seed: seeded(t)(2 ** 31), endOnFailure: true },
  );
}

onBothEngines('whatever is deleted, what derives from it is void, and nothing else', (engine) => {
  test('at once where it was deleted, and within a second on every server', async (t) => {
    await holdsOn(t, await everyServer(t, engine));
  });

  test('whichever of its ancestors a session loses', async (t) => {
    await eachAncestor(await everyServer(t, engine));
  });

  test('whichever of its ancestors a session in the console loses', async (t) => {
    await eachAncestorInConsole(await everyServer(t, engine));
  });

  test('code that is under way reads no token with the rights that ended', async (t) => {
    await codeHoldsOn(t, await everyServer(t, engine));
  });

  test('at once on every thread of a server', async (t) => {
    await holdsOn(t, await twoThreads(t, engine));
  });
});
