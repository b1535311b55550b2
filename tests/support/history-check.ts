/** Holds a vault to what a client was promised: nothing lost, nothing invented, each effect logged once. */
import assert from 'node:assert/strict';
import { disclosureOf } from '../../src/store/log-chain/disclosure.ts';
import type { Row } from '../../src/store/tables.ts';
import type { Engine, Place } from './engines.ts';
import { dataOf, type History, type Remembered } from './history.ts';
import { rowsOf, verifyLog } from './rows.ts';

/** Replays asked for in one check. */
const replaysMax = 60;
const requestsAtOnce = 8;

/**
 * Looks at what is stored, settles what was left open by repeating it, and replays old answers.
 * @param tenant of the client, where the vault has others with tokens.
 */
export async function checkHistory(
  engine: Engine,
  place: Place,
  history: History,
  tenant?: string,
): Promise<void> {
  const stored: Stored = { engine, place, tenant };
  const before = await storedTokens(stored);
  const serials = new Set(history.tokens.map(({ serial }) => serial));
  for (const serial of before.keys()) assert.ok(serials.has(serial), 'a token was invented');
  await checkEntries(stored, history);

  await each(history.tokens, async (token) => {
    const row = before.get(token.serial);
    checkState(token, row);
    if (row === undefined) return;
    const { status, body } = await history.read({ ...token, id: row.token_id });
    assert.equal(status, 200);
    token.reads += 1;
    const value = Number(body.metadata.value);
    assert.deepEqual(body.data, dataOf(value), 'data and metadata are of one write');
    assert.ok(valuesOf(token).includes(value), `value ${value} was never promised`);
  });
  await each(history.tokens, (token) => settle(history, token, before.get(token.serial)));
  const answers = history.tokens.flatMap((token) =>
    token.answers.map((answer) => ({ token, ...answer })),
  );
  await each(answers.slice(-replaysMax), async ({ token, write, text }) => {
    const again = await history.send(token, write);
    if (token.settled !== undefined) {
      assert.equal(again.text, text, 'a replay answers as the first time');
    } else {
      const { data, metadata, fingerprint_expression, ...rest } = JSON.parse(text);
      assert.deepEqual(again.body, rest, 'a replay shows nothing of what is gone');
    }
  });
  const after = await storedTokens(stored);
  for (const token of history.tokens) checkState(token, after.get(token.serial));
  await checkEntries(stored, history);
}

interface Stored {
  readonly engine: Engine;
  readonly place: Place;
  readonly tenant: string | undefined;
}

async function tokensIn({ engine, place, tenant }: Stored): Promise<readonly Row<'tokens'>[]> {
  const rows = await rowsOf(engine, place, 'tokens');
  return rows.filter(({ tenant_id }) => tenant === undefined || tenant_id === tenant);
}

/** The values a token may hold as far as the client knows. */
function valuesOf({ settled, open }: Remembered): (number | undefined)[] {
  return open === undefined ? [settled] : [settled, open.value];
}

function checkState(token: Remembered, row: Row<'tokens'> | undefined): void {
  if (row === undefined) {
    const may = valuesOf(token).includes(undefined);
    assert.ok(may, `an acknowledged token is lost: ${token.serial}`);
    return;
  }
  if (token.id !== undefined) assert.equal(row.token_id, token.id);
  const value = JSON.parse(row.metadata ?? '{}').value;
  assert.ok(valuesOf(token).map(String).includes(value), 'an acknowledged write is lost');
  const pending = token.open?.method === 'PATCH' && value === String(token.open.value) ? 1 : 0;
  assert.equal(row.version, 1 + token.updates + pending, 'every update happened once');
}

/** Repeats what was not acknowledged, as a client would, until it is. */
async function settle(
  history: History,
  token: Remembered,
  row: Row<'tokens'> | undefined,
): Promise<void> {
  const { open } = token;
  if (open === undefined) return;
  const answer = await history.write(token, open);
  assert.ok(answer, 'the vault answers');
  if (open.method === 'DELETE' && answer.status === 404) {
    assert.equal(row, undefined);
    token.settled = undefined;
    token.open = undefined;
    return;
  }
  assert.ok(answer.status < 300, answer.text);
  if (row !== undefined) assert.equal(token.id, row.token_id, 'the creation happened once');
}

/** Every token that ever was has one entry for its creation, one for each later effect, and no other. */
async function checkEntries(stored: Stored, history: History): Promise<void> {
  const { engine, place, tenant } = stored;
  // What is answered again is logged as shown again, and is no effect of its own.
  const entries = (await verifyLog(engine, place, tenant)).filter(
    ({ entity_type, result, disclosure }) =>
      entity_type === 'token' &&
      result === 'success' &&
      disclosureOf(disclosure ?? '')?.through !== 'replay',
  );
  const counts = new Map<string, number>();
  for (const { entity_id, operation } of entries) {
    const name = `${operation} ${entity_id}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const count = (operation: string, id: string) => counts.get(`${operation} ${id}`) ?? 0;
  const rows = new Map((await tokensIn(stored)).map((row) => [row.token_id, row]));
  const logged = new Set(entries.map((entry) => entry.entity_id));
  for (const id of logged) assert.equal(count('create', id), 1, 'one creation for what was logged');
  for (const id of rows.keys()) assert.ok(logged.has(id), 'what is stored was logged');
  for (const id of logged) {
    const row = rows.get(id as Row<'tokens'>['token_id']);
    assert.equal(count('delete', id), row === undefined ? 1 : 0);
    if (row !== undefined) assert.equal(count('update', id), row.version - 1);
  }
  for (const { id, updates, open, reads, readsOpen } of history.tokens) {
    if (id === undefined) continue;
    const may = open?.method === 'PATCH' ? 1 : 0;
    assertBetween(count('update', id), updates, updates + may);
    assertBetween(count('read', id), reads, reads + readsOpen);
  }
}

function assertBetween(found: number, min: number, max: number): void {
  assert.ok(found >= min && found <= max, `${found} entries, expected ${min} to ${max}`);
}

async function storedTokens(stored: Stored): Promise<Map<string, Row<'tokens'>>> {
  const rows = await tokensIn(stored);
  const bySerial = new Map(rows.map((row) => [JSON.parse(row.metadata ?? '{}').serial, row]));
  assert.equal(bySerial.size, rows.length, 'no creation happened twice');
  return bySerial;
}

async function each<T>(items: readonly T[], visit: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await visit(item);
  };
  await Promise.all(Array.from({ length: requestsAtOnce }, worker));
}
