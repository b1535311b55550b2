/** Shapes of webhooks and their deliveries. */
import Type from 'typebox';
import { cursorLengthMax } from '../../crypto/cursor.ts';
import { cursorPage, line, nullable, pageQuery, strict, text, timestamp, uuid } from './shared.ts';

const status = Type.Enum(['enabled', 'disabled']);
/** More than there are, so that one message names what is wrong with each. */
const types = Type.Array(text, { maxItems: 100 });

const settings = {
  name: line({ minLength: 1, maxLength: 200 }),
  url: text,
  notify_email: nullable(text),
  events: types,
  ordered: nullable(Type.Boolean()),
};

export const webhookRequest = Type.Object(settings, { ...strict, title: 'WebhookRequest' });

export const webhookUpdate = Type.Object(
  { ...settings, status: nullable(status) },
  { ...strict, title: 'WebhookUpdate' },
);

const shown = {
  id: uuid,
  tenant_id: uuid,
  status,
  name: text,
  url: text,
  notify_email: Type.Optional(text),
  events: Type.Array(text),
  ordered: Type.Boolean(),
  created_by: uuid,
  created_at: timestamp,
  modified_by: Type.Optional(uuid),
  modified_at: Type.Optional(timestamp),
};

export const webhook = Type.Object(shown, { title: 'Webhook' });

export const webhookWithSecret = Type.Object(
  { ...shown, secret: text },
  {
    title: 'WebhookWithSecret',
    description: 'A webhook with the secret that signs from now on, which is shown this once.',
  },
);

export const webhookList = cursorPage(webhook);

export const eventTypes = Type.Array(text);

const deliveryState = Type.Enum(['waiting', 'delivered', 'failed']);

const attempt = Type.Object(
  {
    at: timestamp,
    status: Type.Optional(Type.Integer()),
    milliseconds: Type.Number(),
    error: Type.Optional(text),
  },
  { title: 'DeliveryAttempt' },
);

export const delivery = Type.Object(
  {
    id: uuid,
    event_id: uuid,
    type: text,
    state: deliveryState,
    created_at: timestamp,
    due_at: Type.Optional(timestamp),
    attempts: Type.Array(attempt),
  },
  { title: 'Delivery' },
);

export const deliveryList = cursorPage(delivery);

export const deliveryQuery = Type.Object(
  {
    state: Type.Optional(deliveryState),
    size: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    start: pageQuery.start,
  },
  strict,
);

export const replayRequest = Type.Object(
  {
    since: text,
    until: nullable(text),
    types: nullable(types),
    start: nullable(Type.String({ maxLength: cursorLengthMax })),
  },
  { ...strict, title: 'ReplayRequest' },
);

export const replayReply = Type.Object(
  { events: Type.Integer(), next: Type.Optional(text) },
  { title: 'Replay' },
);

export const byDelivery = Type.Object({ id: text, deliveryId: text });
