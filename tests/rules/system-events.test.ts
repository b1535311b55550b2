/** What the vault does by itself raises events that say as much as those of callers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Instant } from '../../src/base/clock.ts';
import type { TenantId } from '../../src/base/ids.ts';
import { systemEntry } from '../../src/rules/log-entries.ts';

test('the entry of the vault itself keeps what its event is to say', () => {
  const event = { keyring: { purpose: 'data' } };
  const id = '00000000-0000-4000-8000-000000000001' as TenantId;
  const at = 1_800_000_000_000 as Instant;
  const fact = { entity: 'keyring', id, operation: 'finish' } as const;
  assert.deepEqual(systemEntry({ tenant: id, at, ...fact, event }).event, event);
  assert.equal('event' in systemEntry({ tenant: id, at, ...fact }), false);
});
