/** The message to a receiver: the bytes of an event, and the headers that sign exactly these bytes. */

import { type Clock, type Instant, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { EventId } from '../../base/ids.ts';
import { type JsonObject, sortedJson } from '../../base/json.ts';
import {
  standardSignatures,
  type WebhookKey,
  type WebhookSecretKey,
} from '../../keys/webhook-signatures.ts';

export interface Message {
  readonly body: Uint8Array;
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

export interface Unsigned {
  readonly event: EventId;
  /** The member `event`. */
  readonly envelope: JsonObject;
  /** The webhook's signing keys: the current one and, for a day after a rotation, the previous one. */
  readonly keys: readonly WebhookSecretKey[];
}

export interface MessageSigning {
  readonly key: () => Promise<WebhookKey>;
  readonly clock: Clock;
  /** The prefixes of the service's headers, such as `SVC`. */
  readonly headerPrefixes: readonly string[];
  /** The version of the release. */
  readonly version: string;
}

export interface Messages {
  /** Signs for one attempt: a later attempt has another timestamp. */
  sign(unsigned: Unsigned): Promise<Message>;
  /** Starts a signature that is needed soon, unless many have been started already. */
  signAhead(unsigned: Pick<Unsigned, 'event' | 'envelope'>): void;
}

/** Signatures computed ahead. A signature that is needed now queues behind them. */
export const signedAheadMax = 16;

/**
 * A signature costs half a millisecond of processor time, so webhooks that get an event at the same time share it.
 */
const sharedMs = second;
const sharedMax = 1_000;

interface SignedBody {
  readonly at: Instant;
  readonly body: Uint8Array;
  readonly signature: Promise<string>;
}

export function createMessages({ key, clock, headerPrefixes, version }: MessageSigning): Messages {
  const recent = new ExpiringMap<EventId, SignedBody>({
    clock,
    ageMsMax: sharedMs,
    entriesMax: sharedMax,
  });

  let ahead = 0;

  function begin(event: EventId, envelope: JsonObject): SignedBody {
    const at = clock.now();
    const delivered_at = new Date(at).toISOString();
    const body = Buffer.from(sortedJson({ delivered_at, event: envelope }));
    const signature = key().then((known) => known.sign(body));
    const shared = { at, body, signature };
    recent.set(event, shared);
    return shared;
  }

  async function sign({ event, envelope, keys }: Unsigned): Promise<Message> {
    const { at, body, signature } = recent.get(event) ?? begin(event, envelope);
    const signed = { id: event, timestamp: Math.floor(at / second), body };
    const vaultSignature = await signature;
    return {
      body,
      headers: [
        ...['content-type', 'application/json'],
        ...['user-agent', `Strongroom/${version}`],
        ...headerPrefixes.flatMap((prefix) => [
          ...[`${prefix}-SIGNATURE`, vaultSignature],
          ...[`${prefix}-SIGNATURE-VERSION`, 'v1'],
        ]),
        ...['webhook-id', event],
        ...['webhook-timestamp', String(signed.timestamp)],
        ...['webhook-signature', standardSignatures(keys, signed)],
      ],
    };
  }

  return {
    sign,
    signAhead: ({ event, envelope }) => {
      if (ahead >= signedAheadMax || recent.get(event)) return;
      ahead++;
      const done = () => {
        ahead--;
      };
      // A later `sign` of the same message gets the error too.
      begin(event, envelope).signature.then(done, done);
    },
  };
}
