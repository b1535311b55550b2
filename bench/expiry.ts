/** How fast expired tokens are removed, and what reads notice of it. */

import { parseArgs } from 'node:util';
import { instantAfter, systemClock } from '../src/base/clock.ts';
import type { TokenId } from '../src/base/ids.ts';
import { createLog } from '../src/base/telemetry/log.ts';
import { systemEntry } from '../src/rules/log-entries.ts';
import { openerOf } from '../src/rules/openings.ts';
import { readConfig } from '../src/runtime/config/config.ts';
import { expiringJobs } from '../src/runtime/jobs/expire.ts';
import { type Running, serve } from '../src/runtime/serve.ts';
import type { Unproven } from '../src/store/stored-row.ts';
import type { Row } from '../src/store/tables.ts';
import { openData, sealRow } from '../src/tokens/contents/sealed-row.ts';
import { termOf } from '../tests/support/changes.ts';
import { holdJobs } from '../tests/support/held-jobs.ts';
import { cardBody, cardNumber, takeSerials } from './cards.ts';
import type { LoadResult, RequestOf } from './job.ts';
import { defaultGenerator, loadBy } from './load.ts';
import { median } from './markdown.ts';
import { engineOf, engines } from './storage.ts';
import { headersOf } from './vault.ts';

const hourMs = 3_600_000;
const rowsPerCommit = 500;
const readTokens = 200;
const managementKey = 'expiry.bench.management.key.00000000';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '64' },
    tokens: { type: 'string', default: '60000' },
    engine: { type: 'string', multiple: true },
  },
});
const seconds = Number(flags.seconds);
const rounds = Number(flags.rounds);
const connections = Number(flags.connections);
const load = loadBy(defaultGenerator);

for (const engine of flags.engine ?? Object.keys(engines)) {
  const storage = await engineOf(engine)();
  await measureExpiry(engine, storage.env).finally(() => storage.close());
}

/** The job runs in the server's own process, as it does in service; the reads come from another one. */
async function measureExpiry(engine: string, env: Readonly<Record<string, string>>): Promise<void> {
  const environment = {
    ...env,
    STRONGROOM_PORT: '0',
    STRONGROOM_BOOTSTRAP_KEY: managementKey,
    STRONGROOM_LOG_LEVEL: 'silent',
  };
  const running = await serve(readConfig(environment), {
    log: createLog('silent'),
    // The vault's own run of the job would take part in what is removed.
    jobPause: holdJobs().pause,
  });
  try {
    const read = await readsOf(running);
    await read(2);
    const results: { rate: number; alone: number; beside: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await insertExpired(running, round);
      const alone = await read(seconds);
      const reading = read(seconds);
      const rate = await removalRate(running, AbortSignal.timeout(seconds * 1000));
      const beside = await reading;
      results.push({ rate, alone: alone.p99Ms, beside: beside.p99Ms });
      say(
        `${engine}: ${rate.toFixed(0)} tokens/s removed; reads ` +
          `${(alone.succeeded / alone.seconds).toFixed(0)}/s with p99 ${alone.p99Ms.toFixed(1)} ms alone, ` +
          `${(beside.succeeded / beside.seconds).toFixed(0)}/s with p99 ${beside.p99Ms.toFixed(1)} ms beside it`,
      );
    }
    const rate = median(results.map((one) => one.rate));
    const ratio = median(results.map((one) => one.beside / one.alone));
    say(`${engine}: ${rate.toFixed(0)} tokens/s; p99 of reads at ${ratio.toFixed(2)} (medians)`);
    // What the rounds above were too short for would count as well.
    await expireTokens(running, new AbortController().signal);
    await insertExpired(running, rounds);
    const idle = await removalRate(running, new AbortController().signal);
    say(`${engine}: ${idle.toFixed(0)} tokens/s without other load`);
  } finally {
    await running.stop();
  }
}

/** A load of reads, for so many seconds. */
async function readsOf(running: Running): Promise<(time: number) => Promise<LoadResult>> {
  const key = await applicationKey(running);
  const first = takeSerials(readTokens);
  const requests: RequestOf[] = [];
  for (let serial = first; serial < first + readTokens; serial += 1) {
    const { id } = await post(running, key, cardBody(cardNumber(serial)));
    requests.push({ path: `/tokens/${id}` });
  }
  const shared = { url: running.url, headers: headersOf(key), connections, requests, serial: 0 };
  return (time) => load({ ...shared, method: 'GET', seconds: time });
}

function expireTokens({ vault }: Running, stopping: AbortSignal): Promise<number> {
  const job = expiringJobs(vault).find(({ name }) => name === 'expire tokens');
  if (job === undefined) throw new Error('there is no such job');
  return job.run(stopping);
}

/** Tokens removed a second, until they or the time are used up. */
async function removalRate(running: Running, stopping: AbortSignal): Promise<number> {
  const started = performance.now();
  const count = await expireTokens(running, stopping);
  return (count / (performance.now() - started)) * 1000;
}

/** Copies of one token, with its search terms, that expired an hour ago. */
async function insertExpired({ vault }: Running, round: number): Promise<void> {
  const { store, tenants, random } = vault;
  const [found] = await store.select((db) =>
    db.selectFrom('tokens').selectAll().limit(1).$castTo<Unproven<'tokens'>>(),
  );
  const tenant = found && (await tenants.find(found.tenant_id));
  if (!tenant) throw new Error('there is no token to copy');
  const now = systemClock.now();
  const opener = openerOf('expire card codes', tenant);
  const { row: template, data: secret } = openData(opener, found, now);
  const data = secret.reveal();
  const fact = { entity: 'token', id: template.token_id, operation: 'create' } as const;
  const madeEntry = systemEntry({ ...fact, tenant: tenant.id, at: now });
  const expires_at = instantAfter(now, -hourMs);
  const count = Number(flags.tokens);
  for (let first = 0; first < count; first += rowsPerCommit) {
    const tokens = Array.from({ length: rowsPerCommit }, (_, index): Row<'tokens'> => {
      const token_id = `gone-${round}-${first + index}` as TokenId;
      const search_indexes = '["{{ data.number }}"]';
      return sealRow(
        { tenant, data, random },
        { ...template, token_id, search_indexes, expires_at },
      );
    });
    const search_terms = tokens.map((row) =>
      termOf(row, Buffer.from(row.token_id).toString('base64url')),
    );
    await store.commit({ insert: { tokens, search_terms }, entries: [madeEntry] });
  }
}

async function applicationKey(running: Running): Promise<string> {
  const rule = { priority: 1, container: '/', transform: 'reveal' };
  const permissions = ['token:create', 'token:read'];
  const application = { name: 'bench', type: 'private', rules: [{ ...rule, permissions }] };
  const made = await post(running, managementKey, JSON.stringify(application), '/applications');
  return made.key;
}

async function post(
  running: Running,
  key: string,
  body: string,
  path = '/tokens',
): Promise<Readonly<Record<'id' | 'key', string>>> {
  const response = await fetch(running.url + path, {
    method: 'POST',
    headers: headersOf(key),
    body,
  });
  if (!response.ok) throw new Error(`POST ${path} gave ${response.status}`);
  return (await response.json()) as Readonly<Record<'id' | 'key', string>>;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
