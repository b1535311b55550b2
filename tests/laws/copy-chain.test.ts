/** A vault with every kind of row goes from place to place under load, and is the same vault at the end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowsIn } from '../support/backups.ts';
import { isCitus } from '../support/citus-cluster.ts';
import { emptyPlace, plainPlace } from '../support/copy-places.ts';
import { type Engine, engineOf, type Place } from '../support/engines.ts';
import { assertComplete, completeVault, type KnownRead } from '../support/every-row.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { verifyPlace } from '../support/logs.ts';
import { beginCommand, environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { type Below, seeded } from '../support/random.ts';
import { createApplication, type Received, request } from '../support/vault.ts';

const addressOf = ({ databaseUrl, dataDir }: Place): string => databaseUrl ?? dataDir;

const copying = (from: Place, to: Place, ...flags: readonly string[]): string[] => [
  ...['database', 'copy', '--json', '--from', addressOf(from), '--to', addressOf(to)],
  ...flags,
];

const workers = 4;
const writesBefore = 60;
const readsOfAll = isCitus() ? 10_000 : 200;
/** So many reads take minutes on a busy machine. */
const timeoutMs = 20 * 60_000;

/** The response without what the time of the request decides. */
async function answerTo(url: string, { method, path, key, body }: KnownRead): Promise<string> {
  const { status, text } = await request(url + path, method, { key, body });
  assert.equal(status, 200, `${method} ${path}: ${text}`);
  return text;
}

/** The same responses as at first, to reads in any order. */
class Answers {
  readonly #reads: readonly KnownRead[];
  readonly #below: Below;
  readonly #first = new Map<KnownRead, string>();

  constructor(reads: readonly KnownRead[], below: Below) {
    this.#reads = reads;
    this.#below = below;
  }

  async take(url: string): Promise<void> {
    for (const read of this.#reads) this.#first.set(read, await answerTo(url, read));
    assert.ok(new Set(this.#first.values()).size > 40, 'most responses differ from each other');
  }

  async check(url: string, count: number): Promise<void> {
    let left = count;
    const worker = async () => {
      while (left-- > 0) {
        const read = this.#reads[this.#below(this.#reads.length)];
        assert.ok(read);
        assert.equal(await answerTo(url, read), this.#first.get(read), read.path);
      }
    };
    await Promise.all(Array.from({ length: 2 * workers }, worker));
  }
}

/** What clients may notice: that they are to come again. */
function assertServedOrLater(answer: Received | undefined): void {
  assert.ok(answer, 'the vault answers');
  assert.ok(answer.status < 500 || answer.status === 503, `${answer.status}: ${answer.text}`);
  if (answer.status === 503) assert.ok(answer.headers.get('retry-after'), answer.text);
}

const way = `embedded, PostgreSQL, ${isCitus() ? 'Citus' : 'PostgreSQL'}, embedded`;

test(`a vault with every kind of row goes this way under load, and stays the same: ${way}`, {
  timeout: timeoutMs,
}, async (t) => {
  const below = seeded(t);
  const [sqlite, postgres] = [engineOf('sqlite'), engineOf('postgres')];
  const { place: first, rootKey, reads } = await completeVault(t, sqlite);
  let at = { engine: sqlite, place: first };
  let served = await spawnVault(t, environmentOf(first, rootKey));
  const words = ['tenant', 'create', '--name', 'under load', '--json'];
  const made = await runCommand(words, environmentOf(first, rootKey));
  assert.equal(made.code, 0, made.stderr);
  const busy = JSON.parse(made.stdout);
  const key = await createApplication(served.url, {}, busy.key);
  const history = createHistory({ url: () => served.url, key, below });
  const answers = new Answers(reads, below);
  await answers.take(served.url);
  let left = writesBefore;
  await history.work(workers, () => left-- > 0);

  const stop = async () => {
    served.terminate();
    await served.finished;
  };
  const note = (stdout: string) => {
    const { from, to, rows, stopped_ms } = JSON.parse(stdout);
    const waited = stopped_ms === undefined ? 'no server' : `writes waited ${stopped_ms} ms`;
    const reads = `${Math.ceil(readsOfAll / 3)} reads follow`;
    t.diagnostic(`${from} to ${to}: ${rows} rows, ${waited}, ${reads}`);
  };
  const begin = async (engine: Engine, place: Place) => {
    at = { engine, place };
    await assertComplete(engine, place);
    served = await spawnVault(t, environmentOf(place, rootKey));
    const verified = await runCommand(
      ['logs', 'verify', '--state', '--json'],
      environmentOf(place, rootKey),
    );
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    assert.deepEqual((await verifyPlace(place)).findings, []);
    await checkHistory(engine, place, history, busy.id);
    await answers.check(served.url, Math.ceil(readsOfAll / 3));
  };

  for (const place of [await plainPlace(t, postgres), await emptyPlace(t, postgres)]) {
    const command = beginCommand(t, copying(at.place, place, '--live'), rootKey);
    let hasMoved = false;
    const done = command.finished.finally(() => {
      hasMoved = true;
    });
    const loaded = history.work(workers, (answer) => {
      assertServedOrLater(answer);
      return !hasMoved;
    });
    const { code, stdout, stderr } = await done;
    await loaded;
    assert.equal(code, 0, stderr);
    assert.ok(JSON.parse(stdout).stopped_ms < 10_000, stdout);
    note(stdout);
    await stop();
    await begin(postgres, place);
  }
  // A distributed database has no triggers: it is copied while nobody has it.
  const last = await emptyPlace(t, sqlite);
  const early = await runCommand(copying(at.place, last), rootKey);
  assert.match(early.stderr, isCitus() ? /Stop all servers first\.$/m : /copy with --live/);
  await stop();
  const before = await rowsIn(postgres, at.place);
  const { code, stdout, stderr } = await runCommand(copying(at.place, last), rootKey);
  assert.equal(code, 0, stderr);
  note(stdout);
  const after = new Set(await rowsIn(sqlite, last));
  const lost = before.filter((row) => !after.has(row));
  assert.deepEqual(lost, [], 'every row is as it was');
  await begin(sqlite, last);
});
