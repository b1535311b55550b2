/** No call of a reactor shows its caller more than the rules of the caller, and of what the code is lent, give. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { type PolicyWords, predictReacting, transformOf } from '../support/access-model.ts';
import { type EngineName, onBothEngines } from '../support/engines.ts';
import { type Below, numbersFrom, seeded } from '../support/random.ts';
import {
  containers,
  pick,
  type RandomPolicy,
  randomPolicy,
  rulesFor,
} from '../support/random-policy.ts';
import { createReactor } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import type { Received } from '../support/vault.ts';

const callersMax: Readonly<Record<EngineName, number>> = { sqlite: 60, postgres: 30 };
const lentMax = 6;
/** As many calls of a tenant as run and wait at once without being refused. */
const callersAtOnce = 4;

/** What came of each request of the code; an error that is thrown says its status and nothing else. */
const using = `
const attempt = async (request) => {
  try { return { is: await request() } } catch (error) { return { status: error.status } }
};
const used = async ({ given = null, id }, bt) => ({
  given,
  retrieved: bt === null ? null : await attempt(() => bt.tokens.retrieve(id)),
  detokenized: bt === null ? null : await attempt(() => bt.detokenize({ value: '{{ ' + id + ' }}' })),
});`;

const codes = {
  'node-bt': `${using} module.exports = async ({ args, bt }) => ({ raw: await used(args, bt) });`,
  node22: `${using} module.exports = async ({ req, bt }) => ({ res: { body: await used(req, bt) } });`,
};

/** A reactor, and what its code may do besides what its caller gives it. */
interface Lent {
  readonly reactor: string;
  readonly image: keyof typeof codes;
  /** Undefined where nothing is lent: then there is no `bt`. */
  readonly words: PolicyWords | undefined;
}

/** Shows a token in each way there is, by where it is. */
const everyWay: RandomPolicy = {
  type: 'private',
  words: {
    permissions: [],
    rules: [
      { priority: 1, container: '/a/b/', permissions: ['token:read'], transform: 'reveal' },
      { priority: 2, container: '/a/', permissions: ['token:read'], transform: 'redact' },
      { priority: 3, container: '/z/', permissions: ['token:read'], transform: 'mask' },
    ],
  },
};

const lendable = ['token:read', 'token:create', 'token:search'];

async function lend(tenant: TestTenant, below: Below): Promise<Lent> {
  const kind = pick(below, ['nothing', 'application', 'application', 'permissions']);
  if (kind === 'nothing') {
    const { id } = await createReactor(tenant, { code: codes['node-bt'] });
    return { reactor: id, image: 'node-bt', words: undefined };
  }
  if (kind === 'permissions') {
    const permissions = lendable.filter((_, at) => at === 0 || below(2) > 0).slice(below(2));
    const runtime = { image: 'node22', permissions };
    const { id } = await createReactor(tenant, { code: codes.node22, runtime });
    const words = permissions.length > 0 ? { permissions, rules: [] } : undefined;
    return { reactor: id, image: 'node22', words };
  }
  return lendApplication(tenant, randomPolicy(below));
}

async function lendApplication(tenant: TestTenant, { words, type }: RandomPolicy): Promise<Lent> {
  const made = await tenant.send('POST', '/applications', {
    key: tenant.managementKey,
    body: { name: 'lends', type, ...words },
  });
  assert.equal(made.status, 201, made.text);
  const application = { id: made.body.id };
  const { id } = await createReactor(tenant, { code: codes['node-bt'], application });
  return { reactor: id, image: 'node-bt', words };
}

interface World {
  readonly tenant: TestTenant;
  readonly key: string;
  readonly words: PolicyWords;
  readonly lent: Lent;
  /** Where the token is. */
  readonly container: string;
  /** The code is given the token by its caller; else it has only what it is lent. */
  readonly isGiven: boolean;
  readonly count: (what: string) => void;
}

/** The last four characters of a value are what its mask shows. */
async function victim({ tenant, container }: World) {
  const secret = randomUUID().replaceAll('-', '');
  const mask = { secret: '{{ data.secret | reveal_last: 4 }}' };
  const { body } = await tenant.token({
    type: 'token',
    data: { secret },
    mask,
    containers: [container],
  });
  return { id: body.id as string, container, secret, masked: secret.slice(-4).padStart(32, 'X') };
}

async function react(world: World): Promise<void> {
  const { tenant, key, words, lent, isGiven, count } = world;
  const token = await victim(world);
  const body = { id: token.id, ...(isGiven && { given: `{{ ${token.id} }}` }) };
  const answer = await tenant.send('POST', `/reactors/${lent.reactor}/react`, {
    key,
    body: lent.image === 'node22' ? body : { args: body },
  });
  const { allowed, names } = predictReacting(words, isGiven ? token : undefined);
  count(`${isGiven ? 'given' : 'alone'} ${allowed ? 'allowed' : 'refused'}`);
  // A caller who may call reactors, but not with this token.
  if (names.includes(token.id)) count('given uncovered');
  if (!allowed) return assertRefused(answer, names, token);
  assert.equal(answer.status, 200, answer.text);
  const { given, retrieved, detokenized } = lent.image === 'node22' ? answer.body : answer.body.raw;
  assert.deepEqual(given, isGiven ? { secret: token.secret } : null);
  if (lent.words === undefined) return assert.deepEqual([retrieved, detokenized], [null, null]);
  const sight = transformOf(lent.words, 'token:read', token);
  count(`lent ${sight}`);
  const shown = { reveal: token.secret, mask: token.masked, redact: undefined };
  if (sight === undefined) {
    assert.deepEqual([retrieved, detokenized], [{ status: 403 }, { status: 403 }]);
  } else {
    assert.deepEqual(retrieved.is.data?.secret, shown[sight]);
    assert.deepEqual(
      detokenized.is.value?.data?.secret ?? detokenized.is.value?.secret,
      shown[sight],
    );
  }
  // Whatever else the response holds.
  const isSeen = isGiven || sight === 'reveal';
  assert.equal(answer.text.includes(token.secret), isSeen);
}

function assertRefused(
  { status, text, body }: Received,
  names: readonly string[],
  token: { secret: string },
) {
  assert.equal(status, 403, text);
  for (const name of names) assert.ok(JSON.stringify(body).includes(name), `${name} in ${text}`);
  assert.equal(text.includes(token.secret), false);
  assert.equal(text.includes(token.secret.slice(-4)), false);
}

const outcomes = [
  ...['given allowed', 'given refused', 'given uncovered', 'alone allowed', 'alone refused'],
  ...['lent undefined', 'lent redact', 'lent mask', 'lent reveal'],
];

type Certain = Pick<World, 'words' | 'container' | 'isGiven'>;

/** Calls that meet each outcome whatever the seed, where {@link everyWay} is lent. */
const certain: readonly Certain[] = [true, false].flatMap((isGiven) => [
  ...['/', '/a/', '/z/', '/a/b/'].map((container) => ({
    words: rulesFor({ permissions: ['reactor:invoke'], container: '/' }),
    container,
    isGiven,
  })),
  {
    words: rulesFor({ permissions: ['reactor:invoke'], container: '/z/' }),
    container: '/a/',
    isGiven,
  },
  { words: rulesFor({ permissions: ['token:read'], container: '/' }), container: '/a/b/', isGiven },
]);

onBothEngines('A caller of reactors with any policy', (engine) => {
  const tenants = tenantsOf(engine);

  test('gets what the code is given and lent, and nothing else', async (t) => {
    const tenant = await tenants();
    const seeds = seeded(t);
    const showing = await lendApplication(tenant, everyWay);
    const lent = [showing];
    for (let at = 0; at < lentMax; at += 1)
      lent.push(await lend(tenant, numbersFrom(seeds(2 ** 31))));
    const seen = new Set<string>();
    const differences: string[] = [];
    const act = async (one: Certain & Pick<World, 'lent'>, type: RandomPolicy['type']) => {
      const key = await tenant.application({ type, ...one.words });
      const count = (what: string) => void seen.add(what);
      await react({ ...one, tenant, key, count }).catch((error: unknown) => {
        differences.push(`${error} with ${JSON.stringify({ words: one.words, lent: one.lent })}`);
      });
    };
    const random = (seed: number) => {
      const below = numbersFrom(seed);
      const { words, type } = randomPolicy(below);
      const from = pick(below, lent);
      const container = pick(below, containers);
      return act({ words, lent: from, container, isGiven: below(2) === 0 }, type);
    };
    const calls = [
      ...certain.map((one) => () => act({ ...one, lent: showing }, 'private')),
      ...Array.from({ length: callersMax[engine.name] }, () => () => random(seeds(2 ** 31))),
    ];
    for (let at = 0; at < calls.length; at += callersAtOnce)
      await Promise.all(calls.slice(at, at + callersAtOnce).map((call) => call()));
    assert.deepEqual(differences.slice(0, 3), [], `${differences.length} differences`);
    const unmet = outcomes.filter((one) => !seen.has(one));
    assert.deepEqual(unmet, [], 'outcomes that were not met show nothing');
  });
});
