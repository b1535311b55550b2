/**
 * Fair admission to a resource that several parties share: which request is next, how many may be in progress, how
 * many may wait, and for how long. Parties form a tree, such as all callers, a tenant, and its keys. Each level is
 * fair. No operation visits all parties, because attackers choose how many there are.
 */
import { Heap } from './heap.ts';
import { LinkedList, type ListLink } from './linked-list.ts';

export interface PartyLimits {
  /** A party with weight 2 may use twice as much as each of its siblings. */
  readonly weight?: number;
  readonly underWayMax?: number;
  /** Requests of the party itself or, if it has parts, of all of them together. */
  readonly waitingMax?: number;
  /** Units such as bytes that the party may hold at the same time. */
  readonly heldMax?: number;
  /**
   * The share of all time, from 0 to 1, that the party may use while one of its siblings is active. For few siblings.
   */
  readonly partMax?: number;
  /**
   * How many requests each of its parts may have under way, as a multiple of those that it has room for. Several parts
   * then leave room for others, however long their requests last. Only with the order `under way`.
   */
  readonly partOfFreeMax?: number;
}

export interface FairAdmissionOptions {
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** Cost that may begin in one turn of the event loop. Without it, only the other limits apply. */
  readonly turnCostMax?: number;
  readonly waitMsMax: number;
  /** Limits of the root. */
  readonly limits: PartyLimits;
  /** Parties that have a record of their own. Parts beyond this number share one party. */
  readonly partiesMax?: number;
  /** Called when a limit that several parties share blocks one of them. */
  readonly reclaim?: Reclaim;
  /**
   * Which party is next: the one that has used least recently, or the one with the fewest requests in progress. Usage
   * is forgotten within seconds, so it says nothing about requests that take minutes and cost nothing while they wait.
   */
  readonly order?: 'used' | 'under way';
}

/** Room that a party needs and that its ancestor `full` lacks. */
export interface RoomNeeded {
  readonly party: Party;
  readonly full: Party;
  readonly what: 'underWay' | 'held';
  readonly amount: number;
}

/** Takes room from parties that have more. @returns false if nothing can be taken. */
export type Reclaim = (needed: RoomNeeded) => boolean;

/** Why a request is not admitted. `ended`: it was withdrawn. */
export type AdmissionRefusal = 'too many wait' | 'waited too long' | 'ended';

export interface Entrant {
  readonly begin: (admitted: AdmittedEntrant) => void;
  readonly refuse: (refusal: AdmissionRefusal) => void;
}

/** Usage decays at this rate: two thirds of it are gone after this time. */
const forgetMs = 500;
/** A decay factor is used for this long before it is computed again. */
const stepMs = 2;
/** Usage is scaled down before it exceeds the range in which a double is exact enough. */
const growthMax = 1e30;
/** A party that was active within this time reserves its share. */
const activeMs = 1_000;
/** A pause of the whole process must not be charged to one party. */
const costMax = 250;
/** The minimum cost of a request: reading it and writing its response are not measured. */
const leastCost = 0.1;
/** How quickly the expected cost of a party follows its real costs. */
const learning = 0.2;
/** A request that costs more than expected is charged in steps of this size. */
const chargeStep = 0.25;

const partiesMaxDefault = 20_000;
/** If no party can be added, this many parties are checked for being idle. */
const idleChecksMax = 8;
const withoutLimit = Number.POSITIVE_INFINITY;

/** How often the admission tries to reclaim room for waiting requests. */
const reclaimMs = 20;
const retryMs = 5;
/** Two parties that were active within this time count as active at the same time. */
const sharedMs = 500;
/** A party without competitors is served best in large batches, so this many times more may begin in one turn. */
const aloneFactor = 3;
/**
 * Of what may begin in a turn while several parties are active, so much may be parts of long work: short requests of
 * others pass several turns.
 */
const partsOfTurn = 0.25;

/**
 * A short request of another party in progress for no longer than this holds long work back. One that takes longer
 * waits for a disk or for another host, and long work does not make it slower.
 */
const shortMs = 20;
/**
 * While a short request of another party is in progress, long work rests for this many times as long as it took. A
 * short request waits several times, for reads and for its commit, and after each wait it would find long work in its
 * way.
 */
const restFactor = 3;
const restMsMax = 50;

/**
 * Whether a request waits to begin, to do the rest of its work after its body has arrived, to begin the next part of
 * long work, or to continue in the middle of one. A part that has begun continues before another one of its party
 * begins: otherwise all of them would end at the same time, and everything that they hold would be there at once.
 */
type WaitingFor = 'begin' | 'rest' | 'part' | 'step';
/** Work that takes turns with other requests until it ends. */
type LongWork = 'part' | 'step';

interface Waiting {
  readonly party: Party;
  readonly waitingFor: WaitingFor;
  /** The expected cost until it ends or waits again. */
  readonly cost: number;
  readonly until: number;
  readonly begin: (prepaid: number) => void;
  readonly refuse: (refusal: AdmissionRefusal) => void;
  links: readonly [ListLink<Waiting>, ListLink<Waiting>] | undefined;
}

/** The parts of a party that have waiting requests. */
class WaitingParts {
  /**
   * Parts with short requests in progress, with long work in progress, and with requests that may begin. The least used
   * part is first.
   */
  readonly finishing: Heap<Party>;
  readonly resuming: Heap<Party>;
  readonly entering: Heap<Party>;
  /** Parts with requests that wait to begin. The part with the most of them is first. */
  readonly longest = new Heap<Party>((a, b) => a.entering > b.entering);

  constructor(isBefore: PartyOrder) {
    this.finishing = new Heap(isBefore);
    this.resuming = new Heap(isBefore);
    this.entering = new Heap(isBefore);
  }
}

type PartyOrder = (a: Party, b: Party) => boolean;

interface NewParty {
  readonly parent?: Party;
  readonly limits: PartyLimits;
  readonly now: number;
  readonly isBefore: PartyOrder;
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
  readonly #partOfFreeMax: number;
  /** Counts include all parts. */
  underWay = 0;
  held = 0;
  /** Requests that wait to begin, short ones that wait to continue, and long work that waits to continue. */
  entering = 0;
  finishing = 0;
  resuming = 0;
  /** Short requests of the party itself that are in progress and hold long work of others back. */
  short = 0;
  /** Cost, weighted by its age: newer costs weigh more, so that older costs need no update. */
  used = 0;
  activeAt = Number.NEGATIVE_INFINITY;
  /** A new party is not removed before it has done anything. */
  readonly createdAt: number;
  /** The recent average cost of one of its requests, or of a step of one that waits for its turn several times. */
  usualCost = leastCost;
  /** False after the party was removed: its parent has, or will have, another part of this name. */
  isKnown = true;
  /** Waiting requests of this party, in their order. */
  readonly queues = {
    begin: new LinkedList<Waiting>(),
    rest: new LinkedList<Waiting>(),
    part: new LinkedList<Waiting>(),
    step: new LinkedList<Waiting>(),
  };
  waitingParts: WaitingParts | undefined;
  /** The order of its parts. */
  readonly isBefore: PartyOrder;
  /** The place of this party in the list of all parties. */
  link: ListLink<Party> | undefined;

  constructor(name: string, { parent, limits, now, isBefore }: NewParty) {
    this.name = name;
    this.parent = parent;
    this.isBefore = isBefore;
    this.weight = limits.weight ?? 1;
    this.underWayMax = limits.underWayMax ?? withoutLimit;
    this.waitingMax = limits.waitingMax ?? withoutLimit;
    this.heldMax = limits.heldMax ?? withoutLimit;
    this.partMax = limits.partMax ?? 1;
    this.#partOfFreeMax = limits.partOfFreeMax ?? withoutLimit;
    this.createdAt = now;
  }

  get waiting(): number {
    return this.entering + this.finishing + this.resuming;
  }

  get isFull(): boolean {
    return this.underWay >= this.underWayMax || this.held > this.heldMax;
  }

  /** Whether the part has as many requests under way as it may, measured by how many more there is room for. */
  isCrowdedBy(part: Party): boolean {
    if (this.#partOfFreeMax === withoutLimit) return false;
    return part.underWay >= this.#partOfFreeMax * (this.underWayMax - this.underWay);
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
  /** The part of the cost that the party has not been charged. */
  #uncharged = 0;
  /** The expected cost, which the party was charged in advance. */
  #prepaid: number;
  #prepaidAt: number;
  /** Cost since it began or continued, and how much of it this turn of the event loop counts. */
  #stepCost = 0;
  #stepExpected: number;
  /** The cost of the step before. */
  #stepBefore: number | undefined;
  #held = 0;
  /** Its place among the short requests in progress. */
  #short: ListLink<AdmittedEntrant> | undefined;
  #isLong = false;
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
    this.#stepExpected = charged;
    this.#short = admission.beginShort(this);
  }

  /** All of it so far. */
  get cost(): number {
    return this.#cost;
  }

  get party(): Party {
    return this.#party;
  }

  get held(): number {
    return this.#held;
  }

  /** Adds the measured cost. Cost after the end of the request is charged as well. */
  charge(cost: number): void {
    if (cost <= 0) return;
    this.#spend(cost);
    if (this.#isOver || this.#uncharged - this.#prepaidLeft() >= chargeStep) this.#chargeRest();
  }

  /** @returns false if the party would hold too much. In that case nothing more is held. */
  hold(amount: number, isLimited = true): boolean {
    if (this.#isOver) return true;
    if (isLimited && !this.#admission.makeRoom(this.#party, amount)) return false;
    this.#held += amount;
    this.#admission.count(this.#party, 'held', amount);
    return true;
  }

  /** Moves the request to another party, which is then charged for the cost so far as well. */
  move(party: Party): void {
    if (this.#isOver || party === this.#party) return;
    const admission = this.#admission;
    this.#chargeRest();
    admission.count(this.#party, 'underWay', -1);
    admission.count(this.#party, 'held', -this.#held);
    if (this.#short) {
      this.#party.short -= 1;
      party.short += 1;
    }
    this.#party = party;
    admission.count(party, 'underWay', 1);
    admission.count(party, 'held', this.#held);
    admission.charge(party, this.#cost);
  }

  /**
   * Waits until the request may do the rest of its work, in the same way as it waited to begin. `undefined`: it may do
   * so now.
   */
  finish(): Promise<AdmissionRefusal | undefined> | undefined {
    if (this.#isWithdrawn) return Promise.resolve('ended');
    return this.#again('rest');
  }

  /** The same for the next part of long work. */
  next(): Promise<AdmissionRefusal | undefined> | undefined {
    if (this.#isWithdrawn) return Promise.resolve('ended');
    this.#becomeLong();
    return this.#again('part');
  }

  /**
   * Waits until a part that has begun may continue. `undefined`: it may do so now. A part is done to its end, even
   * after it was withdrawn.
   */
  continue(): Promise<AdmissionRefusal | undefined> | undefined {
    this.#becomeLong();
    return this.#again('step');
  }

  #becomeLong(): void {
    this.#isLong = true;
    this.endShort();
  }

  /** The request does not hold long work of others back any more. */
  endShort(): void {
    if (!this.#short) return;
    this.#admission.endShort(this, this.#short);
    this.#short = undefined;
  }

  #again(waitingFor: 'rest' | LongWork): Promise<AdmissionRefusal | undefined> | undefined {
    this.#endStep();
    const cost = this.#stepBefore ?? this.#party.usualCost;
    if (this.#admission.mayGoOn(this.#party, waitingFor, cost)) {
      this.#stepExpected = cost;
      return undefined;
    }
    return new Promise((resolve) => {
      const begin = (prepaid: number) => {
        this.#prepaid = this.#prepaidLeft() + prepaid;
        this.#prepaidAt = this.#admission.now;
        this.#stepExpected = prepaid;
        resolve(undefined);
      };
      const waiting = { waitingFor, cost, begin, refuse: resolve };
      const withdraw = this.#admission.again(this.#party, waiting);
      if (waitingFor === 'step') return;
      this.#stopWaiting = () => {
        withdraw();
        resolve('ended');
      };
    });
  }

  /** What a step costs is learned while its request is in progress, which may take hours. */
  #endStep(): void {
    const step = Math.max(leastCost, this.#stepCost);
    this.#party.usualCost += learning * (step - this.#party.usualCost);
    this.#stepBefore = step;
    this.#stepCost = 0;
  }

  /** The request may not continue. If it waits, it is refused, so that the room that it holds is freed soon. */
  withdraw(): void {
    this.#isWithdrawn = true;
    this.#stopWaiting?.();
  }

  /**
   * Withdraws the request and frees the room that it holds. The request stays in progress and is charged until its
   * work has ended.
   */
  giveBack(): void {
    this.withdraw();
    this.#admission.count(this.#party, 'held', -this.#held);
    this.#held = 0;
  }

  /** May be called more than once. */
  end(): void {
    if (this.#isOver) return;
    // Limits how many requests begin in one turn, even if each of them costs almost nothing.
    this.#spend(Math.max(0, leastCost - this.#cost));
    this.#chargeRest();
    this.giveBack();
    this.#isOver = true;
    this.endShort();
    this.#admission.count(this.#party, 'underWay', -1);
    this.#endStep();
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
    this.#stepCost += cost;
    if (this.#isLong) this.#admission.restAfter(this.#party, cost);
    if (this.#stepCost <= this.#stepExpected) return;
    this.#admission.spentMore(this.#stepCost - this.#stepExpected);
    this.#stepExpected = this.#stepCost;
  }

  /**
   * The prepaid cost decays like all usage. If all of it were refunded later, or if all of it paid for later work, a
   * request that waits for its client would distort the shares of others.
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
  /** All parties except the root. A party that is checked for being idle moves to the end. */
  readonly #parties = new LinkedList<Party>();
  /** All waiting requests, the longest wait first. */
  readonly #waiting = new LinkedList<Waiting>();
  /** Full parties that block requests below them. */
  readonly #blocking = new Set<Party>();
  /** The current weight of new costs. */
  #growth = 1;
  #grownAt: number;
  #growthSince: number;
  #turnCost = 0;
  /** Short requests in progress that hold long work of others back, the oldest first. */
  readonly #short = new LinkedList<AdmittedEntrant>();
  /** The party whose long work was done last, and until when all long work rests. */
  #latestLong: Party | undefined;
  #restUntil = Number.NEGATIVE_INFINITY;
  #rest: NodeJS.Timeout | undefined;
  #latest: Party | undefined;
  #sharedUntil = Number.NEGATIVE_INFINITY;
  #isTurnScheduled = false;
  #reclaimedAt = Number.NEGATIVE_INFINITY;
  #reclaims = 0;
  #retry: NodeJS.Timeout | undefined;
  #hasPartMax = false;

  constructor(options: FairAdmissionOptions) {
    const now = options.now();
    this.#options = options;
    this.#partiesMax = options.partiesMax ?? partiesMaxDefault;
    this.#turnCostMax = options.turnCostMax ?? withoutLimit;
    this.#grownAt = now;
    this.#growthSince = now;
    const isBefore = options.order === 'under way' ? hasFewerUnderWay : usedLess;
    this.root = new Party('', { limits: options.limits, now, isBefore });
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get now(): number {
    return this.#options.now();
  }

  /**
   * Returns the part with this name, and creates it if there is none. Parts of the root are never removed, so callers
   * must not choose how many there are.
   */
  part(parent: Party, name: string, limits: PartyLimits): Party {
    const known = parent.parts.get(name);
    if (known) return known;
    const now = this.#options.now();
    if (this.#parties.size + 1 >= this.#partiesMax) this.#forgetIdle(parent, now);
    const own = this.#parties.size + 1 >= this.#partiesMax ? 'others' : name;
    const shared = parent.parts.get(own);
    if (shared) return shared;
    const party = new Party(own, { parent, limits, now, isBefore: parent.isBefore });
    if (limits.partMax !== undefined) this.#hasPartMax = true;
    parent.parts.set(own, party);
    party.link = this.#parties.add(party);
    return party;
  }

  /**
   * The recent usage of the party. A party that always uses a share of the time has that share of {@link forgetMs}.
   */
  usedBy(party: Party): number {
    return party.used / this.#growthAt(this.#options.now());
  }

  /**
   * Calls `begin`, now or later, or `refuse`. The caller must end each admitted request.
   * @returns a function that withdraws the entrant while it waits.
   */
  enter(party: Party, { begin, refuse }: Entrant): () => void {
    const now = this.#options.now();
    const { usualCost } = party;
    if (this.#mayStart(party, { now, waitingFor: 'begin', cost: usualCost })) {
      this.#use(party, usualCost, now);
      this.count(party, 'underWay', 1);
      begin(new AdmittedEntrant(this, party, { now, charged: usualCost }));
      return nothing;
    }
    const start = (charged: number) => {
      this.count(party, 'underWay', 1);
      begin(new AdmittedEntrant(this, party, { now: this.#options.now(), charged }));
    };
    return this.#wait({ party, begin: start, refuse, waitingFor: 'begin', cost: usualCost, now });
  }

  /** Whether a request in progress may continue immediately. */
  mayGoOn(party: Party, waitingFor: 'rest' | LongWork, cost: number): boolean {
    return this.#mayStart(party, { now: this.#options.now(), waitingFor, cost });
  }

  /** `undefined` where turns have no limit, and long work holds up no other. */
  beginShort(admitted: AdmittedEntrant): ListLink<AdmittedEntrant> | undefined {
    if (this.#turnCostMax === withoutLimit) return undefined;
    admitted.party.short += 1;
    return this.#short.add(admitted);
  }

  endShort(admitted: AdmittedEntrant, link: ListLink<AdmittedEntrant>): void {
    admitted.party.short -= 1;
    this.#short.remove(link);
  }

  /** What long work has cost, after which it rests while short requests of others are in progress. */
  restAfter(party: Party, cost: number): void {
    if (this.#turnCostMax === withoutLimit) return;
    const now = this.#options.now();
    this.#latestLong = party;
    const restUntil = Math.max(this.#restUntil, now) + restFactor * cost;
    this.#restUntil = Math.min(restUntil, now + restMsMax);
  }

  #isLongResting(now: number): boolean {
    if (now >= this.#restUntil) return false;
    for (
      let { first } = this.#short;
      first && now - first.since > shortMs;
      { first } = this.#short
    ) {
      first.endShort();
    }
    return this.#short.size > (this.#latestLong?.short ?? 0);
  }

  /** Like {@link enter}, for a request in progress that may not continue immediately. */
  again(
    party: Party,
    waiting: Pick<Waiting, 'waitingFor' | 'cost' | 'begin' | 'refuse'>,
  ): () => void {
    return this.#wait({ ...waiting, party, now: this.#options.now() });
  }

  /** What has begun in this turn of the event loop costs more than it was expected to. */
  spentMore(cost: number): void {
    this.#spend(cost);
  }

  /** Whether several parties were active recently. */
  get isShared(): boolean {
    return this.#options.now() < this.#sharedUntil;
  }

  /** A negative cost refunds an overcharge. */
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

  /** Called when a request has ended: waiting requests may begin. */
  freed(party: Party): void {
    this.#notice(party, this.#options.now());
    if (this.#waiting.size > 0) this.#scheduleTurn();
  }

  /** Whether the party may hold this much more, if necessary after room was taken from parties that hold more. */
  makeRoom(party: Party, amount: number): boolean {
    for (let one: Party | undefined = party; one; one = one.parent) {
      if (one.held + amount <= one.heldMax) continue;
      if (one === party || !this.#options.reclaim) return false;
      if (!this.#options.reclaim({ party, full: one, what: 'held', amount })) return false;
      if (one.held + amount > one.heldMax) return false;
    }
    return true;
  }

  /** Whether the party, or one of its ancestors, has used more than its share while others are active. */
  isOver(party: Party): boolean {
    const now = this.#options.now();
    for (let one: Party | undefined = party; one; one = one.parent) {
      if (this.#isOverPart(one, now)) return true;
    }
    return false;
  }

  /** A request begins immediately if none waits and this turn of the event loop has room. */
  #mayStart(
    party: Party,
    { now, waitingFor, cost }: { now: number; waitingFor: WaitingFor; cost: number },
  ): boolean {
    this.#notice(party, now);
    const isLong = isLongWork(waitingFor);
    // Short requests pass long work that waits: it has a turn of its own.
    const before = isLong ? this.#waiting.size : this.root.entering + this.root.finishing;
    let isRoom = before === 0 && !(isLong && this.#isLongResting(now));
    for (let one: Party | undefined = party; one; one = one.parent) {
      one.activeAt = now;
      const isFull = one.isFull || one.parent?.isCrowdedBy(one) === true;
      if ((waitingFor === 'begin' && isFull) || this.#isOverPart(one, now)) isRoom = false;
    }
    if (!isRoom) return false;
    if (
      this.#turnCost > 0 &&
      this.#turnCost + cost > this.#turnCostMaxAt(now, waitingFor !== 'begin')
    ) {
      return false;
    }
    this.#spend(cost);
    return true;
  }

  #notice(party: Party, now: number): void {
    if (party === this.#latest) return;
    this.#latest = party;
    this.#sharedUntil = now + sharedMs;
  }

  /**
   * The usage of all parties decays at the same rate. Increasing the weight of new costs instead keeps the order of
   * parties.
   */
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

  #turnCostMaxAt(now: number, isUnderWay: boolean): number {
    if (now >= this.#sharedUntil) return this.#turnCostMax * aloneFactor;
    return isUnderWay ? this.#turnCostMax * partsOfTurn : this.#turnCostMax;
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
    const kind = kindOf(waiting);
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
    const kind = kindOf(waiting);
    for (let one: Party | undefined = waiting.party; one; one = one.parent) one[kind] -= 1;
    arrange(waiting.party);
  }

  /** Admits as many requests as one turn has room for, each from the party that has used least. */
  #serve(): void {
    const now = this.#options.now();
    const turnCostMax = this.#turnCostMaxAt(now, false);
    const partsCostMax = this.#turnCostMaxAt(now, true);
    this.#refuseLate(now);
    this.#reclaimRoom(now);
    while (this.#waiting.size > 0 && this.#turnCost < turnCostMax) {
      const mayBeLong = !this.#isLongResting(now);
      const next = this.#nextIn(this.root, { now, mayBeLong, mayEnter: !this.root.isFull });
      if (next === undefined) {
        if (!mayBeLong) this.#continueAfterRest(now);
        this.#retryLater();
        return;
      }
      const { cost } = next;
      if (next.waitingFor !== 'begin' && this.#turnCost > 0 && this.#turnCost + cost > partsCostMax)
        break;
      this.#leave(next);
      this.#spend(cost);
      // Charged now, so that the next request is another party's even if all of them begin before any has caused
      // cost.
      this.#use(next.party, cost, now);
      next.begin(cost);
    }
    if (this.#waiting.size > 0) this.#scheduleTurn();
  }

  #nextIn(party: Party, sought: WhatMayBeNext): Waiting | undefined {
    const { begin, rest, part: nextPart, step } = party.queues;
    const long = sought.mayBeLong ? (step.first ?? nextPart.first) : undefined;
    const own = rest.first ?? long ?? (sought.mayEnter ? begin.first : undefined);
    if (own || !party.waitingParts) return own;
    const { finishing, resuming, entering } = party.waitingParts;
    let part: Party | undefined;
    for (const [parts, may] of [
      [finishing, true],
      [resuming, sought.mayBeLong],
      [entering, sought.mayEnter],
    ] as const) {
      const other = may ? this.#firstWithinPart(parts, sought.now) : undefined;
      // The first has fewest under way, so if it may not have more, no other may.
      if (other && parts === entering && party.isCrowdedBy(other)) continue;
      if (!part || (other && party.isBefore(other, part))) part = other ?? part;
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

  /** Reclaims room for one of the parties below each full party, a different one each time. */
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
        const amount = party.queues.begin.size;
        if (party.isFull || amount === 0) continue;
        reclaim({ party, full, what, amount: what === 'held' ? 1 : amount });
      }
    }
  }

  /**
   * Below the full party, the part with the most waiting requests loses the one that waits longest, to make room for
   * another party's request.
   */
  #refuseFor(party: Party, full: Party): boolean {
    let most = full;
    while (most.waitingParts?.longest.first) most = most.waitingParts.longest.first;
    const refused = most.queues.begin.first;
    if (most === party || most.entering <= party.waiting || refused === undefined) return false;
    this.#leave(refused);
    refused.refuse('too many wait');
    return true;
  }

  /**
   * Requests that may not begin because of the usage of their party begin after that usage has decayed. Without limits
   * of time or usage, only the end of another request makes room.
   */
  #retryLater(): void {
    const { waitMsMax, reclaim } = this.#options;
    if (waitMsMax === withoutLimit && !reclaim && !this.#hasPartMax) return;
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      if (this.#waiting.size > 0) this.#serve();
    }, retryMs).unref();
  }

  /** Long work that rests goes on after its rest, or as soon as no short request of others is in progress. */
  #continueAfterRest(now: number): void {
    this.#rest ??= setTimeout(() => {
      this.#rest = undefined;
      if (this.#waiting.size > 0) this.#serve();
    }, this.#restUntil - now).unref();
  }

  /**
   * Removes idle parties, except parts of the root, which their creators hold, and the party that gets a new part
   * now.
   */
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

interface WhatMayBeNext {
  readonly now: number;
  readonly mayEnter: boolean;
  readonly mayBeLong: boolean;
}

function isLongWork(waitingFor: WaitingFor): waitingFor is LongWork {
  return waitingFor === 'part' || waitingFor === 'step';
}

function nothing(): void {}

function usedLess(a: Party, b: Party): boolean {
  return a.used * b.weight < b.used * a.weight;
}

function hasFewerUnderWay(a: Party, b: Party): boolean {
  const difference = a.underWay * b.weight - b.underWay * a.weight;
  return difference === 0 ? usedLess(a, b) : difference < 0;
}

function queueOf({ party, waitingFor }: Waiting): LinkedList<Waiting> {
  return party.queues[waitingFor];
}

/** What a request in progress holds is freed only when it continues. */
function kindOf({ waitingFor }: Waiting): 'entering' | 'finishing' | 'resuming' {
  if (waitingFor === 'begin') return 'entering';
  return waitingFor === 'rest' ? 'finishing' : 'resuming';
}

/** Updates the order of the party and its ancestors among their siblings. */
function arrange(party: Party): void {
  for (let one = party; one.parent; one = one.parent) {
    if (one.waiting === 0 && !one.parent.waitingParts) continue;
    one.parent.waitingParts ??= new WaitingParts(one.parent.isBefore);
    const { finishing, resuming, entering, longest } = one.parent.waitingParts;
    const mayEnter =
      !one.isFull && (one.queues.begin.size > 0 || one.waitingParts?.entering.first !== undefined);
    if (one.finishing > 0) finishing.put(one);
    else finishing.delete(one);
    if (one.resuming > 0) resuming.put(one);
    else resuming.delete(one);
    if (mayEnter) entering.put(one);
    else entering.delete(one);
    if (one.entering > 0) longest.put(one);
    else longest.delete(one);
  }
}

/** Returns a party below `full` that has requests waiting to begin. Different numbers select different parties. */
function waitingBelow(full: Party, number: number): Party {
  let party = full;
  for (;;) {
    const longest = party.waitingParts?.longest;
    if (!longest || longest.size === 0) return party;
    party = longest.at(number % longest.size) as Party;
  }
}

/** Runs the work when it is the turn of the party, which is charged for the time that it takes. */
export function runInTurn<R>(
  admission: FairAdmission,
  party: Party,
  { work, errorOf }: TurnOfWork<R>,
): Promise<R> {
  return new Promise((resolve, reject) => {
    admission.enter(party, {
      begin: (admitted) => {
        const begun = admission.now;
        work()
          .then(resolve, reject)
          .finally(() => {
            admitted.charge(admission.now - begun);
            admitted.end();
          });
      },
      refuse: (refusal) => reject(errorOf(refusal)),
    });
  });
}

export interface TurnOfWork<R> {
  readonly work: () => Promise<R>;
  readonly errorOf: (refusal: AdmissionRefusal) => Error;
}
