/** What each caller may have of a thread's processor time, memory and slots: the policy of admission to all routes. */

import {
  type AdmissionRefusal,
  type AdmittedEntrant,
  FairAdmission,
  type Party,
  type Slow,
} from '../../lib/admission.ts';
import { second } from '../../lib/clock.ts';
import { VaultError } from '../../lib/errors.ts';
import { networkOf } from '../../lib/network.ts';
import { Recent } from '../../lib/recent.ts';
import { type Caller, isOfServer } from '../../rules/caller.ts';
import { connectionEnded } from '../protocol/body.ts';
import type { RequestShare } from '../protocol/request-share.ts';

/** Estimated milliseconds of work that begin in one turn of the event loop. */
const turnMsMax = 2;

/** How long a request waits for its turn before it is refused. */
export const waitMsMax = 10 * second;

/** The part of a thread that callers without a private or management key have while others use it. */
const visitorsPartMax = 0.25;

const mebibyte = 1_048_576;

/** Requests under way, and bytes of bodies that arrive and of responses that leave, on each thread. */
export const shareLimits = {
  all: { heldMax: 128 * mebibyte, waitingMax: 16_384 },
  /** Private and management keys. */
  servers: { weight: 3 },
  tenant: { heldMax: 96 * mebibyte },
  key: { heldMax: 64 * mebibyte },
  /** Public keys, sessions, and addresses without a valid key. */
  visitors: {
    weight: 1,
    partMax: visitorsPartMax,
    underWayMax: 1_024,
    waitingMax: 8_192,
    heldMax: 32 * mebibyte,
  },
  /** The visitors of one tenant. */
  visitorsOfTenant: { underWayMax: 512, heldMax: 16 * mebibyte },
  address: { underWayMax: 64, waitingMax: 1_024, heldMax: 8 * mebibyte },
  /** Of an address: what came without a key does not hold up a key that is seen for the first time. */
  unsettled: {},
  /** Requests of orchestrators, which would restart a server that lets them wait. */
  probes: { weight: 3, partMax: 0.1, underWayMax: 256, waitingMax: 1_024 },
  probesOfAddress: { underWayMax: 16, waitingMax: 64 },
} as const;

const probePaths: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/ping']);

/** Of what all visitors use: who uses so much of it is among the reasons why they use too much. */
const greedyPart = 0.05;

/** Characters of the keys whose holders are known; a flood of others forgets the oldest. */
const keysSizeMax = 2_000_000;
/** The same of networks. */
const networksSizeMax = 1_000_000;

/** Whose share it is, as far as its key says. */
interface ShareHolder {
  readonly tenant: string;
  readonly application: string;
  readonly isOfServer: boolean;
  /** From which its key came last. */
  address: string;
}

export interface RequestClient {
  readonly address: string;
  /** The text of its key. */
  readonly key: string | undefined;
  /** How it is ended when it waits for its client and others that have less wait for its room. */
  readonly slow?: Slow;
  /** Its target, as it was sent. */
  readonly url: string | undefined;
}

export interface Shares {
  /** Calls `begin` or `refuse`, at once or later. The result withdraws what still waits. */
  enter(
    sending: RequestClient,
    begin: (share: RequestShare) => void,
    refuse: (error: VaultError) => void,
  ): () => void;
  /** Charges an address for a connection. False where it has used more than its part. */
  connect(address: string, ms: number): boolean;
  /** True for an address from which a private or management key has come. */
  isKnown(address: string): boolean;
}

export function createShares(now = () => performance.now()): Shares {
  const admission = new FairAdmission({
    now,
    turnCostMax: turnMsMax,
    waitMsMax,
    limits: shareLimits.all,
  });
  const servers = admission.part(admission.root, 'servers', shareLimits.servers);
  const visitors = admission.part(admission.root, 'visitors', shareLimits.visitors);
  const probes = admission.part(admission.root, 'probes', shareLimits.probes);
  /** Only of keys that were valid. Whoever's they were pays for them until they are refused. */
  const holders = new Recent<ShareHolder>(keysSizeMax);

  /** Networks from which private and management keys have come. */
  const known = new Recent<true>(networksSizeMax);

  function note(holder: ShareHolder | undefined, { address }: RequestClient): void {
    if (!holder?.isOfServer || holder.address === address) return;
    holder.address = address;
    known.set(networkOf(address), true);
  }

  function partyOf(
    holder: ShareHolder | undefined,
    { address, key, url = '' }: RequestClient,
  ): Party {
    const network = networkOf(address);
    if (holder === undefined) {
      if (key === undefined && probePaths.has(url)) {
        return admission.part(probes, network, shareLimits.probesOfAddress);
      }
      const ofAddress = admission.part(visitors, network, shareLimits.address);
      const name = key === undefined ? 'no key' : 'unknown key';
      return admission.part(ofAddress, name, shareLimits.unsettled);
    }
    const { tenant, application } = holder;
    if (holder.isOfServer) {
      const ofTenant = admission.part(servers, tenant, shareLimits.tenant);
      return admission.part(ofTenant, key ?? application, shareLimits.key);
    }
    const ofTenant = admission.part(visitors, tenant, shareLimits.visitorsOfTenant);
    return admission.part(ofTenant, `${application} ${network}`, shareLimits.address);
  }

  function shareOf(
    admitted: AdmittedEntrant,
    sending: RequestClient,
    first: ShareHolder | undefined,
  ): RequestShare {
    const { key } = sending;
    let hasLeft = false;
    let isDone = false;
    return {
      charge: (ms) => admitted.charge(ms),
      hold: (bytes) => {
        if (!admitted.hold(bytes)) throw tooMany('Too much is being sent at once');
      },
      holdResponse: (bytes) => void admitted.hold(bytes, false),
      turn: () =>
        admitted.next()?.then((refusal) => {
          if (refusal) throw refused(refusal);
        }),
      turnOfPart: async () => {
        for (;;) {
          const refusal = await admitted.next();
          if (refusal === undefined) return;
          if (refusal !== 'waited too long') throw refused(refusal);
        }
      },
      settle: (caller) => {
        if (caller ? isOf(caller, first) : first === undefined) return;
        const holder = caller && holderOf(caller);
        if (key !== undefined) {
          if (holder) holders.set(key, holder);
          else holders.delete(key);
        }
        note(holder, sending);
        admitted.move(partyOf(holder, sending));
      },
      leave: () => {
        admitted.withdraw();
        hasLeft = true;
        if (isDone) admitted.end();
      },
      done: () => {
        isDone = true;
        if (hasLeft) admitted.end();
      },
    };
  }

  return {
    enter: (sending, begin, refuse) => {
      const { key } = sending;
      const holder = key === undefined ? undefined : holders.get(key);
      note(holder, sending);
      return admission.enter(
        partyOf(holder, sending),
        (admitted) => {
          admitted.slow = sending.slow;
          begin(shareOf(admitted, sending, holder));
        },
        (refusal) => refuse(refused(refusal)),
      );
    },
    isKnown: (address) => known.get(networkOf(address)) === true,
    connect: (address, ms) => {
      const network = networkOf(address);
      if (known.get(network)) {
        // Servers that keep no connection use none of the part that visitors have.
        admission.charge(
          admission.part(servers, `connections of ${network}`, shareLimits.tenant),
          ms,
        );
        return true;
      }
      const party = admission.part(visitors, network, shareLimits.address);
      admission.charge(party, ms);
      if (!admission.isOver(party)) return true;
      return party.used(now()) < visitors.used(now()) * greedyPart;
    },
  };
}

function holderOf(caller: Caller): ShareHolder {
  const { tenant, application } = caller;
  return { tenant: tenant.id, application, isOfServer: isOfServer(caller), address: '' };
}

function isOf(caller: Caller, known: ShareHolder | undefined): boolean {
  return known?.tenant === caller.tenant.id && known.application === caller.application;
}

/** In seconds; the share of a caller that waits that long has room again. */
const retryAfter = 1;

function refused(refusal: AdmissionRefusal): VaultError {
  if (refusal === 'ended') return connectionEnded();
  return tooMany(
    refusal === 'too many wait'
      ? 'Too many requests of this caller wait'
      : 'The vault is busy, and this caller has used its share of it',
  );
}

function tooMany(reason: string): VaultError {
  return new VaultError('too_many_requests', {
    public: `${reason}; try again in ${retryAfter} s.`,
    headers: { 'retry-after': String(retryAfter) },
  });
}
