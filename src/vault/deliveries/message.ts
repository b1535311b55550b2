/** What a receiver gets: the bytes of an event, and the headers that sign exactly these bytes. */
import { standardSignatures, type WebhookKey } from '../../crypto/webhook-signatures.ts';
import { type Instant, second } from '../../lib/clock.ts';
import type { EventId } from '../../lib/ids.ts';
import type { JsonObject } from '../../lib/json.ts';
import { sortedJson } from '../../lib/sorted-json.ts';

export interface Message {
  readonly body: Uint8Array;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

export interface Unsigned {
  readonly event: EventId;
  /** The member `event`. */
  readonly envelope: JsonObject;
  /** Of the webhook: the one that signs, and for a day after a rotation the one before. */
  readonly secrets: readonly string[];
  readonly now: Instant;
}

export interface Signing {
  readonly key: WebhookKey;
  /** Of the service's headers, such as `SVC`. */
  readonly headerPrefixes: readonly string[];
  /** The release. */
  readonly version: string;
}

/** For one attempt: the next one says another time. */
export async function signedMessage(
  { key, headerPrefixes, version }: Signing,
  { event, envelope, secrets, now }: Unsigned,
): Promise<Message> {
  const delivered_at = new Date(now).toISOString();
  const body = Buffer.from(sortedJson({ delivered_at, event: envelope }));
  const timestamp = Math.floor(now / second);
  const signature = await key.sign(body);
  return {
    body,
    headers: [
      ...['content-type', 'application/json'],
      ...['user-agent', `Strongroom/${version}`],
      ...headerPrefixes.flatMap((prefix) => [
        ...[`${prefix}-SIGNATURE`, signature],
        ...[`${prefix}-SIGNATURE-VERSION`, 'v1'],
      ]),
      ...['webhook-id', event],
      ...['webhook-timestamp', String(timestamp)],
      ...['webhook-signature', standardSignatures(secrets, { id: event, timestamp, body })],
    ],
  };
}
