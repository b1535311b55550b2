/** Operations on webhooks and their deliveries. */
import { idOf, type Section } from './operation-row.ts';

const webhook = idOf(8);
const delivery = idOf(9);
const url = 'https://receiver.example.com/events';
const events = ['token.created', 'token.expired'];

export const webhooks: Section = {
  tag: 'Webhooks',
  description:
    'A webhook is called when something happens: each event is committed with the change that caused it, arrives at ' +
    'least once, is signed, and never holds the data of a token.',
  operations: {
    'GET /webhooks/event-types': { id: 'listEventTypes', example: {} },
    'POST /webhooks': {
      id: 'createWebhook',
      problems: ['unprocessable'],
      example: {
        body: { name: 'Orders', url, events },
        reply: { id: webhook, name: 'Orders', status: 'enabled', url, events, secret: 'whsec_…' },
      },
    },
    'GET /webhooks': {
      id: 'listWebhooks',
      description: 'All of them are on one page.',
      example: { reply: { data: [{ id: webhook, name: 'Orders' }] } },
    },
    'GET /webhooks/:id': {
      id: 'getWebhook',
      example: { params: { id: webhook }, reply: { id: webhook, name: 'Orders' } },
    },
    'PUT /webhooks/:id': {
      id: 'replaceWebhook',
      description:
        'Attributes that are absent take their defaults, except that `status` and `ordered` stay. With the status ' +
        '`enabled` a webhook that was disabled is sent to again.',
      example: {
        params: { id: webhook },
        body: { name: 'Orders', url, events, ordered: true },
        reply: { id: webhook, name: 'Orders', ordered: true },
      },
    },
    'POST /webhooks/:id/secret/rotate': {
      id: 'rotateWebhookSecret',
      description: 'For 24 hours there are two signatures, so that receivers can change over.',
      example: { params: { id: webhook }, reply: { id: webhook, secret: 'whsec_…' } },
    },
    'POST /webhooks/:id/test': {
      id: 'testWebhook',
      description: 'The event has the type `webhook.test`. What became of it is in the deliveries.',
      problems: ['unprocessable'],
      example: {
        params: { id: webhook },
        reply: { id: delivery, type: 'webhook.test', attempts: [] },
      },
    },
    'GET /webhooks/:id/deliveries': {
      id: 'listDeliveries',
      description: 'Kept for 30 days, without what the receiver responded.',
      example: {
        params: { id: webhook },
        query: { size: '1' },
        reply: { data: [{ id: delivery }] },
      },
    },
    'POST /webhooks/:id/deliveries/:deliveryId/redeliver': {
      id: 'redeliver',
      problems: ['unprocessable'],
      example: {
        params: { id: webhook, deliveryId: delivery },
        reply: { id: delivery, type: 'webhook.test' },
      },
    },
    'POST /webhooks/:id/replay': {
      id: 'replayEvents',
      description:
        'Up to 1,000 events, oldest first, of the types that the webhook asks for. Where there are more, send the ' +
        'same request with `next` as its `start`.',
      problems: ['unprocessable'],
      example: {
        params: { id: webhook },
        body: { since: '2026-01-31T00:00:00Z', types: ['token.created'] },
      },
    },
    'DELETE /webhooks/:id': { id: 'deleteWebhook', example: { params: { id: webhook } } },
  },
};
