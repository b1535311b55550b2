/** `strongroom import --dry-run`: what would become of each line, found out without creating anything. */

import { tokenReaders } from '../../api/token-shapes.ts';
import { systemClock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { parseTokenId } from '../../base/ids.ts';
import { isObject, type Json } from '../../base/json.ts';
import type { AccessSubject } from '../../rules/policy.ts';
import { contentsOfRequest, type TokenRequest } from '../../tokens/contents/contents.ts';
import { type Flags, printSummary } from '../terminal/command.ts';
import { explain } from '../terminal/failure.ts';
import { grouped } from '../terminal/progress.ts';
import { ResponseError } from '../terminal/response-error.ts';
import { allowanceOf } from './allowance.ts';
import { type ImportPlan, type ImportRunTools, isNewEachTime } from './plan.ts';
import { type ImportRecord, openRecords } from './records.ts';
import { createVaultClient, textOf, type VaultClient } from './vault-client.ts';

/** Of lines that would be refused or doubled, so many are shown. */
const shownMax = 20;
/** Ids asked for at once: their URL stays far below what a server takes. */
const idsMax = 20;

interface Checked {
  readonly request: TokenRequest;
  readonly id: string | undefined;
  readonly isNew: boolean;
  /** Where it would be; absent if only the vault knows that. */
  readonly place?: AccessSubject;
}

/** Resolves to the exit code: 1 if a line would be refused. */
export async function dryRun(
  plan: ImportPlan,
  { client, ledger, flags, terminal }: ImportRunTools,
): Promise<number> {
  const { stderr } = terminal;
  const counts = { created: 0, refused: 0, doubled: 0 };
  const met = new Map<string, number>();
  let shown = 0;
  const say = (number: number, text: string) => {
    shown += 1;
    if (shown <= shownMax) stderr.write(`line ${number} ${text}\n`);
  };
  const refuse = (number: number, reason: string) => {
    counts.refused += 1;
    say(number, `would be refused: ${reason}`);
  };
  const double = (number: number, reason: string) => {
    counts.doubled += 1;
    say(number, `would be doubled: ${reason}`);
  };
  const allowance = await allowanceOf(client, managerOf(terminal, flags));
  const create = (number: number, request: TokenRequest) => {
    const exceeded = allowance.take(request);
    if (exceeded === undefined) counts.created += 1;
    else refuse(number, exceeded);
  };
  type AskedLine = Pick<Checked, 'request'> & { readonly number: number; readonly id: string };
  const asked: AskedLine[] = [];
  const compare = async () => {
    const known = await knownIds(
      client,
      asked.map(({ id }) => id),
    );
    for (const { number, id, request } of asked.splice(0)) {
      if (known.has(id)) double(number, 'the vault has a token with its id');
      else create(number, request);
    }
  };
  const opened = openRecords(plan);
  try {
    for await (const record of opened.records) {
      const { number, raw } = record;
      const wasImported =
        record.text !== undefined && isNewEachTime(record.text) && ledger?.wasImported(raw);
      if (number < plan.from) continue;
      const checked = check(record);
      if ('problem' in checked) {
        refuse(number, checked.problem);
        continue;
      }
      const denied = checked.place && allowance.refusalOf(checked.place);
      if (denied !== undefined) {
        refuse(number, denied);
        continue;
      }
      const name = checked.id === undefined ? `line ${raw}` : `id ${checked.id}`;
      const first = met.get(name);
      met.set(name, first ?? number);
      if (checked.id !== undefined && first !== undefined)
        refuse(number, `line ${first} has the same id`);
      else if (wasImported) double(number, 'it was imported before');
      else if (checked.isNew && first !== undefined)
        double(number, `line ${first} is the same, and neither has an id`);
      else if (checked.id === undefined) create(number, checked.request);
      else {
        const { id, request } = checked;
        if (asked.push({ number, id, request }) === idsMax) await compare();
      }
    }
    await compare();
  } finally {
    opened.close();
  }
  if (shown > shownMax) stderr.write(`and ${grouped(shown - shownMax)} lines more\n`);
  for (const sentence of allowance.unknown) stderr.write(`${sentence}\n`);
  stderr.write(
    `Nothing was imported. ${grouped(counts.created)} tokens would be created, ${grouped(counts.refused)} lines ` +
      `refused, ${grouped(counts.doubled)} doubled.\n`,
  );
  printSummary(terminal, flags, counts);
  return counts.refused > 0 ? 1 : 0;
}

function managerOf(terminal: ImportRunTools['terminal'], flags: Flags): VaultClient | undefined {
  const file = flags['management-key-file'];
  return file === undefined
    ? undefined
    : createVaultClient(terminal, { ...flags, 'key-file': file });
}

/** As the vault of this release checks a line, short of permissions, of quotas, and of what is stored. */
function check({ text, problem }: ImportRecord): Checked | { readonly problem: string } {
  if (text === undefined) return { problem: problem ?? 'it cannot be read' };
  try {
    const request = tokenReaders.readRequest(JSON.parse(text));
    const isElsewhere = (request.token_intent_id ?? request.encrypted ?? undefined) !== undefined;
    const contents = isElsewhere ? undefined : contentsOfRequest(request, systemClock);
    const id = request.id ?? undefined;
    // An expression makes the id of the data, which the vault alone does.
    const isLiteral = id !== undefined && !/\{[{%]/.test(id);
    const place = contents && { id: parseTokenId(id ?? ''), container: contents.container };
    return {
      request,
      id: isLiteral ? id : undefined,
      isNew: isNewEachTime(text),
      ...(place && { place }),
    };
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: 'it is not JSON' };
    if (error instanceof VaultError) return { problem: explain(error) };
    throw error;
  }
}

/** Those of the ids that the key can see tokens of. */
async function knownIds(client: VaultClient, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const query = new URLSearchParams([['size', String(idsMax)], ...ids.map((id) => ['id', id])]);
  const { request, pendingResponse } = client.open('GET', `/v2/tokens?${query}`);
  request.end();
  const body = JSON.parse(await textOf(await pendingResponse)) as Json;
  const tokens = isObject(body) ? body['data'] : undefined;
  if (!Array.isArray(tokens)) throw new ResponseError('the vault sent no list of tokens');
  return new Set(tokens.flatMap((token) => (isObject(token) ? [String(token['id'])] : [])));
}
