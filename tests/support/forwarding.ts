/** Requests forwarded to a destination of the tests, which the operator allows. */
import assert from 'node:assert/strict';
import type { Connections } from '../../src/outbound/connections.ts';
import { OutboundError, type OutboundFailure } from '../../src/outbound/error.ts';
import { createForward, type ForwardRequest, slotLimits } from '../../src/outbound/forward.ts';
import type { ForwardResponse } from '../../src/outbound/response.ts';
import { type Destination, type DestinationOptions, startDestination } from './destination.ts';
import type { Lender } from './temporary.ts';

export type Given = Partial<Omit<ForwardRequest, 'url'>>;
export type Forwarding = (url: string, given?: Given) => Promise<ForwardResponse>;

const usual = { method: 'GET', headers: [], body: undefined, timeoutMs: 20_000, partition: 'one' };

export function calling(
  options: Omit<Parameters<typeof createForward>[0], 'vaultName'>,
  connections?: Connections,
): Forwarding {
  const forward = createForward(
    { ...options, vaultName: 'strongroom-0000000000000000' },
    slotLimits,
    connections,
  );
  return (url, given = {}) => forward({ ...usual, url: new URL(url), ...given });
}

/** A destination, and requests that may go to it and trust its authority. */
export async function startForwarding(
  t: Lender,
  options?: DestinationOptions,
  connections?: Connections,
): Promise<{ destination: Destination; forward: Forwarding }> {
  const destination = await startDestination(t, options);
  const { name, port, authority } = destination;
  const allow = new Set([name, `localhost:${port}`]);
  return { destination, forward: calling({ allow, authorities: [authority.cert] }, connections) };
}

export async function fails(call: Promise<unknown>, reason: OutboundFailure): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof OutboundError, String(error));
    assert.equal(error.reason, reason, error.message);
    return true;
  });
}
