/** Profiles: vaults and the keys for them, in a file of the user that nobody else may read. */
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isObject } from '../../base/json.ts';
import { exposedMode, replaceDurably } from '../../base/private-file.ts';
import { pooledRandom } from '../../base/random.ts';
import { readVariable } from '../../runtime/config/config.ts';
import type { Environment } from '../../runtime/config/variables.ts';
import { UsageError } from '../terminal/command.ts';

export interface Profile {
  readonly url: string;
  readonly key: string;
}

export interface Profiles {
  /** The name of the profile that is used unless another one is named. */
  readonly current: string;
  readonly profiles: Readonly<Record<string, Profile>>;
}

export const profileDefault = 'default';

/** Where the system keeps the configuration of a user's programs. */
export function profilesFile(env: Environment): string {
  const home = env['HOME'] ?? homedir();
  const base =
    process.platform === 'win32'
      ? (env['APPDATA'] ?? join(home, 'AppData', 'Roaming'))
      : process.platform === 'darwin'
        ? join(home, 'Library', 'Application Support')
        : join(home, '.config');
  return join(env['XDG_CONFIG_HOME'] || base, 'strongroom', 'profiles.json');
}

/** @throws UsageError if others may read the file, or if it is not what `strongroom login` writes. */
export function readProfiles(env: Environment): Profiles {
  const file = profilesFile(env);
  let text: string;
  try {
    if (exposedMode(statSync(file)) !== undefined) {
      throw new UsageError(`others may read ${file}, which has keys; run chmod 600 on it`);
    }
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return { current: profileDefault, profiles: {} };
  }
  const value = parsed(text);
  if (isProfiles(value)) return value;
  throw new UsageError(`${file} is damaged; remove it, and run strongroom login`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isProfiles(value: unknown): value is Profiles {
  if (!isObject(value) || typeof value['current'] !== 'string' || !isObject(value['profiles']))
    return false;
  return Object.values(value['profiles']).every(
    (one) => isObject(one) && typeof one['url'] === 'string' && typeof one['key'] === 'string',
  );
}

/** Replaces the file as a whole: a command that is interrupted leaves the earlier one. */
export function writeProfiles(env: Environment, profiles: Profiles): string {
  const file = profilesFile(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  replaceDurably(file, `${JSON.stringify(profiles, undefined, 2)}\n`, pooledRandom());
  return file;
}

/**
 * The vault that a command talks to: the named profile, else STRONGROOM_KEY and STRONGROOM_URL, else the current
 * profile.
 * @throws UsageError if there is no key.
 */
export function profileFor(env: Environment, name: string | undefined): Profile {
  const key = readVariable(env, 'STRONGROOM_KEY');
  if (name === undefined && key !== undefined) {
    return { url: readVariable(env, 'STRONGROOM_URL') ?? 'http://127.0.0.1:8080', key };
  }
  const { current, profiles } = readProfiles(env);
  const wanted = name ?? readVariable(env, 'STRONGROOM_PROFILE') ?? current;
  const found = Object.hasOwn(profiles, wanted) ? profiles[wanted] : undefined;
  if (found) return found;
  const known = Object.keys(profiles).join(', ');
  throw new UsageError(
    known === ''
      ? 'there is no key: run strongroom login URL, or set STRONGROOM_KEY'
      : `there is no profile of that name; there are: ${known}`,
  );
}
