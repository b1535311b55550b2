/** `strongroom logs verify`: proves, offline, that the audit log is as it was written. */
import { countEntries, readLogs } from '../../audit/read.ts';
import type { LogRecord } from '../../audit/records.ts';
import { LogVerifier, type Verification } from '../../audit/verify.ts';
import { parseUuid, type TenantId } from '../../base/ids.ts';
import { readConfig } from '../../runtime/config/config.ts';
import { type Command, type Flags, jsonFlag, repeated, UsageError } from '../terminal/command.ts';
import { startProgress } from '../terminal/progress.ts';
import { publicKeyFlag, readTrustedKey } from '../terminal/public-key.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { readLogFile } from './file.ts';
import { type KeptCheckpoint, readKept } from './kept-checkpoints.ts';
import { openLog, optionalText, placeFlags } from './place.ts';
import { describeVerification } from './report.ts';
import { describeState, noState, refuseFile, type State, withState } from './state.ts';

/** The exit code for a log that is not intact, as opposed to one that could not be read. */
const notIntact = 3;

export const logsVerify: Command = {
  summary:
    'Verify the audit log offline, in a database or an exported file; with --state also that it ' +
    'explains every row. Exit code 0: it is intact, 3: it is not, 1: it could not be read.',
  flags: {
    ...placeFlags,
    file: {
      kind: 'string',
      value: 'FILE',
      meaning: 'an exported log instead of a database; - is standard input',
    },
    checkpoint: {
      kind: 'string',
      value: 'FILE',
      repeated: true,
      meaning: 'a file with a response of GET /logs/checkpoint, or with lines of a checkpoint sink',
    },
    'public-key': publicKeyFlag,
    state: {
      kind: 'boolean',
      meaning: 'compare the tables with the log as well; needs the root key',
    },
    json: jsonFlag,
  },
  examples: ['', '--state --json', '--file audit.ndjson --checkpoint kept.json'],
  run: async (flags, terminal) => {
    const file = optionalText(flags, 'file');
    const state: State | undefined = flags['state'] === true ? noState() : undefined;
    const { verification, trustedKeys } =
      file === undefined
        ? await verifyDatabase(terminal, flags, state)
        : await verifyFile(terminal, flags, file);
    const findings = [...verification.findings, ...(state?.findings ?? [])];
    const counts = state && {
      rows: state.rows,
      beyond: state.beyond,
      ...(state.incoming.length > 0 && { incoming: state.incoming }),
    };
    terminal.stdout.write(
      flags['json'] === true
        ? `${JSON.stringify({ ...verification, ...counts, findings })}\n`
        : describeVerification(verification, trustedKeys) + (state ? describeState(state) : ''),
    );
    return findings.length === 0 ? 0 : notIntact;
  },
};

interface VerifiedLog {
  readonly verification: Verification;
  readonly trustedKeys: readonly string[];
}

async function verifyDatabase(
  terminal: Terminal,
  flags: Flags,
  state: State | undefined,
): Promise<VerifiedLog> {
  const kept = readKept(terminal, repeated(flags, 'checkpoint'));
  const { store, tenants } = await openLog(terminal, flags);
  try {
    const whole = flags['tenant'] === undefined;
    const only = whole ? undefined : tenants[0];
    const records = state
      ? withState({ store, tenants, whole }, state, readConfig(terminal.env))
      : readLogs(store, tenants);
    const total = await countEntries(store, tenants);
    return await verify(terminal, flags, { kept, only, records, total });
  } finally {
    await store.close();
  }
}

async function verifyFile(terminal: Terminal, flags: Flags, file: string): Promise<VerifiedLog> {
  refuseFile(flags);
  if (flags['database'] !== undefined)
    throw new UsageError('--database cannot be combined with --file');
  const kept = readKept(terminal, repeated(flags, 'checkpoint'));
  const asked = optionalText(flags, 'tenant');
  const only = asked === undefined ? undefined : parseUuid<TenantId>(asked);
  if (asked !== undefined && (only === undefined || kept.length === 0)) {
    throw new UsageError('--tenant with --file selects from --checkpoint, by the id of the tenant');
  }
  const records = readLogFile(terminal, file);
  return verify(terminal, flags, { kept, only, records, total: undefined });
}

interface Verifying {
  readonly kept: readonly KeptCheckpoint[];
  /** The tenant whose checkpoints count; undefined where all do. */
  readonly only: TenantId | undefined;
  readonly records: AsyncIterable<LogRecord>;
  readonly total: number | undefined;
}

async function verify(
  terminal: Terminal,
  flags: Flags,
  { kept, only, records, total }: Verifying,
): Promise<VerifiedLog> {
  const chosen = kept.filter(
    ({ checkpoint }) => (only ?? checkpoint.tenant_id) === checkpoint.tenant_id,
  );
  if (chosen.length === 0 && kept.length > 0) {
    throw new UsageError('--checkpoint belongs to another tenant than --tenant');
  }
  const given = repeated(flags, 'public-key').map(readTrustedKey);
  // What else is published with a checkpoint isn't signed: its own key leads to the others.
  const signers = [...new Set(chosen.map(({ signed }) => signed.public_key))];
  const trustedKeys = given.length > 0 ? given : signers;
  const verifier = new LogVerifier({ trustedKeys, kept: chosen.map(({ signed }) => signed) });
  const progress = startProgress(terminal, 'entries', total);
  for await (const record of records) {
    verifier.take(record);
    progress.report(verifier.entries);
  }
  progress.finish();
  return { verification: verifier.finish(), trustedKeys };
}
