/** How many values a second `POST /detokenize` resolves, 100 distinct cards a call, on each engine. */
import { parseArgs } from 'node:util';
import { cardBody } from './cards.ts';
import { applyLoad } from './load.ts';
import { cpuSeconds } from './process.ts';
import { engines, headersOf, startVault, type Vault } from './vault.ts';

/** As many as fit on the command line of the load generator. */
const cards = 2_000;
const cardsPerCall = 100;
const tokensPerTokenize = 1_000;
const warmUpSeconds = 3;

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '4' },
    engine: { type: 'string', multiple: true },
    transform: { type: 'string', default: 'reveal' },
  },
});

for (const engine of flags.engine ?? Object.keys(engines)) {
  const open = engines[engine];
  if (open === undefined) throw new Error(`there is no engine ${engine}`);
  const vault = await startVault(await open());
  try {
    await measure(engine, vault);
  } finally {
    await vault.close();
  }
}

async function measure(engine: string, vault: Vault): Promise<void> {
  const key = await vault.createApplication(flags.transform === 'mask' ? 'mask' : 'reveal');
  const ids = await tokenizeCards(vault, key);
  const bodies = Array.from({ length: ids.length / cardsPerCall }, (_, call) =>
    JSON.stringify(
      ids.slice(call * cardsPerCall, (call + 1) * cardsPerCall).map((id) => `{{ ${id} }}`),
    ),
  );
  const job = {
    url: vault.server.url,
    headers: headersOf(key),
    connections: Number(flags.connections),
    work: { path: '/detokenize', bodies },
  };
  await applyLoad({ ...job, seconds: warmUpSeconds });
  const cpuBefore = cpuSeconds(vault.server.pid);
  const result = await applyLoad({ ...job, seconds: Number(flags.seconds) });
  const cpu = cpuSeconds(vault.server.pid) - cpuBefore;
  const values = result.succeeded * cardsPerCall;
  process.stdout.write(
    `${engine}: ${Math.round(values / result.seconds)} values/s, ` +
      `${Math.round(values / cpu)} per second of the vault's processor time ` +
      `(${(cpu / result.seconds).toFixed(2)} cores), p50 ${result.p50Ms} ms, p99 ${result.p99Ms} ms, ` +
      `${result.failed} failed\n`,
  );
}

async function tokenizeCards(vault: Vault, key: string): Promise<string[]> {
  const ids: string[] = [];
  for (let serial = 0; serial < cards; serial += tokensPerTokenize) {
    const batch = Array.from({ length: tokensPerTokenize }, (_, at) =>
      JSON.parse(cardBody(serial + at)),
    );
    const answer: { id: string }[] = JSON.parse(
      await vault.send(key, '/tokenize', JSON.stringify(batch)),
    );
    ids.push(...answer.map(({ id }) => id));
  }
  return ids;
}
