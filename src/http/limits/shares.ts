/** What each caller may have of a thread's processor time, memory and slots: the policy of admission to all routes. */

import { setImmediate } from 'node:timers/promises';
import {
  type AdmissionRefusal,
  type AdmittedEntrant,
  FairAdmission,
  type Party,
} from '../../base/admission.ts';
import { second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { LruCache } from '../../base/lru-cache.ts';
import { networkOf, networksOf } from '../../base/network.ts';
import { type SlowClient, SlowClients, type Watched } from '../../base/slow-clients.ts';
import { type Caller, isOfServer } from '../../rules/caller.ts';
import { connectionEnded } from '../protocol/body.ts';
import type { RequestShare } from '../protocol/request-share.ts';
import { PartRows } from './part-rows.ts';

/** Estimated milliseconds of work that begin in one turn of the event loop. */
const turnMsMax = 2;

/** How long a part of a stream takes. Of a party without competitors, large parts cost less in all. */
const partMs = { shared: 2, alone: 16 } as const;

/** How long a request waits for its turn before it is refused. */
export const waitMsMax = 10 * second;

/** The part of a thread that callers without a private or management key have while others use it. */
const visitorsPartMax = 0.25;

const mebibyte = 1_048_576;

/** Requests under way, and bytes of bodies that arrive and of responses that leave, on each thread. */
export const shareLimits = {
  all: { heldMax: 128 * mebibyte, waitingMax: 16_384 },
  /** Private and management keys. */
  serverKeys: { weight: 3 },
  tenant: { heldMax: 96 * mebibyte },
  key: { heldMax: 64 * mebibyte },
  /** Public keys, sessions, proxies that require no key, and addresses without a valid key. */
  visitors: {
    weight: 1,
    partMax: visitorsPartMax,
    underWayMax: 1_024,
    waitingMax: 8_192,
    heldMax: 32 * mebibyte,
  },
  /** The visitors of one tenant. */
  visitorsOfTenant: { underWayMax: 512, heldMax: 16 * mebibyte },
  /** All IPv6 networks that one customer of a provider may have. */
  site: { underWayMax: 128, waitingMax: 2_048, heldMax: 12 * mebibyte },
  address: { underWayMax: 64, waitingMax: 1_024, heldMax: 8 * mebibyte },
  /** Of an address: what came without a key does not hold up a key that is seen for the first time. */
  unsettled: {},
  /** Requests of orchestrators, which would restart a server that lets them wait. */
  healthChecks: { weight: 3, partMax: 0.1, underWayMax: 256, waitingMax: 1_024 },
  healthChecksOfAddress: { underWayMax: 16, waitingMax: 64 },
} as const;

const healthPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/ping']);

/** A visitor that uses this part of what all visitors use counts as a cause of their overuse. */
const greedyPart = 0.05;

/** Characters of the keys whose holders are known; a flood of unknown keys evicts the oldest. */
const keysSizeMax = 2_000_000;
/** The same of networks. */
const networksSizeMax = 1_000_000;

/** The holder of a share, as far as its key identifies it. */
interface ShareHolder {
  readonly tenant: string;
  /** The id of the key, never the key itself; for visitors the id of their application. */
  readonly name: string;
  readonly isOfServer: boolean;
  /** From which its key came last, and its party there. */
  address: string;
  party: Party | undefined;
}

export interface RequestClient extends SlowClient {
  readonly address: string;
  /** The key as it was sent. */
  readonly key: string | undefined;
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
  /** Charges an address for a connection, or for what it sends ahead. False where it has used more than its part. */
  connect(address: string, ms: number): boolean;
  /** True for an address from which a private or management key has come. */
  isKnown(address: string): boolean;
}

export function createShares(now = () => performance.now()): Shares {
  const slowClients = new SlowClients(now);
  const admission = new FairAdmission({
    now,
    turnCostMax: turnMsMax,
    waitMsMax,
    limits: shareLimits.all,
    reclaim: slowClients.reclaim,
  });
  const { root } = admission;
  const serverKeys = admission.part(root, 'server keys', shareLimits.serverKeys);
  const visitors = admission.part(root, 'visitors', shareLimits.visitors);
  const healthChecks = admission.part(root, 'health checks', shareLimits.healthChecks);
  /** By the strings of keys that were valid. The holder pays for requests with the key until the key is refused. */
  const holders = new LruCache<ShareHolder>(keysSizeMax);
  /** Networks from which private and management keys have come. */
  const known = new LruCache<true>(networksSizeMax);

  /** The party of an address below another one, with its site between them where it is not the address itself. */
  function partOf(above: Party, { address, prefix = '' }: { address: string; prefix?: string }) {
    const { network, site } = networksOf(address);
    const ofSite = network === site ? above : admission.part(above, site, shareLimits.site);
    const limits = above === healthChecks ? shareLimits.healthChecksOfAddress : shareLimits.address;
    return admission.part(ofSite, prefix + network, limits);
  }

  function partyOf(holder: ShareHolder | undefined, client: RequestClient): Party {
    const { address } = client;
    if (holder === undefined) return unsettledParty(client);
    const isElsewhere = holder.address !== address;
    if (isElsewhere && holder.isOfServer) known.set(networkOf(address), true);
    holder.address = address;
    if (!holder.party?.isKnown || (isElsewhere && !holder.isOfServer)) {
      holder.party = settledParty(holder);
    }
    return holder.party;
  }

  function unsettledParty({ address, key, url = '' }: RequestClient): Party {
    if (key === undefined && healthPaths.has(url)) return partOf(healthChecks, { address });
    const name = key === undefined ? 'no key' : 'unknown key';
    return admission.part(partOf(visitors, { address }), name, shareLimits.unsettled);
  }

  function settledParty({ tenant, name, isOfServer: isServer, address }: ShareHolder): Party {
    if (isServer) {
      const ofTenant = admission.part(serverKeys, tenant, shareLimits.tenant);
      return admission.part(ofTenant, name, shareLimits.key);
    }
    const ofTenant = admission.part(visitors, tenant, shareLimits.visitorsOfTenant);
    return partOf(ofTenant, { address, prefix: `${name} ` });
  }

  function settle(
    admitted: AdmittedEntrant,
    client: RequestClient,
    caller: Caller | undefined,
  ): void {
    const { key } = client;
    const holder = caller && holderOf(caller);
    // A proxy that requires no key ignores one that is sent.
    if (key !== undefined && caller?.anonymous === undefined) {
      if (holder) holders.set(key, holder);
      else holders.delete(key);
    }
    const party = partyOf(holder, client);
    if (party === admitted.party) return;
    admitted.move(party);
    if (caller?.anonymous !== undefined && isCrowded(party)) throw refused('too many wait');
  }

  return {
    enter: (client, begin, refuse) => {
      const { key } = client;
      const holder = key === undefined ? undefined : holders.get(key);
      return admission.enter(partyOf(holder, client), {
        begin: (admitted) =>
          begin(
            new ShareOfRequest({
              admitted,
              client,
              holder,
              slowClients,
              settle,
              admission,
              watched: slowClients.watch(admitted, client),
            }),
          ),
        refuse: (refusal) => refuse(refused(refusal)),
      });
    },
    isKnown: (address) => known.get(networkOf(address)) === true,
    connect: (address, ms) => {
      const network = networkOf(address);
      if (known.get(network)) {
        // Servers that hold no connection use none of the part that visitors have.
        const name = `connections of ${network}`;
        admission.charge(admission.part(serverKeys, name, shareLimits.tenant), ms);
        return true;
      }
      const party = partOf(visitors, { address });
      admission.charge(party, ms);
      if (!admission.isOver(party)) return true;
      return admission.usedBy(party) < admission.usedBy(visitors) * greedyPart;
    },
  };
}

/** True where a request was moved to a party that has more under way than it may begin. */
function isCrowded(party: Party): boolean {
  for (let one: Party | undefined = party; one; one = one.parent) {
    if (one.underWay > one.underWayMax) return true;
  }
  return false;
}

interface ShareUnderWay {
  readonly admission: FairAdmission;
  readonly admitted: AdmittedEntrant;
  readonly client: RequestClient;
  /** As far as it was known before. */
  readonly holder: ShareHolder | undefined;
  readonly slowClients: SlowClients;
  readonly watched: Watched;
  readonly settle: (
    admitted: AdmittedEntrant,
    client: RequestClient,
    caller: Caller | undefined,
  ) => void;
}

class ShareOfRequest implements RequestShare {
  readonly #admitted: AdmittedEntrant;
  /**
   * Until the request is over. Timers of its connection keep the share, by the request they were set in; with it they
   * would keep the request, its body and its response, until V8 takes them for old.
   */
  #underWay: ShareUnderWay | undefined;
  #hasLeft = false;
  #isDone = false;
  readonly #admission: FairAdmission;
  #partRows: PartRows | undefined;

  constructor(underWay: ShareUnderWay) {
    this.#admitted = underWay.admitted;
    this.#admission = underWay.admission;
    this.#underWay = underWay;
  }

  charge(ms: number): void {
    this.#admitted.charge(ms);
  }

  hold(bytes: number): void {
    if (!this.#admitted.hold(bytes)) throw tooMany('Too much is being sent at once');
  }

  holdResponse(bytes: number): void {
    this.#admitted.hold(bytes, false);
  }

  turn(): Promise<void> | undefined {
    return this.#admitted.finish()?.then((refusal) => {
      if (refusal) throw refused(refusal);
    });
  }

  async turnOfPart(): Promise<void> {
    for (;;) {
      const refusal = await this.#admitted.next();
      if (refusal === undefined) return;
      if (refusal !== 'waited too long') throw refused(refusal);
    }
  }

  nextStep(): Promise<void> | undefined {
    return this.#admitted.continue()?.then((refusal) => this.#stepAfter(refusal));
  }

  /** There is no room to wait, or the wait was long: it waits again, because no other work could be done for it. */
  async #stepAfter(first: AdmissionRefusal | undefined): Promise<void> {
    for (let refusal = first; refusal; refusal = await this.#admitted.continue()) {
      if (refusal === 'too many wait') await setImmediate();
    }
  }

  get isAlone(): boolean {
    return !this.#admission.isShared;
  }

  rowsOfPart(rowsMax: number): number {
    this.#partRows ??= new PartRows();
    return this.#partRows.next({
      cost: this.#admitted.cost,
      msMax: this.isAlone ? partMs.alone : partMs.shared,
      rowsMax,
    });
  }

  settle(caller: Caller | undefined): void {
    if (this.#underWay === undefined) return;
    const { admitted, client, holder, settle } = this.#underWay;
    if (caller ? isOf(caller, holder) : holder === undefined) return;
    settle(admitted, client, caller);
  }

  leave(): void {
    this.#hasLeft = true;
    if (this.#isDone) this.#end();
    else this.#admitted.withdraw();
  }

  done(): void {
    this.#isDone = true;
    if (this.#hasLeft) this.#end();
  }

  #end(): void {
    if (this.#underWay === undefined) return;
    const { slowClients, watched } = this.#underWay;
    slowClients.unwatch(watched);
    this.#admitted.end();
    this.#underWay = undefined;
  }
}

function holderOf(caller: Caller): ShareHolder {
  const name = nameOf(caller);
  const isServer = isOfServer(caller);
  return { tenant: caller.tenant.id, name, isOfServer: isServer, address: '', party: undefined };
}

/** Sessions share what their application has: a visitor could create any number of them. */
function nameOf(caller: Caller): string {
  const { key, application, anonymous } = caller;
  if (anonymous) return `proxies of ${application}`;
  return (isOfServer(caller) ? key : undefined) ?? application;
}

function isOf(caller: Caller, known: ShareHolder | undefined): boolean {
  if (known === undefined || caller.anonymous !== undefined) return false;
  return known.name === nameOf(caller) && known.tenant === caller.tenant.id;
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
