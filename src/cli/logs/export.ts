/** `strongroom logs export`: the audit log as newline-delimited JSON that can be verified alone. */
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { isDisclosure } from '../../audit/find.ts';
import { formatOcsf } from '../../audit/ocsf.ts';
import { countEntries, readLogs } from '../../audit/read.ts';
import { asLines, formatRecord, type LineRecord } from '../../audit/records.ts';
import type { TenantId } from '../../base/ids.ts';
import { createPrivateFile } from '../../base/private-file.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { shownWords, throughWords } from '../../store/log-chain/disclosure.ts';
import { type Command, type Flags, printSummary, summaryFlag } from '../terminal/command.ts';
import { withVault } from '../terminal/operator.ts';
import { startProgress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { wordOf } from './filter.ts';
import { openLog, optionalText, placeFlags } from './place.ts';

const formatWords = ['ndjson', 'ocsf'] as const;

const formats: Readonly<Record<(typeof formatWords)[number], (record: LineRecord) => string>> = {
  ndjson: formatRecord,
  ocsf: (record) => (record.kind === 'entries' ? record.entries.map(formatOcsf).join('') : ''),
};

export const logsExport: Command = {
  summary:
    'Write the audit log as newline-delimited JSON, with its hashes, checkpoints and removals. ' +
    'Exporting the configured log is an entry in it and needs the root key. With --shown or --through ' +
    'only the entries are written that match: a list for people, which logs verify does not take.',
  flags: {
    ...placeFlags,
    out: {
      kind: 'string',
      value: 'FILE',
      meaning: 'file to write, mode 0600 (default: standard output)',
    },
    shown: {
      kind: 'string',
      value: 'HOW',
      meaning: `only entries of data shown so: ${shownWords.join(', ')}`,
    },
    through: {
      kind: 'string',
      value: 'OPERATION',
      meaning: `only entries of data shown through: ${throughWords.join(', ')}`,
    },
    format: {
      kind: 'string',
      value: 'FORMAT',
      meaning: `${formatWords.join(' or ')}: events of OCSF are for other tools, and not for logs verify`,
    },
    json: summaryFlag,
  },
  examples: [
    '--out audit.ndjson',
    '--tenant acme --out acme.ndjson --json',
    '--shown revealed --through search',
    '--format ocsf --out audit.ocsf.ndjson',
  ],
  run: async (flags, terminal) => {
    const filter = filterOf(flags);
    const format = wordOf(flags, 'format', formatWords) ?? 'ndjson';
    const { store, tenants } = await openLog(terminal, flags);
    try {
      if (flags['database'] === undefined) await logExport(terminal, tenants);
      const file = optionalText(flags, 'out');
      const out = file === undefined ? terminal.stdout : createPrivateFile(file);
      const progress = startProgress(terminal, 'entries', await countEntries(store, tenants));
      let count = 0;
      for await (const record of filtered(asLines(readLogs(store, tenants)), filter)) {
        if (!out.write(formats[format](record))) await once(out, 'drain');
        if (record.kind === 'entries') count += record.entries.length;
        progress.report(count);
      }
      progress.finish();
      if (out !== terminal.stdout) await finished(out.end());
      printSummary(terminal, flags, { entries: count });
      return 0;
    } finally {
      await store.close();
    }
  },
};

type Filter = Parameters<typeof isDisclosure>[1];

/** @throws UsageError for a word that no entry has. */
function filterOf(flags: Flags): Filter {
  return {
    shown: wordOf(flags, 'shown', shownWords),
    through: wordOf(flags, 'through', throughWords),
  };
}

/** Without what only serves to verify a whole log, which this is not any more. */
async function* filtered(
  records: AsyncIterable<LineRecord>,
  filter: Filter,
): AsyncGenerator<LineRecord> {
  const isWhole = filter.shown === undefined && filter.through === undefined;
  for await (const record of records) {
    if (isWhole) yield record;
    else if (record.kind === 'entries') {
      const entries = record.entries.filter((entry) => isDisclosure(entry, filter));
      if (entries.length > 0) yield { kind: 'entries', entries };
    }
  }
}

/**
 * The log records every copy of it. The copy was made just before that entry, so it lacks it. The vault writes the
 * entry with its proof: an entry without proof would be reported as forged.
 */
async function logExport(terminal: Terminal, tenants: readonly TenantId[]): Promise<void> {
  await withVault(terminal, async ({ store, clock }) => {
    for (const tenant of tenants) {
      const fact = { entity: 'log', id: tenant, operation: 'export' } as const;
      await store.commit({ entries: [systemEntry({ ...fact, tenant, at: clock.now() })] });
    }
    return 0;
  });
}
