/** Routes of webhooks. */
import type { WebhookKey } from '../../crypto/webhook-signatures.ts';
import { create, read, remove, replace } from '../../rules/stored-resource.ts';
import { listDeliveries } from '../../vault/webhooks/deliveries.ts';
import {
  listEventTypes,
  listWebhooks,
  rotateSecret,
  type WebhookWriting,
  webhookResource,
} from '../../vault/webhooks/resource.ts';
import { redeliver, replay, testWebhook } from '../../vault/webhooks/send-again.ts';

import { type OpenRoute, type Route, route } from '../protocol/route.ts';
import { byId } from '../schemas/shared.ts';
import {
  byDelivery,
  delivery,
  deliveryList,
  deliveryQuery,
  eventTypes,
  replayReply,
  replayRequest,
  webhook,
  webhookList,
  webhookRequest,
  webhookUpdate,
  webhookWithSecret,
} from '../schemas/webhook.ts';

export function webhookRoutes(tools: WebhookWriting): Route[] {
  return [...managing(tools), ...sending(tools)];
}

function managing(tools: WebhookWriting): Route[] {
  const webhooks = webhookResource(tools);
  return [
    route({
      method: 'POST',
      path: '/webhooks',
      summary: 'Create a webhook; its secret is shown this once',
      permission: 'webhook:create',
      body: webhookRequest,
      reply: { status: 201, body: webhookWithSecret },
      // They are counted.
      serialKey: ({ caller }) => `${caller.tenant.id} webhooks`,
      handle: ({ caller, body }) => create(webhooks, caller, body),
    }),
    route({
      method: 'GET',
      path: '/webhooks',
      summary: 'List webhooks, newest first',
      permission: 'webhook:read',
      reply: { status: 200, body: webhookList },
      handle: ({ caller }) => listWebhooks(tools, caller),
    }),
    route({
      method: 'GET',
      path: '/webhooks/event-types',
      summary: 'List the types of events',
      permission: 'webhook:read',
      reply: { status: 200, body: eventTypes },
      handle: ({ caller }) => listEventTypes(tools, caller),
    }),
    route({
      method: 'GET',
      path: '/webhooks/:id',
      summary: 'Read a webhook',
      permission: 'webhook:read',
      params: byId,
      reply: { status: 200, body: webhook },
      handle: ({ caller, params }) => read(webhooks, caller, params.id),
    }),
    route({
      method: 'PUT',
      path: '/webhooks/:id',
      summary: 'Replace a webhook; its secret stays',
      permission: 'webhook:update',
      params: byId,
      body: webhookUpdate,
      reply: { status: 200, body: webhook },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params, body }) =>
        replace(webhooks, caller, { id: params.id, request: body }),
    }),
    route({
      method: 'DELETE',
      path: '/webhooks/:id',
      summary: 'Delete a webhook and what was to be delivered to it',
      permission: 'webhook:delete',
      params: byId,
      reply: { status: 204 },
      handle: ({ caller, params }) => remove(webhooks, caller, params.id),
    }),
    route({
      method: 'POST',
      path: '/webhooks/:id/secret/rotate',
      summary: 'Give a webhook another secret; the one before signs for another 24 hours',
      permission: 'webhook:update',
      params: byId,
      reply: { status: 200, body: webhookWithSecret },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params }) => rotateSecret(tools, caller, params.id),
    }),
  ];
}

function sending(tools: WebhookWriting): Route[] {
  return [
    route({
      method: 'POST',
      path: '/webhooks/:id/test',
      summary: 'Send a test event to a webhook',
      permission: 'webhook:update',
      params: byId,
      reply: { status: 202, body: delivery },
      handle: ({ caller, params }) => testWebhook(tools, caller, params.id),
    }),
    route({
      method: 'GET',
      path: '/webhooks/:id/deliveries',
      summary: 'List the deliveries of a webhook, newest first',
      permission: 'webhook:read',
      params: byId,
      query: deliveryQuery,
      reply: { status: 200, body: deliveryList },
      handle: ({ caller, params, query }) =>
        listDeliveries(tools, caller, { id: params.id, query }),
    }),
    route({
      method: 'POST',
      path: '/webhooks/:id/deliveries/:deliveryId/redeliver',
      summary: 'Deliver an event to a webhook once more',
      permission: 'webhook:update',
      params: byDelivery,
      reply: { status: 202, body: delivery },
      handle: ({ caller, params }) => redeliver(tools, caller, params),
    }),
    route({
      method: 'POST',
      path: '/webhooks/:id/replay',
      summary: 'Send the events of the last 30 days to a webhook again',
      permission: 'webhook:update',
      params: byId,
      body: replayRequest,
      reply: { status: 202, body: replayReply },
      handle: ({ caller, params, body }) =>
        replay(tools, caller, { id: params.id, replaying: body }),
    }),
  ];
}

/** By which receivers learn with what to verify. @param signingKey makes the key at its first use. */
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
