/** Clients that leave before their response has begun: nothing is done for them, and nothing waits for them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { VaultError } from '../../src/base/errors.ts';
import { createProcessorTime } from '../../src/base/processor-time.ts';
import { createMetrics } from '../../src/base/telemetry/metrics.ts';
import { createShares } from '../../src/http/limits/shares.ts';
import { readBody } from '../../src/http/protocol/body.ts';
import { createCors } from '../../src/http/protocol/cors.ts';
import type { RequestContext } from '../../src/http/protocol/request-context.ts';
import type { StreamRoute, WholeRoute } from '../../src/http/protocol/route.ts';
import { createTransport, type Transport } from '../../src/http/transport.ts';

const failures: string[] = [];

interface Departed {
  readonly transport: Transport;
  readonly context: RequestContext;
}

/** A request whose connection ended before it was handled. */
async function departed(t: TestContext, trustedProxies: readonly string[] = []): Promise<Departed> {
  const transport = createTransport({
    vaultName: 'strongroom-0000000000000000',
    shares: createShares(),
    processorTime: createProcessorTime(),
    keyOf: () => undefined,
    tls: undefined,
    trustedProxies,
    begin: () => undefined,
    cors: createCors(['SVC']),
    log: { debug: nothing, info: nothing, warn: nothing, error: (text) => failures.push(text) },
    metrics: createMetrics(),
    onEnd: nothing,
  });
  const handled = new Promise<RequestContext>((resolve) => {
    transport.route(['POST'], '/', async (context) => {
      if (!context.response.closed) await once(context.response, 'close');
      resolve(context);
    });
  });
  transport.server.prependListener('request', ({ socket }) => socket.destroy());
  await transport.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => transport.close());
  const { port } = transport.server.address() as { port: number };
  const socket = connect(port, '127.0.0.1').on('error', nothing);
  const headers = 'host: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n';
  socket.write(`POST / HTTP/1.1\r\n${headers}x-forwarded-for: 192.0.2.1\r\n\r\n{}`);
  return { transport, context: await handled };
}

const nothing = () => undefined;

const isConnectionEnded = (error: unknown) =>
  error instanceof VaultError && error.code === 'malformed_request';

test('a stream for a client that has left does no work, and does not hold a stop', async (t) => {
  const { transport, context } = await departed(t);
  let asked = 0;
  const route = {
    reply: { status: 200, mediaType: 'application/x-ndjson' },
    async *stream() {
      asked++;
      yield [{}];
    },
  } as unknown as StreamRoute;
  const caller = () => Promise.reject(new Error('nobody is asked for'));
  const count = async (granted: number) => ({ granted, refusal: undefined });
  const serialize = JSON.stringify;
  await assert.rejects(
    transport.streaming.respond({ context, route, serialize, caller, key: undefined, count }),
    isConnectionEnded,
  );
  assert.equal(asked, 0);
  await transport.close();
});

test('parts for a client that has left are given up, which is not a failure of the vault', async (t) => {
  const { context } = await departed(t);
  const parts = Readable.from(['part']);
  context.stream(200, 'text/plain', parts);
  assert.equal(parts.destroyed, true);
  assert.deepEqual(failures, []);
});

test('the body of a client that has left is not waited for', async (t) => {
  const { context } = await departed(t);
  await assert.rejects(async () => readBody({} as WholeRoute, context), isConnectionEnded);
});

test('the address of a client that has left is still known, also behind a trusted proxy', async (t) => {
  assert.equal((await departed(t)).context.address, '127.0.0.1');
  assert.equal((await departed(t, ['127.0.0.1'])).context.address, '192.0.2.1');
});
