/** Identifiers: their forms and how they are parsed. */
import type { Brand } from './brand.ts';
import type { Instant } from './clock.ts';
import type { Random } from './random.ts';

export type TenantId = Brand<string, 'TenantId'>;
export type ApplicationId = Brand<string, 'ApplicationId'>;
export type KeyId = Brand<string, 'KeyId'>;
export type SessionId = Brand<string, 'SessionId'>;
export type TokenId = Brand<string, 'TokenId'>;
export type TokenIntentId = Brand<string, 'TokenIntentId'>;
export type ProxyId = Brand<string, 'ProxyId'>;
export type ClientKeyId = Brand<string, 'ClientKeyId'>;
export type ReactorId = Brand<string, 'ReactorId'>;
export type ReactorRunId = Brand<string, 'ReactorRunId'>;
export type WebhookId = Brand<string, 'WebhookId'>;
export type EventId = Brand<string, 'EventId'>;
export type DeliveryId = Brand<string, 'DeliveryId'>;
export type PersonId = Brand<string, 'PersonId'>;
export type ConsoleSessionId = Brand<string, 'ConsoleSessionId'>;
export type ConsoleLinkId = Brand<string, 'ConsoleLinkId'>;
export type SignInMethodId = Brand<string, 'SignInMethodId'>;
export type ApprovalId = Brand<string, 'ApprovalId'>;

const tokenIdLengthMin = 3;
export const tokenIdLengthMax = 400;

/** The form that {@link parseTokenId} accepts, for messages to callers. */
export const tokenIdForm =
  `must have ${tokenIdLengthMin} to ${tokenIdLengthMax} characters, none of ` +
  '# / \\ + ? [ ] | & = % < > { } ^ and no control or invisible characters, and no space at either end';

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const tokenIdForbidden = /[#/\\+?[\]|&=%<>{}^\p{Cc}\p{Zl}\p{Zp}]/u;

/** Parses a token id, chosen or generated; `undefined` if it breaks {@link tokenIdForm}. */
export function parseTokenId(text: string): TokenId | undefined {
  if (text.length < tokenIdLengthMin || text.length > tokenIdLengthMax) return undefined;
  if (tokenIdForbidden.test(text) || !text.isWellFormed() || text.trim() !== text) return undefined;
  return text as TokenId;
}

/** True for a possible prefix of a token id. Databases reject queries with some other strings. */
export function mayBeginTokenId(text: string): boolean {
  return !tokenIdForbidden.test(text) && text.isWellFormed() && text.trimStart() === text;
}

/** Parses a UUID in either case and returns it in lower case; `undefined` if the string is not one. */
export function parseUuid<
  Id extends
    | TenantId
    | ApplicationId
    | KeyId
    | TokenIntentId
    | ProxyId
    | ClientKeyId
    | ReactorId
    | ReactorRunId
    | SessionId
    | WebhookId
    | EventId
    | DeliveryId
    | PersonId
    | ConsoleSessionId
    | SignInMethodId
    | ApprovalId,
>(text: string): Id | undefined {
  return uuidPattern.test(text) ? (text.toLowerCase() as Id) : undefined;
}

/** The nil UUID (RFC 9562 section 5.9), which no application has. */
export const noApplication = '00000000-0000-0000-0000-000000000000' as ApplicationId;

/** A version 4 UUID (RFC 9562 section 5.4). */
export function newUuid<
  Id extends
    | TenantId
    | ApplicationId
    | KeyId
    | SessionId
    | TokenId
    | TokenIntentId
    | ProxyId
    | ClientKeyId
    | ReactorId
    | ReactorRunId
    | WebhookId
    | PersonId
    | ConsoleSessionId
    | ConsoleLinkId
    | SignInMethodId
    | ApprovalId,
>(random: Random): Id {
  const bytes = random(16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return formatUuid(bytes.toString('hex')) as Id;
}

/**
 * Creates version 7 UUIDs (RFC 9562 section 5.7) for given times. UUIDs of the same time ascend: a counter of 32 bits
 * follows the time, and 42 random bits separate the ids of several generators.
 */
export function createTimedUuids(
  random: Random,
): <Id extends EventId | DeliveryId>(at: Instant) => Id {
  let counter = 0;
  return <Id extends EventId | DeliveryId>(at: Instant) => {
    counter = (counter + 1) >>> 0;
    const bytes = random(16);
    bytes.writeUIntBE(at, 0, 6);
    bytes.writeUInt16BE(0x7000 | (counter >>> 20), 6);
    bytes.writeUInt16BE(0x8000 | ((counter >>> 6) & 0x3fff), 8);
    bytes[10] = ((counter & 0x3f) << 2) | ((bytes[10] ?? 0) & 0x03);
    return formatUuid(bytes.toString('hex')) as Id;
  };
}

/** The lower bound of the ids that {@link createTimedUuids} creates at that time and later. */
export function firstTimedUuid<Id extends EventId | DeliveryId>(at: Instant): Id {
  return formatUuid(`${at.toString(16).padStart(12, '0')}${'0'.repeat(20)}`) as Id;
}

/** @param hex 32 digits. */
export function formatUuid(hex: string): string {
  const groups = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}`;
  return `${groups}-${hex.slice(20)}`;
}
