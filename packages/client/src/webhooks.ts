/** Webhooks and their deliveries. */
import type { RequestOptions } from './connection.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type {
  Delivery,
  ListDeliveriesQuery,
  Replay,
  ReplayRequest,
  Webhook,
  WebhookRequest,
  WebhookUpdate,
  WebhookWithSecret,
} from './wire.ts';

/**
 * Webhooks, as `vault.webhooks`: addresses of yours that the vault calls when something happens. They need a management
 * key; `verifyWebhook` verifies what arrives.
 *
 * @example
 * ```ts
 * const { id, secret } = await admin.webhooks.create({
 *   name: 'Orders',
 *   url: 'https://receiver.example.com/events',
 *   events: ['token.created', 'token.expired'],
 * });
 * ```
 */
export class Webhooks extends Resource {
  /**
   * Creates a webhook. Its `secret` is in this response and in no later one.
   *
   * @example
   * ```ts
   * const { secret } = await admin.webhooks.create({
   *   name: 'Orders',
   *   url: 'https://receiver.example.com/events',
   *   events: ['token.created'],
   * });
   * ```
   */
  create(request: WebhookRequest, options?: RequestOptions): Promise<WebhookWithSecret> {
    return this.call('createWebhook', { body: request }, options);
  }

  /**
   * Reads a webhook.
   *
   * @example
   * ```ts
   * const url = 'https://receiver.example.com/events';
   * const { id } = await admin.webhooks.create({ name: 'Orders', url, events: ['token.created'] });
   * const { status } = await admin.webhooks.get(id);
   * ```
   */
  get(id: string, options?: RequestOptions): Promise<Webhook> {
    return this.call('getWebhook', { params: { id } }, options);
  }

  /**
   * Replaces a webhook. Its secret stays. With the status `enabled` a webhook that was disabled is sent to again.
   *
   * @example
   * ```ts
   * const events = ['token.created'] as const;
   * const request = { name: 'Orders', url: 'https://receiver.example.com/a', events: [...events] };
   * const { id } = await admin.webhooks.create(request);
   * await admin.webhooks.replace(id, { ...request, ordered: true });
   * ```
   */
  replace(id: string, update: WebhookUpdate, options?: RequestOptions): Promise<Webhook> {
    return this.call('replaceWebhook', { params: { id }, body: update }, options);
  }

  /**
   * Deletes a webhook, and what was to be delivered to it.
   *
   * @example
   * ```ts
   * const url = 'https://receiver.example.com/events';
   * const { id } = await admin.webhooks.create({ name: 'Orders', url, events: ['token.created'] });
   * await admin.webhooks.delete(id);
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteWebhook', { params: { id } }, options);
  }

  /**
   * All webhooks, newest first.
   *
   * @example
   * ```ts
   * for await (const { name, status } of admin.webhooks.list()) console.log(name, status);
   * ```
   */
  list(options?: RequestOptions): List<Webhook> {
    return this.pagesOf('listWebhooks', {}, options);
  }

  /**
   * Gives a webhook another secret. The one before signs next to it for 24 hours.
   *
   * @example
   * ```ts
   * const url = 'https://receiver.example.com/events';
   * const { id } = await admin.webhooks.create({ name: 'Orders', url, events: ['token.created'] });
   * const { secret } = await admin.webhooks.rotateSecret(id);
   * ```
   */
  rotateSecret(id: string, options?: RequestOptions): Promise<WebhookWithSecret> {
    return this.call('rotateWebhookSecret', { params: { id } }, options);
  }

  /**
   * Sends an event of the type `webhook.test`.
   *
   * @example
   * ```ts
   * const url = 'https://receiver.example.com/events';
   * const { id } = await admin.webhooks.create({ name: 'Orders', url, events: ['token.created'] });
   * const { state } = await admin.webhooks.test(id);
   * ```
   */
  test(id: string, options?: RequestOptions): Promise<Delivery> {
    return this.call('testWebhook', { params: { id } }, options);
  }

  /**
   * The deliveries of a webhook, newest first.
   *
   * @example
   * ```ts
   * const url = 'https://receiver.example.com/events';
   * const { id } = await admin.webhooks.create({ name: 'Orders', url, events: ['token.created'] });
   * for await (const { type, attempts } of admin.webhooks.deliveries(id, { state: 'failed' })) {
   *   console.log(type, attempts.length);
   * }
   * ```
   */
  deliveries(
    id: string,
    query: ListDeliveriesQuery = {},
    options?: RequestOptions,
  ): List<Delivery> {
    return this.pagesOf('listDeliveries', { params: { id }, query }, options);
  }

  /**
   * Delivers an event once more.
   *
   * @example
   * ```ts
   * const url = 'https://receiver.example.com/events';
   * const { id } = await admin.webhooks.create({ name: 'Orders', url, events: ['token.created'] });
   * const delivery = await admin.webhooks.test(id);
   * await admin.webhooks.redeliver(id, delivery.id);
   * ```
   */
  redeliver(id: string, deliveryId: string, options?: RequestOptions): Promise<Delivery> {
    return this.call('redeliver', { params: { id, deliveryId } }, options);
  }

  /**
   * Sends the events of a time again: up to 1,000 in one call, and `next` leads to the rest.
   *
   * @example
   * ```ts
   * const url = 'https://receiver.example.com/events';
   * const { id } = await admin.webhooks.create({ name: 'Orders', url, events: ['token.created'] });
   * const since = new Date(Date.now() - 3_600_000).toISOString();
   * const { events, next } = await admin.webhooks.replay(id, { since });
   * ```
   */
  replay(id: string, request: ReplayRequest, options?: RequestOptions): Promise<Replay> {
    return this.call('replayEvents', { params: { id }, body: request }, options);
  }

  /**
   * The types of events that a webhook can ask for.
   *
   * @example
   * ```ts
   * const types = await admin.webhooks.eventTypes();
   * ```
   */
  eventTypes(options?: RequestOptions): Promise<string[]> {
    return this.call('listEventTypes', {}, options);
  }

  /**
   * The public key, in PEM, of the signature that the vault itself adds to events, for `verifyWebhook`. Store it: it
   * does not change.
   *
   * @example
   * ```ts
   * const publicKey = await vault.webhooks.publicKey();
   * ```
   */
  publicKey(options?: RequestOptions): Promise<string> {
    return this.call('getWebhookKey', {}, options);
  }
}
