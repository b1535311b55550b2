/** Runs the code of a reactor or of a proxy transform. */

import { callerNow } from '../../access/authority.ts';
import type { Clock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import { networkOf } from '../../base/network.ts';
import type { Forward } from '../../outbound/forward.ts';
import { type Caller, isKeyless, isOfServer } from '../../rules/caller.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { CodeRuntime } from '../code/code-runtime.ts';
import type { CodeEngine } from '../code/engine.ts';
import type { BtOperation, CodeLogLine, ServeRequest } from '../sandbox/sandbox.ts';
import { actorOf } from './acting.ts';
import { fetchForCode, type HeldResponses } from './fetch.ts';
import type { CodeRights, HolderOfCode } from './holder.ts';
import { type CodeOutcome, failure, linesOf, outcomeOf } from './outcome.ts';
import { type CodeTokenTools, tokensForCode } from './tokens.ts';

export interface CodeRunning extends CodeTokenTools {
  readonly clock: Clock;
  readonly tenants: Pick<Tenants, 'find'>;
  readonly code: CodeEngine;
  readonly forward: Forward;
}

export interface CodeToRun {
  readonly caller: Caller;
  readonly code: string;
  readonly runtime: CodeRuntime;
  readonly configuration: Readonly<Record<string, string>>;
  /** `args` or `req`, and the other inputs of the contract. */
  readonly input: Readonly<Record<string, Json>>;
  /** Its rights are checked again at each request of the code. Log entries name it. */
  readonly holder: HolderOfCode;
  /** Whether the holder lends rights at the start: without them the code gets no `bt`. */
  readonly hasRights: boolean;
  readonly allowedHosts: readonly string[] | null;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface CodeRun {
  readonly outcome: CodeOutcome;
  readonly log: readonly CodeLogLine[];
  readonly milliseconds: number;
  /** The code sent a request or used `bt`, so it may have had an effect even if it failed. */
  readonly hasActed: boolean;
}

/** Never rejects because of the code. */
export async function runCode(tools: CodeRunning, run: CodeToRun): Promise<CodeRun> {
  const { sandbox, modules } = tools.code;
  const { caller, runtime, configuration, hasRights, timeoutMs, signal } = run;
  const began = performance.now();
  const held: HeldResponses = { bytes: 0 };
  let hasActed = false;
  const elapsed = () => Math.round(performance.now() - began);
  if (sandbox === undefined) {
    // Code was switched off after the call was accepted.
    const off = failure('code is switched off in this vault');
    return { outcome: { kind: 'failed', failure: off }, log: [], milliseconds: 0, hasActed: false };
  }
  const result = await sandbox.run({
    tenant: caller.tenant.id,
    parties: partiesOf(caller),
    code: run.code,
    contract: runtime.image,
    input: { ...run.input, configuration, applicationOptions: null },
    bt: hasRights,
    timeoutMs,
    modules,
    serve: (request, ending) => {
      hasActed = true;
      return serve(tools, run, { request, ending, held });
    },
    ...(signal && { signal }),
  });
  const outcome = outcomeOf(result);
  const log = linesOf(result, outcome, tools.clock.now());
  return { outcome, log, milliseconds: elapsed(), hasActed };
}

/** Groups callers into those with server keys, by key, and all others, by application and network. */
function partiesOf(caller: Caller): readonly string[] {
  const { application, key, origin } = caller;
  if (isOfServer(caller)) return ['servers', key ?? application];
  return ['visitors', `${application} ${networkOf(origin.address)}`];
}

interface Serving {
  readonly request: ServeRequest;
  readonly ending: AbortSignal;
  readonly held: HeldResponses;
}

async function serve(
  tools: CodeRunning,
  run: CodeToRun,
  { request, ending, held }: Serving,
): Promise<unknown> {
  const { allowedHosts, holder } = run;
  const { caller, rights } = await standing(tools, run);
  if (isFetch(request)) {
    const { tenant, origin } = caller;
    const { trace, loop } = origin;
    const keyless = isKeyless(caller);
    const fetching = { tenant, allowedHosts, trace, loop, keyless, held };
    return fetchForCode(tools.forward, fetching, { input: request.input, signal: ending });
  }
  if (rights === undefined) throw withdrawn('It is lent no rights any more.');
  const actor = await actorOf(tools, caller, rights);
  const { operation, input } = request;
  const source = sourceOf(holder);
  return tokensForCode(tools, actor, { operation: operation as BtOperation, input, source });
}

/**
 * Code may run for 15 minutes. It must not use rights that were deleted or revoked meanwhile.
 * @throws VaultError if its tenant, its caller's credential, or its holder is gone.
 */
async function standing(
  { store, clock, tenants }: CodeRunning,
  { caller, holder }: CodeToRun,
): Promise<{ readonly caller: Caller; readonly rights: CodeRights | undefined }> {
  const tenant = await tenants.find(caller.tenant.id);
  if (tenant === undefined) throw withdrawn('Its tenant is gone.');
  const lookup = { store, now: clock.now(), withoutKey: holder.withoutKey?.(store) };
  const current = await callerNow(lookup, { ...caller, tenant });
  if (current === undefined) throw withdrawn(`${basisOf(caller)} is gone.`);
  return { caller: current, rights: await holder.lentNow(store, tenant) };
}

function basisOf({ anonymous }: Caller): string {
  return anonymous === undefined
    ? 'The key, the session or the application of its caller'
    : 'The proxy that asked its caller for no key, or its application,';
}

/** How log entries and messages name the source of the code's own operations. */
export const sourceOf = ({ entity, id }: Pick<HolderOfCode, 'entity' | 'id'>): string =>
  `by the code of ${entity} ${id}`;

function withdrawn(why: string): VaultError {
  return new VaultError('forbidden', { public: `The code may do nothing more. ${why}` });
}

function isFetch(
  request: ServeRequest,
): request is Extract<ServeRequest, { readonly operation: 'fetch' }> {
  return request.operation === 'fetch';
}
