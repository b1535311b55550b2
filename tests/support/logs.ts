/** Whole logs for tests: written by a vault, read back as records, altered, and verified. */

import { readLogs, tenantsWithLogs } from '../../src/audit/read.ts';
import { asLines, formatRecord, type LogRecord } from '../../src/audit/records.ts';
import type { Signed } from '../../src/audit/statements.ts';
import { LogVerifier, type Verification } from '../../src/audit/verify.ts';
import type { TenantId } from '../../src/base/ids.ts';
import { openBlock } from '../../src/store/log-chain/block.ts';
import type { ChainedEntry } from '../../src/store/log-chain/entries.ts';
import { openReadOnly } from '../../src/store/open/read-only.ts';
import { editEntry } from './blocks.ts';
import type { Engine, Place } from './engines.ts';
import { runJob } from './jobs.ts';
import { storedRows } from './rows.ts';
import type { TestTenant } from './tenant.ts';
import type { TestVault } from './vault.ts';

/** A log in parts, so that a test can alter one of them. */
export interface LogParts {
  readonly statements: readonly LogRecord[];
  readonly entries: readonly ChainedEntry[];
}

export async function readParts(place: Place): Promise<LogParts> {
  const store = await openReadOnly(place.databaseUrl ?? place.dataDir);
  try {
    const statements: LogRecord[] = [];
    const entries: ChainedEntry[] = [];
    for await (const record of asLines(readLogs(store, await tenantsWithLogs(store)))) {
      if (record.kind === 'entries') entries.push(...record.entries);
      else if (record.kind !== 'begin' && record.kind !== 'end') statements.push(record);
    }
    return { statements, entries };
  } finally {
    await store.close();
  }
}

/** The log of a tenant as `strongroom logs export` writes it. */
export async function linesOfLog(
  { place }: Pick<TestVault, 'place'>,
  tenant: TenantId,
): Promise<string> {
  const store = await openReadOnly(place.databaseUrl ?? place.dataDir);
  try {
    let lines = '';
    for await (const record of asLines(readLogs(store, [tenant]))) lines += formatRecord(record);
    return lines;
  } finally {
    await store.close();
  }
}

export function verifyParts(
  { statements, entries }: LogParts,
  {
    kept = [],
    trustedKeys = [],
  }: { kept?: readonly Signed[]; trustedKeys?: readonly string[] } = {},
): Verification {
  const verifier = new LogVerifier({ kept, trustedKeys });
  for (const record of statements) verifier.take(record);
  verifier.take({ kind: 'entries', entries });
  return verifier.finish();
}

export async function verifyPlace(
  place: Place,
  kept: readonly Signed[] = [],
): Promise<Verification> {
  const store = await openReadOnly(place.databaseUrl ?? place.dataDir);
  try {
    const verifier = new LogVerifier({ kept, trustedKeys: [] });
    for await (const record of readLogs(store, await tenantsWithLogs(store))) verifier.take(record);
    return verifier.finish();
  } finally {
    await store.close();
  }
}

/** Some of everything that is logged: effects, reads, refusals, and attempts at what is not there. */
export async function mixedTraffic(vault: TestVault, rounds: number): Promise<void> {
  const key = await vault.application();
  const blind = await vault.application({ permissions: ['token:create'] });
  for (let round = 0; round < rounds; round += 1) {
    const body = { type: 'token', data: `value ${round}` };
    const created = await Promise.all([
      vault.send('POST', '/tokens', { key, body }),
      vault.send('POST', '/tokens', { key, body }),
    ]);
    const [one, two] = created.map((answer) => `/tokens/${answer.body.id}`);
    await Promise.all([
      vault.send('GET', one ?? '', { key }),
      vault.send('PATCH', two ?? '', { key, body: { metadata: { round: String(round) } } }),
      vault.send('GET', one ?? '', { key: blind }),
      vault.send('GET', '/tokens/not-there', { key }),
    ]);
    await vault.send('DELETE', two ?? '', { key });
  }
}

/** Lets the job sign a checkpoint now. */
export function signCheckpoints(vault: TestVault): Promise<number> {
  return runJob(vault, 'sign log checkpoints');
}

/** Edits the newest entry about a token, as one who can write to the database does. */
export async function alterNewestEntry(
  engine: Engine,
  { id, vault: { place } }: TestTenant,
): Promise<void> {
  const blocks = (await storedRows(engine, place, 'logs'))
    .filter(({ tenant_id }) => tenant_id === id)
    .toSorted((one, other) => one.last_at - other.last_at || one.first_seq - other.first_seq);
  const entries = blocks.flatMap((block) =>
    (openBlock(block) ?? []).map((entry) => ({ block, entry })),
  );
  const newest = entries.findLast(({ entry }) => entry.entity_type === 'token');
  if (newest === undefined) throw new Error('the log has no entry about a token');
  const change = { message: 'Token read by nobody' };
  await editEntry(engine, place, newest.block, { seq: newest.entry.seq, change });
}
