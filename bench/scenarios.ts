/** What is measured: one row each. */
import { cardBody } from './cards.ts';
import { cardPlace, type Method, type RequestOf } from './job.ts';
import type { Population } from './population.ts';
import type { PromiseName } from './promises.ts';
import type { Transform, Vault } from './vault.ts';

export interface Scenario {
  readonly name: string;
  /** How many rounds in a short run, and in a full one. */
  readonly rounds: { readonly short: number; readonly full: number };
  /** What of the vault it runs; the first scenario of each warms it up. */
  readonly code: 'get' | 'detokenize' | 'list' | 'search' | 'patch' | 'create';
  readonly work: Requests | 'lines';
  /** Taken back one by one, each in a vault of its own. */
  readonly prices?: readonly PromiseName[];
  /** The same without what a caller may ask for. */
  readonly plain?: { readonly without: string; readonly requests: Requests };
}

export interface Requests {
  readonly method: Method;
  readonly transform?: Transform;
  readonly connections?: number;
  /** Of one request; 1 unless given. */
  readonly values?: number;
  readonly of: (vault: Vault, population: Population) => RequestOf[] | Promise<RequestOf[]>;
}

const often = { short: 2, full: 5 };
const once = { short: 1, full: 3 };
const pages = 50;
const knownCards = 1_000;

const create: Requests = {
  method: 'POST',
  of: () => [{ path: '/tokens', body: cardBody(cardPlace) }],
};

const keyed: Requests = {
  method: 'POST',
  of: () => [{ path: '/tokens', body: cardBody(cardPlace), idempotencyKey: `card-${cardPlace}` }],
};

/** Every other card is there already. */
const deduplicate: Requests = {
  method: 'POST',
  of: (_, { sample }) => {
    const body = (number: string) => cardBody(number, { deduplicate_token: true });
    const fresh = { path: '/tokens', body: body(cardPlace) };
    return sample
      .slice(0, knownCards)
      .flatMap(({ number }) => [fresh, { path: '/tokens', body: body(number) }]);
  },
};

const get = (transform: Transform): Requests => ({
  method: 'GET',
  transform,
  of: (_, { sample }) => sample.map(({ id }) => ({ path: `/tokens/${id}` })),
});

const patch: Requests = {
  method: 'PATCH',
  of: (_, { sample }) => {
    const body = { data: { expiration_year: 2031 }, metadata: { order: cardPlace } };
    return sample.map(({ id }) => ({ path: `/tokens/${id}`, body: JSON.stringify(body) }));
  },
};

/** Of many values in a call few calls at once: each is as much work as many requests. */
const detokenize = (values: number, connections = 64): Requests => ({
  method: 'POST',
  values,
  connections,
  of: (_, { sample }) =>
    Array.from({ length: Math.ceil(sample.length / values) }, (_, call) => {
      const cards = sample.slice(call * values, (call + 1) * values);
      return { path: '/detokenize', body: JSON.stringify(cards.map(({ id }) => `{{ ${id} }}`)) };
    }),
});

const list: Requests = {
  method: 'GET',
  of: async (vault) => {
    const requests: RequestOf[] = [];
    for (let start: string | undefined = ''; start !== undefined && requests.length < pages; ) {
      const request: RequestOf = { path: `/v2/tokens?size=20&start=${start}` };
      requests.push(request);
      start = JSON.parse(await vault.send('GET', request)).pagination.next;
    }
    return requests;
  },
};

const search: Requests = {
  method: 'POST',
  of: (_, { sample }) =>
    sample.map(({ number }) => {
      const body = JSON.stringify({ query: `data:"${number}"` });
      return { path: '/v2/tokens/search', body };
    }),
};

/** Those that only read come first, so that they find as many tokens as the table says. */
export const scenarios: readonly Scenario[] = [
  {
    name: 'get revealed',
    code: 'get',
    rounds: often,
    work: get('reveal'),
    prices: ['the audit log', 'fsync'],
  },
  { name: 'get masked', code: 'get', rounds: often, work: get('mask') },
  { name: 'detokenize 1', code: 'detokenize', rounds: once, work: detokenize(1) },
  { name: 'detokenize 10', code: 'detokenize', rounds: once, work: detokenize(10) },
  { name: 'detokenize 100', code: 'detokenize', rounds: once, work: detokenize(100, 16) },
  { name: 'detokenize 1000', code: 'detokenize', rounds: once, work: detokenize(1_000, 4) },
  { name: 'list', code: 'list', rounds: once, work: list },
  { name: 'search', code: 'search', rounds: once, work: search },
  { name: 'patch', code: 'patch', rounds: once, work: patch },
  {
    name: 'create',
    code: 'create',
    rounds: often,
    work: create,
    prices: ['the audit log', 'fsync'],
  },
  { name: 'create with deduplication', code: 'create', rounds: once, work: deduplicate },
  {
    name: 'create with idempotency key',
    code: 'create',
    rounds: once,
    work: keyed,
    plain: { without: 'the idempotency key', requests: create },
  },
  { name: 'bulk import', code: 'create', rounds: once, work: 'lines' },
];
