/** Entries of the log as a list: what was done, how data was shown, by whom, and when. */
import type { LogEntry } from '@strongroom/client';
import { nameOfApplication } from '../core/names.ts';
import { t } from '../texts.ts';
import { Badge, type BadgeTone, Time } from './basics.tsx';

const tones: Readonly<Record<string, BadgeTone>> = {
  revealed: 'warn',
  masked: 'neutral',
  redacted: 'neutral',
};

/** How the entry is to be noticed: a refusal first, else how data was shown. */
export function Mark({ entry }: { entry: LogEntry }) {
  if (entry.result !== 'success') return <Badge tone="bad">{entry.result}</Badge>;
  if (entry.shown === undefined) return null;
  return <Badge tone={tones[entry.shown] ?? 'neutral'}>{entry.shown}</Badge>;
}

/** The person, if there is one, and the application. */
export function whoOf(entry: LogEntry): string {
  const { actor_type, actor_id, application_id, person_name } = entry;
  const isApplication = actor_type === 'application' || actor_type === 'session';
  const application = isApplication ? nameOfApplication(application_id ?? actor_id) : actor_type;
  // Signing in needs no role.
  if (person_name === undefined || actor_type === 'system') return person_name ?? application;
  return t.log.personAs(person_name, application);
}

export function EntryList({ entries, empty }: { entries: readonly LogEntry[]; empty: string }) {
  if (entries.length === 0) return <p class="muted padded">{empty}</p>;
  return (
    <ol class="timeline">
      {entries.map((entry, at) => (
        <li key={`${entry.created_at} ${at}`}>
          <span>
            {entry.message} <Mark entry={entry} />
          </span>
          <Time at={entry.created_at} />
          <span class="muted">
            {[whoOf(entry), entry.through, entry.address].filter(Boolean).join(' · ')}
          </span>
        </li>
      ))}
    </ol>
  );
}
