/** Webhooks and their deliveries. */
import Type from 'typebox';
import { create, read, remove, replace } from '../rules/stored-resource.ts';
import { listDeliveries } from '../webhooks/deliveries.ts';
import { eventTypeNames } from '../webhooks/events/types.ts';
import {
  listEventTypes,
  listWebhooks,
  rotateSecret,
  type WebhookListing,
  type WebhookWriting,
  webhookResource,
} from '../webhooks/resource.ts';
import { redeliver, replay, testWebhook } from '../webhooks/send-again.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, documented, object } from './declaration/shape.ts';
import {
  byId,
  cursor,
  cursorPage,
  name,
  nullable,
  pageBody,
  pageQuery,
  pathId,
  shared,
  strict,
  text,
  timestamp,
  uuid,
} from './shapes.ts';

const { id, tenant_id, created_by, created_at, modified_by, modified_at } = shared;

const status = Type.Enum(['enabled', 'disabled']);

/** More than there are types, so that one message can name the error of each. */
const types = documented(Type.Array(text, { maxItems: 100 }), {
  minItems: 1,
  items: { type: 'string', enum: eventTypeNames },
});

const settings = {
  name,
  url: attribute(text, 'Where events are sent; https.'),
  notify_email: attribute(
    nullable(text),
    'A mail address, stored for people who look after the webhook; no mail is sent.',
  ),
  events: attribute(types, 'Types of events, such as `token.created`.'),
  ordered: attribute(
    nullable(Type.Boolean()),
    'Whether an event waits for those before it of the same entity.',
  ),
};

const webhookRequest = object(settings, { ...strict, title: 'WebhookRequest' });

const webhookUpdate = object(
  { ...settings, status: attribute(nullable(status), '`enabled` or `disabled`.') },
  { ...strict, title: 'WebhookUpdate' },
);

const shown = {
  id,
  tenant_id,
  status: attribute(status, '`enabled`, or `disabled` where nothing is sent.'),
  name: shared.name,
  url: settings.url,
  notify_email: attribute(Type.Optional(text), settings.notify_email),
  events: attribute(Type.Array(text), settings.events),
  ordered: attribute(Type.Boolean(), settings.ordered),
  created_by,
  created_at,
  modified_by,
  modified_at,
};

const webhook = object(shown, { title: 'Webhook' });

const webhookWithSecret = object(
  { ...shown, secret: attribute(text, 'Signs what is sent, as Standard Webhooks says.') },
  {
    title: 'WebhookWithSecret',
    description: 'A webhook with the secret that signs from now on, which is shown this once.',
  },
);

const deliveryState = Type.Enum(['waiting', 'delivered', 'failed']);

const attempt = object(
  {
    at: attribute(timestamp, 'When it happened.'),
    status: attribute(
      Type.Optional(Type.Integer()),
      'The HTTP status; absent where nobody responded.',
    ),
    milliseconds: attribute(Type.Number(), 'How long it took.'),
    error: attribute(Type.Optional(text), 'The kind of failure.'),
  },
  { title: 'DeliveryAttempt' },
);

const delivery = object(
  {
    id,
    event_id: attribute(uuid, 'The event; equal in all deliveries of it.'),
    type: attribute(text, 'The type of the event.'),
    state: attribute(deliveryState, '`waiting`, `delivered` or `failed`.'),
    created_at,
    due_at: attribute(Type.Optional(timestamp), 'When it is sent next.'),
    attempts: attribute(Type.Array(attempt), 'What came of each attempt.'),
  },
  { title: 'Delivery' },
);

const deliveryQuery = object(
  {
    state: attribute(Type.Optional(deliveryState), 'Only deliveries in this state.'),
    size: attribute(Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })), pageQuery.size),
    start: attribute(pageQuery.start, cursor),
  },
  strict,
);

const replayRequest = object(
  {
    since: attribute(text, 'An ISO 8601 date-time; events from then on.'),
    until: attribute(nullable(text), 'An ISO 8601 date-time; events before then.'),
    types: attribute(
      nullable(types),
      'Types of events; all that the webhook asks for unless given.',
    ),
    start: attribute(pageBody.start, 'The `next` of an earlier response to the same request.'),
  },
  { ...strict, title: 'ReplayRequest' },
);

const replayReply = object(
  {
    events: attribute(Type.Integer(), 'How many are sent again.'),
    next: attribute(
      Type.Optional(text),
      'To be sent as `start` for the events that follow; absent where there are no more.',
    ),
  },
  { title: 'Replay' },
);

const byDelivery = object({ id: pathId, deliveryId: attribute(text, 'The id of the delivery.') });

const exampleId = idOf(8);
const deliveryId = idOf(9);
const url = 'https://receiver.example.com/events';
const events = ['token.created', 'token.expired'];

export const webhooks: Resource<WebhookWriting & WebhookListing> = {
  tag: 'Webhooks',
  description:
    'A webhook is called when something happens: each event is committed with the change that caused it, arrives at ' +
    'least once, is signed, and never holds the data of a token.',
  operations: (tools) => {
    const stored = webhookResource(tools);
    return [
      operation({
        id: 'listEventTypes',
        method: 'GET',
        path: '/webhooks/event-types',
        summary: 'List the types of events',
        permission: 'webhook:read',
        reply: { status: 200, body: Type.Array(text) },
        example: {},
        handle: ({ caller }) => listEventTypes(tools, caller),
      }),
      operation({
        id: 'createWebhook',
        method: 'POST',
        path: '/webhooks',
        summary: 'Create a webhook; its secret is shown only once',
        permission: 'webhook:create',
        tagged: true,
        body: webhookRequest,
        reply: { status: 201, body: webhookWithSecret },
        problems: ['unprocessable'],
        example: {
          body: { name: 'Orders', url, events },
          reply: {
            id: exampleId,
            name: 'Orders',
            status: 'enabled',
            url,
            events,
            secret: 'whsec_…',
          },
        },
        // They are counted.
        serialKey: ({ caller }) => `${caller.tenant.id} webhooks`,
        handle: ({ caller, body }) => create(stored, caller, body),
      }),
      operation({
        id: 'listWebhooks',
        method: 'GET',
        path: '/webhooks',
        summary: 'List webhooks, newest first',
        description: 'All of them are on one page.',
        permission: 'webhook:read',
        reply: { status: 200, body: cursorPage(webhook) },
        example: { reply: { data: [{ id: exampleId, name: 'Orders' }] } },
        handle: ({ caller }) => listWebhooks(tools, caller),
      }),
      operation({
        id: 'getWebhook',
        method: 'GET',
        path: '/webhooks/:id',
        summary: 'Read a webhook',
        permission: 'webhook:read',
        tagged: true,
        params: byId,
        reply: { status: 200, body: webhook },
        example: { params: { id: exampleId }, reply: { id: exampleId, name: 'Orders' } },
        handle: ({ caller, params }) => read(stored, caller, params.id),
      }),
      operation({
        id: 'replaceWebhook',
        method: 'PUT',
        path: '/webhooks/:id',
        summary: 'Replace a webhook; its secret stays',
        description:
          'Attributes that are absent take their defaults, except that `status` and `ordered` stay. Set ' +
          '`status` to `enabled` to resume deliveries to a disabled webhook.',
        permission: 'webhook:update',
        tagged: true,
        params: byId,
        body: webhookUpdate,
        reply: { status: 200, body: webhook },
        example: {
          params: { id: exampleId },
          body: { name: 'Orders', url, events, ordered: true },
          reply: { id: exampleId, name: 'Orders', ordered: true },
        },
        serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
        handle: ({ caller, params, body }) =>
          replace(stored, caller, { id: params.id, request: body }),
      }),
      operation({
        id: 'rotateWebhookSecret',
        method: 'POST',
        path: '/webhooks/:id/secret/rotate',
        summary: 'Rotate the secret of a webhook; the previous one also signs for 24 hours',
        description: 'For 24 hours there are two signatures, so that receivers can change over.',
        permission: 'webhook:update',
        params: byId,
        reply: { status: 200, body: webhookWithSecret },
        example: { params: { id: exampleId }, reply: { id: exampleId, secret: 'whsec_…' } },
        serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
        handle: ({ caller, params }) => rotateSecret(tools, caller, params.id),
      }),
      operation({
        id: 'testWebhook',
        method: 'POST',
        path: '/webhooks/:id/test',
        summary: 'Send a test event to a webhook',
        description: 'The event has the type `webhook.test`. Its result is in the deliveries.',
        permission: 'webhook:update',
        params: byId,
        reply: { status: 202, body: delivery },
        problems: ['unprocessable'],
        example: {
          params: { id: exampleId },
          reply: { id: deliveryId, type: 'webhook.test', attempts: [] },
        },
        handle: ({ caller, params }) => testWebhook(tools, caller, params.id),
      }),
      operation({
        id: 'listDeliveries',
        method: 'GET',
        path: '/webhooks/:id/deliveries',
        summary: 'List the deliveries of a webhook, newest first',
        description: 'Kept for 30 days, without what the receiver responded.',
        permission: 'webhook:read',
        params: byId,
        query: deliveryQuery,
        reply: { status: 200, body: cursorPage(delivery) },
        example: {
          params: { id: exampleId },
          query: { size: '1' },
          reply: { data: [{ id: deliveryId }] },
        },
        handle: ({ caller, params, query }) =>
          listDeliveries(tools, caller, { id: params.id, query }),
      }),
      operation({
        id: 'redeliver',
        method: 'POST',
        path: '/webhooks/:id/deliveries/:deliveryId/redeliver',
        summary: 'Deliver an event to a webhook once more',
        permission: 'webhook:update',
        params: byDelivery,
        reply: { status: 202, body: delivery },
        problems: ['unprocessable'],
        example: {
          params: { id: exampleId, deliveryId },
          reply: { id: deliveryId, type: 'webhook.test' },
        },
        handle: ({ caller, params }) => redeliver(tools, caller, params),
      }),
      operation({
        id: 'replayEvents',
        method: 'POST',
        path: '/webhooks/:id/replay',
        summary: 'Send the events of the last 30 days to a webhook again',
        description:
          'Up to 1,000 events, oldest first, of the types that the webhook asks for. Where there are more, send the ' +
          'same request with `next` as its `start`.',
        permission: 'webhook:update',
        params: byId,
        body: replayRequest,
        reply: { status: 202, body: replayReply },
        problems: ['unprocessable'],
        example: {
          params: { id: exampleId },
          body: { since: '2026-01-31T00:00:00Z', types: ['token.created'] },
        },
        handle: ({ caller, params, body }) =>
          replay(tools, caller, { id: params.id, replaying: body }),
      }),
      operation({
        id: 'deleteWebhook',
        method: 'DELETE',
        path: '/webhooks/:id',
        summary: 'Delete a webhook and its pending deliveries',
        permission: 'webhook:delete',
        tagged: true,
        params: byId,
        reply: { status: 204 },
        example: { params: { id: exampleId } },
        handle: ({ caller, params }) => remove(stored, caller, params.id),
      }),
    ];
  },
};
