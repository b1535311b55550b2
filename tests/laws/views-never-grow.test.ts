/**
 * Nothing a caller does makes the vault say more about a value than the caller's own transform for
 * `token:read` on the token: a search for a sequence of up to three requests that does.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sightOf, transformOf } from '../support/access-model.ts';
import { type EngineName, onBothEngines } from '../support/engines.ts';
import { type Below, numbersFrom, seeded } from '../support/random.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import {
  type Allowed,
  createTwins,
  ownMask,
  type Request,
  type Scene,
  type Twins,
  type TwinTenants,
} from '../support/twin-worlds.ts';

interface Effort {
  readonly scenesMax: number;
  /** Sequences of each scene that are continued after their first request. */
  readonly longerMax: number;
}

/** All callers on the engine that is the faster one, some on the other. */
const efforts: Readonly<Record<EngineName, Effort>> = {
  sqlite: { scenesMax: Infinity, longerMax: 1 },
  postgres: { scenesMax: 3, longerMax: 1 },
};

/** They do not share any token. */
const scenesAtOnce = 3;

/** More of them say nothing new. */
const violationsMax = 10;
const lengthMax = 3;

type Transform = 'redact' | 'mask' | 'reveal';
type Level = Transform | undefined;

// ---- Callers: what each may do in the containers /a/ and /b/. The token lies in /a/. ----

const writing = ['token:create', 'token:update'];

interface Rule {
  readonly container: string;
  readonly permissions: string[];
  readonly transform: Transform;
}

function scene(
  name: string,
  rules: readonly Rule[],
  more: Partial<Scene['application']> = {},
): Scene {
  const type = 'private';
  const numbered = rules.map((rule, index) => ({ ...rule, priority: index + 1 }));
  const application = { type, permissions: [] as string[], rules: numbered, ...more };
  const { permissions } = application;
  const words = { permissions, rules: application.rules };
  const at = (permission: string, container: string) =>
    transformOf(words, permission, { id: 'v', container });
  const sees = Math.max(sightOf(at('token:read', '/a/')), sightOf(at('token:search', '/a/')));
  const mayTakeAndReveal = ['/a/', '/b/'].some(
    (container) => at('token:create', container) && at('token:read', container) === 'reveal',
  );
  const levels: readonly Allowed[] = ['nothing', 'nothing', 'last four', 'everything'];
  return {
    name,
    application,
    sameKey: false,
    ofToken: levels[sees] ?? 'nothing',
    seesMetadata: sees > 0,
    reads: JSON.stringify(words).includes('token:read'),
    ofIntent: mayTakeAndReveal ? 'everything' : 'nothing',
  };
}

function reading(container: string, transform: Level): Rule[] {
  return transform ? [{ container, permissions: ['token:read'], transform }] : [];
}

const search: Rule = { container: '/', permissions: ['token:search'], transform: 'redact' };

function writer(ofA: Level, ofB: Level): Scene {
  const rules: Rule[] = [
    ...reading('/a/', ofA),
    ...reading('/b/', ofB),
    { container: '/', permissions: writing, transform: 'reveal' },
    // Who may not read is not helped by a search.
    ...(ofA ? [search] : []),
  ];
  return scene(`reads ${ofA} in /a/ and ${ofB} in /b/, writes in both`, rules);
}

const open = (transform: Transform): Rule[] => [
  { container: '/', permissions: writing, transform },
];
const updateInA: Rule = { container: '/a/', permissions: ['token:update'], transform: 'reveal' };
const inB: Rule = {
  container: '/b/',
  permissions: ['token:read', ...writing],
  transform: 'reveal',
};

const withSameKey = (of: Scene): Scene => ({ ...of, name: `${of.name}, same key`, sameKey: true });
const openly = (transform: Transform) =>
  scene(`public, ${transform}`, open(transform), { type: 'public' });

const scenes: readonly Scene[] = [
  writer(undefined, undefined),
  writer(undefined, 'reveal'),
  writer('redact', undefined),
  withSameKey(writer('redact', 'mask')),
  writer('redact', 'reveal'),
  withSameKey(writer('mask', undefined)),
  writer('mask', 'redact'),
  writer('mask', 'reveal'),
  openly('reveal'),
  withSameKey(openly('redact')),
  scene('updates in /a/, all in /b/', [updateInA, inB]),
  scene('plain permissions', [], {
    permissions: ['token:read', 'token:search', 'token-intent:read', ...writing],
  }),
];

// ---- What a caller does. ----

const slice = '{{ data.pan | slice: 0, 8 }}';
const revealing = { all: '{{ data.pan }} {{ data.code }}' };

function patch(what: string, body: object, of: 'token' | 'converted' = 'token'): Request {
  return {
    name: `PATCH ${what} of the ${of}`,
    method: 'PATCH',
    path: (names) => `/tokens/${names[of]}`,
    body: () => ({ ...body }),
  };
}

function convert(what: string, more: object, container = '/b/'): Request {
  return {
    name: `convert with ${what} into ${container}`,
    converts: true,
    method: 'POST',
    path: () => '/tokens',
    body: ({ intent, converted }) => ({
      token_intent_id: intent,
      id: converted,
      containers: [container],
      ...more,
    }),
  };
}

const part = { data: { more: 'mine' } };
const mine = { metadata: { mine: 'too' } };

const changes: readonly Request[] = [
  patch('mask', { mask: revealing }),
  patch('mask to that of the type', { mask: null }),
  patch('fingerprint', { fingerprint_expression: slice }),
  patch('index', { search_indexes: [slice] }),
  patch('container', { containers: ['/b/'] }),
  patch('container and mask', { containers: ['/b/'], mask: revealing }),
  patch('part and mask', { ...part, mask: revealing }),
  patch('part and fingerprint', { ...part, fingerprint_expression: slice }),
  patch('part and index', { ...part, search_indexes: [slice] }),
  patch('metadata and deduplication', { ...mine, deduplicate_token: true }),
  patch('mask', { mask: revealing }, 'converted'),
  patch('fingerprint', { fingerprint_expression: slice }, 'converted'),
  patch('index', { search_indexes: [slice] }, 'converted'),
  patch('container', { containers: ['/a/'] }, 'converted'),
  convert('nothing', {}),
  convert('nothing', {}, '/a/'),
  convert('id', { id: 'x-{{ data.pan }}' }),
  convert('mask', { mask: revealing }),
  convert('fingerprint', { fingerprint_expression: slice, deduplicate_token: true }),
  convert('index', { search_indexes: [slice] }, '/a/'),
  {
    name: 'tokenize an intent with a mask',
    method: 'POST',
    path: () => '/tokenize',
    body: ({ intent }) => [{ token_intent_id: intent, mask: revealing, containers: ['/b/'] }],
  },
  {
    name: 'bulk an intent with a fingerprint',
    method: 'POST',
    path: () => '/tokens/bulk',
    lines: true,
    body: ({ intent }) => [
      { token_intent_id: intent, fingerprint_expression: slice, containers: ['/b/'] },
    ],
  },
  {
    name: 'create with guesses of a part of each value',
    method: 'POST',
    path: () => '/tokenize',
    body: ({ guess, guessOfIntent }) =>
      [guess, guessOfIntent].map(({ pan }) => ({
        type: 'token',
        data: pan.slice(0, 8),
        fingerprint_expression: '{{ data }}',
        deduplicate_token: true,
        containers: ['/b/'],
      })),
  },
];

/** Sequences that are always tried: each of them is an attack only as a whole. */
const plans: readonly (readonly Request[])[] = [
  // A token of the caller's own shows all it holds, and the intent is merged into it.
  [
    {
      name: 'create a token whose mask shows everything',
      method: 'POST',
      path: () => '/tokens',
      body: ({ converted }) => ({
        id: converted,
        type: 'token',
        data: { pan: 'my own', code: 'my own' },
        mask: revealing,
        search_indexes: [slice],
        fingerprint_expression: converted,
        containers: ['/a/'],
      }),
    },
    {
      name: 'convert the intent into it',
      method: 'POST',
      path: () => '/tokens',
      body: ({ intent, converted }) => ({
        token_intent_id: intent,
        fingerprint_expression: converted,
        deduplicate_token: true,
        containers: ['/a/'],
      }),
    },
  ],
  [convert('nothing', {}), patch('container', { containers: ['/a/'] }, 'converted')],
];

const searchFor = (of: 'token' | 'converted', guess: 'guess' | 'guessOfIntent'): Request => ({
  name: `search the ${of} by a guess of a part`,
  reads: true,
  method: 'POST',
  path: () => '/tokens/search',
  body: (names) => ({ query: `id:${names[of]} AND data:${names[guess].pan.slice(0, 8)}` }),
});

/** They change nothing, and so may follow one another in one world. */
const looks: readonly Request[] = [
  { name: 'GET', reads: true, method: 'GET', path: ({ token }) => `/tokens/${token}` },
  {
    name: 'list',
    reads: true,
    method: 'GET',
    path: ({ token, converted }) => `/tokens?id=${token}&id=${converted}`,
  },
  {
    name: 'export',
    reads: true,
    method: 'GET',
    path: ({ metadata }) => `/tokens/export?metadata.of=${metadata['of']}`,
  },
  searchFor('token', 'guess'),
  searchFor('converted', 'guessOfIntent'),
  {
    name: 'detokenize',
    reads: true,
    method: 'POST',
    path: () => '/detokenize',
    body: ({ token }) => ({
      whole: `{{ token: ${token} }}`,
      data: `{{ ${token} }}`,
      part: `{{ ${token} | json: '$.pan' }}`,
    }),
  },
  {
    name: 'detokenize the intent',
    reads: true,
    method: 'POST',
    path: () => '/detokenize',
    body: ({ intent }) => ({ data: `{{ token_intent: ${intent} }}` }),
  },
  {
    name: 'bulk with a guess of the whole value',
    method: 'POST',
    path: () => '/tokens/bulk',
    lines: true,
    body: ({ token, guess, metadata }) => [
      { id: token, type: 'token', data: guess, mask: ownMask, metadata, containers: ['/a/'] },
    ],
  },
  {
    name: 'bulk with a guess of the whole value of the intent',
    afterConversion: true,
    method: 'POST',
    path: () => '/tokens/bulk',
    lines: true,
    body: ({ converted, guessOfIntent: data }) =>
      ['/a/', '/b/'].map((container) => ({
        id: converted,
        type: 'token',
        data,
        containers: [container],
      })),
  },
  {
    name: 'create with the id of the token',
    method: 'POST',
    path: () => '/tokens',
    body: ({ token, guess }) => ({
      id: token,
      type: 'token',
      data: guess,
      containers: ['/a/'],
    }),
  },
];

// ---- The search. ----

interface FinderOptions {
  readonly below: Below;
  /** Sequences that it goes on from. */
  readonly longerMax: number;
}

/** Every violation, with the sequence that led to it. */
class Finder {
  readonly violations: string[] = [];
  readonly #twins: TwinTenants;
  readonly #options: FinderOptions;
  #longer = 0;

  constructor(twins: TwinTenants, options: FinderOptions) {
    this.#twins = twins;
    this.#options = options;
  }

  /** Goes on from what was done before; what is refused leaves the world as it is. */
  async explore(of: Scene, before: readonly Request[]): Promise<void> {
    const next: Request[] = [];
    let world: Twins | undefined;
    for (const change of changes) {
      if (this.violations.length >= violationsMax) return;
      world ??= await this.#begin(of, before);
      if (world === undefined) return;
      const { done, violation } = await world.send(change);
      const sequence = [...before, change];
      const violated = violation ?? (done && (await this.#look(of, world, sequence)));
      if (violated) this.violations.push(sentence(of, sequence, violated));
      if (done) world = undefined;
      if (done && !violated) next.push(change);
    }
    if (before.length + 1 < lengthMax) await this.#exploreSome(of, before, next);
  }

  /** Looks around after each request of the sequence. */
  async follow(of: Scene, requests: readonly Request[]): Promise<void> {
    const world = await createTwins(this.#twins, of, this.#options.below);
    for (const [at, request] of requests.entries()) {
      const { done, violation } = await world.send(request);
      const sequence = requests.slice(0, at + 1);
      const violated = violation ?? (done && (await this.#look(of, world, sequence)));
      if (violated) this.violations.push(sentence(of, sequence, violated));
      if (violated || !done) return;
    }
  }

  async #exploreSome(of: Scene, before: readonly Request[], next: Request[]): Promise<void> {
    while (next.length > 0 && this.#longer < this.#options.longerMax) {
      this.#longer += 1;
      const [change] = next.splice(this.#options.below(next.length), 1);
      if (change) await this.explore(of, [...before, change]);
    }
  }

  async #begin(of: Scene, before: readonly Request[]): Promise<Twins | undefined> {
    const world = await createTwins(this.#twins, of, this.#options.below);
    for (const request of before) await world.send(request);
    const violated = before.length === 0 && (await this.#look(of, world, before));
    if (!violated) return world;
    this.violations.push(sentence(of, before, violated));
    return undefined;
  }

  /** After the last request of a sequence nothing more is asked. */
  async #look(of: Scene, world: Twins, done: readonly Request[]): Promise<string | undefined> {
    if (done.length >= lengthMax) return undefined;
    for (const look of looks) {
      if (look.reads && !of.reads) continue;
      if (look.afterConversion && !done.some((one) => one.converts)) continue;
      const { violation } = await world.send(look);
      if (violation) return `${look.name} ${violation}`;
    }
    return undefined;
  }
}

function sentence({ name }: Scene, requests: readonly Request[], violation: string): string {
  return `A caller (${name}): ${requests.map((one) => one.name).join(', then ')}: ${violation}`;
}

async function twinsOf(tenants: () => Promise<TestTenant>): Promise<TwinTenants> {
  const both = [await tenants(), await tenants()] as const;
  const permissions = ['token-intent:create'];
  const intentKeys = [
    await both[0].application({ permissions }),
    await both[1].application({ permissions }),
  ] as const;
  return { tenants: both, intentKeys };
}

onBothEngines('No sequence of up to three requests', (engine) => {
  const tenants = tenantsOf(engine);

  test('makes the vault say more about a value than a read at its beginning', async (t) => {
    const below = seeded(t);
    const twins = await twinsOf(tenants);
    const { scenesMax, longerMax } = efforts[engine.name];
    const first = below(scenes.length);
    const some = [...scenes.slice(first), ...scenes.slice(0, first)].slice(0, scenesMax);
    const violations: string[] = [];
    for (let at = 0; at < some.length && violations.length < violationsMax; at += scenesAtOnce) {
      const now = some.slice(at, at + scenesAtOnce);
      const options = now.map(() => ({ below: numbersFrom(below(2 ** 31)), longerMax }));
      const finders = options.map((one) => new Finder(twins, one));
      await Promise.all(
        now.map(async (one, index) => {
          for (const plan of plans) await finders[index]?.follow(one, plan);
          await finders[index]?.explore(one, []);
        }),
      );
      violations.push(...finders.flatMap((finder) => finder.violations));
    }
    assert.deepEqual(violations.slice(0, violationsMax), [], `${violations.length} violations`);
  });
});
