/** A call of a reactor as it is stored: sealed, with all other columns bound to what is sealed. */
import { type Binding, openText, sealText } from '../../crypto/envelope.ts';
import { hour, type Instant, instantAfter } from '../../lib/clock.ts';
import { type AttributeErrors, type ErrorCode, VaultError } from '../../lib/errors.ts';
import type { ApplicationId, SessionId } from '../../lib/ids.ts';
import type { Random } from '../../lib/random.ts';
import { Secret } from '../../lib/secret.ts';
import { namingRow } from '../../rules/bound-row.ts';
import type { Reply } from '../../rules/reply.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { LogLine } from '../../sandbox/sandbox.ts';
import type { Row } from '../../store/tables.ts';
import type { CodeInput } from './arguments.ts';

const runRetentionMs = 24 * hour;

/** Who called, as the call needs it once it is done later. */
export interface RunCaller {
  readonly application: ApplicationId;
  readonly session: SessionId | null;
  readonly address: string;
  readonly traceId: string;
  readonly dialect: string;
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
  readonly log: readonly LogLine[];
}

type Unsealed = Omit<Row<'reactor_runs'>, 'body'>;

export function runRow(
  { tenant, random }: { readonly tenant: Tenant; readonly random: Random },
  row: Unsealed,
  body: RunBody,
): Row<'reactor_runs'> {
  const keys = tenant.keyring.sealing('data');
  // Code may log half a surrogate pair.
  const text = JSON.stringify(body).toWellFormed();
  return { ...row, body: sealText(keys, bindingOf(row), text, random) };
}

/** @throws VaultError `integrity` when anything of the row was altered. */
export function openRun(tenant: Tenant, row: Row<'reactor_runs'>): Secret<RunBody> {
  try {
    const text = openText(tenant.keyring.sealing('data'), bindingOf(row), row.body);
    return new Secret(JSON.parse(text.reveal()) as RunBody);
  } catch (error) {
    throw namingRow(error, { entity: 'reactor', id: row.reactor_id });
  }
}

function bindingOf({ tenant_id, run_id, ...rest }: Unsealed): Binding {
  const { reactor_id, version, due_at, created_at, expires_at } = rest;
  const row = JSON.stringify([reactor_id, version, due_at, created_at, expires_at]);
  return { tenant: tenant_id, id: run_id, field: 'reactor_run.body', row };
}

export const expiryOf = (now: Instant): Instant => instantAfter(now, runRetentionMs);

export function problemOfRun({ code, public: detail, errors }: VaultError): RunProblem {
  return { code, detail, errors: errors ?? null };
}

/** The failure again. */
export function errorOfProblem({ code, detail, errors }: RunProblem): VaultError {
  return new VaultError(code, { public: detail, ...(errors && { errors }) });
}
