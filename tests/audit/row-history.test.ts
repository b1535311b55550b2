/** A row's history: what the vault wrote in any order is one, and what it wrote over is known for good. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EntryPlace, RowHistory } from '../../src/audit/row-history.ts';
import { hour, type Instant, parseInstant } from '../../src/base/clock.ts';
import type { Mark } from '../../src/store/row-states.ts';
import { type Below, seeded } from '../support/random.ts';

interface Told {
  readonly mark: Mark;
  readonly place: EntryPlace;
}

const beginning = 1_000 * hour;
const cases = 2_000;

/** The entries about one row while the vault alone writes it, and its version at the end, if it is there. */
class Life {
  readonly told: Told[] = [];
  readonly #below: Below;
  #at = beginning;
  /** Of the row as it is; 0 where it is not there. */
  version = 0;

  constructor(below: Below) {
    this.#below = below;
  }

  /** The next change of the row as it is now, or of a version that is said to be there. */
  change(version = this.version): void {
    // Often two in one millisecond, and of several servers.
    this.#at += this.#below(3) * hour;
    const isRemoval = version > 0 && this.#below(3) === 0;
    if (isRemoval) this.tell('-', version, this.#at);
    else this.tell(version === 0 ? '+' : '=', version + 1, this.#at);
  }

  tell(sign: Mark['sign'], version: number, at: number): void {
    this.version = sign === '-' ? 0 : version;
    const mark = {
      sign,
      table: 'tokens',
      id: 'row',
      version,
      authenticator: String(this.told.length),
      isOwn: true,
    } as const;
    const stream = `stream ${this.#below(3)}`;
    const seq = this.told.length + 1;
    this.told.push({ mark, place: { at: parseInstant(at), stream, seq } });
  }

  changes(count: number): void {
    for (let at = 0; at < count; at += 1) this.change();
  }
}

/** As verification reads it: stream by stream, without what is older than the horizon. */
function historyOf(told: readonly Told[], horizon: number): RowHistory | undefined {
  const read = told
    .filter(({ place }) => place.at >= horizon)
    .toSorted((one, two) => one.place.stream.localeCompare(two.place.stream));
  const [first] = read;
  if (first === undefined) return undefined;
  const history = new RowHistory(first.place);
  for (const { mark, place } of read) history.take(mark, place);
  return history;
}

/** Whether verification names the row as it is at the end, or what was done to it before. */
function isNamed({ told, version }: Life, horizon = all): boolean {
  const history = historyOf(told, horizon);
  if (history === undefined) return false;
  const standing = history.standing().map(({ authenticator }) => authenticator);
  const isAsWritten = version === 0 ? standing.length === 0 : standing.includes(last(told));
  const isKnown = isAsWritten || horizon > 0;
  return !isKnown || history.overwritten(horizon) !== undefined;
}

/** By which the row is told from others that the entries speak of. */
function last(told: readonly Told[]): string {
  return told.at(-1)?.mark.authenticator ?? '';
}

const all = parseInstant(0);

/** Some hours after the beginning, or before all entries. */
function anyHorizon(below: Below): Instant {
  return below(2) === 0 ? all : parseInstant(beginning + below(20) * hour);
}

test('nothing is named where the vault alone wrote, whatever retention has left', (t) => {
  const below = seeded(t);
  for (let at = 0; at < cases; at += 1) {
    const life = new Life(below);
    life.changes(1 + below(12));
    const horizon = anyHorizon(below);
    assert.equal(isNamed(life, horizon), false, JSON.stringify([horizon, life.told]));
  }
});

test('an older version that was put back is named, however often the row is written after', (t) => {
  const below = seeded(t);
  for (let at = 0; at < cases; at += 1) {
    const life = new Life(below);
    life.changes(2 + below(6));
    const older = life.told.flatMap(({ mark }) => (mark.sign === '-' ? [] : mark.version));
    const versions = older.filter((version) => version !== life.version);
    const version = versions[below(Math.max(1, versions.length))];
    if (version === undefined) continue;
    life.change(version);
    life.changes(below(6));
    assert.ok(isNamed(life), JSON.stringify(life.told));
  }
});

test('a row that was taken away is named, also once it has been created again', (t) => {
  const below = seeded(t);
  for (let at = 0; at < cases; at += 1) {
    const life = new Life(below);
    life.changes(1 + below(6));
    if (life.version === 0) continue;
    life.change(0);
    life.changes(below(6));
    assert.ok(isNamed(life), JSON.stringify(life.told));
  }
});

test('a version that was put back is named also where a row was taken away to even it out', () => {
  const life = new Life(() => 1);
  // Created and removed, put back, changed and removed again.
  for (const [sign, version, at] of [
    ['+', 1, 0],
    ['-', 1, 2],
    ['=', 2, 4],
    ['-', 2, 6],
    // Created, taken away, and created again.
    ['+', 1, 8],
    ['+', 1, 10],
  ] as const) {
    life.tell(sign, version, at * hour);
  }
  assert.ok(isNamed(life));
});
