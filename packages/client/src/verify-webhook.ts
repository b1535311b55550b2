/** Verifying that a request comes from a vault: its signature, and how old it is. */
import { bytesOf, fromBase64, fromPem, subtle } from './bytes.ts';
import { ConfigurationError, WebhookSignatureError } from './errors.ts';
import { parseLine } from './lines.ts';

/**
 * A request that a webhook received, and what verifies it: the `secret` of the webhook, the `publicKey` of the vault,
 * or both.
 *
 * @example
 * ```ts
 * import { type ReceivedWebhook, verifyWebhook } from '@strongroom/client';
 *
 * const received: ReceivedWebhook = { body, headers, secret, tolerance: 60 };
 * const { event } = await verifyWebhook(received);
 * ```
 */
export interface ReceivedWebhook {
  /** The bytes of the body as they came, not the parsed JSON. */
  readonly body: string | Uint8Array | ArrayBuffer;
  /** The headers, as `Headers` or as Node has them. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The secret of the webhook, `whsec_…`: verifies `webhook-signature` (Standard Webhooks). */
  readonly secret?: string | undefined;
  /**
   * The public key of the vault in PEM, of `vault.webhooks.publicKey()`: verifies `SVC-SIGNATURE`. It says that this
   * vault sent the event, and not for whom: compare `event.tenant_id`.
   */
  readonly publicKey?: string | undefined;
  /** How many seconds a signature is accepted: 300 unless given. */
  readonly tolerance?: number | undefined;
  /** The prefix of the service's headers: `SVC` unless given. */
  readonly headerPrefix?: string | undefined;
}

/**
 * What a webhook receives.
 *
 * @example
 * ```ts
 * import { type WebhookPayload, verifyWebhook } from '@strongroom/client';
 *
 * const payload: WebhookPayload = await verifyWebhook({ body, headers, secret });
 * console.log(payload.event.type, payload.event.sequence);
 * ```
 */
export interface WebhookPayload {
  /** When this attempt was sent. */
  readonly delivered_at: string;
  readonly event: {
    /** The same in every delivery of the event: ignore one that you know. */
    readonly id: string;
    /** Such as `token.created`. */
    readonly type: string;
    /** When it happened. */
    readonly timestamp: string;
    readonly tenant_id: string;
    /** Of the request that caused it. */
    readonly trace_id?: string;
    /** The number of the event among those of the same entity, from 1. */
    readonly sequence: number;
    /** What it is about. It never holds a value. */
    readonly data: Readonly<Record<string, unknown>>;
  };
}

const toleranceDefault = 300;
const secretForm = /^whsec_[A-Za-z0-9+/]+={0,2}$/;

/**
 * Verifies the signature of a webhook and its age, and gives what it says. It needs no network.
 *
 * @throws WebhookSignatureError, whose `code` is `missing_signature`, `wrong_signature` or `old_signature`, and
 *   ConfigurationError without a usable secret or key.
 * @example
 * ```ts
 * import { verifyWebhook } from '@strongroom/client';
 *
 * const { event } = await verifyWebhook({ body, headers, secret });
 * console.log(event.type, event.id);
 * ```
 */
export async function verifyWebhook(received: ReceivedWebhook): Promise<WebhookPayload> {
  const { body: given, secret, publicKey, tolerance = toleranceDefault } = received;
  if (typeof given !== 'string' && !(given instanceof Uint8Array || given instanceof ArrayBuffer)) {
    throw new ConfigurationError(
      'body must be the bytes of the request as they came. Read it before a framework parses it.',
    );
  }
  if (secret === undefined && publicKey === undefined) {
    throw new ConfigurationError('Give verifyWebhook the secret of the webhook, or publicKey.');
  }
  const body = bytesOf(given);
  const ages: number[] = [];
  if (secret !== undefined) ages.push(await verifySecret(received, body, secret));
  if (publicKey !== undefined) await verifyKey(received, body, publicKey);
  const payload = parseLine(new TextDecoder().decode(body)) as WebhookPayload | undefined;
  if (payload?.event === undefined) {
    throw new WebhookSignatureError('wrong_signature', 'The body is signed, and is no event.');
  }
  if (publicKey !== undefined) ages.push(ageOf(Date.parse(payload.delivered_at) / 1000));
  for (const age of ages) {
    if (Math.abs(age) <= tolerance) continue;
    throw new WebhookSignatureError(
      'old_signature',
      `The signature is ${Math.round(age)} s old, and ${tolerance} s are accepted: an attacker may have sent an ` +
        'old request again. Do not act on it. If all are refused, set the clock of this machine, or raise tolerance.',
    );
  }
  return payload;
}

/** In seconds. */
function ageOf(timestamp: number): number {
  return Date.now() / 1000 - timestamp;
}

/** @returns how old the signature is, in seconds. */
async function verifySecret(
  received: ReceivedWebhook,
  body: Uint8Array,
  secret: string,
): Promise<number> {
  const raw = secretForm.test(secret) ? fromBase64(secret.slice('whsec_'.length)) : undefined;
  if (raw === undefined) {
    throw new ConfigurationError('secret must be the secret of the webhook: whsec_ and base64.');
  }
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => headerOf(received, name),
  ) as [string, string, string];
  const prefix = bytesOf(`${id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await subtle().importKey('raw', raw, algorithm, false, ['verify']);
  for (const signature of signatures.split(' ')) {
    const bytes = signature.startsWith('v1,') ? fromBase64(signature.slice(3)) : undefined;
    if (bytes && (await subtle().verify('HMAC', key, bytes, signed))) {
      const age = ageOf(Number(timestamp));
      if (Number.isFinite(age)) return age;
    }
  }
  throw wrong('secret');
}

async function verifyKey(
  received: ReceivedWebhook,
  body: Uint8Array<ArrayBuffer>,
  publicKey: string,
): Promise<void> {
  const spki = fromPem(publicKey);
  const algorithm = { name: 'RSA-PSS', hash: 'SHA-256' };
  const key =
    spki &&
    (await subtle()
      .importKey('spki', spki, algorithm, false, ['verify'])
      .catch(() => undefined));
  if (key === undefined) {
    throw new ConfigurationError(
      'publicKey must be the PEM text that vault.webhooks.publicKey() gives.',
    );
  }
  const signature = fromBase64(headerOf(received, `${received.headerPrefix ?? 'SVC'}-signature`));
  const isRight =
    signature && (await subtle().verify({ name: 'RSA-PSS', saltLength: 32 }, key, signature, body));
  if (!isRight) throw wrong('publicKey');
}

function wrong(option: string): WebhookSignatureError {
  return new WebhookSignatureError(
    'wrong_signature',
    `The body or its signature was changed, or ${option} is that of another webhook or vault. Do not act on it. ` +
      'If all are refused, check that body has the bytes as they came, and that the secret is the present one.',
  );
}

function headerOf({ headers }: ReceivedWebhook, name: string): string {
  const lower = name.toLowerCase();
  const value =
    headers instanceof Headers
      ? headers.get(lower)
      : Object.entries(headers).find(([one]) => one.toLowerCase() === lower)?.[1];
  const text = typeof value === 'string' ? value : value?.[0];
  if (text) return text;
  throw new WebhookSignatureError(
    'missing_signature',
    `The request has no header ${lower}. It does not come from a vault, or a server in front removed it.`,
  );
}
