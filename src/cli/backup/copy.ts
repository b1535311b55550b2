/** `strongroom database copy`: a whole vault moves to an empty place, on the same engine or another. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { LogVerifier } from '../../audit/verify.ts';
import type { SharedKeys } from '../../keys/root/root-key.ts';
import { type Config, readConfigAt } from '../../runtime/config/config.ts';
import { openReadOnly } from '../../store/open/read-only.ts';
import { holdStill } from '../../store/open/still.ts';
import { makePrivateDirectory } from '../../store/private-directory.ts';
import { rootVaultKeys } from '../../store/queries/vault-keys.ts';
import { RestoreError } from '../../store/restore-error.ts';
import type { StillDatabase } from '../../store/still-database.ts';
import { shapes, type Table } from '../../store/tables.ts';
import { type State, withState } from '../logs/state.ts';
import {
  type Command,
  type Flags,
  jsonFlag,
  print,
  required,
  UsageError,
} from '../terminal/command.ts';
import { counted } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { backUp } from './backup.ts';
import { vaultKeyIn } from './manifest.ts';
import { restore } from './restore.ts';
import { digestOfRows, type TableDigest } from './table-digests.ts';
import { sharesOf, verifyBackup, verifyRootKey } from './verify-backup.ts';

export const databaseCopy: Command = {
  summary:
    'Copy a whole vault, with its log, to an empty place on the same engine or another one: from the embedded ' +
    'database to PostgreSQL, to Citus, and back. No server may run on either. The root key is not copied.',
  flags: {
    from: { kind: 'string', value: 'URL|DIR', meaning: 'database or data directory of the vault' },
    to: { kind: 'string', value: 'URL|DIR', meaning: 'empty database or data directory' },
    staging: {
      kind: 'string',
      value: 'DIR',
      meaning: 'where an intermediate file as large as the database goes',
    },
    json: jsonFlag,
  },
  examples: [
    '--from /var/lib/strongroom --to postgres://vault@db1/vault',
    '--from postgres://vault@db1/vault --to ./data --json',
  ],
  run: async (flags, terminal) => {
    const [from, to] = [required(flags, 'from'), required(flags, 'to')];
    if (resolve(from) === resolve(to)) throw new UsageError('--from and --to are the same place');
    const source = configAt(terminal, from);
    // The operator gives the key to the new place. Until then it is where the vault is now.
    const target = { ...configAt(terminal, to), rootKey: source.rootKey };
    const held = await holdStill(addressOf(source));
    let staging: string | undefined;
    try {
      const sharedKeys = await requireIntact(terminal, source);
      staging = stagingOf(flags['staging'], [target, source]);
      const { rows, tables } = await copy(terminal, { held, source, target, staging, sharedKeys });
      print(terminal, flags, {
        json: { from: engineOf(source), to: engineOf(target), rows, tables },
        line:
          `The vault was copied (${counted(rows, 'row')}), and the copy was compared with it table by table. ` +
          'Give the root key to the new place and start servers there. Do not start a server on the old one.',
      });
      return 0;
    } finally {
      await held.release();
      if (staging !== undefined) rmSync(staging, { recursive: true, force: true });
    }
  },
};

interface DatabaseCopying {
  readonly held: StillDatabase;
  readonly source: Config;
  readonly target: Config;
  /** An empty directory. */
  readonly staging: string;
  /** The root key, where people hold it in shares. */
  readonly sharedKeys: SharedKeys | undefined;
}

interface Copied {
  readonly rows: number;
  readonly tables: Readonly<Record<string, TableDigest>>;
}

/** @throws RestoreError where the place is taken, or the copy differs from the vault. */
async function copy(
  terminal: Terminal,
  { held, source, target, staging, sharedKeys }: DatabaseCopying,
): Promise<Copied> {
  const tables = await digestsOf(held);
  const directory = join(staging, 'backup');
  await backUp(terminal, source, { directory, now: new Date(), isStill: true });
  const backup = await verifyBackup(terminal, directory, { config: source, sharedKeys });
  const verify = async () => {
    const copied = await holdStill(addressOf(target));
    try {
      requireSame(tables, await digestsOf(copied));
    } finally {
      await copied.release();
    }
    if (target.databaseUrl !== undefined) await distributeOnCitus(target.databaseUrl);
  };
  await restore(terminal, backup, { config: target, verify });
  const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0);
  return { rows, tables };
}

/** A database with the extension is for tables that are spread over its servers. */
async function distributeOnCitus(databaseUrl: string): Promise<void> {
  const { distributeWhereCitus } = await import('../../store/postgres/distribution.ts');
  await distributeWhereCitus(databaseUrl);
}

/**
 * As `strongroom logs verify --state` does it. The copy has the same rows, which their digests show.
 * @returns the root key, where its shares were read.
 */
async function requireIntact(terminal: Terminal, source: Config): Promise<SharedKeys | undefined> {
  const store = await openReadOnly(source.databaseUrl ?? source.dataDir);
  try {
    const { root_key } = vaultKeyIn(await store.select(rootVaultKeys));
    const sharedKeys = await sharesOf(terminal, store, { ...source, root_key });
    const keyed = { ...source, sharedKeys };
    await verifyRootKey(store, root_key, keyed);
    const verifier = new LogVerifier({ trustedKeys: [], kept: [] });
    const state: State = { rows: 0, beyond: 0, findings: [] };
    const reading = { store, tenants: [], whole: true };
    for await (const record of withState(reading, state, keyed)) verifier.take(record);
    const [finding] = [...verifier.finish().findings, ...state.findings];
    if (finding === undefined) return sharedKeys;
    throw new RestoreError(
      `The vault is not intact: ${finding.kind}: ${finding.message} (tenant ${finding.tenant_id}). ` +
        'strongroom logs verify --state says more. Nothing was copied.',
    );
  } finally {
    await store.close();
  }
}

async function digestsOf(database: StillDatabase): Promise<Copied['tables']> {
  const digests: Record<string, TableDigest> = {};
  for (const table of Object.keys(shapes) as Table[]) {
    digests[table] = await digestOfRows(database.rows(table));
  }
  return digests;
}

function requireSame(source: Copied['tables'], copied: Copied['tables']): void {
  for (const [table, { rows, digest }] of Object.entries(source)) {
    const found = copied[table];
    if (found?.rows === rows && found.digest === digest) continue;
    throw new RestoreError(
      `The table ${table} of the copy differs from the vault's (${found?.rows} rows, and ${rows} there).`,
    );
  }
}

const isUrl = (place: string) => /^postgres(?:ql)?:\/\//.test(place);

/** What a server at that place would read; the other variables stay as they are. */
function configAt({ env }: Terminal, place: string): Config {
  return readConfigAt(env, isUrl(place) ? { DATABASE_URL: place } : { DATA_DIR: place });
}

function addressOf({ databaseUrl, dataDir }: Config) {
  return databaseUrl === undefined ? { dataDir } : { databaseUrl };
}

function engineOf({ databaseUrl }: Config): string {
  return databaseUrl === undefined ? 'sqlite' : 'postgres';
}

/** An empty directory that only its owner can read. What an interrupted copy left in a data directory is removed. */
function stagingOf(named: Flags[string], configs: readonly Config[]): string {
  if (typeof named === 'string') {
    makePrivateDirectory(named);
    return mkdtempSync(join(named, 'strongroom-copy-'));
  }
  const embedded = configs.find(({ databaseUrl }) => databaseUrl === undefined);
  if (embedded === undefined) return mkdtempSync(join(tmpdir(), 'strongroom-copy-'));
  makePrivateDirectory(embedded.dataDir);
  const staging = join(embedded.dataDir, 'copy');
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging, { mode: 0o700 });
  return staging;
}
