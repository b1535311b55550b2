/** Lines of the million: a card, an account and a name by turns, each known again by its serial number. */
import { once } from 'node:events';
import { type IncomingMessage, request as send } from 'node:http';
import { linesOf } from '../src/http/lines.ts';
import { cardNumber } from './cards.ts';

const given = ['Ada', 'Grace', 'Edsger', 'Barbara', 'Donald', 'Radia', 'Alan', 'Frances'];
const lineBytesMax = 1_048_576;
const writeCharacters = 65_536;

const kinds = [
  (serial: number) => ({
    type: 'card',
    data: { number: cardNumber(serial), expiration_month: 12, expiration_year: 2030 },
  }),
  (serial: number) => ({
    type: 'bank',
    data: { routing_number: '021000021', account_number: String(serial).padStart(12, '0') },
  }),
  (serial: number) => ({
    type: 'token',
    data: nameOf(serial),
    metadata: { owner: given[serial % given.length] },
    search_indexes: ['{{ data }}'],
  }),
];

/** A name is found by its search index; every third serial number is one. */
export function nameOf(serial: number): string {
  return `${given[serial % given.length]} Example ${serial}`;
}

export function requestOf(serial: number): { readonly id: string; readonly data: unknown } {
  const kind = kinds[serial % kinds.length];
  if (kind === undefined) throw new Error('a remainder is within the kinds');
  return { id: idOf(serial), ...kind(serial) };
}

export function idOf(serial: number): string {
  return `million-${serial}`;
}

/** `undefined` for a token of another's making. */
export function serialOf(id: string): number | undefined {
  const match = /^million-(\d+)$/.exec(id);
  return match ? Number(match[1]) : undefined;
}

export interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Posts the lines of these serial numbers while the answers come. */
export async function postLines(
  { url, headers }: Target,
  serials: { readonly from: number; readonly to: number },
  onLine: (line: Buffer) => void,
): Promise<void> {
  const request = send(url, { method: 'POST', headers });
  const answer = once(request, 'response') as Promise<[IncomingMessage]>;
  const sending = (async () => {
    let text = '';
    for (let serial = serials.from; serial < serials.to; serial += 1) {
      text += `${JSON.stringify(requestOf(serial))}\n`;
      if (text.length < writeCharacters) continue;
      if (!request.write(text)) await once(request, 'drain');
      text = '';
    }
    request.end(text);
  })();
  await Promise.all([sending, answer.then(([response]) => readLines(response, onLine))]);
}

/** Gets lines until the answer ends. */
export async function getLines({ url, headers }: Target, onLine: (line: Buffer) => void) {
  const request = send(url, { headers });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  await readLines(response, onLine);
}

async function readLines(response: IncomingMessage, onLine: (line: Buffer) => void) {
  if (response.statusCode !== 200) throw new Error(`the answer was ${response.statusCode}`);
  for await (const lines of linesOf(response, lineBytesMax)) {
    for (const line of lines) {
      if (line === undefined) throw new Error('a line of the answer is too long');
      onLine(line);
    }
  }
}
