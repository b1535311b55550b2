/** `strongroom incident`: what a key that leaked was used for, as a report for people and for programs. */
import { type Figure, type Incident, incidentOf, type KeyFigures } from '../audit/uses.ts';
import type { Instant } from '../base/clock.ts';
import { formatTimestamp } from '../base/dates.ts';
import { sinceFlag, spanOf } from './logs/filter.ts';
import { keyIdOf, withLog } from './logs/read.ts';
import { type Command, jsonFlag } from './terminal/command.ts';
import { soleTenantFlag } from './terminal/operator.ts';

export const incidentCommand: Command = {
  summary:
    'Report what was done with a key, since a time or ever, as Markdown: what it revealed, created, ' +
    'updated and deleted, from which addresses, and through which sessions. The key may be deleted by then.',
  flags: { tenant: soleTenantFlag, since: sinceFlag, json: jsonFlag },
  operand: { name: 'KEY', meaning: 'id of the key; `key find` gives it' },
  examples: ['KEY --since 7d', 'KEY --since 2026-11-24T09:00:00Z --json'],
  run: (flags, terminal) => {
    const key = keyIdOf(flags, 'KEY');
    return withLog(terminal, flags, async ({ vault, operator }) => {
      const now = vault.clock.now();
      const { oldest } = spanOf(flags, now);
      const { tenant } = operator;
      const index = { keyring: tenant.keyring, now };
      const incident = await incidentOf(vault.store, { tenant: tenant.id, oldest, index }, key);
      const report = { tenant: tenant.id, key, since: oldest, now };
      terminal.stdout.write(
        flags['json'] === true
          ? `${JSON.stringify(viewIncident(report, incident))}\n`
          : markdownOf(report, incident),
      );
    });
  },
};

interface Report {
  readonly tenant: string;
  readonly key: string;
  readonly since: Instant;
  readonly now: Instant;
}

function viewIncident({ tenant, key, since, now }: Report, incident: Incident): object {
  return {
    tenant_id: tenant,
    key_id: key,
    since: formatTimestamp(since),
    until: formatTimestamp(now),
    ...viewFigures(incident.key),
    sessions: incident.sessions.map(({ session_id, sessions: _, ...figures }) => ({
      session_id,
      ...viewFigures(figures),
    })),
  };
}

function viewFigures(figures: Omit<KeyFigures, 'sessions'>): object {
  const { addresses, others, applications, first, last, ...counts } = figures;
  const time = (at: Instant | null) => (at === null ? null : formatTimestamp(at));
  const { revealed, masked, created, updated, deleted, refused } = counts;
  return {
    application_ids: applications,
    first: time(first),
    last: time(last),
    ...{ revealed, masked, created, updated, deleted, refused },
    addresses: addresses.map(({ address }) => address),
    by_address: addresses.map((use) => ({
      ...use,
      first: formatTimestamp(use.first),
      last: formatTimestamp(use.last),
    })),
    others,
  };
}

const figureRows = [
  ['revealed', 'Values shown in plaintext'],
  ['masked', 'Values shown masked'],
  ['created', 'Tokens created'],
  ['updated', 'Tokens updated'],
  ['deleted', 'Tokens deleted'],
  ['refused', 'Requests refused'],
] as const satisfies readonly (readonly [keyof KeyFigures, string])[];

function markdownOf(
  { tenant, key, since, now }: Report,
  { key: done, sessions }: Incident,
): string {
  const lines = [
    `# Incident report: key ${key}`,
    '',
    `- Tenant: ${tenant}`,
    `- Application: ${done.applications.join(', ') || 'unknown'}`,
    `- Entries of the log from ${formatTimestamp(since)} to ${formatTimestamp(now)}`,
    done.first === null || done.last === null
      ? '- The key was not used in that time.'
      : `- First used ${formatTimestamp(done.first)}, last used ${formatTimestamp(done.last)}`,
    '',
    '## What was done with the key',
    '',
    ...figureTable(done),
    '',
    '## From where',
    '',
    ...table(
      ['Address', 'Events', 'First', 'Last'],
      done.addresses.map(({ address, events, first, last }) => [
        address,
        String(events),
        formatTimestamp(first),
        formatTimestamp(last),
      ]),
    ),
  ];
  if (done.others.length > 0) {
    lines.push('', '## Everything else', '', ...othersTable(done));
  }
  for (const { session_id, ...session } of sessions) {
    const from = session.addresses.map(({ address }) => address).join(', ') || 'no address';
    lines.push('', `## Session ${session_id}, from ${from}`, '', ...figureTable(session));
  }
  return `${lines.join('\n')}\n`;
}

function figureTable(figures: KeyFigures): readonly string[] {
  const row = ({ events, tokens }: Figure) => [String(events), String(tokens)];
  return table(
    ['', 'Events', 'Tokens'],
    figureRows.map(([name, title]) => [title, ...row(figures[name])]),
  );
}

function othersTable({ others }: KeyFigures): readonly string[] {
  return table(
    ['About', 'Operation', 'Result', 'Events'],
    others.map((one) => [one.entity_type, one.operation, one.result, String(one.events)]),
  );
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)];
}
