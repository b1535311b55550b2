/** Imports and exports of any size: in bounded memory, complete or with an error, and never twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AuthenticationError,
  type ImportResult,
  type Progress,
  StreamError,
  Strongroom,
  TimeoutError,
  type TokenRequest,
} from '../../packages/client/src/client.ts';
import { clientOf, interceptedFetch } from '../support/client.ts';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';

const texts = (count: number, from = 1): TokenRequest[] =>
  Array.from({ length: count }, (_, at) => ({ type: 'token', data: `value ${from + at}` }));

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** The first responses with a body of lines end after so many of them, as a connection that breaks. */
function breaking(after: readonly number[]): typeof fetch {
  let broken = 0;
  return interceptedFetch(async (_, send) => {
    const response = await send();
    const lines = after[broken];
    if (lines === undefined || !/ndjson/.test(response.headers.get('content-type') ?? '')) {
      return response;
    }
    broken += 1;
    // All of it has happened in the vault by then.
    const text = (await response.text()).split('\n').slice(0, lines).join('\n');
    const rest = new ReadableStream({
      start: (control) => {
        control.enqueue(new TextEncoder().encode(`${text}\n{"line":`));
      },
      pull: (control) => control.error(new TypeError('terminated')),
    });
    return new Response(rest, response);
  });
}

onBothEngines('streams of the client', (engine) => {
  const tenants = tenantsOf(engine);

  test('an import gives the result of every request in its order, and an export every token', async () => {
    const vault = clientOf(await tenants());
    const requests = texts(120);
    requests[49] = { type: 'card', data: { number: '4242424242424241' } };
    const seen: Progress[] = [];
    const results = await collect(
      vault.tokens.import(requests, { requestsAtOnce: 50, onProgress: (one) => seen.push(one) }),
    );
    assert.deepEqual(
      results.map(({ line }) => line),
      requests.map((_, at) => at + 1),
    );
    const failed = results.filter(({ problem }) => problem);
    assert.deepEqual(
      failed.map(({ line, status, problem }) => [line, status, Object.keys(problem?.errors ?? {})]),
      [[50, 400, ['data.number']]],
    );
    assert.deepEqual(
      seen.map(({ done, failed }) => [done, failed]),
      [
        [50, 1],
        [100, 1],
        [120, 1],
      ],
    );
    const progress: Progress[] = [];
    const exported = await collect(
      vault.tokens.export<string>({ type: 'token' }, { onProgress: (one) => progress.push(one) }),
    );
    const sent = texts(120).flatMap((one, at) => ('data' in one && at !== 49 ? [one.data] : []));
    assert.deepEqual(exported.map(({ data }) => data).sort(), sent.sort());
    assert.equal(progress.at(-1)?.done, 119);
  });

  test('an import that breaks off is sent again from there, and creates nothing twice', async () => {
    const tenant = await tenants();
    const vault = clientOf(tenant, { fetch: breaking([7, 0, 3]) });
    const results = await collect(vault.tokens.import(texts(40)));
    assert.deepEqual(
      results.map(({ line }) => line),
      texts(40).map((_, at) => at + 1),
    );
    const ids = results.map(({ token }) => token?.id);
    const stored = (await vault.tokens.list({ size: 100 }).toArray()).map(({ id }) => id);
    assert.deepEqual(stored.sort(), ids.sort());
  });

  test('an import by a key that may not read gives the ids of what a broken connection had stored', async () => {
    const tenant = await tenants();
    const apiKey = await tenant.application({ permissions: ['token:create'] });
    const vault = clientOf(tenant, { apiKey, fetch: breaking([2]) });
    const results = await collect(vault.tokens.import(texts(6)));
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 201, 200, 200, 200, 200],
    );
    const ids = results.map(({ token }) => token?.id);
    const stored = await clientOf(tenant).tokens.list({ size: 100 }).toArray();
    assert.deepEqual(stored.map(({ id }) => id).sort(), ids.sort());
  });

  test('an export that breaks off throws how far it came', async () => {
    const tenant = await tenants();
    await collect(clientOf(tenant).tokens.import(texts(30)));
    const vault = clientOf(tenant, { fetch: breaking([12]) });
    const read: string[] = [];
    await assert.rejects(
      async () => {
        for await (const { id } of vault.tokens.export()) read.push(id);
      },
      (error: unknown) => {
        assert.ok(error instanceof StreamError);
        assert.equal(error.done, 12);
        assert.equal(read.length, 12);
        assert.match(error.message, /broke off after 12 tokens.*Export again/);
        return true;
      },
    );
  });

  test('an export can be left, and another begins at once', async () => {
    const vault = clientOf(await tenants());
    await collect(vault.tokens.import(texts(10)));
    for await (const { id } of vault.tokens.export()) {
      assert.ok(id);
      break;
    }
    assert.equal((await collect(vault.tokens.export())).length, 10);
  });

  test('a refusal of the whole stream is the error of its status', async () => {
    const apiKey = 'a.key.that.no.vault.knows.00000000000000';
    const vault = clientOf(await tenants(), { apiKey });
    await assert.rejects(collect(vault.tokens.export()), AuthenticationError);
    await assert.rejects(collect(vault.tokens.import(texts(1))), AuthenticationError);
  });
});

/** A client of what responds with these lines, and no vault. */
function linesOf(lines: readonly object[], end?: 'error' | 'hang'): Strongroom {
  return new Strongroom({
    url: 'https://vault.example.com',
    apiKey: 'key',
    retries: 0,
    fetch: async () => {
      const bytes = new TextEncoder().encode(
        lines.map((one) => `${JSON.stringify(one)}\n`).join(''),
      );
      const body = new ReadableStream<Uint8Array>({
        start: (control) => {
          control.enqueue(bytes);
          if (end === undefined) control.close();
        },
        pull: (control) => {
          if (end === 'error') control.error(new TypeError('terminated'));
        },
      });
      return new Response(body, { headers: { 'content-type': 'application/x-ndjson' } });
    },
  });
}

const problem = (code: string, status: number) => ({
  problem: { type: `urn:strongroom:problem:${code}`, title: 'T', status, detail: 'The reason.' },
});

test('an export without its last line is not complete', async () => {
  const cases: [object[], 'error' | undefined, RegExp][] = [
    [[{ id: 'a' }], undefined, /the connection ended/],
    [[{ id: 'a' }], 'error', /the connection was lost/],
    [[{ id: 'a' }, { exported: 2 }], undefined, /no token/],
    [[{ id: 'a' }, problem('unauthenticated', 401)], undefined, /The reason\./],
  ];
  for (const [lines, end, message] of cases) {
    await assert.rejects(collect(linesOf(lines, end).tokens.export()), (error: unknown) => {
      assert.ok(error instanceof StreamError);
      assert.equal(error.done, 1);
      assert.match(error.message, message);
      return true;
    });
  }
});

test('an import that the vault ends gives what has a result, and says where to go on', async () => {
  const lines = [{ line: 1, status: 201, token: { id: 'a' } }, problem('unauthenticated', 401)];
  const results: ImportResult[] = [];
  await assert.rejects(
    async () => {
      for await (const one of linesOf(lines).tokens.import(texts(3))) results.push(one);
    },
    (error: unknown) => {
      assert.ok(error instanceof StreamError);
      assert.equal(error.done, 1);
      assert.equal(error.problem?.status, 401);
      assert.match(error.message, /The reason\. Go on with request 2\./);
      return true;
    },
  );
  assert.equal(results.length, 1);
});

test('an import takes no more from its source than what it sends next', async () => {
  let taken = 0;
  function* source() {
    for (const request of texts(100)) {
      taken += 1;
      yield request;
    }
  }
  const vault = new Strongroom({
    url: 'https://vault.example.com',
    apiKey: 'key',
    fetch: async (_, init) => {
      const lines = String(init?.body).trim().split('\n');
      const results = lines.map((_, at) => JSON.stringify({ line: at + 1, status: 201 }));
      return new Response(results.join('\n'));
    },
  });
  let read = 0;
  for await (const { line } of vault.tokens.import(source(), { requestsAtOnce: 10 })) {
    read += 1;
    assert.equal(line, read);
    assert.ok(taken <= Math.ceil(read / 10) * 10 + 1, `${taken} for ${read}`);
  }
  assert.equal(read, 100);
});

test('an export reads no further than its caller', async () => {
  let pulled = 0;
  const vault = new Strongroom({
    url: 'https://vault.example.com',
    apiKey: 'key',
    fetch: async () =>
      new Response(
        new ReadableStream(
          {
            pull: (control) => {
              pulled += 1;
              control.enqueue(new TextEncoder().encode(`{"id":"${pulled}"}\n`));
            },
          },
          { highWaterMark: 0 },
        ),
      ),
  });
  let read = 0;
  for await (const { id } of vault.tokens.export()) {
    read += 1;
    assert.equal(id, String(read));
    assert.ok(pulled <= read + 1, `${pulled} for ${read}`);
    if (read === 50) break;
  }
});

test('a stream that says nothing ends by the time-out, and by the signal', async () => {
  const hanging = linesOf([{ id: 'a' }], 'hang');
  await assert.rejects(collect(hanging.tokens.export({}, { timeout: 50 })), (error: unknown) => {
    assert.ok(error instanceof StreamError || error instanceof TimeoutError);
    return true;
  });
  const control = new AbortController();
  const reason = new Error('enough');
  await assert.rejects(async () => {
    for await (const { id } of hanging.tokens.export({}, { signal: control.signal })) {
      assert.equal(id, 'a');
      control.abort(reason);
    }
  }, reason);
});
