/** Spans are sent in batches and bounded, and never waited for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createSpans,
  type Span,
  spansPerBatchMax,
  spansWaitingMax,
} from '../../src/base/telemetry/spans.ts';

const trace = {
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  sampled: true,
};

const span: Span = {
  trace,
  name: 'GET /tokens/:id',
  kind: 'server',
  tookMs: 12.5,
  attributes: { 'http.route': '/tokens/:id', 'http.response.status_code': 500 },
  failed: true,
};

// biome-ignore lint/suspicious/noExplicitAny: the protocol's JSON
const spansIn = (batch: string): any[] => JSON.parse(batch).resourceSpans[0].scopeSpans[0].spans;

function collecting(send: (batch: string) => Promise<void>) {
  const sent: string[] = [];
  let lost = 0;
  const spans = createSpans({
    version: '1.2.3',
    send: (batch) => {
      sent.push(batch);
      return send(batch);
    },
    onLost: (count) => {
      lost += count;
    },
  });
  return { spans, sent, lost: () => lost };
}

test('a span is sent as OTLP writes it in JSON', async () => {
  const { spans, sent } = collecting(async () => undefined);
  spans.record(span);
  spans.record({ ...span, trace: { ...trace, sampled: false } });
  await spans.close();
  assert.equal(sent.length, 1);
  const [{ resource }] = JSON.parse(sent[0] ?? '').resourceSpans;
  assert.deepEqual(resource.attributes, [
    { key: 'service.name', value: { stringValue: 'strongroom' } },
    { key: 'service.version', value: { stringValue: '1.2.3' } },
  ]);
  const [{ startTimeUnixNano, endTimeUnixNano, ...one }, ...others] = spansIn(sent[0] ?? '');
  assert.deepEqual(others, [], 'who began the trace said that it is not recorded');
  assert.equal(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano), 12_500_000n);
  assert.deepEqual(one, {
    traceId: trace.traceId,
    spanId: trace.spanId,
    name: 'GET /tokens/:id',
    kind: 2,
    attributes: [
      { key: 'http.route', value: { stringValue: '/tokens/:id' } },
      { key: 'http.response.status_code', value: { intValue: '500' } },
    ],
    status: { code: 2 },
  });
});

test('a full batch leaves at once, and what waits besides is bounded', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { spans, sent, lost } = collecting(() => promise);
  for (let count = 0; count < spansPerBatchMax; count += 1) spans.record(span);
  assert.equal(sent.length, 1, 'it is being sent');
  for (let count = 0; count < spansWaitingMax; count += 1) spans.record(span);
  assert.equal(lost(), 0);
  spans.record(span);
  assert.equal(lost(), 1);
  resolve();
  await spans.close();
  const counts = sent.map((batch) => spansIn(batch).length);
  assert.ok(counts.every((count) => count === spansPerBatchMax));
  assert.equal(counts.length, 1 + spansWaitingMax / spansPerBatchMax);
});

test('a batch that was not accepted is lost and counted, and the next one is sent', async () => {
  const outcomes = [Promise.reject(new Error('refused')), Promise.resolve()];
  const { spans, sent, lost } = collecting(() => outcomes.shift() ?? Promise.resolve());
  for (let count = 0; count <= spansPerBatchMax; count += 1) spans.record(span);
  await spans.close();
  assert.deepEqual(
    sent.map((batch) => spansIn(batch).length),
    [spansPerBatchMax, 1],
  );
  assert.equal(lost(), spansPerBatchMax);
});
