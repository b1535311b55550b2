/** Update, move, convert, deduplicate, repeat and send answer as the model of access says, on random policies. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import {
  predictConversion,
  predictDeduplication,
  predictRepetition,
  predictSending,
  predictUpdate,
  transformOf,
} from '../support/access-model.ts';
import { answer as answering } from '../support/destination.ts';
import { type EngineName, onBothEngines } from '../support/engines.ts';
import { linesOfAnswer, linesSent } from '../support/lines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { type Below, numbersFrom, seeded } from '../support/random.ts';
import {
  containers,
  elsewhere,
  pick,
  type RandomPolicy,
  randomPolicy,
  rulesFor,
} from '../support/random-policy.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { mastercard, visa } from '../support/values.ts';
import type { Received } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });

const callersMax: Readonly<Record<EngineName, number>> = { sqlite: 60, postgres: 30 };

/** What a response leaves out where the caller may not read the token. */
const contents = [
  'data',
  'mask',
  'metadata',
  'fingerprint_expression',
  'search_indexes',
  'fingerprint',
  'card',
];

/** A caller with a random policy, and somebody else who made the tokens. */
interface World extends RandomPolicy {
  readonly tenant: TestTenant;
  readonly below: Below;
  /** Where the next token is, or is to be. */
  readonly place: () => string;
  readonly key: string;
  /** Of an application that makes token intents. */
  readonly intentKey: string;
  /** Of a proxy whose destination keeps what it receives. */
  readonly proxyKey: string;
  /** Which outcomes an operation had. */
  readonly seen: Set<string>;
}

type Operation = (world: World) => Promise<void>;

function count({ seen }: World, what: string): void {
  seen.add(what);
}

const ownMask = { secret: '{{ data.secret | reveal_last: 4 }}' };

/** Values that are not equal to any other, so that nothing is deduplicated by chance. */
const newSecret = () => ({ secret: randomUUID().replaceAll('-', ''), code: '123' });

/** A token that another application made, somewhere. */
async function victim({ tenant, below, place }: World, type = pick(below, ['card', 'token'])) {
  const container = place();
  const isCard = type === 'card';
  const { body } = await tenant.token({
    ...(isCard
      ? { type: 'card', data: visa }
      : { type: 'token', data: newSecret(), mask: ownMask }),
    containers: [container],
    metadata: { owner: 'somebody' },
    search_indexes: ['{{ data | stringify }}'],
  });
  return { id: body.id as string, container, isCard, body };
}

function get({ tenant, key }: World, id: string): Promise<Received> {
  return tenant.send('GET', `/tokens/${id}`, { key });
}

const without = (body: Given, ...names: readonly string[]) =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));

/** A response shows what a read shows the same caller, and without a grant to read no contents. */
async function assertShows(world: World, body: Given, readable: boolean): Promise<void> {
  const { _extras, ...shown } = body;
  if (readable) {
    const read = await get(world, String(body['id']));
    assert.equal(read.status, 200, read.text);
    assert.deepEqual(shown, read.body);
    return;
  }
  assert.deepEqual(
    contents.filter((name) => name in shown),
    [],
  );
}

function assertRefused({ status, text, body }: Received, names: readonly string[]): void {
  assert.equal(status, 403, text);
  for (const name of names) assert.match(JSON.stringify(body), new RegExp(`\\b${name}\\b`));
}

const read: Operation = async (world) => {
  const { id, container, isCard, body } = await victim(world);
  const transform = transformOf(world.words, 'token:read', { id, container });
  const answer = await get(world, id);
  count(world, `read ${transform}`);
  if (transform === undefined) return assert.equal(answer.status, 403);
  assert.equal(answer.status, 200, answer.text);
  const { data, card, ...others } = answer.body;
  assert.deepEqual(others, without(body, 'data', 'card', '_extras'));
  if (transform === 'redact') assert.deepEqual([data, card], [undefined, undefined]);
  if (transform === 'reveal') assert.deepEqual([data, card], [body.data, body.card]);
  if (transform !== 'mask') return;
  const last4 = (text: string) => text.slice(-4).padStart(text.length, 'X');
  const { cvc: _cvc, ...card2 } = visa;
  const masked = isCard
    ? { ...card2, number: last4(visa.number) }
    : { secret: last4(body.data.secret) };
  assert.deepEqual([data, card], [masked, body.card]);
};

interface Patch {
  readonly patch: Given;
  readonly brings?: true;
  readonly of?: 'card' | 'token';
}

const inAMonth = () => new Date(Date.now() + 30 * 86_400_000).toISOString();

const patches: readonly (() => Patch)[] = [
  () => ({ patch: { mask: { secret: '{{ data.secret }}' } } }),
  () => ({ patch: { mask: null }, of: 'token' }),
  () => ({ patch: { fingerprint_expression: '{{ data | stringify | slice: 20, 1 }}' } }),
  () => ({ patch: { search_indexes: ['{{ data | stringify | slice: 20, 1 }}'] } }),
  () => ({ patch: { metadata: { mine: 'too' } } }),
  () => ({ patch: { expires_at: inAMonth() } }),
  () => ({ patch: { data: randomUUID() }, of: 'token' }),
  () => ({ patch: { data: { number: mastercard.number } }, of: 'card' }),
  () => ({ patch: { data: { code: '999' } }, of: 'token' }),
  () => ({ patch: { data: randomUUID(), mask: '{{ data }}' }, brings: true, of: 'token' }),
  () => ({
    patch: { data: randomUUID(), fingerprint_expression: '{{ data }}' },
    brings: true,
    of: 'token',
  }),
  () => ({
    patch: { data: randomUUID(), search_indexes: ['{{ data }}'] },
    brings: true,
    of: 'token',
  }),
  () => ({ patch: { data: { code: '999' }, mask: { secret: '{{ data.secret }}' } }, of: 'token' }),
  () => ({
    patch: { data: { cvc: '999' }, fingerprint_expression: '{{ data.number }}' },
    of: 'card',
  }),
  () => ({ patch: { data: { code: '9' }, search_indexes: ['{{ data.secret }}'] }, of: 'token' }),
];

async function patchVictim(world: World, wanted: Patch, what: string): Promise<void> {
  const token = await victim(world, wanted.of);
  const { patch, brings = false } = wanted;
  const before = (await world.tenant.send('GET', `/tokens/${token.id}`)).body;
  const { allowed, names, sight } = predictUpdate(world.words, { token, patch, brings });
  const { tenant, key } = world;
  const answer = await tenant.send('PATCH', `/tokens/${token.id}`, { key, body: patch });
  count(world, `${what} ${allowed ? 'allowed' : 'refused'}`);
  if (allowed) {
    assert.equal(answer.status, 200, answer.text);
    return assertShows(world, answer.body, sight !== undefined);
  }
  assertRefused(answer, names);
  assert.deepEqual((await tenant.send('GET', `/tokens/${token.id}`)).body, before);
}

const update: Operation = (world) => patchVictim(world, pick(world.below, patches)(), 'update');

const move: Operation = (world) => {
  const moves: Patch = { patch: { containers: [world.place()] } };
  return patchVictim(world, moves, 'move');
};

const conversions: readonly Given[] = [
  {},
  { mask: 'constant' },
  { id: 'x-{{ data.secret }}' },
  { mask: { all: '{{ data.secret }}' } },
  { fingerprint_expression: '{{ data.secret | slice: 0, 1 }}' },
  { search_indexes: ['{{ data.secret | slice: 0, 1 }}'] },
];

const convert: Operation = async (world) => {
  const { tenant, key, below, place } = world;
  const intent = await tenant.send('POST', '/token-intents', {
    key: world.intentKey,
    body: { type: 'token', data: newSecret() },
  });
  const { id, ...others } = pick(below, conversions);
  const body = {
    ...others,
    token_intent_id: intent.body.id,
    id: id ?? randomUUID(),
    containers: [place()],
  };
  const { allowed, names, sight } = predictConversion(world.words, body);
  const answer = await tenant.send('POST', '/tokens', { key, body });
  count(world, `convert ${allowed ? 'allowed' : 'refused'}`);
  if (!allowed) return assertRefused(answer, names);
  assert.equal(answer.status, 201, answer.text);
  const { data, card } = answer.body;
  assert.ok(sight !== undefined || (data ?? card) === undefined, 'shows what may not be read');
  const shown = sight && (await get(world, answer.body.id)).body.data;
  // The grant to create may show less than the one to read, and never more.
  if (sight !== 'reveal' && data !== undefined) assert.deepEqual(data, shown);
};

const deduplicate: Operation = async (world) => {
  const { tenant, key, place } = world;
  const value = { type: 'token', data: newSecret(), deduplicate_token: true };
  const container = place();
  const made = await tenant.token({
    ...value,
    containers: [container],
    mask: ownMask,
    metadata: { owner: 'somebody' },
  });
  const existing = { id: made.body.id as string, container };
  const requested = place();
  const expected = predictDeduplication(world.words, { requested, existing });
  const body = { ...value, containers: [requested], metadata: { mine: 'too' } };
  const answer = await tenant.send('POST', '/tokens', { key, body });
  count(world, `deduplicate ${expected.allowed ? 'allowed' : 'refused'}`);
  if (!expected.allowed) return assertRefused(answer, expected.names);
  assert.deepEqual([answer.status, answer.body.id], [201, existing.id], answer.text);
  assert.equal(answer.body._extras.deduplicated, true);
  const { fingerprint, ...shown } = answer.body;
  assert.equal(fingerprint, made.body.fingerprint);
  if (expected.sight !== undefined) return assertShows(world, answer.body, true);
  await assertShows(world, shown, false);
  if (expected.holdsAnything) return;
  count(world, 'deduplicate blindly');
  assert.deepEqual(Object.keys(answer.body).sort(), ['_extras', 'fingerprint', 'id', 'type']);
};

/** The status of each line of a bulk request. */
async function statuses({ tenant, key }: World, lines: readonly object[]): Promise<number[]> {
  const answer = await tenant.send('POST', '/tokens/bulk', { ...linesSent(lines), key });
  // A caller that may create nowhere is refused before the lines are read.
  if (answer.status === 403) return lines.map(() => 403);
  return linesOfAnswer(answer).map(({ status }) => status);
}

const repeat: Operation = async (world) => {
  const { words, place } = world;
  const token = { id: randomUUID(), container: place() };
  const line = { id: token.id, type: 'token', data: randomUUID(), containers: [token.container] };
  const [made] = await statuses(world, [line]);
  if (made === 403) return;
  const expected = [true, false].map((sameValue) => predictRepetition(words, { token, sameValue }));
  for (const status of expected) count(world, `repeat ${status}`);
  assert.deepEqual(await statuses(world, [line, { ...line, data: 'a guess' }]), expected);
};

const guess: Operation = async (world) => {
  const { words, place, tenant } = world;
  const { id, container, isCard, body } = await victim(world);
  const requested = place();
  const mayCreate = transformOf(words, 'token:create', { id, container: requested }) !== undefined;
  const reads = transformOf(words, 'token:read', { id, container }) === 'reveal';
  const { data, search_indexes } = body;
  const type = isCard ? 'card' : 'token';
  const line = { id, type, data, search_indexes, containers: [requested] };
  const status = mayCreate ? 409 : 403;
  count(world, `guess ${status}`);
  const alone = await tenant.send('POST', '/tokens', { key: world.key, body: line });
  assert.equal(alone.status, status, alone.text);
  // A caller who sees the value anyway learns nothing, whichever of the two is answered.
  if (!reads) assert.deepEqual(await statuses(world, [line]), [status]);
};

const approved = '{"approved":true}';

destination.behave(answering(200, ['Content-Type', 'application/json'], approved));

/** Through a proxy whose destination keeps what it receives. */
const send: Operation = async (world) => {
  const { tenant, key, below, words, proxyKey } = world;
  const { id, container, isCard, body } = await victim(world);
  const described = below(2) === 0;
  const { allowed, names } = predictSending(words, { token: { id, container }, described });
  const path = `/${id}`;
  const answer = await tenant.send('POST', `/proxy${path}`, {
    key,
    headers: described ? { 'svc-proxy-url': url } : { 'svc-proxy-key': proxyKey },
    body: { value: `{{ ${id} | json: '$.${isCard ? 'number' : 'secret'}' }}` },
  });
  count(world, `send ${allowed ? 'allowed' : 'refused'}`);
  const value: string = isCard ? body.data.number : body.data.secret;
  assert.equal(answer.text.includes(value), false);
  assert.equal(JSON.stringify([...answer.headers]).includes(value), false);
  const received = destination.requests.filter((request) => request.url === path);
  if (!allowed) {
    assertRefused(answer, names);
    return assert.deepEqual(received, []);
  }
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.text, approved);
  assert.deepEqual(
    received.map((request) => JSON.parse(request.body.toString())),
    [{ value }],
  );
};

interface Subject {
  readonly operation: Operation;
  /** How often each caller does it. */
  readonly rounds: number;
  /** What has to be met, or the test shows nothing; {@link certain} callers meet it. */
  readonly outcomes: readonly string[];
}

const allowedAndRefused = ['allowed', 'refused'];
const subjects: Readonly<Record<string, Subject>> = {
  read: { operation: read, rounds: 1, outcomes: ['undefined', 'redact', 'mask', 'reveal'] },
  update: { operation: update, rounds: 3, outcomes: allowedAndRefused },
  move: { operation: move, rounds: 2, outcomes: allowedAndRefused },
  convert: { operation: convert, rounds: 2, outcomes: allowedAndRefused },
  deduplicate: { operation: deduplicate, rounds: 2, outcomes: [...allowedAndRefused, 'blindly'] },
  repeat: { operation: repeat, rounds: 1, outcomes: ['200', '409'] },
  send: { operation: send, rounds: 2, outcomes: allowedAndRefused },
  guess: { operation: guess, rounds: 1, outcomes: ['403', '409'] },
};

interface Certain extends Pick<RandomPolicy, 'words'> {
  /** Where its tokens are, in turn; anywhere without. */
  readonly places?: readonly string[];
}

/** Callers who meet each outcome of each operation, whatever the seed. */
const certain: readonly Certain[] = [
  { words: rulesFor({ container: elsewhere }) },
  { words: rulesFor({ container: '/', transform: 'redact' }) },
  { words: rulesFor({ container: '/', transform: 'mask' }) },
  { words: rulesFor({ container: '/', transform: 'reveal' }) },
  // What it may create is where nothing else is, as what it deduplicates with.
  { words: rulesFor({ container: '/z/', permissions: ['token:create'] }), places: ['/', '/z/'] },
];

/** Callers who act at the same time, each on tokens of its own. */
const callersAtOnce = 10;

onBothEngines('A caller with any policy', (engine) => {
  const tenants = tenantsOf(engine, { environment });

  for (const [name, { operation, rounds, outcomes }] of Object.entries(subjects)) {
    test(`${name}: is answered with the status and the attributes that the rules give`, async (t) => {
      const tenant = await tenants();
      const seeds = seeded(t);
      const intentKey = await tenant.application({ permissions: ['token-intent:create'] });
      const { key: proxyKey } = await createProxy(tenant, { destination_url: url });
      const seen: World['seen'] = new Set();
      const differences: string[] = [];
      const act = async (policy: RandomPolicy, below: Below, places?: readonly string[]) => {
        const key = await tenant.application({ type: policy.type, ...policy.words });
        let next = 0;
        const place = () => places?.[next++ % places.length] ?? pick(below, containers);
        const world: World = { ...policy, tenant, below, place, key, intentKey, proxyKey, seen };
        for (let round = 0; round < rounds; round += 1) {
          await operation(world).catch((error: unknown) => {
            differences.push(`${error} with ${JSON.stringify(policy)}`);
          });
        }
      };
      const callers = [
        ...certain.map(({ words, places }) => (below: Below) => {
          return act({ type: 'private', words }, below, places);
        }),
        ...Array.from({ length: callersMax[engine.name] }, () => (below: Below) => {
          return act(randomPolicy(below), below);
        }),
      ];
      for (let at = 0; at < callers.length; at += callersAtOnce) {
        const now = callers.slice(at, at + callersAtOnce);
        await Promise.all(now.map((caller) => caller(numbersFrom(seeds(2 ** 31)))));
      }
      assert.deepEqual(differences.slice(0, 5), [], `${differences.length} differences`);
      const unmet = outcomes.filter((one) => !seen.has(`${name} ${one}`));
      assert.deepEqual(unmet, [], 'outcomes that were not met show nothing');
    });
  }
});
