/** What reads of the vault lose beside a caller whose reactor never ends: the same load in turns, with and without it. */
import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { fewTokens } from './flags.ts';
import { defaultGenerator, loadBy } from './load.ts';
import { digits, median, table } from './markdown.ts';
import { grow, nobody } from './population.ts';
import { type Requests, scenarios } from './scenarios.ts';
import { engineOf } from './storage.ts';
import { shootAt } from './subjects.ts';
import { headersOf, startVault, type Vault } from './vault.ts';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    tokens: { type: 'string', default: String(fewTokens) },
  },
});
const connections = 64;
/** More than a tenant may run at once, so that none of its processes ever rests. */
const hostileCallers = 4;
const goal = 0.8;

const vault = await startVault(await engineOf('embedded')());
try {
  const { population } = await grow(vault, nobody, Number(flags.tokens));
  const scenario = scenarios.find(({ name }) => name === 'get revealed');
  const work: Requests = { ...(scenario?.work as Requests), connections };
  const load = loadBy(defaultGenerator);
  const read = async (): Promise<number> => {
    const stage = { vault, population };
    const result = await shootAt(work, { stage, load, seconds: Number(flags.seconds) });
    if (result.failed > 0) throw new Error(`${result.failed} reads failed`);
    return result.succeeded / result.seconds;
  };
  const hostile = await createHostile(vault);
  await read();
  const rounds: { readonly alone: number; readonly beside: number }[] = [];
  for (let round = 0; round < Number(flags.rounds); round += 1) {
    const alone = await read();
    const calls = hostile.begin();
    await pause(1_000);
    rounds.push({ alone, beside: await read() });
    await calls.end();
  }
  const ratio = median(rounds.map(({ alone, beside }) => beside / alone));
  const columns = [
    { title: 'reads a second alone', cell: (one: (typeof rounds)[number]) => digits(one.alone) },
    { title: 'beside it', cell: (one: (typeof rounds)[number]) => digits(one.beside) },
    {
      title: 'ratio',
      cell: (one: (typeof rounds)[number]) => digits(one.beside / one.alone, 2),
    },
  ];
  process.stdout.write(`${table(columns, rounds)}

Median ratio ${digits(ratio, 2)}, goal ${goal}. Load: ${loadavg()[0]?.toFixed(1)}.
`);
} finally {
  await vault.close();
}

/** Calls that follow one another until they are told to end; each loops until its time limit. */
async function createHostile({ send, server, managementKey }: Vault) {
  const post = async (path: string, body: object) =>
    JSON.parse(await send('POST', { path, body: JSON.stringify(body) }, managementKey));
  const { id } = await post('/reactors', {
    name: 'endless',
    code: 'module.exports = () => { for (;;) {} }',
    runtime: { timeout: 1 },
  });
  const permissions = ['reactor:invoke'];
  const { key } = await post('/applications', { name: 'hostile', type: 'private', permissions });
  return {
    begin() {
      let isOver = false;
      const caller = async () => {
        while (!isOver) {
          const url = `${server.url}/reactors/${id}/react`;
          const answer = await fetch(url, { method: 'POST', headers: headersOf(key), body: '{}' });
          await answer.text();
        }
      };
      const callers = Array.from({ length: hostileCallers }, caller);
      return {
        end: async () => {
          isOver = true;
          await Promise.all(callers);
        },
      };
    },
  };
}
