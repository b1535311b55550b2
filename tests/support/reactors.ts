/** Reactors for tests: the least that a request gives, and requests of the tenant's management key. */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import type { WaitingRuns } from '../../src/reactors/calls/waiting-runs.ts';
import type { Given, TestTenant } from './tenant.ts';
import type { Received, Sent } from './vault.ts';

/** Gives back what it is given. */
export const echo = 'module.exports = function (req) { return { raw: req.args } }';

export const leastReactor: Given = { name: 'Sign', code: echo };

/** Of the key that manages the tenant, unless the request has another. */
export function sendReactor(
  tenant: TestTenant,
  method: string,
  path: string,
  sent: { readonly key?: string; readonly body?: unknown } = {},
): Promise<Received> {
  return tenant.send(method, `/reactors${path}`, {
    key: tenant.managementKey,
    ...sent,
    ...(method === 'PATCH' && { headers: { 'content-type': 'application/merge-patch+json' } }),
  });
}

/** Creates a reactor and fails unless it was created. */
export async function createReactor(tenant: TestTenant, given: Given = {}) {
  const created = await sendReactor(tenant, 'POST', '', { body: { ...leastReactor, ...given } });
  assert.equal(created.status, 201, created.text);
  return created.body;
}

/** Of an application that may call reactors with every token, and create tokens. */
export function invoker(tenant: TestTenant, ...permissions: readonly string[]): Promise<string> {
  return tenant.application({ permissions: ['reactor:invoke', ...permissions] });
}

/** Calls a new reactor with these arguments. */
export async function react(
  tenant: TestTenant,
  given: Given,
  sent: Sent & { readonly args?: unknown } = {},
): Promise<Received> {
  const { id } = await createReactor(tenant, given);
  const { args, ...rest } = sent;
  return tenant.send('POST', `/reactors/${id}/react`, {
    key: await invoker(tenant, 'token:create'),
    body: { args },
    ...rest,
  });
}

/** Begins the asynchronous calls that are due, and gives how many of them this server took. */
export async function takeDue(runs: WaitingRuns | undefined): Promise<number> {
  assert.ok(runs);
  // A call can be claimed again from the next turn of the event loop on, and SQLite needs none.
  await setImmediate();
  const { taken } = await runs.look();
  return taken;
}
