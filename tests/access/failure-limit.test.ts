/** Failed attempts are limited in bounded memory, and with a bounded number of look-ups at a time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createFailedAttempts,
  lookUpsWaitingMax,
  networksMax,
} from '../../src/access/failure-limit.ts';
import { createStillClock } from '../support/vault.ts';

const limit = { requests: 3, windowMs: 10_000 };
const tooMany = { code: 'too_many_requests', headers: { 'retry-after': '10' } };

function fixture() {
  const clock = createStillClock();
  const attempts = createFailedAttempts(limit, clock);
  const fail = async (address: string, times = limit.requests) => {
    for (let time = 0; time < times; time += 1) await attempts.count(address);
  };
  return { clock, attempts, fail };
}

test('an address may fail so often in a window, however it is written, and others besides it', async () => {
  const { clock, attempts, fail } = fixture();
  await fail('10.0.0.1');
  for (const address of ['10.0.0.1', '::ffff:10.0.0.1', '::ffff:a00:1']) {
    await assert.rejects(attempts.count(address), tooMany);
  }
  await fail('10.0.0.2');
  clock.advance(limit.windowMs - 1);
  await assert.rejects(attempts.count('10.0.0.1'), {
    code: 'too_many_requests',
    headers: { 'retry-after': '1' },
  });
  clock.advance(1);
  await fail('10.0.0.1');
});

test('networks beyond those that are counted apart share a counter', async () => {
  const { attempts, fail } = fixture();
  for (let index = 0; index < networksMax; index += 1) {
    await attempts.count(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
  }
  await fail('192.0.2.1', 2);
  await attempts.count('192.0.2.2');
  await assert.rejects(attempts.count('192.0.2.3'), tooMany);
  await fail('10.0.0.1', 2);
  await assert.rejects(attempts.count('10.0.0.1'), tooMany);
});

test('keys from an address over its limit are looked up one at a time, and so many wait', async () => {
  const { attempts, fail } = fixture();
  let atOnce = 0;
  let most = 0;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const task = async () => {
    atOnce += 1;
    most = Math.max(most, atOnce);
    await released;
    atOnce -= 1;
    return 'found';
  };
  await fail('10.0.0.1', limit.requests - 1);
  const free = [attempts.lookUp('10.0.0.1', task), attempts.lookUp('10.0.0.1', task)];
  assert.equal(atOnce, 2);
  await fail('10.0.0.1', 1);
  const address = '10.0.0.1';
  const waiting = Array.from({ length: lookUpsWaitingMax }, () => attempts.lookUp(address, task));
  await assert.rejects(attempts.lookUp(address, task), tooMany);
  const elsewhere = attempts.lookUp('10.0.0.2', task);
  release();
  const all = await Promise.all([...free, ...waiting, elsewhere]);
  assert.deepEqual(new Set(all), new Set(['found']));
  assert.ok(most <= 4, `${most} at once`);
  assert.equal(await attempts.lookUp(address, task), 'found');
});

test('without a limit nothing is counted', async () => {
  const attempts = createFailedAttempts(undefined, createStillClock());
  for (let time = 0; time < 1000; time += 1) await attempts.count('10.0.0.1');
  assert.equal(await attempts.lookUp('10.0.0.1', async () => 1), 1);
});
