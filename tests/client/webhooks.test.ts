/** What a vault sends to a webhook is verified by either signature; what is old or altered is refused. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  ConfigurationError,
  type ReceivedWebhook,
  verifyWebhook,
  WebhookSignatureError,
} from '../../packages/client/src/client.ts';
import { clientsOf } from '../support/client.ts';
import { onBothEngines } from '../support/engines.ts';
import { type Arrival, allowing, startReceiver } from '../support/receivers.ts';
import { tenantsOf } from '../support/tenant.ts';

const receiver = await startReceiver({ after });
const environment = allowing({ after }, [receiver]);

function refusedAs(code: string, message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof WebhookSignatureError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
}

onBothEngines('webhooks of the client', (engine) => {
  const tenants = tenantsOf(engine, { environment });

  async function deliver(): Promise<{
    arrival: Arrival;
    secret: string;
    publicKey: string;
    rotate: () => Promise<string>;
  }> {
    const { vault, admin } = await clientsOf(await tenants());
    const webhook = await admin.webhooks.create({
      name: 'w',
      url: receiver.url,
      events: ['token.created'],
    });
    const { id } = await vault.tokens.create({ type: 'token', data: 'the value' });
    const isOwn = ({ event }: Arrival) => event.data.token?.id === id;
    await receiver.until((arrivals) => arrivals.some(isOwn));
    const arrival = receiver.arrivals.find(isOwn);
    assert.ok(arrival);
    return {
      arrival,
      secret: webhook.secret,
      publicKey: await vault.webhooks.publicKey(),
      rotate: async () => (await admin.webhooks.rotateSecret(webhook.id)).secret,
    };
  }

  test('both signatures are verified, over bytes, a string or a buffer, with headers of any form', async () => {
    const { arrival, secret, publicKey } = await deliver();
    const { body, headers, event } = arrival;
    const forms: ReceivedWebhook[] = [
      { body, headers, secret },
      { body, headers, publicKey },
      { body, headers, secret, publicKey },
      { body: body.toString(), headers: new Headers({ ...headers }), secret },
      { body: Uint8Array.from(body).buffer, headers: { ...headers }, publicKey },
      {
        body,
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]),
        ),
        secret,
        publicKey,
      },
    ];
    for (const received of forms) {
      assert.equal((await verifyWebhook(received)).event.id, event.id);
    }
  });

  test('an altered body, signature, id or timestamp and another secret or key are refused', async () => {
    const { arrival, secret, publicKey, rotate } = await deliver();
    const { body, headers } = arrival;
    const text = body.toString();
    const altered = { ...headers };
    const wrong: ReceivedWebhook[] = [
      { body: text.replace('token.created', 'token.deleted'), headers, secret },
      { body: text.replace('token.created', 'token.deleted'), headers, publicKey },
      { body: `${text} `, headers, secret },
      { body, headers: { ...altered, 'webhook-id': 'another' }, secret },
      { body, headers: { ...altered, 'webhook-timestamp': '1' }, secret },
      { body, headers: { ...altered, 'webhook-signature': 'v1,AAAA' }, secret },
      { body, headers: { ...altered, 'webhook-signature': 'v1a,AAAA nonsense' }, secret },
      { body, headers: { ...altered, 'svc-signature': 'AAAA' }, publicKey },
      { body, headers: { ...altered, 'svc-signature': 'AAAA' }, secret, publicKey },
      { body, headers, secret: await rotate() },
    ];
    for (const received of wrong) {
      await assert.rejects(
        verifyWebhook(received),
        refusedAs('wrong_signature', /Do not act on it\. If all are refused/),
      );
    }
  });

  test('a signature that is old, or far in the future, is refused with what to do', async (t) => {
    const { arrival, secret, publicKey } = await deliver();
    const { body, headers } = arrival;
    const sent = Date.parse(arrival.delivered_at);
    for (const [option, given] of Object.entries({ secret, publicKey })) {
      const received = { body, headers, [option]: given };
      for (const [seconds, tolerance] of [
        [302, undefined],
        [-302, undefined],
        [62, 60],
      ] as const) {
        t.mock.timers.enable({ apis: ['Date'], now: sent + seconds * 1000 });
        await assert.rejects(
          verifyWebhook({ ...received, tolerance }),
          refusedAs('old_signature', /s old, and \d+ s are accepted.*set the clock.*tolerance/),
        );
        t.mock.timers.reset();
      }
      t.mock.timers.enable({ apis: ['Date'], now: sent + 290_000 });
      assert.ok(await verifyWebhook(received));
      t.mock.timers.reset();
    }
  });

  test('a request without a signature is refused', async () => {
    const { arrival, secret, publicKey } = await deliver();
    const { body } = arrival;
    for (const option of [{ secret }, { publicKey }]) {
      await assert.rejects(
        verifyWebhook({ body, headers: {}, ...option }),
        refusedAs('missing_signature', /has no header .*It does not come from a vault/),
      );
    }
  });
});

test('what cannot verify anything is refused before the signature', async () => {
  const headers = {};
  const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;
  const wrong: [object, RegExp][] = [
    [{ body: '{}', headers }, /secret of the webhook, or publicKey/],
    [{ body: { event: {} }, headers, secret }, /bytes of the request as they came/],
    [{ body: '{}', headers, secret: 'the secret' }, /whsec_ and base64/],
    [{ body: '{}', headers, secret: 'whsec_A' }, /whsec_ and base64/],
    [{ body: '{}', headers, publicKey: 'no key' }, /PEM/],
  ];
  for (const [received, message] of wrong) {
    await assert.rejects(verifyWebhook(received as ReceivedWebhook), (error: unknown) => {
      assert.ok(error instanceof ConfigurationError);
      assert.match(error.message, message);
      return true;
    });
  }
});
