/** What a mapping makes of the first records, without their values: nothing is sent. */
import { isObject, type Json } from '../../base/json.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { ImportPlan } from './plan.ts';
import { openRecords } from './records.ts';

const shownMax = 5;
const digitsShown = 4;
const visibleNames = new Set(['expiration_month', 'expiration_year']);

/** Resolves to the exit code. */
export async function preview(plan: ImportPlan, { stdout }: Terminal): Promise<number> {
  const opened = openRecords(plan);
  let [shown, broken] = [0, 0];
  try {
    for await (const { number, text, problem } of opened.records) {
      if (number < plan.from) continue;
      if (text === undefined) {
        broken += 1;
        stdout.write(`line ${number} ${problem}\n`);
      } else {
        stdout.write(`line ${number}: ${JSON.stringify(hidden(text))}\n`);
      }
      shown += 1;
      if (shown === shownMax) break;
    }
  } finally {
    opened.close();
  }
  return broken === 0 ? 0 : 1;
}

function hidden(text: string): unknown {
  try {
    const request = JSON.parse(text) as Json;
    return isObject(request) && 'data' in request
      ? { ...request, data: withoutValues(request['data']) }
      : request;
  } catch {
    return 'not JSON';
  }
}

function withoutValues(data: Json | undefined): Json | undefined {
  if (isObject(data)) {
    const entries = Object.entries(data).map(([name, value]) => [
      name,
      visibleNames.has(name) ? value : withoutValues(value),
    ]);
    return Object.fromEntries(entries);
  }
  if (Array.isArray(data)) return data.map((one) => withoutValues(one) ?? null);
  if (typeof data !== 'string' && typeof data !== 'number') return data;
  const characters = String(data);
  const end = characters.length > 2 * digitsShown ? characters.slice(-digitsShown) : '';
  return `${'X'.repeat(characters.length - end.length)}${end}`;
}
