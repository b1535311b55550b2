/** What is signed: each event once, however many webhooks get it, and before its turn has come. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { createKeyring } from '../../src/keys/keyring.ts';
import { webhookSecretKey } from '../../src/keys/webhook-signatures.ts';
import { createMessages, signedAheadMax } from '../../src/webhooks/deliveries/message.ts';
import { createStillClock } from '../support/vault.ts';

const keys = [webhookSecretKey(`whsec_${Buffer.alloc(32, 's').toString('base64')}`)];
const tenant = { keyring: createKeyring(pooledRandom()) };
const unsigned = (name: string) => ({
  tenant,
  event: name as EventId,
  envelope: { id: name },
  keys,
});

function start() {
  const clock = createStillClock();
  const signed: string[] = [];
  const waiting: PromiseWithResolvers<string>[] = [];
  const sign = (body: Uint8Array) => {
    signed.push(Buffer.from(body).toString());
    const signature = Promise.withResolvers<string>();
    waiting.push(signature);
    return signature.promise;
  };
  const pairs = { of: async () => [{ pair: 1, publicKey: '', sign }] };
  const messages = createMessages({ pairs, clock, headerPrefixes: ['SVC'], version: '1' });
  return { clock, signed, waiting, messages };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('webhooks that get an event within a second share a signature, also one that was begun before', async () => {
  const { clock, signed, waiting, messages } = start();
  messages.signAhead(unsigned('a'));
  const both = [messages.sign(unsigned('a')), messages.sign(unsigned('a'))];
  await turn();
  waiting[0]?.resolve('a signature');
  const [first, second] = await Promise.all(both);
  assert.deepEqual(first, second);
  assert.ok(first?.headers.includes('a signature'));
  assert.equal(signed.length, 1);
  clock.advance(1_000);
  messages.signAhead(unsigned('a'));
  await turn();
  assert.equal(signed.length, 2);
  assert.notEqual(signed[0], signed[1]);
});

test('few signatures are made before anybody waits for them', async () => {
  const { signed, waiting, messages } = start();
  for (let count = 0; count <= signedAheadMax; count++) messages.signAhead(unsigned(`${count}`));
  await turn();
  assert.equal(signed.length, signedAheadMax);
  for (const { resolve } of waiting) resolve('a signature');
  await turn();
  messages.signAhead(unsigned('one more'));
  await turn();
  assert.equal(signed.length, signedAheadMax + 1);
});

test('a signature that failed early fails for those who want it, and for nobody else', async () => {
  const { waiting, messages } = start();
  messages.signAhead(unsigned('a'));
  await turn();
  waiting[0]?.reject(new Error('no key'));
  await turn();
  await assert.rejects(messages.sign(unsigned('a')), /no key/);
});
