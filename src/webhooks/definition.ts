/** The definition of a webhook: its sealed settings, and their form in requests. */
import { isIP } from 'node:net';
import { createValidationErrors, type ValidationErrors } from '../base/validation-errors.ts';
import { type AllowList, hostAndPort } from '../outbound/allow-list.ts';
import { type EventType, eventTypeNames, parseEventType } from './events/types.ts';

/** The sealed part. */
export interface WebhookBody {
  readonly url: string;
  readonly notify_email: string | null;
  readonly events: readonly EventType[];
  /** Whether an event of an entity is sent only after all events with smaller sequences have arrived. */
  readonly ordered: boolean;
  /** Newest first. */
  readonly secrets: readonly WebhookSecret[];
}

export interface WebhookSecret {
  /** `whsec_` and the key in base64, as Standard Webhooks specifies. */
  readonly text: string;
  /** The end of its use for signing, in milliseconds since 1970; null for the newest. */
  readonly ends_at: number | null;
}

/** The parsed form of the wire schemas; null means absent. */
export interface WebhookRequest {
  readonly name: string;
  readonly url: string;
  readonly notify_email?: string | null;
  readonly events: readonly string[];
  readonly ordered?: boolean | null;
  /** Not allowed in a request that creates a webhook. */
  readonly status?: 'enabled' | 'disabled' | null;
}

export interface WebhookSettings {
  readonly name: string;
  readonly url: string;
  readonly notify_email: string | null;
  readonly events: readonly EventType[];
  /** `undefined` if the request does not set it. */
  readonly ordered: boolean | undefined;
  /** `undefined` if the request does not set it. */
  readonly status: 'enabled' | 'disabled' | undefined;
}

const emailLengthMax = 254;

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function parseWebhook(request: WebhookRequest, allowed: AllowList): WebhookSettings {
  const errors = createValidationErrors();
  const flaw = flawOfAddress(request.url, allowed);
  if (flaw !== undefined) errors.add('url', flaw);
  const { name, url, notify_email = null } = request;
  if (notify_email !== null && !isEmail(notify_email)) {
    errors.add('notify_email', `must be a mail address of at most ${emailLengthMax} characters`);
  }
  const events = readEvents(request.events, errors);
  errors.settle();
  const { ordered, status } = request;
  return {
    name,
    url,
    notify_email,
    events,
    ordered: ordered ?? undefined,
    status: status ?? undefined,
  };
}

const urlLengthMax = 1_000;

/** Names of the machine itself, and of private networks. */
const privateNames = /(?:^|\.)(?:localhost|local|internal|home\.arpa)\.?$/i;

/**
 * The problem with an address; `undefined` for a valid one. The operator's own hosts may have any name. The address
 * behind a public name is checked on every send.
 */
function flawOfAddress(text: string, allowed: AllowList): string | undefined {
  if (text.length > urlLengthMax) return `must have at most ${urlLengthMax} characters`;
  // Parsers disagree on spaces, control characters, and backslashes.
  const isPlain = /^https:\/\/[^\s\p{Cc}\\]+$/iu.test(text) && text.isWellFormed();
  const url = isPlain ? URL.parse(text) : null;
  if (url === null || url.hostname === '') return 'must be an https URL';
  // An empty user name disappears when the URL is parsed, and more than two slashes are parsed as two.
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/+[^/?#]*@/.test(text)) {
    return 'must not have a user name or password';
  }
  if (text.includes('#')) return 'must not have a fragment';
  if (allowed.has(hostAndPort(url))) return undefined;
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) {
    return 'must have a host name, not an IP address';
  }
  if (privateNames.test(url.hostname)) return 'must not name a host of a private network';
  return undefined;
}

function isEmail(text: string): boolean {
  return text.length <= emailLengthMax && /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(text);
}

function readEvents(given: readonly string[], errors: ValidationErrors): readonly EventType[] {
  if (given.length === 0) errors.add('events', 'must contain at least one event type');
  const types = given.flatMap((text, index) => {
    const type = parseEventType(text);
    if (type === undefined) errors.add(`events[${index}]`, unknownType(text));
    return type ?? [];
  });
  return [...new Set(types)];
}

/** Types keyed by their letters, without separators. */
const typesByLetters: ReadonlyMap<string, EventType> = new Map(
  eventTypeNames.map((name) => [lettersOf(name), name]),
);

/** The error for an unknown type. It does not repeat the type. */
export function unknownType(text: string): string {
  const meant = typesByLetters.get(lettersOf(text));
  const unknown = 'is not a known event type';
  return meant === undefined
    ? `${unknown}; GET /webhooks/event-types lists them`
    : `${unknown}; did you mean ${meant}?`;
}

function lettersOf(text: string): string {
  return text.toLowerCase().replace(/[^a-z]/g, '');
}
