/** The entry of an alert: what was noticed about which use. */
import type { Instant } from '../base/clock.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import { detailed } from './log-entries.ts';
import { messages } from './log-messages.ts';

export type AlertKind = keyof (typeof messages)['alert'];

export interface AlertFacts {
  /** What the alert is about: a key, an application, a token, or a checkpoint of the log. */
  readonly id: string;
  readonly detail: string;
  readonly at: Instant;
}

/** @param cause the entry of what was noticed, whose actor and source the alert names. */
export function alertEntry(
  kind: AlertKind,
  cause: LogEntry,
  { id, detail, at }: AlertFacts,
): LogEntry {
  const { event: _event, spenders: _spenders, bin: _bin, ...facts } = cause;
  const { source, origin, actor_id } = cause;
  const entry: LogEntry = {
    ...facts,
    created_at: at,
    entity_type: 'alert',
    entity_id: id,
    operation: kind,
    message: messages.alert[kind],
    result: 'success',
    disclosure: null,
    event: {
      alert: {
        detail,
        ...(source?.key_id && { key_id: source.key_id }),
        ...(actor_id !== null && { actor_id }),
        ...(origin !== null && { address: origin }),
      },
    },
  };
  return detailed(entry, detail);
}
