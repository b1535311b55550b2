/** What a webhook is: its settings as they are sealed, and as requests word them. */
import { isIP } from 'node:net';
import { createValidationErrors, type ValidationErrors } from '../base/validation-errors.ts';
import { type AllowList, hostAndPort } from '../outbound/allow-list.ts';
import { type EventType, eventTypeNames, parseEventType } from './events/types.ts';

/** What is sealed. */
export interface WebhookBody {
  readonly url: string;
  readonly notify_email: string | null;
  readonly events: readonly EventType[];
  /** Of one entity, no event is sent before those with a smaller sequence have arrived. */
  readonly ordered: boolean;
  /** The newest first. */
  readonly secrets: readonly WebhookSecret[];
}

export interface WebhookSecret {
  /** `whsec_` and base64 of the key, as Standard Webhooks writes it. */
  readonly text: string;
  /** Milliseconds since 1970, from which on it signs nothing; null for the newest. */
  readonly ends_at: number | null;
}

/** As the wire schemas let it through; null means absent. */
export interface WebhookRequest {
  readonly name: string;
  readonly url: string;
  readonly notify_email?: string | null;
  readonly events: readonly string[];
  readonly ordered?: boolean | null;
  /** Not of a new one. */
  readonly status?: 'enabled' | 'disabled' | null;
}

export interface WebhookSettings {
  readonly name: string;
  readonly url: string;
  readonly notify_email: string | null;
  readonly events: readonly EventType[];
  /** `undefined` where the request does not say. */
  readonly ordered: boolean | undefined;
  /** The same. */
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

/** Names of the machine itself, and of networks that nobody outside can see. */
const privateNames = /(?:^|\.)(?:localhost|local|internal|home\.arpa)\.?$/i;

/**
 * What is wrong with an address; `undefined` for a valid one. The operator's own hosts may have any name.
 * What a public name leads to is looked at whenever something is sent.
 */
function flawOfAddress(text: string, allowed: AllowList): string | undefined {
  if (text.length > urlLengthMax) return `must have at most ${urlLengthMax} characters`;
  // Of spaces, control characters and backslashes parsers make different things.
  const isPlain = /^https:\/\/[^\s\p{Cc}\\]+$/iu.test(text) && text.isWellFormed();
  const url = isPlain ? URL.parse(text) : null;
  if (url === null || url.hostname === '') return 'must be an https URL';
  // An empty user name leaves no trace in what is parsed, and more slashes than two are taken for two.
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

/** Types by what is left of them without the signs between words. */
const typesByLetters: ReadonlyMap<string, EventType> = new Map(
  eventTypeNames.map((name) => [lettersOf(name), name]),
);

/** What is wrong with a text that is no type. It is not repeated. */
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
