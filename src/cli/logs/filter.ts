/** The options by which commands choose entries of the log: the filters of `GET /logs`, and a span of time. */
import type { LogFilter } from '../../audit/find.ts';
import { day, hour, type Instant, minute, parseInstant, second } from '../../base/clock.ts';
import { containerForm, parseContainer } from '../../base/container.ts';
import { parseExpiry } from '../../base/dates.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import { shownWords, throughWords } from '../../store/log-chain/disclosure.ts';
import { type Flag, type Flags, UsageError } from '../terminal/command.ts';
import { optionalText } from './place.ts';

const option = (value: string, meaning: string): Flag => ({ kind: 'string', value, meaning });

const resultWords = ['success', 'denied', 'failed'] as const;

const factFlags = {
  'actor-id': option('ID', 'the application or session that did it'),
  'key-id': option('ID', 'the key that was sent'),
  'session-id': option('ID', 'the session that did it'),
  address: option('ADDRESS', 'the network address of the client'),
  operation: option('WORD', 'what was done, such as read or delete'),
  result: option('WORD', resultWords.join(', ')),
  'entity-type': option('WORD', 'what it is about, such as token'),
  'entity-id': option('ID', 'the id of what it is about'),
  container: option('PATH', 'exactly the container of the token'),
  shown: option('HOW', `how data was shown: ${shownWords.join(', ')}`),
  through: option('OPERATION', `through what it was shown: ${throughWords.join(', ')}`),
  'trace-id': option('ID', 'the trace id of the request'),
} as const;

export const sinceFlag = option(
  'TIME',
  'entries from then on: a date, a date-time such as 2026-11-24T09:00:00Z, or how long ago (90m, 24h, 7d)',
);

export const spanFlags = {
  since: sinceFlag,
  until: option('TIME', 'entries before then'),
} as const;

export const filterFlags = { ...factFlags, ...spanFlags };

/** @throws UsageError for a word that no entry can have. */
export function filterOf(flags: Flags, { id, keyring }: TenantKeys, now: Instant): LogFilter {
  const text = (name: keyof typeof factFlags) => optionalText(flags, name);
  const container = text('container');
  const place = container === undefined ? undefined : parseContainer(container);
  if (container !== undefined && !place) throw new UsageError(`--container ${containerForm}`);
  return {
    tenant: id,
    index: { keyring, now },
    actor_id: text('actor-id'),
    key_id: text('key-id'),
    session_id: text('session-id'),
    address: text('address'),
    operation: text('operation'),
    result: wordOf(flags, 'result', resultWords),
    entity_type: text('entity-type'),
    entity_id: text('entity-id'),
    container: place,
    shown: wordOf(flags, 'shown', shownWords),
    through: wordOf(flags, 'through', throughWords),
    trace_id: text('trace-id'),
    ...spanOf(flags, now),
  };
}

export function spanOf(flags: Flags, now: Instant) {
  return {
    oldest: timeOf(flags, 'since', now) ?? parseInstant(0),
    until: timeOf(flags, 'until', now),
  };
}

export function wordOf<W extends string>(
  flags: Flags,
  name: string,
  words: readonly W[],
): W | undefined {
  const text = optionalText(flags, name);
  const word = words.find((one) => one === text);
  if (text === undefined || word) return word;
  throw new UsageError(`--${name} must be one of ${words.join(', ')}`);
}

const agoForm = /^(\d{1,6})([smhd])$/;
const unitMs: Readonly<Record<string, number>> = { s: second, m: minute, h: hour, d: day };

/** How long a text such as `90m` says; `undefined` for any other text. */
export function lengthOf(text: string): number | undefined {
  const [, count, unit = ''] = agoForm.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (unitMs[unit] ?? 0);
}

function timeOf(flags: Flags, name: string, now: Instant): Instant | undefined {
  const text = optionalText(flags, name);
  if (text === undefined) return undefined;
  const ago = lengthOf(text);
  if (ago !== undefined) return parseInstant(Math.max(0, now - ago));
  const date = parseExpiry(text);
  if (date) return date.at;
  throw new UsageError(
    `--${name} must be a date, a date-time with Z or an offset such as +02:00, or how long ago, such as 24h`,
  );
}
