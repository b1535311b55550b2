/**
 * Fair admission, for what several parties want at the same time: which request is next, how many may be under way,
 * how many may wait and for how long. Parties form a tree, such as all callers, a tenant and its keys. Each level is
 * fair. No operation looks at all parties: attackers choose how many there are.
 */
import { Heap } from './heap.ts';
import { LinkedList, type ListLink } from './linked-list.ts';

export interface PartyLimits {
  /** With 2 it may use twice as much as each of its siblings. */
  readonly weight?: number;
  readonly underWayMax?: number;
  /** Of its own or, where it has parts, of all of them together. */
  readonly waitingMax?: number;
  /** Units such as bytes, held at the same time. */
  readonly heldMax?: number;
  /** The part of all time, from 0 to 1, that it may use while one of its siblings is active. For few siblings. */
  readonly partMax?: number;
}

export interface FairAdmissionOptions {
  /** Milliseconds that only grow. */
  readonly now: () => number;
  /** Cost that may begin in one turn of the event loop; without it, as much as limits allow. */
  readonly turnCostMax?: number;
  readonly waitMsMax: number;
  /** Of the root. */
  readonly limits: PartyLimits;
  /** Parties known by name; the parts that come after them share one party. */
  readonly partiesMax?: number;
  /** Asked where a limit that several parties share keeps one of them from going on. */
  readonly reclaim?: Reclaim;
}

/** Room that is needed by a party and limited by `full`, which is above it. */
export interface RoomNeeded {
  readonly party: Party;
  readonly full: Party;
  readonly what: 'underWay' | 'held';
  readonly amount: number;
}

/** Takes room from parties that have more. @returns false where nothing can be taken. */
export type Reclaim = (needed: RoomNeeded) => boolean;

/** Why a request is not admitted. `ended`: it was withdrawn. */
export type AdmissionRefusal = 'too many wait' | 'waited too long' | 'ended';

export interface Entrant {
  readonly begin: (admitted: AdmittedEntrant) => void;
  readonly refuse: (refusal: AdmissionRefusal) => void;
}

/** Usage is forgotten at this rate: two thirds of it in this time. */
const forgetMs = 500;
/** A decay factor is used for this long before it is computed again. */
const stepMs = 2;
/** Usage is scaled down before it exceeds what a double represents exactly enough. */
const growthMax = 1e30;
/** A party that did something within this time keeps its part from others. */
const activeMs = 1_000;
/** One delay of the whole process must not count as one party's work. */
const costMax = 250;
/** The least that a request costs: reading it and writing its response are not measured. */
const leastCost = 0.1;
/** How quickly the usual cost of a party follows its real costs. */
const learning = 0.2;
/** A request that costs more than expected is charged in steps of this. */
const chargeStep = 0.25;

const partiesMaxDefault = 20_000;
/** Where no party can be added, so many are checked for being idle. */
const idleChecksMax = 8;
const withoutLimit = Number.POSITIVE_INFINITY;

/** How often room is sought for requests that wait for it. */
const reclaimMs = 20;
const retryMs = 5;
/** How long two parties count as active at the same time. */
const sharedMs = 500;
/** A party that is alone is served best many at a time: so much more may begin in one turn. */
const aloneFactor = 3;

interface Waiting {
  readonly party: Party;
  /** It is under way already: what it holds is freed only when it goes on. */
  readonly isUnderWay: boolean;
  readonly until: number;
  readonly begin: (prepaid: number) => void;
  readonly refuse: (refusal: AdmissionRefusal) => void;
  links: readonly [ListLink<Waiting>, ListLink<Waiting>] | undefined;
}

/** The parts of a party in which requests wait. */
class WaitingParts {
  /** Those with requests that are under way, and those with requests that may begin; the least used first. */
  readonly resuming = new Heap(usedLess);
  readonly entering = new Heap(usedLess);
  /** Those with requests that wait to begin; the part with most of them first. */
  readonly longest = new Heap<Party>((a, b) => a.entering > b.entering);
}

/** Created by {@link FairAdmission.part} alone. */
export class Party {
  readonly name: string;
  readonly parent: Party | undefined;
  readonly parts = new Map<string, Party>();
  readonly weight: number;
  readonly underWayMax: number;
  readonly waitingMax: number;
  readonly heldMax: number;
  readonly partMax: number;
  /** Counts are of itself and all its parts. */
  underWay = 0;
  held = 0;
  /** Waiting to begin, and waiting to go on. */
  entering = 0;
  resuming = 0;
  /** Cost, weighted by its age: the newest weighs most, so that older costs need no change. */
  used = 0;
  activeAt = Number.NEGATIVE_INFINITY;
  /** It is not forgotten before it has done anything. */
  readonly createdAt: number;
  /** What one of its requests has usually cost lately. */
  usualCost = leastCost;
  /** False once it was forgotten: its parent has, or will have, another part of this name. */
  isKnown = true;
  /** Its own, in their order. */
  readonly queues = { entering: new LinkedList<Waiting>(), resuming: new LinkedList<Waiting>() };
  waitingParts: WaitingParts | undefined;
  /** Among all parties. */
  link: ListLink<Party> | undefined;

  constructor(
    name: string,
    { parent, limits, now }: { parent?: Party; limits: PartyLimits; now: number },
  ) {
    this.name = name;
    this.parent = parent;
    this.weight = limits.weight ?? 1;
    this.underWayMax = limits.underWayMax ?? withoutLimit;
    this.waitingMax = limits.waitingMax ?? withoutLimit;
    this.heldMax = limits.heldMax ?? withoutLimit;
    this.partMax = limits.partMax ?? 1;
    this.createdAt = now;
  }

  get waiting(): number {
    return this.entering + this.resuming;
  }

  get isFull(): boolean {
    return this.underWay >= this.underWayMax || this.held > this.heldMax;
  }

  get isIdle(): boolean {
    return this.underWay === 0 && this.waiting === 0 && this.held === 0 && this.parts.size === 0;
  }
}

/** A request from its admission to its end. */
export class AdmittedEntrant {
  readonly #admission: FairAdmission;
  readonly since: number;
  #party: Party;
  #cost = 0;
  /** The part of it that its party has not been charged. */
  #uncharged = 0;
  /** What it was expected to cost, which its party was charged at that time. */
  #prepaid: number;
  #prepaidAt: number;
  #held = 0;
  #isOver = false;
  #isWithdrawn = false;
  #stopWaiting: (() => void) | undefined;

  /** Created by {@link FairAdmission} alone. */
  constructor(admission: FairAdmission, party: Party, { now, charged }: Beginning) {
    this.#admission = admission;
    this.#party = party;
    this.since = now;
    this.#prepaid = charged;
    this.#prepaidAt = now;
  }

  get party(): Party {
    return this.#party;
  }

  get held(): number {
    return this.#held;
  }

  /** What it has really cost. It is also charged what it costs after its end. */
  charge(cost: number): void {
    if (cost <= 0) return;
    this.#spend(cost);
    if (this.#isOver || this.#uncharged - this.#prepaidLeft() >= chargeStep) this.#chargeRest();
  }

  /** False where its party would hold too much; then nothing more is held. */
  hold(amount: number, isLimited = true): boolean {
    if (this.#isOver) return true;
    if (isLimited && !this.#admission.makeRoom(this.#party, amount)) return false;
    this.#held += amount;
    this.#admission.count(this.#party, 'held', amount);
    return true;
  }

  /** It turns out to be another party's. What it has cost so far is charged to that party too. */
  move(party: Party): void {
    if (this.#isOver || party === this.#party) return;
    const admission = this.#admission;
    this.#chargeRest();
    admission.count(this.#party, 'underWay', -1);
    admission.count(this.#party, 'held', -this.#held);
    this.#party = party;
    admission.count(party, 'underWay', 1);
    admission.count(party, 'held', this.#held);
    admission.charge(party, this.#cost);
  }

  /** Waits until it may go on, as it did to begin; `undefined` where that is now. */
  next(): Promise<AdmissionRefusal | undefined> | undefined {
    if (this.#isWithdrawn) return Promise.resolve('ended');
    if (this.#admission.mayGoOn(this.#party)) return undefined;
    return new Promise((resolve) => {
      const begin = (prepaid: number) => {
        this.#prepaid = this.#prepaidLeft() + prepaid;
        this.#prepaidAt = this.#admission.now;
        resolve(undefined);
      };
      const withdraw = this.#admission.again(this.#party, { begin, refuse: resolve });
      this.#stopWaiting = () => {
        withdraw();
        resolve('ended');
      };
    });
  }

  /** It may not go on any more. Where it waits, that is refused, so that what it holds is freed soon. */
  withdraw(): void {
    this.#isWithdrawn = true;
    this.#stopWaiting?.();
  }

  /** Withdraws it and gives back what it holds. It stays under way, and is charged, until its work has ended. */
  giveBack(): void {
    this.withdraw();
    this.#admission.count(this.#party, 'held', -this.#held);
    this.#held = 0;
  }

  /** May be called more than once. */
  end(): void {
    if (this.#isOver) return;
    // However little they cost, only a limited number begin in one turn.
    this.#spend(Math.max(0, leastCost - this.#cost));
    this.#chargeRest();
    this.giveBack();
    this.#isOver = true;
    this.#admission.count(this.#party, 'underWay', -1);
    this.#party.usualCost += learning * (this.#cost - this.#party.usualCost);
    this.#admission.freed(this.#party);
  }

  #chargeRest(): void {
    this.#admission.charge(this.#party, this.#uncharged - this.#prepaidLeft());
    this.#uncharged = 0;
    this.#prepaid = 0;
  }

  #spend(cost: number): void {
    this.#cost += cost;
    this.#uncharged += cost;
  }

  /**
   * What was prepaid is forgotten like all usage. Were all of it given back later, or did all of it pay for later
   * work, a request that waits for its client would take the usage of others from what they share.
   */
  #prepaidLeft(): number {
    if (this.#prepaid === 0) return 0;
    return this.#prepaid * Math.exp((this.#prepaidAt - this.#admission.now) / forgetMs);
  }
}

interface Beginning {
  readonly now: number;
  readonly charged: number;
}

export class FairAdmission {
  readonly root: Party;
  readonly #options: FairAdmissionOptions;
  readonly #partiesMax: number;
  readonly #turnCostMax: number;
  /** All parties but the root. Those that are checked for being idle go to its end. */
  readonly #parties = new LinkedList<Party>();
  /** All requests that wait, the longest wait first. */
  readonly #waiting = new LinkedList<Waiting>();
  /** Parties that are full while requests below them wait. */
  readonly #blocking = new Set<Party>();
  /** What a cost weighs that is added to usage now. */
  #growth = 1;
  #grownAt: number;
  #growthSince: number;
  #turnCost = 0;
  #latest: Party | undefined;
  #sharedUntil = Number.NEGATIVE_INFINITY;
  #isTurnScheduled = false;
  #reclaimedAt = Number.NEGATIVE_INFINITY;
  #reclaims = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: FairAdmissionOptions) {
    const now = options.now();
    this.#options = options;
    this.#partiesMax = options.partiesMax ?? partiesMaxDefault;
    this.#turnCostMax = options.turnCostMax ?? withoutLimit;
    this.#grownAt = now;
    this.#growthSince = now;
    this.root = new Party('', { limits: options.limits, now });
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get now(): number {
    return this.#options.now();
  }

  /**
   * The part of a party by its name; it is created where there is none. Parts of the root are never forgotten, so
   * callers never choose how many there are.
   */
  part(parent: Party, name: string, limits: PartyLimits): Party {
    const known = parent.parts.get(name);
    if (known) return known;
    const now = this.#options.now();
    if (this.#parties.size + 1 >= this.#partiesMax) this.#forgetIdle(parent, now);
    const own = this.#parties.size + 1 >= this.#partiesMax ? 'others' : name;
    const shared = parent.parts.get(own);
    if (shared) return shared;
    const party = new Party(own, { parent, limits, now });
    parent.parts.set(own, party);
    party.link = this.#parties.add(party);
    return party;
  }

  /** What the party has used lately: one that always uses a part of the time has that part of {@link forgetMs}. */
  usedBy(party: Party): number {
    return party.used / this.#growthAt(this.#options.now());
  }

  /**
   * Calls `begin`, at once or later, or `refuse`. What was admitted must be ended by the caller.
   * @returns a function that withdraws the entrant for as long as it waits.
   */
  enter(party: Party, { begin, refuse }: Entrant): () => void {
    const now = this.#options.now();
    if (this.#mayStart(party, { now, isUnderWay: false })) {
      const { usualCost } = party;
      this.#use(party, usualCost, now);
      this.count(party, 'underWay', 1);
      begin(new AdmittedEntrant(this, party, { now, charged: usualCost }));
      return nothing;
    }
    const start = (charged: number) => {
      this.count(party, 'underWay', 1);
      begin(new AdmittedEntrant(this, party, { now: this.#options.now(), charged }));
    };
    return this.#wait({ party, begin: start, refuse, isUnderWay: false, now });
  }

  /** Whether what is under way may go on at once. */
  mayGoOn(party: Party): boolean {
    return this.#mayStart(party, { now: this.#options.now(), isUnderWay: true });
  }

  /** As {@link enter} for what is under way and may not go on at once. */
  again(party: Party, waiting: Pick<Waiting, 'begin' | 'refuse'>): () => void {
    return this.#wait({ ...waiting, party, isUnderWay: true, now: this.#options.now() });
  }

  /** A negative cost gives back what was charged too much. */
  charge(party: Party, cost: number): void {
    this.#use(party, Math.min(cost, costMax), this.#options.now());
  }

  count(party: Party, what: RoomNeeded['what'], change: number): void {
    if (change === 0) return;
    for (let one: Party | undefined = party; one; one = one.parent) {
      one[what] += change;
      if (one.entering > 0 && one !== party && one.isFull) this.#blocking.add(one);
    }
    if (this.#waiting.size > 0) arrange(party);
  }

  /** A request ended: others that wait may begin. */
  freed(party: Party): void {
    this.#notice(party, this.#options.now());
    if (this.#waiting.size > 0) this.#scheduleTurn();
  }

  /** Whether the party may hold so much more, where need be after it was taken from parties that hold more. */
  makeRoom(party: Party, amount: number): boolean {
    for (let one: Party | undefined = party; one; one = one.parent) {
      if (one.held + amount <= one.heldMax) continue;
      if (one === party || !this.#options.reclaim) return false;
      if (!this.#options.reclaim({ party, full: one, what: 'held', amount })) return false;
      if (one.held + amount > one.heldMax) return false;
    }
    return true;
  }

  /** Whether the party, or one that it is a part of, has used more than its part while others are active. */
  isOver(party: Party): boolean {
    const now = this.#options.now();
    for (let one: Party | undefined = party; one; one = one.parent) {
      if (this.#isOverPart(one, now)) return true;
    }
    return false;
  }

  /** At once where no request waits and there is room in this turn of the event loop. */
  #mayStart(party: Party, { now, isUnderWay }: { now: number; isUnderWay: boolean }): boolean {
    this.#notice(party, now);
    let isRoom = this.#waiting.size === 0;
    for (let one: Party | undefined = party; one; one = one.parent) {
      one.activeAt = now;
      if ((!isUnderWay && one.isFull) || this.#isOverPart(one, now)) isRoom = false;
    }
    if (!isRoom) return false;
    const { usualCost } = party;
    if (this.#turnCost > 0 && this.#turnCost + usualCost > this.#turnCostMaxAt(now)) return false;
    this.#spend(usualCost);
    return true;
  }

  #notice(party: Party, now: number): void {
    if (party === this.#latest) return;
    this.#latest = party;
    this.#sharedUntil = now + sharedMs;
  }

  /** The usage of all parties decays alike, so new costs weigh more instead, and the order of parties stays. */
  #growthAt(now: number): number {
    if (now - this.#grownAt < stepMs) return this.#growth;
    this.#grownAt = now;
    this.#growth = Math.exp((now - this.#growthSince) / forgetMs);
    if (this.#growth > growthMax) {
      this.root.used /= this.#growth;
      for (const party of this.#parties) party.used /= this.#growth;
      this.#growthSince = now;
      this.#growth = 1;
    }
    return this.#growth;
  }

  #use(party: Party, cost: number, now: number): void {
    const used = cost * this.#growthAt(now);
    for (let one: Party | undefined = party; one; one = one.parent) {
      one.used = Math.max(0, one.used + used);
      one.activeAt = now;
    }
    if (this.#waiting.size > 0) arrange(party);
  }

  #isOverPart(party: Party, now: number): boolean {
    const { partMax, parent } = party;
    if (partMax === 1 || parent === undefined) return false;
    if (party.used <= partMax * forgetMs * this.#growthAt(now)) return false;
    for (const other of parent.parts.values()) {
      if (other !== party && now - other.activeAt < activeMs) return true;
    }
    return false;
  }

  #turnCostMaxAt(now: number): number {
    return now < this.#sharedUntil ? this.#turnCostMax : this.#turnCostMax * aloneFactor;
  }

  #spend(cost: number): void {
    if (this.#turnCostMax === withoutLimit) return;
    this.#turnCost += cost;
    this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled) return;
    this.#isTurnScheduled = true;
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#isTurnScheduled = false;
    this.#turnCost = 0;
    if (this.#waiting.size > 0) this.#serve();
  };

  #wait(request: Omit<Waiting, 'until' | 'links'> & { readonly now: number }): () => void {
    const { party, now, refuse } = request;
    for (let one: Party | undefined = party; one; one = one.parent) {
      if (one.waiting < one.waitingMax || this.#refuseFor(party, one)) continue;
      refuse('too many wait');
      return nothing;
    }
    const waiting: Waiting = {
      ...request,
      until: now + this.#options.waitMsMax,
      links: undefined,
    };
    waiting.links = [this.#waiting.add(waiting), queueOf(waiting).add(waiting)];
    const kind = waiting.isUnderWay ? 'resuming' : 'entering';
    for (let one: Party | undefined = party; one; one = one.parent) {
      one[kind] += 1;
      if (kind === 'entering' && one.isFull && one !== party) this.#blocking.add(one);
    }
    arrange(party);
    this.#scheduleTurn();
    return () => this.#leave(waiting);
  }

  #leave(waiting: Waiting): void {
    if (!waiting.links || !this.#waiting.remove(waiting.links[0])) return;
    queueOf(waiting).remove(waiting.links[1]);
    const kind = waiting.isUnderWay ? 'resuming' : 'entering';
    for (let one: Party | undefined = waiting.party; one; one = one.parent) one[kind] -= 1;
    arrange(waiting.party);
  }

  /** As many as one turn has room for, each from the party that has used least. */
  #serve(): void {
    const now = this.#options.now();
    const turnCostMax = this.#turnCostMaxAt(now);
    this.#refuseLate(now);
    this.#reclaimRoom(now);
    while (this.#waiting.size > 0 && this.#turnCost < turnCostMax) {
      const next = this.#nextIn(this.root, { now, mayEnter: !this.root.isFull });
      if (next === undefined) {
        this.#retryLater();
        return;
      }
      this.#leave(next);
      const { usualCost } = next.party;
      this.#spend(usualCost);
      // Charged now, so that the next one is another party's even where all begin before any has cost anything.
      this.#use(next.party, usualCost, now);
      next.begin(usualCost);
    }
    if (this.#waiting.size > 0) this.#scheduleTurn();
  }

  #nextIn(party: Party, sought: { now: number; mayEnter: boolean }): Waiting | undefined {
    const own =
      party.queues.resuming.first ?? (sought.mayEnter ? party.queues.entering.first : undefined);
    if (own || !party.waitingParts) return own;
    const { resuming, entering } = party.waitingParts;
    let part = this.#firstWithinPart(resuming, sought.now);
    if (sought.mayEnter) {
      const other = this.#firstWithinPart(entering, sought.now);
      if (!part || (other && usedLess(other, part))) part = other;
    }
    return part && this.#nextIn(part, { ...sought, mayEnter: sought.mayEnter && !part.isFull });
  }

  #firstWithinPart(parts: Heap<Party>, now: number): Party | undefined {
    const over: Party[] = [];
    while (parts.first && this.#isOverPart(parts.first, now)) {
      over.push(parts.first);
      parts.delete(parts.first);
    }
    const { first } = parts;
    for (const one of over) parts.put(one);
    return first;
  }

  #refuseLate(now: number): void {
    for (let late = this.#waiting.first; late && late.until <= now; late = this.#waiting.first) {
      this.#leave(late);
      late.refuse('waited too long');
    }
  }

  /** For one of the parties below each full one, another one each time. */
  #reclaimRoom(now: number): void {
    const { reclaim } = this.#options;
    if (!reclaim || this.#blocking.size === 0 || now - this.#reclaimedAt < reclaimMs) return;
    this.#reclaimedAt = now;
    this.#reclaims += 1;
    for (const full of this.#blocking) {
      if (!full.isFull || full.entering === 0) this.#blocking.delete(full);
      else {
        const party = waitingBelow(full, this.#reclaims);
        const what = full.held > full.heldMax ? 'held' : 'underWay';
        const amount = party.queues.entering.size;
        if (party.isFull || amount === 0) continue;
        reclaim({ party, full, what, amount: what === 'held' ? 1 : amount });
      }
    }
  }

  /** Of the party below the full one of which most requests wait, the longest wait makes room for another party's. */
  #refuseFor(party: Party, full: Party): boolean {
    let most = full;
    while (most.waitingParts?.longest.first) most = most.waitingParts.longest.first;
    const refused = most.queues.entering.first;
    if (most === party || most.entering <= party.waiting || refused === undefined) return false;
    this.#leave(refused);
    refused.refuse('too many wait');
    return true;
  }

  /** What may not begin yet because of its party's usage begins when that is forgotten. */
  #retryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      if (this.#waiting.size > 0) this.#serve();
    }, retryMs).unref();
  }

  /** Neither parts of the root, which those who created them keep, nor the party that gets another part now. */
  #forgetIdle(above: Party, now: number): void {
    for (let checks = 0; checks < idleChecksMax; checks += 1) {
      const party = this.#parties.first;
      if (!party?.link) return;
      this.#parties.remove(party.link);
      const isKept = party === above || party.parent === this.root;
      const since = now - Math.max(party.activeAt, party.createdAt);
      if (!isKept && party.isIdle && since >= activeMs) {
        party.isKnown = false;
        party.parent?.parts.delete(party.name);
      } else party.link = this.#parties.add(party);
    }
  }
}

function nothing(): void {}

function usedLess(a: Party, b: Party): boolean {
  return a.used * b.weight < b.used * a.weight;
}

function queueOf({ party, isUnderWay }: Waiting): LinkedList<Waiting> {
  return isUnderWay ? party.queues.resuming : party.queues.entering;
}

/** Brings the order of the party's and its ancestors' siblings up to date. */
function arrange(party: Party): void {
  for (let one = party; one.parent; one = one.parent) {
    if (one.waiting === 0 && !one.parent.waitingParts) continue;
    one.parent.waitingParts ??= new WaitingParts();
    const { resuming, entering, longest } = one.parent.waitingParts;
    const mayEnter =
      !one.isFull &&
      (one.queues.entering.size > 0 || one.waitingParts?.entering.first !== undefined);
    if (one.resuming > 0) resuming.put(one);
    else resuming.delete(one);
    if (mayEnter) entering.put(one);
    else entering.delete(one);
    if (one.entering > 0) longest.put(one);
    else longest.delete(one);
  }
}

/** A party below in which requests wait to begin; another one for another number. */
function waitingBelow(full: Party, number: number): Party {
  let party = full;
  for (;;) {
    const longest = party.waitingParts?.longest;
    if (!longest || longest.size === 0) return party;
    party = longest.at(number % longest.size) as Party;
  }
}
