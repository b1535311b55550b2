/** Running code: of a reactor, or of a transform of a proxy. */
import type { Clock } from '../../lib/clock.ts';
import { VaultError } from '../../lib/errors.ts';
import type { ApplicationId } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
import { networkOf } from '../../lib/network.ts';
import type { Forward } from '../../outbound/forward.ts';
import { type Caller, isOfServer } from '../../rules/caller.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { BtOperation, CodeLogLine, ServeRequest } from '../../sandbox/sandbox.ts';
import type { CodeRuntime } from '../../transforms/code-runtime.ts';
import { authorityOf, mayAct } from '../authority/authority.ts';
import { actorOf, type CodeRights } from './acting.ts';
import type { CodeEngine } from './engine.ts';
import { fetchForCode, type HeldResponses } from './fetch.ts';
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
  /** `args` or `req`, and what else the contract has. */
  readonly input: Readonly<Record<string, Json>>;
  readonly rights: CodeRights | undefined;
  /**
   * What is lent at the moment of a request of the code.
   * @throws VaultError where what holds the code is gone.
   */
  readonly rightsNow?: () => Promise<CodeRights | undefined>;
  readonly allowedHosts: readonly string[] | null;
  readonly timeoutMs: number;
  /** What holds the code, as entries of the log name it. */
  readonly source: string;
  readonly signal?: AbortSignal;
}

export interface CodeRun {
  readonly outcome: CodeOutcome;
  readonly log: readonly CodeLogLine[];
  readonly milliseconds: number;
  /** It sent a request, or used `bt`: whatever came of the rest, this may have had its effect. */
  readonly hasActed: boolean;
}

/** Never rejects for what the code does. */
export async function runCode(tools: CodeRunning, run: CodeToRun): Promise<CodeRun> {
  const { sandbox, modules } = tools.code;
  const { caller, runtime, configuration, rights, timeoutMs, signal } = run;
  const began = performance.now();
  const held: HeldResponses = { bytes: 0 };
  let hasActed = false;
  const elapsed = () => Math.round(performance.now() - began);
  if (sandbox === undefined) {
    // It was switched off after the call was accepted.
    const off = failure('code is switched off in this vault');
    return { outcome: { kind: 'failed', failure: off }, log: [], milliseconds: 0, hasActed: false };
  }
  const result = await sandbox.run({
    tenant: caller.tenant.id,
    parties: partiesOf(caller),
    code: run.code,
    contract: runtime.image,
    input: { ...run.input, configuration, applicationOptions: null },
    bt: rights !== undefined,
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

/** Keys of servers beside callers from browsers or without a key, and in either group each by itself. */
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
  const { allowedHosts, source } = run;
  const { caller, rights } = await standing(tools, run);
  if (isFetch(request)) {
    const { tenant, origin, anonymous: keyless } = caller;
    const { trace, loop } = origin;
    const fetching = { tenant, allowedHosts, trace, loop, keyless, held };
    return fetchForCode(tools.forward, fetching, { input: request.input, signal: ending });
  }
  if (rights === undefined) throw withdrawn('It is lent no rights any more.');
  const actor = await actorOf(tools, caller, rights);
  const { operation, input } = request;
  return tokensForCode(tools, actor, { operation: operation as BtOperation, input, source });
}

/**
 * Code may run for a quarter of an hour. What was deleted or taken away meanwhile it does not use any longer.
 * @throws VaultError where its tenant, what its caller acts by, or what holds it, is gone.
 */
async function standing(
  { store, clock, tenants }: CodeRunning,
  { caller, rights, rightsNow }: CodeToRun,
): Promise<{ readonly caller: Caller; readonly rights: CodeRights | undefined }> {
  const tenant = await tenants.find(caller.tenant.id);
  if (tenant === undefined) throw withdrawn('Its tenant is gone.');
  if (!caller.anonymous) {
    const authority = await authorityOf(store, tenant, { credential: caller, now: clock.now() });
    if (!mayAct(authority))
      throw withdrawn('The key, the session or the application of its caller is gone.');
  }
  return { caller: { ...caller, tenant }, rights: rightsNow ? await rightsNow() : rights };
}

function withdrawn(why: string): VaultError {
  return new VaultError('forbidden', { public: `The code may do nothing more. ${why}` });
}

function isFetch(
  request: ServeRequest,
): request is Extract<ServeRequest, { readonly operation: 'fetch' }> {
  return request.operation === 'fetch';
}

/** What an administrator lends to the code, by either image. */
export function rightsOf({
  application_id,
  runtime,
}: {
  readonly application_id: ApplicationId | null;
  readonly runtime: Pick<CodeRuntime, 'permissions'>;
}): CodeRights | undefined {
  if (application_id !== null) return { application: application_id };
  return runtime.permissions.length > 0 ? { permissions: runtime.permissions } : undefined;
}
