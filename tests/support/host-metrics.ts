/** What the metrics of a vault say of the servers of its database. */
import assert from 'node:assert/strict';
import { untilSo } from './poll.ts';
import { request } from './vault.ts';

export type HostState = 'writable' | 'up' | 'down';

/** By `host:port`. The metrics have to be there whatever becomes of the database. */
export async function untilHostsAre(
  url: string,
  expected: Readonly<Record<string, HostState>>,
): Promise<void> {
  let found: Record<string, HostState> = {};
  await untilSo(
    async () => {
      const { status, text } = await request(`${url}/metrics`, 'GET');
      assert.equal(status, 200, text);
      found = Object.fromEntries(Object.keys(expected).map((host) => [host, stateIn(text, host)]));
      return Object.entries(expected).every(([host, state]) => found[host] === state);
    },
    () => `the hosts are ${JSON.stringify(found)}`,
  );
}

function stateIn(text: string, host: string): HostState {
  const read = (name: string) =>
    text.split(`\nstrongroom_database_host_${name}{host="${host}"} `)[1]?.[0];
  assert.ok(read('up') && read('writable'), `no metrics of ${host}`);
  if (read('writable') === '1') return 'writable';
  return read('up') === '1' ? 'up' : 'down';
}
