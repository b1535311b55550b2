/** `strongroom database copy`: a vault moves to an empty place, on the same engine or another, also while it serves. */
import { newUuid } from '../../base/ids.ts';
import { pooledRandom } from '../../base/random.ts';
import type { Config } from '../../runtime/config/config.ts';
import { allTables } from '../../store/copying/copy-database.ts';
import {
  copyAgain,
  copyChanges,
  orderWaitingEvents,
  type RowCopying,
} from '../../store/copying/rows.ts';
import {
  beginJournal,
  type CopySource,
  endJournal,
  holdStill,
  noteOpened,
  nowOf,
  type OutgoingCopy,
  readOutgoing,
  takeServed,
} from '../../store/copying/source.ts';
import type { CopyTarget } from '../../store/copying/target.ts';
import { schemaVersion } from '../../store/migrations/migrate.ts';
import { RestoreError } from '../../store/restore-error.ts';
import type { LogHead } from '../backup/manifest.ts';
import { noteRestored } from '../backup/restore.ts';
import {
  type Command,
  type Flags,
  jsonFlag,
  print,
  required,
  UsageError,
} from '../terminal/command.ts';
import { explain, withoutStop } from '../terminal/failure.ts';
import { counted } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { digestOfHeads, endSessions, inCopy } from './finish.ts';
import { type Copied, compareAsOfOneMoment, type Moved, move, walk } from './moving.ts';
import {
  addressOf,
  type CopyPlaces,
  engineOf,
  findTarget,
  type KeyedConfig,
  readPlaces,
  readSource,
  readTenantPlaces,
  requireReachable,
  takeTarget,
  tidyTarget,
  unfinished,
} from './places.ts';
import { abandonTenant, copyTenant } from './tenant.ts';
import {
  differingTables,
  digestsNow,
  type IntactVault,
  identityOf,
  readVaultId,
  requireIntact,
  requireIntactCopy,
  requireSame,
  type TableDigests,
} from './verify.ts';

export const databaseCopy: Command = {
  summary:
    'Copy a whole vault, with its log, to an empty place on the same engine or another one: from the embedded ' +
    'database to PostgreSQL, to Citus, and back. Stop the servers of the vault first, or use --live: the servers go ' +
    'on until the copy is complete, and then refuse every request. A copy that was interrupted goes on when the same ' +
    'command runs again. The root key is not copied.',
  flags: {
    from: { kind: 'string', value: 'URL|DIR', meaning: 'database or data directory of the vault' },
    to: { kind: 'string', value: 'URL|DIR', meaning: 'empty database or data directory' },
    live: {
      kind: 'boolean',
      meaning:
        'copy while servers run, and move the vault: they stop to serve it within 10 seconds',
    },
    'without-sessions': {
      kind: 'boolean',
      meaning: 'end all sessions in the copy, so that browsers ask for new ones',
    },
    abandon: {
      kind: 'boolean',
      meaning: 'remove what an unfinished copy with --live left in --from, and copy nothing',
    },
    tenant: {
      kind: 'string',
      value: 'TENANT',
      meaning:
        'move this tenant alone, to a vault that may have others; its id, or its name in `tenant list`',
    },
    'to-env': {
      kind: 'string',
      value: 'FILE',
      meaning:
        'with --tenant: lines NAME=VALUE with the variables of the root key of the new vault, where it has another one',
    },
    json: jsonFlag,
  },
  examples: [
    '--from /var/lib/strongroom --to postgres://vault@db1/vault',
    '--live --from postgres://vault@db1/vault --to postgres://vault@db2/vault',
    '--from postgres://vault@db1/vault --to ./data --json',
    '--tenant acme --live --from postgres://vault@db1/vault --to postgres://vault@db2/vault --to-env db2.env',
  ],
  run: async (flags, terminal) => {
    const from = required(flags, 'from');
    if (flags['tenant'] !== undefined) return runOfTenant(flags, terminal, from);
    if (flags['to-env'] !== undefined) throw new UsageError('--to-env needs --tenant');
    if (flags['abandon'] === true) {
      if (flags['to'] !== undefined) throw new UsageError('--abandon takes --from alone');
      const isRemoved = await abandon(readSource(terminal, from));
      const line = isRemoved ? 'The unfinished copy was abandoned.' : 'No copy was under way.';
      print(terminal, flags, { json: { abandoned: isRemoved }, line });
      return 0;
    }
    const places = readPlaces(terminal, from, required(flags, 'to'));
    await requireReachable(places);
    const options = { terminal, ...places, withoutSessions: flags['without-sessions'] === true };
    const copied = await (flags['live'] === true ? copyLive : copyStill)(options);
    const { tables, moved, resumed, endedSessions } = copied;
    const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0);
    const movedAt = moved && new Date(moved.movedAt).toISOString();
    print(terminal, flags, {
      json: {
        from: engineOf(places.source),
        to: engineOf(places.target),
        rows,
        tables,
        resumed,
        ...(endedSessions !== undefined && { ended_sessions: endedSessions }),
        ...(moved && { moved_at: movedAt, stopped_ms: moved.stoppedMs }),
      },
      line:
        `The vault was copied (${counted(rows, 'row')}), and the copy was compared with it table by table. ` +
        (moved
          ? `It moved at ${movedAt}, and the old place has refused every request since. Give the root key to the new ` +
            'place, start servers there, and stop the old ones.'
          : 'Give the root key to the new place and start servers there. Do not start a server on the old one.'),
    });
    return 0;
  },
};

/** The same of one tenant. */
async function runOfTenant(flags: Flags, terminal: Terminal, from: string): Promise<number> {
  const asked = required(flags, 'tenant');
  if (flags['without-sessions'] === true) {
    throw new UsageError('--without-sessions cannot be combined with --tenant');
  }
  const environment = flags['to-env'];
  const to = typeof flags['to'] === 'string' ? flags['to'] : undefined;
  const placesOf = (target: string) =>
    readTenantPlaces(terminal, {
      from,
      to: target,
      environment: environment as string | undefined,
    });
  if (flags['abandon'] === true) {
    const target = to === undefined ? undefined : placesOf(to).target;
    const found = await abandonTenant(readSource(terminal, from), target, asked);
    const isAbandoned = found.source || found.target !== undefined;
    print(terminal, flags, {
      json: { abandoned: isAbandoned, removed_rows: found.target ?? 0 },
      line: isAbandoned ? 'The unfinished copy was abandoned.' : 'No copy was under way.',
    });
    return 0;
  }
  const places = placesOf(required(flags, 'to'));
  await requireReachable(places);
  const isLive = flags['live'] === true;
  const { tables, moved, resumed } = await copyTenant({ ...places, terminal, asked, isLive });
  const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0);
  const movedAt = moved && new Date(moved.movedAt).toISOString();
  print(terminal, flags, {
    json: {
      from: engineOf(places.source),
      to: engineOf(places.target),
      rows,
      tables,
      resumed,
      moved_at: movedAt,
      stopped_ms: moved?.stoppedMs,
    },
    line:
      `The tenant was copied (${counted(rows, 'row')}), and moved at ${movedAt}. The old vault responds to its ` +
      'requests with 503 until you remove its rows there with strongroom tenant delete. Lead its clients to the new ' +
      'one.',
  });
  return 0;
}

interface CopyOptions extends CopyPlaces {
  readonly terminal: Terminal;
  readonly withoutSessions: boolean;
}

const everything = { tables: allTables, tenant: undefined };

/** Of a vault that no server has. */
async function copyStill({
  terminal,
  source,
  target,
  withoutSessions,
}: CopyOptions): Promise<Copied> {
  const held = await holdStill(addressOf(source));
  try {
    const earlier = await readOutgoing(held.database);
    if (earlier?.movedAt != null) throw new RestoreError(movedAlready);
    const intact = await requireIntact(terminal, source);
    // A server may have served the vault since an earlier copy began, whose rows are then of no use.
    const name = nameOf(intact, withoutSessions, `still ${digestOfHeads(intact.heads)}`);
    const taken = await takeTarget(target, name);
    try {
      const copying = { ...everything, source: held.database, target: taken };
      await walk(terminal, copying);
      await taken.createIndexes();
      const tables = await compareOrCopyAgain(copying);
      await orderWaitingEvents(copying);
      const place = { config: unfinished(target), sharedKeys: intact.sharedKeys };
      await requireIntactCopy(place.config, place.sharedKeys);
      const at = new Date(await nowOf(taken.database)).toISOString();
      const endedSessions = await inCopy(place, async (vault) => {
        const heads = new Map<string, LogHead>(intact.heads.map((head) => [head.tenant_id, head]));
        await noteRestored(vault, (tenant) => {
          const { entries = 0, head = 'none' } = heads.get(tenant) ?? {};
          return `copied ${at}, with ${entries} entries, log head ${head}`;
        });
        return withoutSessions ? endSessions(vault) : undefined;
      });
      await taken.serve();
      return { tables, endedSessions, resumed: taken.isResumed };
    } finally {
      await taken.release();
    }
  } finally {
    await held.release();
  }
}

/** By which a copy is known again. */
function nameOf({ vaultId }: Pick<IntactVault, 'vaultId'>, withoutSessions: boolean, of: string) {
  const what = withoutSessions ? 'without sessions' : 'whole';
  return JSON.stringify({ vault: vaultId, schema: schemaVersion, what, of });
}

/** A server that was there between two runs may have written what has no entry in the log, such as leases. */
async function compareOrCopyAgain(copying: RowCopying): Promise<TableDigests> {
  const { source, target } = copying;
  const own = await digestsNow(source, copying);
  let copied = await digestsNow(target.database, copying);
  if (target.isResumed) {
    for (const table of differingTables(own, copied)) await copyAgain(copying, table);
    copied = await digestsNow(target.database, copying);
  }
  requireSame(own, copied);
  return own;
}

/** Of a vault that servers go on serving until nearly the end. */
async function copyLive(options: CopyOptions): Promise<Copied> {
  const { terminal, source } = options;
  const served = await takeServed(addressOf(source));
  try {
    const earlier = await readOutgoing(served.database);
    if (earlier?.movedAt != null) {
      return await finishMoved(options, served, { ...earlier, movedAt: earlier.movedAt });
    }
    const intact = await requireIntact(terminal, source);
    const { target, isNew, id } = await takeLive(options, intact, earlier?.id);
    try {
      if (isNew) await beginJournal(served.database, everything, id);
      const copying = { ...everything, source: served.database, target };
      await walk(terminal, copying);
      await copyChanges(copying);
      await target.createIndexes();
      const tables = await compareAsOfOneMoment(copying);
      await requireIntactCopy(unfinished(options.target), intact.sharedKeys);
      const moved = await move(copying);
      const { endedSessions } = await open(options, { source: served, target, moved, intact });
      return { tables, resumed: target.isResumed, moved, endedSessions };
    } finally {
      await target.release();
    }
  } finally {
    await served.release();
  }
}

interface LiveTarget {
  readonly target: CopyTarget;
  /** The source has to note its changes from now on. */
  readonly isNew: boolean;
  readonly id: string;
}

/** The target of the copy for which the source notes its changes, or of a new one. */
async function takeLive(
  { target: config, withoutSessions }: CopyOptions,
  intact: IntactVault,
  earlier: string | undefined,
): Promise<LiveTarget> {
  const named = (id: string) => nameOf(intact, withoutSessions, `live ${id}`);
  if (earlier !== undefined) {
    const target = await findTarget(config, named(earlier));
    if (target) return { target, isNew: false, id: earlier };
  }
  const id = newUuid(pooledRandom());
  return { target: await takeTarget(config, named(id)), isNew: true, id };
}

interface MovedCopy {
  readonly source: CopySource;
  readonly target: CopyTarget;
  readonly moved: Moved;
  readonly intact: Pick<IntactVault, 'sharedKeys'>;
}

/**
 * The vault is in its new place alone by now, and servers may start there at the end. Until then it is served nowhere.
 * @throws RestoreError which says so.
 */
async function open(
  { target: config, withoutSessions }: CopyOptions,
  { source, target, moved, intact: { sharedKeys } }: MovedCopy,
): Promise<Pick<Copied, 'endedSessions'>> {
  try {
    const endedSessions = withoutSessions
      ? await inCopy({ config: unfinished(config), sharedKeys }, endSessions)
      : undefined;
    await target.serve();
    await noteMoved({ config, sharedKeys }, source, moved);
    return { endedSessions };
  } catch (error) {
    throw new RestoreError(
      `The vault moved at ${new Date(moved.movedAt).toISOString()}, and its new place could not be opened: ` +
        `${withoutStop(explain(error))}. Until that is done, the vault is served nowhere. Run the same command ` +
        'again: it only opens the new place.',
      { cause: error },
    );
  }
}

/** In the logs of the new place, and then in the old one. */
async function noteMoved(place: KeyedConfig, source: CopySource, moved: Moved): Promise<void> {
  const at = new Date(moved.movedAt).toISOString();
  await inCopy(place, (vault) => noteRestored(vault, () => `moved ${at}`));
  await noteOpened(source.database);
}

/** Of a copy that was interrupted after the source had stopped for good. */
async function finishMoved(
  options: CopyOptions,
  served: CopySource,
  { id, movedAt, openedAt }: OutgoingCopy & { readonly movedAt: number },
): Promise<Copied> {
  const moved = { movedAt };
  const intact = await identityOf(options.terminal, options.source);
  const tables = await digestsNow(served.database, everything);
  if (await isServed(options.target, intact)) {
    if (openedAt === null) {
      await tidyTarget(options.target);
      const { sharedKeys } = intact;
      await noteMoved({ config: options.target, sharedKeys }, served, moved);
    }
    return { tables, moved, resumed: true };
  }
  const name = nameOf(intact, options.withoutSessions, `live ${id}`);
  const target = await findTarget(options.target, name);
  if (target === undefined) throw new RestoreError(movedElsewhere);
  try {
    const { endedSessions } = await open(options, { source: served, target, moved, intact });
    return { tables, moved, resumed: true, endedSessions };
  } finally {
    await target.release();
  }
}

const movedAlready = 'The vault has moved to another place already. Nothing was changed.';
const movedElsewhere =
  'The vault has moved to another place already, and this one has no copy of it. Name the place that it moved to.';

/** @returns false where nothing was left. @throws RestoreError where the vault has moved for good. */
async function abandon(source: Config): Promise<boolean> {
  const served = await takeServed(addressOf(source));
  try {
    const earlier = await readOutgoing(served.database);
    if (earlier === undefined) return false;
    if (earlier.movedAt !== null) {
      throw new RestoreError(movedAlready);
    }
    await endJournal(served.database, everything);
    return true;
  } finally {
    await served.release();
  }
}

async function isServed(
  config: Config,
  { vaultId }: Pick<IntactVault, 'vaultId'>,
): Promise<boolean> {
  try {
    return (await readVaultId(config)) === vaultId;
  } catch {
    // There is no vault, or one that is not complete.
    return false;
  }
}
