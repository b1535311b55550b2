/** The machine: the space on its disk, the modes of files, its certificate and the address to listen on. */
import { accessSync, constants, existsSync, type Stats, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { day } from '../../base/clock.ts';
import { systemCodeOf } from '../../base/errors.ts';
import { certificateEnd } from '../../keys/tls-pair.ts';
import { holdAddress } from '../../runtime/address.ts';
import { type Config, readVariable } from '../../runtime/config/config.ts';
import { databaseFile } from '../../store/sqlite/database.ts';
import { freeBytesFloor } from '../../store/sqlite/free-space.ts';
import { explain } from '../terminal/failure.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type Finding, reporter } from './finding.ts';

const mebibyte = 1024 * 1024;
/** Below the first a warning, below the second the vault may stop accepting writes any day. */
const freeBytesMin = { warning: 1024 * mebibyte, problem: 100 * mebibyte };
/** A multiple of the floor below which creates are refused: a disk with less than that is about to reach it. */
const nearFloor = 1.5;

/** Types of file systems as statfs(2) numbers them, which keep an embedded database badly or not at all. */
const fileSystems: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'in memory (tmpfs): it is lost with the machine'],
  [0x858458f6, 'in memory (ramfs): it is lost with the machine'],
  [0x794c7630, 'the layer of a container (overlayfs): it is lost with the container'],
  [0x6969, 'a network file system (NFS), whose locks and syncs may not hold'],
  [0xff534d42, 'a network file system (CIFS), whose locks and syncs may not hold'],
  [0xfe534d42, 'a network file system (SMB), whose locks and syncs may not hold'],
]);

export function checkDisk({
  dataDir,
  databaseUrl,
  freeBytesMin: given,
}: Pick<Config, 'dataDir' | 'databaseUrl' | 'freeBytesMin'>): readonly Finding[] {
  const { warning } = reporter('disk');
  const place = existingPlace(dataDir);
  const { bavail, bsize, blocks, type, files, ffree } = statfsSync(place);
  const space = { place, free: bavail * bsize, hasFiles: files === 0 || ffree > 0 };
  const floor =
    databaseUrl === undefined ? freeBytesFloor({ sizeBytes: bsize * blocks }, given) : undefined;
  const findings = [floor === undefined ? spaceFinding(space) : floorFinding(space, floor)];
  const fileSystem = fileSystems.get(type);
  if (fileSystem !== undefined && databaseUrl === undefined) {
    findings.push(
      warning(
        `the data directory is on ${fileSystem}`,
        'Put STRONGROOM_DATA_DIR on a local disk or a mounted volume.',
      ),
    );
  }
  return findings;
}

interface FreeSpace {
  readonly place: string;
  readonly free: number;
  /** Another file can be created. */
  readonly hasFiles: boolean;
}

/** The limit for a disk without a database, to which the vault writes little. */
function spaceFinding({ place, free, hasFiles }: FreeSpace): Finding {
  const { ok, warning, problem } = reporter('disk');
  if (!hasFiles) return problem(`no file can be created in ${place}`, moreSpace);
  const text = `${mebibytes(free)} are free in ${place}`;
  if (free < freeBytesMin.problem) return problem(text, moreSpace);
  return free < freeBytesMin.warning ? warning(text, moreSpace) : ok(text);
}

/** The finding about the disk of the embedded database, with its distance from the floor. */
function floorFinding(space: FreeSpace, floor: number): Finding {
  const { ok, warning, problem } = reporter('disk');
  const { status, message } = spaceFinding(space);
  if (!space.hasFiles) return problem(message, moreSpace);
  const limit = `${mebibytes(floor)} (STRONGROOM_FREE_SPACE_MIN)`;
  if (space.free < floor) {
    return problem(
      `${message}, less than the ${limit} that stay free: requests that store more are refused with 507, unless ` +
        'the database has as many unused pages',
      `${moreSpace} Reading and deleting go on.`,
    );
  }
  const text = `${message}; requests that store more are refused below ${limit}`;
  if (status === 'problem') return problem(text, moreSpace);
  const isNear = status === 'warning' || space.free < nearFloor * floor;
  return isNear ? warning(text, moreSpace) : ok(text);
}

const moreSpace = 'Free some space, or move STRONGROOM_DATA_DIR to a larger disk.';

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / mebibyte)} MiB`;
}

function existingPlace(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : existingPlace(dirname(path));
}

interface SecretFile {
  readonly file: string;
  readonly advice: string;
}

/** Modes of what others must not read; those of the root key are checked with it. */
export function checkFiles(config: Config, env: Terminal['env']): readonly Finding[] {
  const { ok, problem } = reporter('files');
  const findings = secretFilesOf(config, env).flatMap(({ file, advice }) => {
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats ? flawsOf(file, stats, advice) : [];
  });
  for (const [variable, file] of writtenFilesOf(config)) {
    if (isWritable(file)) continue;
    findings.push(
      problem(`${variable} names ${file}, which cannot be written`, 'Change its owner or mode.'),
    );
  }
  return findings.length > 0 ? findings : [ok('only their owner can read what is secret')];
}

function secretFilesOf(
  { dataDir, databaseUrl }: Config,
  env: Terminal['env'],
): readonly SecretFile[] {
  const [tlsKey, clientSecret] = ['STRONGROOM_TLS_KEY', 'STRONGROOM_OIDC_CLIENT_SECRET_FILE'].map(
    (name) => readVariable(env, name),
  );
  const database = databaseUrl === undefined ? databaseFile(dataDir) : undefined;
  return [
    { file: dataDir, advice: `chmod 700 ${dataDir}` },
    ...(database === undefined ? [] : ['', '-wal', '-shm'])
      .map((suffix) => `${database}${suffix}`)
      .map((file) => ({ file, advice: `chmod 600 ${file}` })),
    ...[tlsKey, clientSecret].flatMap((file) =>
      file === undefined ? [] : [{ file, advice: `chmod 600 ${file}` }],
    ),
  ];
}

function flawsOf(file: string, stats: Stats, advice: string): readonly Finding[] {
  const { warning, problem } = reporter('files');
  const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
  const own = process.getuid?.();
  const others = stats.mode & 0o077;
  // A user with access to a directory still cannot read the files in it.
  const report = stats.isDirectory() && (others & 0o022) === 0 ? warning : problem;
  return [
    ...(others === 0 ? [] : [report(`${file} has mode ${mode}: others have access`, advice)]),
    ...(own === undefined || own === 0 || own === stats.uid
      ? []
      : [warning(`${file} belongs to another user`, 'Run the vault, and this, as its owner.')]),
  ];
}

function writtenFilesOf({
  logExport,
  checkpointSink,
}: Config): readonly (readonly [string, string])[] {
  const sink = checkpointSink && 'file' in checkpointSink ? checkpointSink.file : undefined;
  return [
    ...(logExport?.kind === 'file' ? [['STRONGROOM_LOG_EXPORT', logExport.file] as const] : []),
    ...(sink === undefined ? [] : [['STRONGROOM_CHECKPOINT_SINK', sink] as const]),
  ];
}

function isWritable(file: string): boolean {
  try {
    accessSync(existsSync(file) ? file : dirname(file), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Certificates are renewed in time, or not. */
const renewalMs = 14 * day;

export function checkCertificate({ tls }: Config): readonly Finding[] {
  const { ok, warning, problem } = reporter('certificate');
  if (!tls) return [];
  const end = certificateEnd(tls.cert);
  const text = new Date(end).toISOString();
  const advice = 'Renew the certificate in STRONGROOM_TLS_CERT, and restart the vault.';
  if (end <= Date.now()) return [problem(`it expired at ${text}`, advice)];
  if (end - Date.now() < renewalMs) return [warning(`it expires soon, at ${text}`, advice)];
  return [ok(`it is valid until ${text}`)];
}

/** Whether a server runs here already, and if not whether one could listen. */
export async function checkServer(config: Config): Promise<readonly Finding[]> {
  const { ok } = reporter('server');
  const isEmbedded = config.databaseUrl === undefined;
  if (isEmbedded && (await isLocked(config))) {
    return [ok('a server is running on the data directory')];
  }
  return checkAddress(config, isEmbedded);
}

async function isLocked({ dataDir }: Config): Promise<boolean> {
  if (!existsSync(join(dataDir, 'strongroom.lock'))) return false;
  const lock = await import('../../store/sqlite/directory-lock.ts');
  try {
    lock.lockDirectory(dataDir).release();
    return false;
  } catch (error) {
    if (error instanceof lock.DirectoryLockedError) return true;
    throw error;
  }
}

/** Binds the address briefly. With PostgreSQL, the command cannot know which server listens here. */
async function checkAddress(config: Config, isEmbedded: boolean): Promise<readonly Finding[]> {
  const { ok, warning, problem } = reporter('address');
  const { host, port } = config;
  try {
    await (await holdAddress(config)).release();
    return [ok(`${host} port ${port} is free`)];
  } catch (error) {
    const isTaken = systemCodeOf(error) === 'EADDRINUSE';
    if (!isTaken) {
      return [
        problem(
          explain(error),
          'Set STRONGROOM_HOST and STRONGROOM_PORT to what may be used here.',
        ),
      ];
    }
    const advice = 'If no vault is running there, set STRONGROOM_PORT to a free port.';
    const message = `${host} port ${port} is in use`;
    return [isEmbedded ? problem(message, advice) : warning(message, advice)];
  }
}
