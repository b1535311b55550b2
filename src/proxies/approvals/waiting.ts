/** Requests that wait for a person: nothing of them is opened or sent before the decision. */
import assert from 'node:assert/strict';
import { setTimeout as timeout } from 'node:timers/promises';
import { type Clock, hour, instantAfter, minute, second } from '../../base/clock.ts';
import { integrityError, reasonOf, VaultError } from '../../base/errors.ts';
import { type ApprovalId, newUuid } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { type Caller, spenderOf } from '../../rules/caller.ts';
import { digestOfPolicy, type EgressPolicy } from '../../rules/egress-policies.ts';
import { denialOf, detailed, entryOf, failureOf } from '../../rules/log-entries.ts';
import { openerOf } from '../../rules/openings.ts';
import { provenRow, provenRows } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import type { Limiter } from '../../store/limiter.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { approvedForHost, type GrantSought } from '../../store/queries/approvals.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { egressId } from '../calls/called-proxy.ts';
import type { GivenApproval, ProxyCall } from '../calls/proxy-call.ts';
import { approvalRow, openApproval, storedDecider } from './row.ts';
import { digestOfRequest, type NamedPlaceholder, shownRequest } from './shown-request.ts';

const approvalWaitMsMax = 10 * minute;
/** Between looks at what was decided, perhaps on another server. */
const lookMs = 0.4 * second;

/** At most so many requests wait, and so many of an application begin to wait in an hour. */
export const approvalLimits = {
  waitingOfKey: 10,
  waitingOfApplication: 20,
  waitingOfTenant: 50,
  begunInHour: 60,
};

export interface ApprovalWaiting {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Aborted when the server begins to stop. */
  readonly stopping: AbortSignal;
}

/**
 * Resolves when a person has approved the request, or has approved what covers it. Rejects with `forbidden` when it
 * was denied or its policy has changed, `gateway_timeout` when nobody decided, `too_many_requests` when too many wait,
 * `unavailable` when the server stops, and as `stands` of the call when its key has ended. All but the two before the
 * last have entries.
 */
export type AwaitApproval = (
  call: ProxyCall,
  tokens: readonly NamedPlaceholder[],
) => Promise<GivenApproval>;

interface WaitingRequest {
  readonly call: ProxyCall;
  readonly row: Row<'approvals'>;
  readonly digest: string;
}

export function createApprovals(tools: ApprovalWaiting): AwaitApproval {
  const { store, clock, random, log, stopping } = tools;
  const take = createPlaces(store);

  async function covering({ caller, proxy }: ProxyCall): Promise<GivenApproval | undefined> {
    const basis = { ...basisOf(proxy), application: caller.application, now: clock.now() };
    const row = await coveringApproval(store, caller.tenant, basis);
    return row && given(row);
  }

  async function begin(
    call: ProxyCall,
    tokens: readonly NamedPlaceholder[],
  ): Promise<WaitingRequest> {
    const { caller } = call;
    const { tenant, application } = caller;
    const { policy, host } = basisOf(call.proxy);
    assert(policy.approval, 'the policy wants a person');
    const now = clock.now();
    const digest = digestOfRequest(call);
    const request = shownRequest(call, tokens);
    const body = { request, key: caller.key, approval: policy.approval, digest };
    const expires_at = instantAfter(now, approvalWaitMsMax);
    const row = approvalRow(
      tenant,
      { body, random },
      {
        tenant_id: tenant.id,
        approval_id: newUuid<ApprovalId>(random),
        application_id: application,
        version: 1,
        status: 'waiting',
        scope: null,
        policy_digest: digestOfPolicy(policy),
        host,
        decider: null,
        created_at: now,
        decided_at: null,
        expires_at,
      },
    );
    const event = { approval: { application_id: application, method: call.method, host } };
    const fact = { entity: 'approval', id: row.approval_id, operation: 'create', event } as const;
    const entry = detailed(entryOf(caller, now, fact), `${call.method} to ${host}`);
    const { loop } = caller.origin;
    const change: Change = { insert: { approvals: [row] }, entries: [entry] };
    await store.commit(loop === undefined ? change : { ...change, loop });
    return { call, row, digest };
  }

  async function stored({ call, row }: WaitingRequest): Promise<Row<'approvals'> | undefined> {
    const { tenant_id, approval_id } = row;
    const key = { tenant_id, approval_id };
    return provenRow(store, call.caller.tenant, { table: 'approvals', key });
  }

  /** False where it was decided, or sealed again, meanwhile. */
  async function end(
    waiting: WaitingRequest,
    operation: 'delete' | 'expire',
    others: readonly LogEntry[] = [],
  ): Promise<boolean> {
    const found = await stored(waiting);
    if (found?.status !== 'waiting') return found === undefined;
    const { tenant_id, approval_id, version } = found;
    const fact = { entity: 'approval', id: approval_id, operation } as const;
    const entry = entryOf(waiting.call.caller, clock.now(), fact);
    const change: Change = {
      remove: { approvals: [{ tenant_id, approval_id, version }] },
      entries: [entry, ...others],
    };
    return (await store.commit(change)).conflict === undefined;
  }

  /** The decision; `undefined` while there is none. */
  async function look(waiting: WaitingRequest): Promise<GivenApproval | undefined> {
    const { call, row, digest } = waiting;
    const found = await stored(waiting);
    if (found?.status === 'denied') throw denied();
    if (found?.status === 'approved') {
      const approved = openApproval(openerOf('match approvals', call.caller.tenant), found);
      if (approved.digest === digest && digestOfRequest(call) === digest) return given(found);
      throw integrityError('an approval is for another request than the one that waits');
    }
    if (found === undefined) throw changedPolicy();
    const covered = await covering(call);
    if (covered && (await end(waiting, 'delete'))) return covered;
    if (clock.now() < row.expires_at) return undefined;
    if (await end(waiting, 'expire', [failureOf(call.caller, clock.now(), invoking)]))
      throw undecided();
    return undefined;
  }

  async function decided(waiting: WaitingRequest): Promise<GivenApproval> {
    const { call } = waiting;
    const over = AbortSignal.any([call.signal, stopping]);
    for (;;) {
      await timeout(lookMs, undefined, { signal: over }).catch(() => undefined);
      if (stopping.aborted) throw stops();
      if (call.signal.aborted) {
        await call.stands();
        throw changedPolicy();
      }
      const found = await look(waiting).catch((error: unknown) => {
        // The database may be away for a while.
        if (isPassing(error) && clock.now() < waiting.row.expires_at) return undefined;
        throw error;
      });
      if (found) return found;
    }
  }

  return async (call, tokens) => {
    const covered = await covering(call);
    if (covered) return covered;
    const giveBack = await take(call.caller);
    try {
      const waiting = await begin(call, tokens);
      return await decided(waiting).catch(async (error: unknown) => {
        await refused(waiting, error).catch((reason: unknown) => {
          log.error('an approval was not withdrawn', { reason: reasonOf(reason) });
        });
        throw error;
      });
    } finally {
      await giveBack();
    }
  };

  async function refused(waiting: WaitingRequest, error: unknown): Promise<void> {
    const { call } = waiting;
    const isDenied = error instanceof VaultError && error.code === 'forbidden';
    const denial = denialOf(call.caller, clock.now(), invoking);
    const isOver = await end(waiting, 'delete', isDenied ? [denial] : []);
    if (isDenied && !isOver) await store.commit({ entries: [denial] });
  }
}

const invoking = { entity: 'proxy', id: egressId, operation: 'invoke' } as const;

/** For what a request needs an approval. */
interface ApprovalBasis {
  readonly policy: EgressPolicy;
  readonly host: string;
}

export function approvalBasis(policy: EgressPolicy, destination: URL): ApprovalBasis {
  const { hostname, port, protocol } = destination;
  return { policy, host: `${hostname}:${port || (protocol === 'http:' ? 80 : 443)}` };
}

function basisOf({ egress: policy, destinationUrl }: ProxyCall['proxy']): ApprovalBasis {
  assert(policy, 'a policy is in the place of the proxy');
  return approvalBasis(policy, new URL(destinationUrl));
}

/** What a person has approved for all requests under the policy to the host. */
export async function coveringApproval(
  store: Pick<Store, 'select'>,
  tenant: Tenant,
  { policy, ...sought }: ApprovalBasis & Pick<GrantSought, 'application' | 'now'>,
): Promise<Row<'approvals'> | undefined> {
  if (policy.approval !== 'first') return undefined;
  const policyDigest = digestOfPolicy(policy);
  const found = await store.select(approvedForHost({ ...sought, tenant: tenant.id, policyDigest }));
  return provenRows(tenant, 'approvals', found).rows[0];
}

function given(row: Row<'approvals'>): GivenApproval {
  const decider = storedDecider(row);
  assert(decider, 'what was approved has somebody who did');
  const by = decider.person?.name ?? decider.application_id;
  return { id: row.approval_id, policyDigest: row.policy_digest, by };
}

/** Whether the approval is for requests under this policy. Its digest is of the policy that a person saw. */
export function covers({ policyDigest }: GivenApproval, policy: EgressPolicy): boolean {
  return policyDigest === digestOfPolicy(policy);
}

interface LimitedPlace {
  readonly limiter: Limiter;
  readonly max: number;
  readonly what: string;
  readonly keyOf: (caller: Caller) => string;
  readonly isForever?: true;
}

/** @returns a function that takes a place, and gives it back. */
function createPlaces({ limiter }: Pick<Store, 'limiter'>) {
  const counter = (name: string, windowMs: number) =>
    limiter({ name: `egress approvals ${name}`, requests: placesMax, windowMs, blockMs: 0 });
  const waiting = counter('waiting', approvalWaitMsMax + minute);
  const begun = counter('begun', hour);
  const ofApplication = (caller: Caller) => `${caller.tenant.id} ${caller.application}`;
  const places: readonly LimitedPlace[] = [
    {
      limiter: waiting,
      max: approvalLimits.waitingOfKey,
      what: 'requests of a key wait for a person at once',
      keyOf: (caller) => `${ofApplication(caller)} ${spenderOf(caller).counted_id}`,
    },
    {
      limiter: waiting,
      max: approvalLimits.waitingOfApplication,
      what: 'requests of an application wait for a person at once',
      keyOf: ofApplication,
    },
    {
      limiter: waiting,
      max: approvalLimits.waitingOfTenant,
      what: 'requests of a tenant wait for a person at once',
      keyOf: ({ tenant }) => tenant.id,
    },
    {
      limiter: begun,
      max: approvalLimits.begunInHour,
      what: 'requests of an application in an hour wait for a person',
      keyOf: ofApplication,
      isForever: true,
    },
  ];

  return async (caller: Caller): Promise<() => Promise<void>> => {
    const taken: (() => Promise<void>)[] = [];
    const giveBack = async () => {
      for (const give of taken.splice(0)) await give();
    };
    for (const { limiter: counted, max, what, keyOf, isForever } of places) {
      const key = keyOf(caller);
      const { isTaken, endsAt, resetMs } = await counted.take(key, { times: 1, max });
      if (!isTaken) {
        await giveBack();
        throw new VaultError('too_many_requests', {
          public: `At most ${max} ${what}.`,
          headers: { 'retry-after': String(Math.max(1, Math.ceil(resetMs / second))) },
        });
      }
      if (!isForever) taken.push(() => counted.giveBack(key, { times: 1, endsAt }));
    }
    return giveBack;
  };
}

/** More than any of the limits. */
const placesMax = 1000;

const passing: ReadonlySet<string> = new Set(['unavailable', 'overloaded']);

function isPassing(error: unknown): boolean {
  return error instanceof VaultError && passing.has(error.code);
}

function denied(): VaultError {
  return new VaultError('forbidden', { public: 'A person denied the request.' });
}

function changedPolicy(): VaultError {
  return new VaultError('forbidden', {
    public: 'The policy changed while the request waited for the approval of a person.',
  });
}

function undecided(): VaultError {
  return new VaultError('gateway_timeout', {
    public: `Nobody decided about the request in ${approvalWaitMsMax / minute} minutes.`,
  });
}

function stops(): VaultError {
  return new VaultError('unavailable', {
    public: 'The server stops, and nobody has decided about the request yet. Send it again.',
    headers: { 'retry-after': '1' },
  });
}
