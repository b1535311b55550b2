/** `strongroom logs export`: the audit log as newline-delimited JSON that can be verified alone. */
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { readConfig } from '../../config.ts';
import { systemClock } from '../../lib/clock.ts';
import { newUuid, type TenantId } from '../../lib/ids.ts';
import { pooledRandom } from '../../lib/random.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { openStore } from '../../store/open/open.ts';
import { countEntries, readLogs } from '../../vault/logs/read.ts';
import { asLines, formatRecord } from '../../vault/logs/records.ts';
import { type Command, printSummary, summaryFlag } from '../terminal/command.ts';
import { createPrivateFile } from '../terminal/private-file.ts';
import { startProgress } from '../terminal/progress.ts';
import { openLog, optionalText, placeFlags } from './place.ts';

export const logsExport: Command = {
  summary:
    'Write the audit log as newline-delimited JSON, with its hashes, checkpoints and removals. ' +
    'Exporting the configured log is an entry in it.',
  flags: {
    ...placeFlags,
    out: {
      kind: 'string',
      value: 'FILE',
      meaning: 'file to write, mode 0600 (default: standard output)',
    },
    json: summaryFlag,
  },
  examples: ['--out audit.ndjson', '--tenant acme --out acme.ndjson --json'],
  run: async (flags) => {
    const { store, tenants } = await openLog(flags);
    try {
      if (flags['database'] === undefined) await logExport(tenants);
      const file = optionalText(flags, 'out');
      const out = file === undefined ? process.stdout : createPrivateFile(file);
      const progress = startProgress('entries', await countEntries(store, tenants));
      let count = 0;
      for await (const record of asLines(readLogs(store, tenants))) {
        if (!out.write(formatRecord(record))) await once(out, 'drain');
        if (record.kind === 'entries') count += record.entries.length;
        progress.report(count);
      }
      progress.finish();
      if (out !== process.stdout) await finished(out.end());
      printSummary(flags, { entries: count });
      return 0;
    } finally {
      await store.close();
    }
  },
};

/** Whoever takes a copy of the log is seen in it. The copy, being of the moment before, lacks that. */
async function logExport(tenants: readonly TenantId[]): Promise<void> {
  const { databaseUrl, dataDir } = readConfig();
  const random = pooledRandom();
  const store = await openStore({ databaseUrl, dataDir, newStreamId: () => newUuid(random) });
  try {
    for (const tenant of tenants) {
      const fact = { entity: 'log', id: tenant, operation: 'export' } as const;
      await store.commit({ entries: [systemEntry({ ...fact, tenant, at: systemClock.now() })] });
    }
  } finally {
    await store.close();
  }
}
