/** Traces: a client's is continued in the response, the log and calls to other hosts, and sent to a collector. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type HostRequest, json, startHost } from '../support/host.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';
const traceparent = `00-${traceId}-${parentId}-01`;
const form = new RegExp(`^00-${traceId}-([0-9a-f]{16})-01$`);

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly {
    key: string;
    value: { stringValue?: string; intValue?: string };
  }[];
  readonly status?: { readonly code: number };
}

const spansOf = (requests: readonly HostRequest[]): SentSpan[] =>
  requests.flatMap(({ body }) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans);

const attributesOf = ({ attributes }: SentSpan) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
  );

onBothEngines('traceparent', (engine) => {
  test('is answered with a span below it, and is the trace id of the log unless another is given', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const body = { id: 'a token', type: 'token', data: 'x' };
    const first = await tenant.send('POST', '/tokens', { body, headers: { traceparent } });
    assert.match(first.headers.get('traceparent') ?? '', form);
    assert.equal(first.headers.get('svc-trace-id'), traceId);
    const headers = { traceparent, 'svc-trace-id': 'mine' };
    const second = await tenant.send('GET', '/tokens/a%20token', { headers });
    assert.equal(second.headers.get('svc-trace-id'), 'mine');
    assert.match(second.headers.get('traceparent') ?? '', form);
    const entries = (await tenant.rows('logs')).filter(({ entity_id }) => entity_id === 'a token');
    assert.deepEqual(entries.map(({ trace_id }) => trace_id).sort(), [traceId, 'mine'].sort());
  });

  test('that is not valid is as none: no trace is begun without a collector', async (t) => {
    const vault = await startVault(t, engine);
    for (const sent of [undefined, 'nonsense', `00-${'0'.repeat(32)}-${parentId}-01`]) {
      const headers = sent === undefined ? {} : { traceparent: sent };
      const response = await vault.send('GET', '/ping', { headers });
      assert.equal(response.headers.get('traceparent'), null);
      assert.match(response.headers.get('svc-trace-id') ?? '', /^[0-9a-f-]{36}$/);
    }
  });
});

onBothEngines('a collector', (engine) => {
  test('gets the spans of requests, their commits and their calls, without values', async (t) => {
    const collector = await startHost(t);
    const bank = await startHost(t);
    bank.answer(json({ status: 'enabled' }));
    const vault = await startVault(t, engine, {
      environment: {
        STRONGROOM_OTLP_ENDPOINT: `${collector.url}/`,
        STRONGROOM_BANK_PROVIDER_URL: `${bank.url}/verify?secret=xyzzy`,
        STRONGROOM_OUTBOUND_ALLOW: bank.name,
      },
    });
    const tenant = await newTenant(vault);
    await tenant.set({ bank_verification_provider: 'http' });
    const account = { routing_number: '021000021', account_number: '4242424242424242' };
    await tenant.token({ id: 'secret id', type: 'bank', data: account });
    const verified = await tenant.send('POST', '/enrichments/bank-account-verify', {
      body: { token_id: 'secret id' },
      headers: { traceparent },
    });
    assert.equal(verified.status, 200, verified.text);
    await tenant.send('GET', '/tokens/secret%20id');
    const unsampled = { traceparent: `00-${traceId.replace('4', '5')}-${parentId}-00` };
    await tenant.send('GET', '/tokens/secret%20id', { headers: unsampled });
    await vault.stop();

    assert.ok(collector.requests.every(({ path }) => path === '/v1/traces'));
    const spans = spansOf(collector.requests);
    const own = spans.filter((span) => span.traceId === traceId);
    const server = own.find(({ kind }) => kind === 2);
    assert.ok(server);
    assert.equal(server.name, 'POST /enrichments/bank-account-verify');
    assert.equal(server.parentSpanId, parentId);
    assert.equal(`00-${traceId}-${server.spanId}-01`, verified.headers.get('traceparent'));
    assert.deepEqual(attributesOf(server), {
      'http.request.method': 'POST',
      'http.route': '/enrichments/bank-account-verify',
      'http.response.status_code': 200,
      'strongroom.tenant.id': tenant.id,
    });
    const children = own.filter(({ parentSpanId }) => parentSpanId === server.spanId);
    assert.deepEqual(children.map(({ name }) => name).sort(), [
      'POST outbound',
      'commit',
      'commit',
    ]);
    assert.equal(own.length, 4);
    const call = children.find(({ name }) => name === 'POST outbound');
    const [received] = bank.requests;
    assert.equal(received?.headers['traceparent'], `00-${traceId}-${call?.spanId}-01`);

    const read = spans.find(({ name }) => name === 'GET /tokens/:id');
    assert.equal(read?.parentSpanId, undefined, 'a request without a trace begins one');
    assert.equal(
      spans.some((span) => span.traceId.startsWith('5bf92f')),
      false,
    );
    const sent = collector.requests.map(({ body }) => body).join();
    assert.doesNotMatch(sent, /4242424242|secret|xyzzy|021000021|127\.0\.0/);
  });

  test('that is not there costs no request anything, and what was lost is counted', async (t) => {
    const collector = await startHost(t);
    collector.answer(json({}, 503));
    const environment = { STRONGROOM_OTLP_ENDPOINT: collector.url };
    const vault = await startVault(t, engine, { environment });
    // So few at once that none is refused for that reason on a busy machine; together they fill a batch.
    for (let batch = 0; batch < 16; batch += 1) {
      const sent = await Promise.all(
        Array.from({ length: 32 }, () => vault.send('GET', '/healthz')),
      );
      assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([200]));
    }
    const lost = async () =>
      /^strongroom_trace_spans_lost_total (\d+)$/m.exec(
        (await vault.send('GET', '/metrics')).text,
      )?.[1];
    while (Number(await lost()) < 512) await new Promise((resolve) => setImmediate(resolve));
    const warnings = vault.logged.filter(({ message }) => message.startsWith('spans were not'));
    assert.equal(warnings.length, 1);
  });
});
