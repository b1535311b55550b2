/** A webhook as a request words it, parsed. */
import { createFindings, type Findings } from '../../lib/findings.ts';
import type { AllowList } from '../../outbound/allow-list.ts';
import { type EventType, eventTypeNames, parseEventType } from '../events/types.ts';
import { flawOfAddress } from './address.ts';

/** As the wire schema lets it through; null means absent. */
export interface WebhookRequest {
  readonly name: string;
  readonly url: string;
  readonly notify_email?: string | null;
  readonly events: readonly string[];
  readonly ordered?: boolean | null;
}

export interface WebhookUpdate extends WebhookRequest {
  readonly status?: 'enabled' | 'disabled' | null;
}

export interface WebhookSettings {
  readonly name: string;
  readonly url: string;
  readonly notify_email: string | null;
  readonly events: readonly EventType[];
  /** `undefined` where the request does not say. */
  readonly ordered: boolean | undefined;
}

const emailLengthMax = 254;

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function parseWebhook(request: WebhookRequest, allowed: AllowList): WebhookSettings {
  const findings = createFindings();
  const flaw = flawOfAddress(request.url, allowed);
  if (flaw !== undefined) findings.add('url', flaw);
  const { name, url, notify_email = null } = request;
  if (notify_email !== null && !isEmail(notify_email)) {
    findings.add('notify_email', `must be a mail address of at most ${emailLengthMax} characters`);
  }
  const events = readEvents(request.events, findings);
  findings.settle();
  return { name, url, notify_email, events, ordered: request.ordered ?? undefined };
}

function isEmail(text: string): boolean {
  return text.length <= emailLengthMax && /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(text);
}

function readEvents(given: readonly string[], findings: Findings): readonly EventType[] {
  if (given.length === 0) findings.add('events', 'must contain at least one event type');
  const types = given.flatMap((text, index) => {
    const type = parseEventType(text);
    if (type === undefined) findings.add(`events[${index}]`, unknownType(text));
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
