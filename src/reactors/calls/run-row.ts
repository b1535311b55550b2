/** A call of a reactor as it is stored: sealed, and until when. */

import { hour, type Instant, instantAfter } from '../../base/clock.ts';
import { type AttributeErrors, type ErrorCode, VaultError } from '../../base/errors.ts';
import type { ApplicationId, KeyId, SessionId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { Secret } from '../../base/secret.ts';
import { openBound, sealBound, type UnsealedRun } from '../../rules/bound-row.ts';
import type { Opener } from '../../rules/openings.ts';
import type { Reply } from '../../rules/reply.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import type { CodeLogLine } from '../sandbox/sandbox.ts';
import type { CodeInput } from './arguments.ts';

const runRetentionMs = 24 * hour;

/** Who called, as the call needs it once it is done later. */
export interface RunCaller {
  readonly application: ApplicationId;
  /** Absent from calls that an earlier release stored. */
  readonly key?: KeyId | undefined;
  readonly session: SessionId | null;
  readonly address: string;
  readonly traceId: string;
  readonly dialect: string;
  /** Through which vaults and networks the call came. Absent also from calls that an earlier release stored. */
  readonly loop?: string | undefined;
}

/** What came of it, as its caller is given it. */
export type RunResult =
  | { readonly reply: Pick<Reply, 'status' | 'body' | 'made'> }
  | { readonly problem: RunProblem };

export interface RunProblem {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly errors: AttributeErrors | null;
}

export interface RunBody {
  readonly kind: 'sync' | 'async';
  readonly caller: RunCaller;
  /** Until it is done. */
  readonly input?: CodeInput;
  /** How often it was begun. */
  readonly attempts: number;
  /** Of an asynchronous one that is done. */
  readonly result?: RunResult;
  readonly isFailed: boolean;
  readonly log: readonly CodeLogLine[];
}

export function runRow(
  { tenant, random }: { readonly tenant: Tenant; readonly random: Random },
  row: UnsealedRun,
  body: RunBody,
): Row<'reactor_runs'> {
  // Code may log half a surrogate pair.
  const text = JSON.stringify(body).toWellFormed();
  const sealing = { keyring: tenant.keyring, table: 'reactor_runs', row, random } as const;
  return { ...row, body: sealBound(sealing, text) };
}

/** @throws VaultError `integrity` when anything of the row was altered. */
export function openRun(opener: Opener, row: Row<'reactor_runs'>): Secret<RunBody> {
  return new Secret(JSON.parse(openBound(opener, 'reactor_runs', row).reveal()) as RunBody);
}

export const expiryOf = (now: Instant): Instant => instantAfter(now, runRetentionMs);

export function problemOfRun({ code, public: detail, errors }: VaultError): RunProblem {
  return { code, detail, errors: errors ?? null };
}

/** The failure again. */
export function errorOfProblem({ code, detail, errors }: RunProblem): VaultError {
  return new VaultError(code, { public: detail, ...(errors && { errors }) });
}
