/** Checks a tenant's code before it is stored: whether this vault runs code, and whether this code can run. */
import type { Clock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { ApplicationId } from '../../base/ids.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Refused } from '../../rules/operation.ts';
import { holds } from '../../rules/policy.ts';
import { forbid } from '../../rules/refusal.ts';
import { isBuiltModule } from '../sandbox/modules.ts';
import type { CodeRuntime } from './code-runtime.ts';
import type { CodeEngine } from './engine.ts';

export interface CodeTools {
  readonly clock: Clock;
  readonly code: CodeEngine;
}

/** `kind` and `id` identify the entity that contains the code. */
export interface CodeAttempt {
  readonly entity: 'reactor' | 'proxy';
  readonly id: string;
  readonly operation: string;
}

/** The refusal of all code operations, if the operator switched code off or no isolation is available. */
export function refusalWhereOff(
  { clock, code }: CodeTools,
  caller: Caller,
  attempt: CodeAttempt,
): Refused | undefined {
  if (code.sandbox) return undefined;
  const message = code.isOn
    ? 'Code is not run here: this machine permits no isolation of its processes. The operator can permit it, or ' +
      'accept that there is none (STRONGROOM_REACTOR_ISOLATION=none).'
    : "Code is not run here: the vault's operator has switched it off (STRONGROOM_REACTORS=off).";
  return forbid(caller, clock.now(), { ...attempt, message });
}

export interface LentRights {
  readonly application_id: ApplicationId | null;
  readonly runtime: Pick<CodeRuntime, 'permissions'>;
}

/**
 * A reactor or a proxy that acts with its own rights gives their reach to every caller. Therefore a key may grant
 * such rights, or change their use, only if it could create a key with the same rights.
 */
export function refusalOfRights(
  { clock }: Pick<CodeTools, 'clock'>,
  caller: Caller,
  { application_id, runtime, ...attempt }: CodeAttempt & LentRights,
): Refused | undefined {
  const attribute = application_id !== null ? 'application' : 'runtime.permissions';
  if (application_id === null && runtime.permissions.length === 0) return undefined;
  if (holds(caller.policy, 'application:create')) return undefined;
  const message =
    `The attribute ${attribute} lends rights to the ${attempt.entity}, for which the key needs the permission ` +
    'application:create as well.';
  return forbid(caller, clock.now(), { ...attempt, message });
}

export interface CodeToStore {
  readonly code: string;
  readonly runtime: CodeRuntime;
  /** The path of the attribute in error messages. */
  readonly path: string;
  readonly runtimePath: string;
}

/**
 * @throws VaultError `unprocessable` if the code does not compile, exports no function, or requires an unavailable
 * module; `unavailable` if the vault stops meanwhile.
 */
export async function requireRunnable(
  { sandbox, modules }: CodeEngine,
  { id: tenant }: Caller['tenant'],
  { code, runtime, path, runtimePath }: CodeToStore,
): Promise<void> {
  const missing = Object.keys(runtime.dependencies).filter(
    (name) => !isBuiltModule(name) && !modules.has(name),
  );
  if (missing.length > 0) {
    const message = `names modules that are not installed here: ${missing.join(', ')}`;
    throw unrunnable(`${runtimePath}.dependencies`, message);
  }
  const problem = await sandbox?.check({ tenant, code, modules });
  if (problem) throw problem.kind === 'stopped' ? stopped() : unrunnable(path, problem.message);
}

function unrunnable(path: string, message: string): VaultError {
  return new VaultError('unprocessable', {
    public: 'The code cannot be run; see errors.',
    errors: { [path]: [message] },
  });
}

const retryAfter = { 'retry-after': '1' };

function stopped(): VaultError {
  return new VaultError('unavailable', {
    public: 'The vault stops; try again.',
    headers: retryAfter,
  });
}
