/** Proxies for tests: the least that a request gives, and requests of the tenant's management key. */
import assert from 'node:assert/strict';
import type { Given, TestTenant } from './tenant.ts';
import type { Received } from './vault.ts';

export const destination = 'https://psp.example.com/v1';

export const leastProxy: Given = { name: 'Charge', destination_url: destination };

/** Of the key that manages the tenant, unless the request has another. */
export function sendProxy(
  tenant: TestTenant,
  method: string,
  path: string,
  sent: { readonly key?: string; readonly body?: unknown } = {},
): Promise<Received> {
  return tenant.send(method, `/proxies${path}`, {
    key: tenant.managementKey,
    ...sent,
    ...(method === 'PATCH' && { headers: { 'content-type': 'application/merge-patch+json' } }),
  });
}

/** Creates a proxy and fails unless it was created. The operator gives its host to the tenant before. */
export async function createProxy(tenant: TestTenant, given: Given = {}) {
  const { proxy_host: host } = given;
  if (typeof host === 'string') await tenant.giveHosts(host);
  const created = await sendProxy(tenant, 'POST', '', { body: { ...leastProxy, ...given } });
  assert.equal(created.status, 201, created.text);
  return created.body;
}
