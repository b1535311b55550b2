/** What a receiver gets: the bytes of an event, and the headers that sign exactly these bytes. */

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
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

export interface Unsigned {
  readonly event: EventId;
  /** The member `event`. */
  readonly envelope: JsonObject;
  /** Of the webhook's secrets: the one that signs, and for a day after a rotation the one before. */
  readonly keys: readonly WebhookSecretKey[];
}

export interface MessageSigning {
  readonly key: () => Promise<WebhookKey>;
  readonly clock: Clock;
  /** Of the service's headers, such as `SVC`. */
  readonly headerPrefixes: readonly string[];
  /** The release. */
  readonly version: string;
}

export interface Messages {
  /** For one attempt: a later one says another time. */
  sign(unsigned: Unsigned): Promise<Message>;
  /** Begins a signature that is asked for soon, unless many were begun already. */
  signAhead(unsigned: Pick<Unsigned, 'event' | 'envelope'>): void;
}

/** Signatures that are made before anybody waits for them. Those that somebody waits for queue behind them. */
export const signedAheadMax = 16;

/** A signature costs half a millisecond of a processor, so webhooks that get an event at one time share it. */
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
      // Whoever then asks for the message gets the error as well.
      begin(event, envelope).signature.then(done, done);
    },
  };
}
