/** The two places of a copy: what a server there would read, and how each is taken. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SharedKeys } from '../../keys/root/root-key.ts';
import { type Config, readConfigAt } from '../../runtime/config/config.ts';
import { ConfigError } from '../../runtime/config/problems.ts';
import { openPostgresCopy } from '../../store/copying/postgres-copy.ts';
import { takeDatabase } from '../../store/copying/postgres-target.ts';
import type { DatabaseAddress } from '../../store/copying/source.ts';
import { takeDirectory, tidyDirectory } from '../../store/copying/sqlite-target.ts';
import type { CopyTarget, TargetOptions } from '../../store/copying/target.ts';
import { requireWorkers } from '../../store/postgres/workers.ts';
import { RestoreError } from '../../store/restore-error.ts';
import { stagingDirectory } from '../../store/sqlite/database.ts';
import { UsageError } from '../terminal/command.ts';
import { explain } from '../terminal/failure.ts';
import { readGivenFile } from '../terminal/given-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

export interface CopyPlaces {
  readonly source: Config;
  readonly target: Config;
}

/** What is opened with the root key, and the shares of it where people hold it. */
export interface KeyedConfig {
  readonly config: Config;
  readonly sharedKeys: SharedKeys | undefined;
}

const urlForm = /^[a-z][a-z0-9+.-]*:\/\//i;

const urlVariable = 'STRONGROOM_DATABASE_URL';
type PlaceOption = '--from' | '--to';

/** The other variables stay as they are. Of another scheme it is refused as a URL, and is no directory. */
function configAt({ env }: Terminal, place: string, option: PlaceOption): Config {
  try {
    return readConfigAt(env, urlForm.test(place) ? { DATABASE_URL: place } : { DATA_DIR: place });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(error.problems.map((text) => text.replaceAll(urlVariable, option)));
  }
}

/**
 * Before the vault is verified, which takes long.
 * @throws RestoreError, UsageError that names the option which leads to no database, to one without a worker, or to a
 * file. Nothing has changed then.
 */
export async function requireReachable({ source, target }: CopyPlaces): Promise<void> {
  await reach('--from', source);
  await reach('--to', target);
}

async function reach(option: PlaceOption, { databaseUrl, dataDir }: Config): Promise<void> {
  if (databaseUrl === undefined) {
    if (statSync(dataDir, { throwIfNoEntry: false })?.isDirectory() !== false) return;
    throw new UsageError(`${option} names a file, and has to name a data directory`);
  }
  try {
    const { ask, close } = await openPostgresCopy(databaseUrl);
    await requireWorkers(async (text) => ({ rows: await ask(text) })).finally(close);
  } catch (error) {
    throw saidOf(option, error);
  }
}

/** @returns the error with the option in the place of the variable that servers have for a URL. */
function saidOf(option: PlaceOption, error: unknown): unknown {
  const said = explain(error);
  if (!said.includes(urlVariable)) return error;
  return new RestoreError(said.replaceAll(urlVariable, option), { cause: error });
}

export function readPlaces(terminal: Terminal, from: string, to: string): CopyPlaces {
  if (resolve(from) === resolve(to)) throw new UsageError('--from and --to are the same place');
  const source = configAt(terminal, from, '--from');
  // The operator gives the key to the new place. Until then it is where the vault is now.
  return { source, target: { ...configAt(terminal, to, '--to'), rootKey: source.rootKey } };
}

export interface TenantPlaces {
  readonly from: string;
  readonly to: string;
  /** A file with lines NAME=VALUE. */
  readonly environment: string | undefined;
}

/**
 * Two vaults, each of which has a root key. Without a file, variables that name one are those of both.
 * @throws UsageError, ConfigError
 */
export function readTenantPlaces(terminal: Terminal, { from, to, environment }: TenantPlaces) {
  if (resolve(from) === resolve(to)) throw new UsageError('--from and --to are the same place');
  const target =
    environment === undefined
      ? terminal
      : { ...terminal, env: { ...withoutRootKey(terminal), ...readEnvironment(environment) } };
  return { source: configAt(terminal, from, '--from'), target: configAt(target, to, '--to') };
}

function withoutRootKey({ env }: Terminal): Terminal['env'] {
  const others = Object.entries(env).filter(([name]) => !name.startsWith('STRONGROOM_ROOT_KEY'));
  return Object.fromEntries(others);
}

const variableForm = /^([A-Z][A-Z0-9_]*)=(.*)$/;

function readEnvironment(file: string): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [at, line] of readGivenFile(file).split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [, name, value] = variableForm.exec(line) ?? [];
    // The line may hold a key.
    if (name === undefined) throw new UsageError(`line ${at + 1} of --to-env is not NAME=VALUE`);
    variables[name] = value ?? '';
  }
  return variables;
}

export function readSource(terminal: Terminal, from: string): Config {
  return configAt(terminal, from, '--from');
}

export function addressOf({ databaseUrl, dataDir }: Config): DatabaseAddress {
  return databaseUrl === undefined ? { dataDir } : { databaseUrl };
}

export function engineOf({ databaseUrl }: Config): 'sqlite' | 'postgres' {
  return databaseUrl === undefined ? 'sqlite' : 'postgres';
}

/** Goes on with the copy of that name, or begins it. */
export async function takeTarget(config: Config, copy: string): Promise<CopyTarget> {
  const target = await take(config, { copy, begin: true });
  assert.ok(target, 'a copy that may begin is there');
  return target;
}

/** @returns `undefined` where no copy of that name has begun; nothing has changed then. */
export function findTarget(config: Config, copy: string): Promise<CopyTarget | undefined> {
  return take(config, { copy, begin: false });
}

async function take({ databaseUrl, dataDir }: Config, options: TargetOptions) {
  if (databaseUrl === undefined) return takeDirectory(dataDir, options);
  return takeDatabase(databaseUrl, options).catch((error) => {
    // Of a worker that cannot be reached, where the tables are distributed.
    throw saidOf('--to', error);
  });
}

/** Removes what an interrupted last step has left of the copy. Servers may run there. */
export async function tidyTarget({ databaseUrl, dataDir }: Config): Promise<void> {
  if (databaseUrl === undefined) await tidyDirectory(dataDir);
}

/** The target before servers may start there: the embedded database is in a directory of its own. */
export function unfinished(target: Config): Config {
  if (target.databaseUrl !== undefined) return target;
  return { ...target, dataDir: stagingDirectory(target.dataDir) };
}
