/** Calls of proxies in tests: a vault that may send to a destination of the tests, and what goes through it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Destination, type DestinationOptions, startDestination } from './destination.ts';
import { createProxy } from './proxies.ts';
import type { Lender } from './temporary.ts';
import type { Given, TestTenant } from './tenant.ts';
import type { Received, Sent } from './vault.ts';

/** With which every tenant can give its proxies a host. */
export const publicEnvironment = { STRONGROOM_PUBLIC_URL: 'https://vault.example.com' };

export interface Called {
  readonly destination: Destination;
  /** Its address by a name: proxies have no addresses. */
  readonly url: string;
  /** With which a vault may send there, and trusts its authority. */
  readonly environment: Readonly<Record<string, string>>;
}

export async function startCalled(t: Lender, options?: DestinationOptions): Promise<Called> {
  const destination = await startDestination(t, options);
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-authority-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'authority.pem');
  writeFileSync(file, destination.authority.cert);
  const host = `localhost:${destination.port}`;
  return {
    destination,
    url: `https://${host}`,
    environment: {
      ...publicEnvironment,
      STRONGROOM_OUTBOUND_ALLOW: host,
      STRONGROOM_OUTBOUND_CA: file,
    },
  };
}

export type Call = (method: string, path: string, sent?: Sent) => Promise<Received>;

/** Calls a new proxy; `path` is what follows `/proxy`. */
export async function proxyOf(
  tenant: TestTenant,
  given: Given,
): Promise<Call & { key: string; id: string }> {
  const { key, id } = await createProxy(tenant, given);
  const call: Call = (method, path, sent = {}) =>
    tenant.send(method, `/proxy${path}`, {
      ...sent,
      headers: { 'svc-proxy-key': key, ...sent.headers },
    });
  return Object.assign(call, { key, id });
}

/** The value of a header of what the destination received, by its name in any case. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((one, index) => index % 2 === 0 && one.toLowerCase() === name);
  return at < 0 ? undefined : headers[at + 1];
}
