/** Events of tokens that arrived, compared with the log: all that was committed, nothing else, and in order. */
import assert from 'node:assert/strict';
import { type EventType, eventTypeNames, eventTypes } from '../../src/webhooks/events/types.ts';
import type { Engine, Place } from './engines.ts';
import type { Receiver } from './receivers.ts';
import { rowsOf } from './rows.ts';

export const tokenEvents = eventTypeNames.filter((name) => name.startsWith('token.'));

const operations = new Map(
  tokenEvents.map((name) => [`${eventTypes[name].entity} ${eventTypes[name].operation}`, name]),
);

/** What the log says that the receivers have to learn; a request has a trace of its own. */
async function committed(engine: Engine, place: Place): Promise<Set<string>> {
  const entries = await rowsOf(engine, place, 'logs');
  const facts = entries.flatMap(({ entity_type, entity_id, operation, result, trace_id }) => {
    const type: EventType | undefined = operations.get(`${entity_type} ${operation}`);
    return type !== undefined && result === 'success' ? [`${type} ${entity_id} ${trace_id}`] : [];
  });
  return new Set(facts);
}

function learned({ arrivals }: Receiver): Set<string> {
  return new Set(
    arrivals.map(({ event }) => `${event.type} ${event.data.token.id} ${event.trace_id}`),
  );
}

/** Waits until both know all that the log has, and fails unless that is all, and in order for the first. */
export async function checkArrivals(
  engine: Engine,
  place: Place,
  [ordered, other]: readonly [Receiver, Receiver],
) {
  const facts = await committed(engine, place);
  assert.ok(facts.size > 50);
  for (const receiver of [ordered, other]) {
    await receiver.until(() => learned(receiver).size >= facts.size);
    assert.deepEqual(
      [...learned(receiver)].filter((fact) => !facts.has(fact)),
      [],
    );
    assert.equal(learned(receiver).size, facts.size);
  }
  const latest = new Map<string, number>();
  for (const { event } of ordered.arrivals) {
    const { id } = event.data.token;
    const before = latest.get(id) ?? 0;
    const isNext = event.sequence === before + 1 || event.sequence === before;
    assert.ok(isNext, `${event.sequence} of a token came after ${before}`);
    latest.set(id, event.sequence);
  }
}
