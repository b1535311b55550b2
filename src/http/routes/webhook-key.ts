/** The route by which receivers of webhooks learn with what to verify them. */
import type { WebhookKey } from '../../crypto/webhook-signatures.ts';
import type { OpenRoute } from '../protocol/route.ts';

/** @param signingKey makes the key at its first use. */
export function webhookKeyRoutes({
  signingKey,
}: {
  readonly signingKey: () => Promise<WebhookKey>;
}): OpenRoute[] {
  return [
    {
      path: '/keys/webhooks.v1.key',
      summary: 'Retrieve the public key that verifies webhooks',
      handle: async () => ({
        status: 200,
        body: (await signingKey()).publicKey,
        mediaType: 'text/plain',
      }),
    },
  ];
}
