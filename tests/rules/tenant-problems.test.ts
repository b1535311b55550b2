/** However many reports of problems a tenant asks for, others get their sessions of the database. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { VaultError } from '../../src/base/errors.ts';
import { type ApplicationId, newUuid, type TenantId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { authenticated, type Caller } from '../../src/rules/caller.ts';
import { policyOf } from '../../src/rules/policy.ts';
import { type ProblemCheck, problemReports } from '../../src/rules/tenant-problems.ts';

const random = pooledRandom();

/** Of a tenant of its own. */
const newCaller = () =>
  authenticated({
    tenant: { id: newUuid<TenantId>(random) } as Caller['tenant'],
    application: newUuid<ApplicationId>(random),
    key: undefined,
    session: undefined,
    kind: 'management',
    policy: policyOf({ permissions: ['report:read', 'log:read'], rules: [] }),
    origin: { address: '', traceId: '', dialect: 'SVC' },
  });

test('reports of a tenant are made one after another, and its checks too', async () => {
  const underWay = new Map<string, number>();
  const held: (() => void)[] = [];
  let most = 0;
  const check: ProblemCheck<object> = {
    permission: 'log:read',
    find: async (_tools, { id }) => {
      const count = (underWay.get(id) ?? 0) + 1;
      underWay.set(id, count);
      most = Math.max(most, count);
      await new Promise<void>((resolve) => held.push(resolve));
      underWay.set(id, count - 1);
      return [];
    },
  };
  const report = problemReports({ clock: systemClock }, [check, check, check]);
  const [one, two] = [newCaller(), newCaller()];
  const many = Array.from({ length: 30 }, () => report(one)(undefined));
  const refused = Promise.allSettled(many).then((all) =>
    all.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : [])),
  );
  const other = report(two)(undefined);
  let isEnded = false;
  const ended = Promise.allSettled([...many, other]).then(() => {
    isEnded = true;
  });
  while (!isEnded) {
    held.shift()?.();
    await new Promise(setImmediate);
  }
  await ended;
  assert.equal(most, 1);
  assert.equal((await refused).length, 9, 'one is made and twenty wait');
  for (const reason of await refused)
    assert.ok(reason instanceof VaultError && reason.code === 'too_many_requests');
});
