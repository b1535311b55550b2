/** A walk along the cursors meets every token that stays exactly once, whatever comes and goes meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type Below, seeded } from '../support/random.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const stable = 60;
const containers = ['/pci/high/', '/pci/low/', '/general/high/'];

const bodyOf = (id: string, index: number) => ({
  id,
  type: 'token',
  data: id,
  containers: [containers[index % containers.length]],
  metadata: { kind: 'walked' },
});

/** Creates and deletes tokens until it is told to stop; gives how many of both. */
async function churn(tenant: TestTenant, below: Below, stopping: AbortSignal): Promise<number> {
  const alive: string[] = [];
  let done = 0;
  while (!stopping.aborted) {
    const gone = below(2) === 0 ? alive.splice(below(alive.length || 1), 1)[0] : undefined;
    if (gone !== undefined) {
      assert.equal((await tenant.send('DELETE', `/tokens/${gone}`)).status, 204);
    } else {
      const id = `passing-${done}`;
      await tenant.token(bodyOf(id, below(3)));
      alive.push(id);
    }
    done += 1;
  }
  return done;
}

interface Walk {
  readonly name: string;
  page(tenant: TestTenant, size: number, start: string | undefined): ReturnType<TestTenant['send']>;
  readonly holds: (index: number) => boolean;
}

const listing =
  (query: string): Walk['page'] =>
  (tenant, size, start) =>
    tenant.send('GET', `/v2/tokens?size=${size}${query}${start ? `&start=${start}` : ''}`);

const walks: readonly Walk[] = [
  { name: 'all tokens', page: listing(''), holds: () => true },
  { name: 'a container', page: listing('&container=/pci/'), holds: (index) => index % 3 < 2 },
  { name: 'metadata', page: listing('&metadata.kind=walked'), holds: () => true },
  {
    name: 'a search',
    page: (tenant, size, start) =>
      tenant.send('POST', '/v2/tokens/search', {
        body: {
          query: 'metadata.kind:walked AND container:"/pci/"',
          size,
          ...(start && { start }),
        },
      }),
    holds: (index) => index % 3 < 2,
  },
  {
    name: 'the cursor of numbered pages',
    page: (tenant, size, start) =>
      tenant.send('GET', `/tokens?size=${size}${start ? `&start=${start}` : ''}`),
    holds: () => true,
  },
];

onBothEngines('a walk along the cursors', (engine) => {
  const tenants = tenantsOf(engine);

  for (const { name, page, holds } of walks) {
    test(`meets each token that stays once: ${name}`, async (t) => {
      const below = seeded(t);
      const tenant = await tenants();
      const ids = Array.from({ length: stable }, (_, index) => `stays-${index}`);
      await Promise.all(ids.map((id, index) => tenant.token(bodyOf(id, index))));
      const stopping = new AbortController();
      const churning = churn(tenant, below, stopping.signal);
      const met: string[] = [];
      try {
        for (let start: string | undefined; ; ) {
          const answer = await page(tenant, 1 + below(6), start);
          assert.equal(answer.status, 200, answer.text);
          met.push(...answer.body.data.map((token: { id: string }) => token.id));
          start = answer.body.pagination.next;
          if (start === undefined) break;
        }
      } finally {
        stopping.abort();
      }
      assert.ok((await churning) > 0);
      assert.equal(new Set(met).size, met.length, 'no token twice');
      assert.deepEqual(
        met.filter((id) => id.startsWith('stays')).sort(),
        ids.filter((_, index) => holds(index)).sort(),
      );
    });
  }
});
