/** W3C Trace Context: which headers are valid, and what is passed on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pooledRandom } from '../../src/base/random.ts';
import {
  childOf,
  newTrace,
  traceBelow,
  traceparentOf,
} from '../../src/base/telemetry/trace-context.ts';

const random = pooledRandom();
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';

test('a valid header is continued by a span of its own', () => {
  for (const [header, sampled] of [
    [`00-${traceId}-${parentId}-01`, true],
    [`00-${traceId}-${parentId}-00`, false],
    [`00-${traceId}-${parentId}-03`, true],
    // A later version may have more.
    [`cc-${traceId}-${parentId}-01-what-the-future-brings`, true],
  ] as const) {
    const trace = traceBelow(header, random);
    assert.deepEqual({ ...trace, spanId: '' }, { traceId, spanId: '', parentId, sampled });
    assert.match(trace?.spanId ?? '', /^[0-9a-f]{16}$/);
    assert.notEqual(trace?.spanId, parentId);
  }
});

test('any other header is as none', () => {
  const zeros = '0'.repeat(32);
  const wrong = [
    '',
    traceId,
    `00-${traceId}-${parentId}`,
    `00-${traceId}-${parentId}-01-more`,
    `00-${traceId}-${parentId}-01-`,
    `ff-${traceId}-${parentId}-01`,
    `00-${zeros}-${parentId}-01`,
    `00-${traceId}-${zeros.slice(16)}-01`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    `00-${traceId}0-${parentId}-01`,
    `cc-${traceId}-${parentId}-01-${'x'.repeat(600)}`,
  ];
  for (const header of wrong) assert.equal(traceBelow(header, random), undefined, header);
});

test('a new trace is recorded, and its spans are below one another', () => {
  const trace = newTrace(random);
  const child = childOf(trace, random);
  assert.equal(child.traceId, trace.traceId);
  assert.equal(child.parentId, trace.spanId);
  assert.match(traceparentOf(child), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  assert.deepEqual(
    traceBelow(traceparentOf(child), random)?.parentId,
    child.spanId,
    'what is passed on is valid',
  );
  assert.match(traceparentOf({ ...trace, sampled: false }), /-00$/);
});
