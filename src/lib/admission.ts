/**
 * Fair admission, for whatever several parties want at once: who goes next, how many may be under way, and how long
 * and how many may wait. Parties form a tree, such as all callers, a tenant, its keys, and each level is fair.
 */

export interface PartyLimits {
  /** How much it may use beside its siblings: twice as much with 2. */
  readonly weight?: number;
  readonly underWayMax?: number;
  /** Of its own or, where it has parts, of all of them together. */
  readonly waitingMax?: number;
  /** Units such as bytes, held at once. */
  readonly heldMax?: number;
  /** The part of all time that it may use, from 0 to 1, while one of its siblings is active. */
  readonly partMax?: number;
}

export interface FairAdmissionOptions {
  /** Milliseconds that only grow. */
  readonly now: () => number;
  /** Cost that may begin in one turn of the event loop; without it as much as has room. */
  readonly turnCostMax?: number;
  readonly waitMsMax: number;
  /** Of the root. */
  readonly limits: PartyLimits;
  /** So many parties are known by their names; those that come after them share one. */
  readonly partiesMax?: number;
}

/** Why something is not admitted: too many of its party wait, it has waited too long, or it has ended meanwhile. */
export type AdmissionRefusal = 'too many wait' | 'waited too long' | 'ended';

export interface Entrant {
  /** @param prepaid what it has been charged already. */
  readonly begin: (prepaid: number) => void;
  readonly refuse: (refusal: AdmissionRefusal) => void;
}

/** In which what was used is forgotten, but for a third of it. */
const forgetMs = 500;
/** What a party uses is looked up so often that it is forgotten in steps. */
const stepMs = 2;
/** While a party has done something within that, others leave it its part. */
const activeMs = 1_000;
/** One delay of the whole process must not count as one party's work. */
const costMax = 250;
/** Of a party of which nothing is known, and the least that is expected of any. */
const leastCost = 0.05;
/** How quickly the usual cost of a party follows what it really costs. */
const learning = 0.2;

const partiesMaxDefault = 20_000;
const withoutLimit = Number.POSITIVE_INFINITY;

/** What is under way and may only be waiting for its client, which can be slow for as long as it likes. */
export interface Slow {
  /** Whether nothing but the client is waited for. */
  readonly isSlow: () => boolean;
  /** Ends it. What it holds has been given back by then. */
  readonly cut: () => void;
}

/** How long something may wait for its client before others that wait for its room come first. */
const slowMsMin = 500;
/** How often what waits is looked through for what room could be made for, and for how many of it. */
const reliefMs = 20;
const cutsMax = 16;

interface Waiting extends Entrant {
  readonly party: Party;
  /** It is under way already and waits for its next turn: what it holds is freed only by going on. */
  readonly isUnderWay: boolean;
  readonly until: number;
  readonly cost: number;
}

/** Made by {@link FairAdmission.part} alone. */
export class Party {
  readonly name: string;
  readonly parent: Party | undefined;
  readonly parts = new Map<string, Party>();
  readonly weight: number;
  readonly underWayMax: number;
  readonly waitingMax: number;
  readonly heldMax: number;
  readonly partMax: number;
  /** Of itself and all parts. */
  underWay = 0;
  waiting = 0;
  held = 0;
  activeAt = Number.NEGATIVE_INFINITY;
  /** It is not forgotten before it has done anything. */
  madeAt = Number.NEGATIVE_INFINITY;
  /** What one of its entrants has usually cost lately. */
  usualCost = leastCost;
  /** Of its own, in their order. */
  readonly entering = new Set<Waiting>();
  readonly resuming = new Set<Waiting>();
  /** Its parts in which something waits. */
  readonly ready = new Set<Party>();
  /** Its own that are under way, those first that it has had longest. */
  readonly admitted = new Set<AdmittedEntrant>();
  #used = 0;
  #usedAt = 0;

  constructor(name: string, parent: Party | undefined, limits: PartyLimits) {
    this.name = name;
    this.parent = parent;
    this.weight = limits.weight ?? 1;
    this.underWayMax = limits.underWayMax ?? withoutLimit;
    this.waitingMax = limits.waitingMax ?? withoutLimit;
    this.heldMax = limits.heldMax ?? withoutLimit;
    this.partMax = limits.partMax ?? 1;
  }

  /** What it has used lately: of a party that always used a part of the time, that part of {@link forgetMs}. */
  used(now: number): number {
    const age = now - this.#usedAt;
    if (age < stepMs) return this.#used;
    this.#used *= Math.exp(-age / forgetMs);
    this.#usedAt = now;
    return this.#used;
  }

  use(cost: number, now: number): void {
    this.#used = this.used(now) + cost;
    this.activeAt = now;
  }

  get isIdle(): boolean {
    return this.underWay === 0 && this.waiting === 0 && this.held === 0 && this.parts.size === 0;
  }
}

interface Beginning {
  readonly prepaid: number;
  readonly now: number;
}

/** What has been admitted, from its admission to its end. */
export class AdmittedEntrant {
  readonly #admission: FairAdmission;
  #party: Party;
  #cost = 0;
  /** Charged before it was known what it costs. */
  #prepaid: number;
  #held = 0;
  #isOver = false;
  readonly #since: number;
  /** Where it can be ended for others that need its room more. */
  slow: Slow | undefined;
  #isWithdrawn = false;
  #stopWaiting = nothing;

  /** Made by {@link FairAdmission} alone. */
  constructor(admission: FairAdmission, party: Party, { prepaid, now }: Beginning) {
    this.#admission = admission;
    this.#party = party;
    this.#prepaid = prepaid;
    this.#since = now;
    party.admitted.add(this);
  }

  get party(): Party {
    return this.#party;
  }

  /** What it has really cost, in the unit of the admission. */
  charge(cost: number): void {
    if (cost <= 0) return;
    this.#cost += cost;
    const rest = cost - this.#prepaid;
    this.#prepaid = Math.max(0, -rest);
    if (rest > 0) this.#admission.charge(this.#party, rest);
  }

  /** False where its party would hold too much; then nothing more is held. */
  hold(amount: number, isLimited = true): boolean {
    if (this.#isOver) return true;
    if (isLimited && !this.#admission.makeRoom(this.#party, amount)) return false;
    this.#held += amount;
    for (let one: Party | undefined = this.#party; one; one = one.parent) one.held += amount;
    return true;
  }

  /** It turns out to be another party's. What it has cost so far is that one's too. */
  move(party: Party): void {
    if (this.#isOver || party === this.#party) return;
    count(this.#party, 'underWay', -1);
    count(this.#party, 'held', -this.#held);
    this.#party.admitted.delete(this);
    party.admitted.add(this);
    this.#party = party;
    count(party, 'underWay', 1);
    count(party, 'held', this.#held);
    this.#admission.charge(party, this.#cost);
  }

  /** Waits for its next turn, as it did at first; with `undefined` it is its turn. */
  next(): Promise<AdmissionRefusal | undefined> | undefined {
    if (this.#isWithdrawn) return Promise.resolve('ended');
    if (this.#admission.mayGoOn(this.#party)) return undefined;
    return new Promise((resolve) => {
      const begin = (prepaid: number) => {
        this.#prepaid += prepaid;
        resolve(undefined);
      };
      const withdraw = this.#admission.again(this.#party, { begin, refuse: resolve });
      this.#stopWaiting = () => {
        withdraw();
        resolve('ended');
      };
    });
  }

  /** It gets no turn any more; the one that it waits for is refused, so that what it holds is freed soon. */
  withdraw(): void {
    this.#isWithdrawn = true;
    this.#stopWaiting();
  }

  /** Once or more often. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#party.admitted.delete(this);
    this.withdraw();
    count(this.#party, 'underWay', -1);
    count(this.#party, 'held', -this.#held);
    // However little they cost, no more than a certain number begin in one turn.
    const cost = Math.max(this.#cost, leastCost);
    this.#party.usualCost += learning * (cost - this.#party.usualCost);
    this.#admission.freed();
  }

  /** Whether ending it would give back what is missing, and would cost nobody but a client that is slow. */
  mayBeCut(what: Measure, now: number): boolean {
    if (what === 'held' && this.#held === 0) return false;
    return now - this.#since >= slowMsMin && this.slow?.isSlow() === true;
  }

  cut(): void {
    this.end();
    this.slow?.cut();
  }
}

export class FairAdmission {
  readonly root: Party;
  readonly #options: FairAdmissionOptions;
  readonly #partiesMax: number;
  #parties = 1;
  /** All that wait, the longest wait first. */
  readonly #waiting = new Set<Waiting>();
  #roomMadeAt = Number.NEGATIVE_INFINITY;
  #turnCost = 0;
  #latest: Party | undefined;
  /** Until then several parties are at it. */
  #sharedUntil = Number.NEGATIVE_INFINITY;
  #isTurnScheduled = false;
  #relievedAt = Number.NEGATIVE_INFINITY;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: FairAdmissionOptions) {
    this.#options = options;
    this.#partiesMax = options.partiesMax ?? partiesMaxDefault;
    this.root = new Party('', undefined, options.limits);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** The part of a party by its name; it is made where there is none. */
  part(parent: Party, name: string, limits: PartyLimits): Party {
    const known = parent.parts.get(name);
    if (known) return known;
    if (this.#parties >= this.#partiesMax) this.#makeRoom();
    const own = this.#parties >= this.#partiesMax ? 'others' : name;
    const shared = parent.parts.get(own);
    if (shared) return shared;
    const party = new Party(own, parent, limits);
    party.madeAt = this.#options.now();
    parent.parts.set(own, party);
    this.#parties += 1;
    return party;
  }

  /**
   * Calls `begin`, at once or later, or `refuse`. What was admitted has to be ended by its user.
   * @returns what withdraws it for as long as it waits.
   */
  enter(
    party: Party,
    begin: (admitted: AdmittedEntrant) => void,
    refuse: Entrant['refuse'],
  ): () => void {
    const start = (prepaid: number) => {
      const admitted = new AdmittedEntrant(this, party, { prepaid, now: this.#options.now() });
      count(party, 'underWay', 1);
      begin(admitted);
    };
    if (this.#mayStart(party, false)) {
      start(0);
      return nothing;
    }
    return this.#wait(party, { begin: start, refuse, isUnderWay: false });
  }

  /** Whether what is under way may go on at once. */
  mayGoOn(party: Party): boolean {
    return this.#mayStart(party, true);
  }

  /** As {@link enter} for what is under way and may not go on at once. */
  again(party: Party, entrant: Entrant): () => void {
    return this.#wait(party, { ...entrant, isUnderWay: true });
  }

  charge(party: Party, cost: number): void {
    const now = this.#options.now();
    const charged = Math.min(cost, costMax);
    for (let one: Party | undefined = party; one; one = one.parent) one.use(charged, now);
  }

  /** Something ended: what waits may begin. */
  freed(): void {
    if (this.#waiting.size > 0) this.#scheduleTurn();
  }

  /**
   * Whether the party may hold so much more. Where what it shares with others is full, those of them that hold more
   * give back what they hold for slow clients.
   */
  makeRoom(party: Party, amount: number): boolean {
    for (let cuts = 0; !hasRoom(party, amount); cuts += 1) {
      if (cuts === cutsMax || party.held + amount > party.heldMax) return false;
      const lacking = ancestorOf(party, (one) => one.held + amount > one.heldMax);
      if (lacking === undefined || !this.#cutFor(party, lacking, 'held')) return false;
    }
    return true;
  }

  /** Whether the party, or one that it is a part of, has used more than its part while others are active. */
  isOver(party: Party): boolean {
    const now = this.#options.now();
    for (let one: Party | undefined = party; one; one = one.parent) {
      if (isOverPart(one, now)) return true;
    }
    return false;
  }

  /** At once where nothing waits and there is room in this turn of the event loop. */
  #mayStart(party: Party, isUnderWay: boolean): boolean {
    const now = this.#options.now();
    if (party !== this.#latest) {
      this.#latest = party;
      this.#sharedUntil = now + sharedMs;
    }
    if (this.#waiting.size > 0) return false;
    const { usualCost } = party;
    if (this.#turnCost + usualCost > this.#turnCostMax(now) && this.#turnCost > 0) return false;
    for (let one: Party | undefined = party; one; one = one.parent) {
      if ((!isUnderWay && isFull(one)) || isOverPart(one, now)) return false;
    }
    for (let one: Party | undefined = party; one; one = one.parent) one.activeAt = now;
    this.#spend(usualCost);
    return true;
  }

  /** Alone a party is served best many at a time, and nobody waits for it. */
  #turnCostMax(now: number): number {
    const { turnCostMax = withoutLimit } = this.#options;
    return now < this.#sharedUntil ? turnCostMax : turnCostMax * aloneFactor;
  }

  #spend(cost: number): void {
    if (this.#options.turnCostMax === undefined) return;
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

  #wait(party: Party, entrant: Entrant & Pick<Waiting, 'isUnderWay'>): () => void {
    for (let one: Party | undefined = party; one; one = one.parent) {
      if (one.waiting < one.waitingMax || this.#refuseFor(party, one)) continue;
      entrant.refuse('too many wait');
      return nothing;
    }
    const until = this.#options.now() + this.#options.waitMsMax;
    const waiting: Waiting = { ...entrant, party, until, cost: party.usualCost };
    this.#waiting.add(waiting);
    queueOf(waiting).add(waiting);
    for (let one: Party | undefined = party; one; one = one.parent) {
      one.waiting += 1;
      one.parent?.ready.add(one);
    }
    this.#scheduleTurn();
    return () => this.#leave(waiting);
  }

  #leave(waiting: Waiting): void {
    if (!this.#waiting.delete(waiting)) return;
    queueOf(waiting).delete(waiting);
    for (let one: Party | undefined = waiting.party; one; one = one.parent) {
      one.waiting -= 1;
      if (one.waiting === 0) one.parent?.ready.delete(one);
    }
  }

  /** As many as one turn has room for, each from the party that has used least. */
  #serve(): void {
    const now = this.#options.now();
    const turnCostMax = this.#turnCostMax(now);
    this.#refuseLate(now);
    this.#relieve(now);
    while (this.#waiting.size > 0 && this.#turnCost < turnCostMax) {
      const next = this.#nextIn(this.root, now);
      if (next === undefined) {
        this.#retryLater();
        return;
      }
      this.#leave(next);
      this.#spend(next.cost);
      // So that the next one is another's even where all begin before any of them has cost anything.
      for (let one: Party | undefined = next.party; one; one = one.parent) {
        one.use(next.cost, now);
      }
      next.begin(next.cost);
    }
    if (this.#waiting.size > 0) this.#scheduleTurn();
  }

  #nextIn(party: Party, now: number, isAbove = false): Waiting | undefined {
    if (isOverPart(party, now)) return undefined;
    const isClosed = isAbove || isFull(party);
    const [resuming] = party.resuming;
    if (resuming) return resuming;
    const [entering] = party.entering;
    if (entering && !isClosed) return entering;
    for (const some of chunksOf(party.ready)) {
      // Most often the first one has something that may begin.
      for (const part of some.sort((a, b) => shareOf(a, now) - shareOf(b, now))) {
        const next = this.#nextIn(part, now, isClosed);
        if (next === undefined) continue;
        // Behind those that are not compared yet.
        party.ready.delete(part);
        party.ready.add(part);
        return next;
      }
    }
    return undefined;
  }

  #refuseLate(now: number): void {
    for (const waiting of this.#waiting) {
      if (waiting.until > now) return;
      this.#leave(waiting);
      waiting.refuse('waited too long');
    }
  }

  /** For what waits although its party has less under way, or holds less, than others that keep it from beginning. */
  #relieve(now: number): void {
    if (now - this.#relievedAt < reliefMs) return;
    this.#relievedAt = now;
    let cuts = 0;
    const look = (party: Party) => {
      for (const part of party.ready) look(part);
      if (cuts === cutsMax || party.entering.size === 0 || isFull(party)) return;
      const full = ancestorOf(party, isFull);
      if (full === undefined) return;
      if (this.#cutFor(party, full, full.held > full.heldMax ? 'held' : 'underWay')) cuts += 1;
    };
    look(this.root);
  }

  /**
   * Ends what has waited longest for its client in the party that has most, below the one that is full.
   * @returns false where nobody who has more than the party waits for a client.
   */
  #cutFor(party: Party, full: Party, what: Measure): boolean {
    const now = this.#options.now();
    const limited = limitedAbove(party);
    // What all share is not for those to make room in who have a part of it at most.
    if (limited && full.parent === undefined) return false;
    const slow = slowIn(full, { party, limited, what, now });
    slow?.cut();
    return slow !== undefined;
  }

  /** Of the party of which most waits below the one that is full, what waits longest makes room for another's. */
  #refuseFor(party: Party, full: Party): boolean {
    let most = party;
    const look = (one: Party) => {
      if (one.waiting <= most.waiting) return;
      for (const part of one.ready) look(part);
      if (one.entering.size > 0 && one.entering.size > most.waiting) most = one;
    };
    look(full);
    const [refused] = most.entering;
    if (most === party || refused === undefined) return false;
    this.#leave(refused);
    refused.refuse('too many wait');
    return true;
  }

  /** What may not begin yet because of its past begins when that is forgotten. */
  #retryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      if (this.#waiting.size > 0) this.#serve();
    }, retryMs).unref();
  }

  /** Looking through all of them costs as much as a request, so it is not done for each. */
  #makeRoom(): void {
    const now = this.#options.now();
    if (now - this.#roomMadeAt < activeMs) return;
    this.#roomMadeAt = now;
    this.#forgetIdle(this.root);
  }

  #forgetIdle(party: Party): void {
    for (const part of party.parts.values()) {
      this.#forgetIdle(part);
      const since = this.#options.now() - Math.max(part.activeAt, part.madeAt);
      if (!part.isIdle || since < activeMs) continue;
      party.parts.delete(part.name);
      this.#parties -= 1;
    }
  }
}

type Measure = 'underWay' | 'held';

const retryMs = 5;

/** How long two parties count as being there at the same time. */
const sharedMs = 100;
const aloneFactor = 5;

function nothing(): void {}

function count(party: Party, what: Measure, change: number): void {
  for (let one: Party | undefined = party; one; one = one.parent) one[what] += change;
}

function queueOf({ party, isUnderWay }: Waiting): Set<Waiting> {
  return isUnderWay ? party.resuming : party.entering;
}

/** So many parties are compared at a time: with thousands of them a comparison would cost more than what is served. */
const comparedMax = 64;

function* chunksOf(parties: ReadonlySet<Party>): Generator<Party[]> {
  let some: Party[] = [];
  for (const party of parties) {
    some.push(party);
    if (some.length < comparedMax) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}

function isFull({ underWay, underWayMax, held, heldMax }: Party): boolean {
  return underWay >= underWayMax || held > heldMax;
}

function ancestorOf(party: Party, is: (one: Party) => boolean): Party | undefined {
  for (let one = party.parent; one; one = one.parent) if (is(one)) return one;
  return undefined;
}

/** The part of the tree that has a part of all time at most: it never takes anything from others. */
function limitedAbove(party: Party): Party | undefined {
  return ancestorOf(party, ({ partMax }) => partMax < 1);
}

interface SlowSearch {
  /** For which room is made. */
  readonly party: Party;
  readonly limited: Party | undefined;
  readonly what: Measure;
  readonly now: number;
}

/** Of the party that has most, if that is more than the one has for which it is sought. */
function slowIn(
  full: Party,
  { party, limited, what, now }: SlowSearch,
): AdmittedEntrant | undefined {
  let chosen: AdmittedEntrant | undefined;
  let most = party[what];
  const look = (one: Party) => {
    if (one === party || one[what] <= most) return;
    for (const part of one.parts.values()) look(part);
    if (one[what] <= most) return;
    for (const admitted of one.admitted) {
      if (!admitted.mayBeCut(what, now)) continue;
      chosen = admitted;
      most = one[what];
      return;
    }
  };
  if (limited === undefined) {
    // Whatever it has itself, it comes before those that have a part at most.
    most = 0;
    for (const part of full.parts.values()) if (part.partMax < 1) look(part);
    if (chosen) return chosen;
    most = party[what];
  }
  look(full);
  return chosen;
}

function hasRoom(party: Party, amount: number): boolean {
  for (let one: Party | undefined = party; one; one = one.parent) {
    if (one.held + amount > one.heldMax) return false;
  }
  return true;
}

function shareOf(party: Party, now: number): number {
  return party.used(now) / party.weight;
}

function isOverPart(party: Party, now: number): boolean {
  const { partMax, parent } = party;
  if (partMax === 1 || parent === undefined || party.used(now) <= partMax * forgetMs) return false;
  for (const other of parent.parts.values()) {
    if (other !== party && now - other.activeAt < activeMs) return true;
  }
  return false;
}
