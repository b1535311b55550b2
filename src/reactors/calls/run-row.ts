/** The stored form of a reactor call: sealed, with an expiry time. */

import { day, hour, type Instant, instantAfter } from '../../base/clock.ts';
import { type AttributeErrors, type ErrorCode, VaultError } from '../../base/errors.ts';
import type { ApplicationId, KeyId, SessionId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { Secret } from '../../base/secret.ts';
import { type BoundRow, openBound, sealBound, type UnsealedRun } from '../../rules/bound-row.ts';
import type { Caller, Origin, SignedInPerson } from '../../rules/caller.ts';
import type { Opener } from '../../rules/openings.ts';
import type { Reply } from '../../rules/reply.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import type { CodeLogLine } from '../sandbox/sandbox.ts';
import type { CodeInput } from './arguments.ts';

const runRetentionMs = 24 * hour;
/** Earlier code of a reactor is kept for so long, which no call is. */
export const versionRetentionMs = 90 * day;

/** What the vault needs to know about the caller when it runs the call later. */
export interface RunCaller {
  readonly application: ApplicationId;
  /** Absent from calls that an earlier release stored. */
  readonly key?: KeyId | undefined;
  readonly session: SessionId | null;
  /** Set where a person made the call; it does not run once the person may not act any more. */
  readonly signedIn?: SignedInPerson | undefined;
  readonly reason?: string | undefined;
  readonly address: string;
  readonly traceId: string;
  readonly dialect: string;
  readonly userAgent?: Origin['userAgent'];
  readonly forwarded?: Origin['forwarded'];
  readonly person?: Origin['person'];
  /** The vaults and networks through which the call came. Absent from calls that an earlier release stored. */
  readonly loop?: string | undefined;
}

/** The outcome as the caller reads it. */
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
  /** Present until the call has ended. */
  readonly input?: CodeInput;
  /** How many attempts have begun. */
  readonly attempts: number;
  /** Present once an asynchronous call has ended. */
  readonly result?: RunResult;
  readonly isFailed: boolean;
  readonly log: readonly CodeLogLine[];
  /** Set where the row is no call, but the code that the reactor had until then. */
  readonly code?: string;
}

export function runRow(
  { tenant, random }: { readonly tenant: Tenant; readonly random: Random },
  row: UnsealedRun,
  body: RunBody,
): Row<'reactor_runs'> {
  // Code can log half a surrogate pair.
  const text = JSON.stringify(body).toWellFormed();
  const sealing = { keyring: tenant.keyring, table: 'reactor_runs', row, random } as const;
  return { ...row, body: sealBound(sealing, text) };
}

/** @throws VaultError `integrity` if any part of the row was altered. */
export function openRun(opener: Opener, found: BoundRow<'reactor_runs'>): OpenedRun {
  const { row, text } = openBound(opener, 'reactor_runs', found);
  return { row, body: new Secret(JSON.parse(text.reveal()) as RunBody) };
}

interface OpenedRun {
  readonly row: Row<'reactor_runs'>;
  readonly body: Secret<RunBody>;
}

export const expiryOf = (now: Instant): Instant => instantAfter(now, runRetentionMs);

export function problemOfRun({ code, public: detail, errors }: VaultError): RunProblem {
  return { code, detail, errors: errors ?? null };
}

/** Restores the error from its stored form. */
export function errorOfProblem({ code, detail, errors }: RunProblem): VaultError {
  return new VaultError(code, { public: detail, ...(errors && { errors }) });
}

/** As much of the caller as is stored with a call. */
export function callerOfRun({ application, key, session, signedIn, origin }: Caller): RunCaller {
  const { trace: _ofThisRequest, ...where } = origin;
  return { application, key, session: session ?? null, signedIn, ...where };
}
