/** The message to a receiver: the bytes of an event, and the headers that sign exactly these bytes. */

import type { SigningPair, SigningPairs } from '../../access/keyrings/signing-pairs.ts';
import { type Clock, type Instant, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { EventId } from '../../base/ids.ts';
import { type JsonObject, sortedJson } from '../../base/json.ts';
import { standardSignatures, type WebhookSecretKey } from '../../keys/webhook-signatures.ts';
import type { Tenant } from '../../rules/tenant.ts';

export interface Message {
  readonly body: Uint8Array;
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

export interface Unsigned {
  /** Whose event it is. */
  readonly tenant: Pick<Tenant, 'keyring'>;
  readonly event: EventId;
  /** The member `event`. */
  readonly envelope: JsonObject;
  /** The webhook's signing keys: the current one and, for a day after a rotation, the previous one. */
  readonly keys: readonly WebhookSecretKey[];
}

export interface MessageSigning {
  readonly pairs: Pick<SigningPairs, 'of'>;
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
  signAhead(unsigned: Omit<Unsigned, 'keys'>): void;
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
  /** By the pair before, as long as it signs as well, and by the active one. */
  readonly signatures: Promise<readonly PairSignature[]>;
}

interface PairSignature extends Pick<SigningPair, 'pair'> {
  /** base64. */
  readonly signature: string;
}

export function createMessages({
  pairs,
  clock,
  headerPrefixes,
  version,
}: MessageSigning): Messages {
  const recent = new ExpiringMap<EventId, SignedBody>({
    clock,
    ageMsMax: sharedMs,
    entriesMax: sharedMax,
  });

  let ahead = 0;

  function begin({ tenant, event, envelope }: Omit<Unsigned, 'keys'>): SignedBody {
    const at = clock.now();
    const delivered_at = new Date(at).toISOString();
    const body = Buffer.from(sortedJson({ delivered_at, event: envelope }));
    const signatures = signedBy(tenant, body);
    const shared = { at, body, signatures };
    recent.set(event, shared);
    return shared;
  }

  async function signedBy(
    tenant: Unsigned['tenant'],
    body: Uint8Array,
  ): Promise<readonly PairSignature[]> {
    const found = await pairs.of(tenant);
    return Promise.all(
      found.map(async (one) => ({ pair: one.pair, signature: await one.sign(body) })),
    );
  }

  /**
   * A receiver that knows one public key finds its signature where it always was until the overlap ends, and the other
   * one next to it.
   */
  function signatureHeaders(signatures: readonly PairSignature[]): string[] {
    return headerPrefixes.flatMap((prefix) =>
      signatures.flatMap(({ pair, signature }, index) => {
        const name = `${prefix}-SIGNATURE${index === 0 ? '' : '-NEXT'}`;
        return [name, signature, `${name}-VERSION`, `v${pair}`];
      }),
    );
  }

  async function sign({ keys, ...unsigned }: Unsigned): Promise<Message> {
    const { event } = unsigned;
    const { at, body, signatures } = recent.get(event) ?? begin(unsigned);
    const signed = { id: event, timestamp: Math.floor(at / second), body };
    const made = await signatures;
    return {
      body,
      headers: [
        ...['content-type', 'application/json'],
        ...['user-agent', `Strongroom/${version}`],
        ...signatureHeaders(made),
        ...['webhook-id', event],
        ...['webhook-timestamp', String(signed.timestamp)],
        ...['webhook-signature', standardSignatures(keys, signed)],
      ],
    };
  }

  return {
    sign,
    signAhead: (unsigned) => {
      if (ahead >= signedAheadMax || recent.get(unsigned.event)) return;
      ahead++;
      const done = () => {
        ahead--;
      };
      // A later `sign` of the same message gets the error too.
      begin(unsigned).signatures.then(done, done);
    },
  };
}
