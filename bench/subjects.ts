/** Who takes measurements in a scenario: the yardstick, the vault, and vaults that keep a promise less. */
import { freePort } from '../tests/support/temporary.ts';
import { cardBody, cardNumber, takeSerials } from './cards.ts';
import { cardPlace, type LoadResult, type RequestOf } from './job.ts';
import { bulkTarget, postLinesFor } from './lines.ts';
import type { ApplyLoad } from './load.ts';
import type { Population } from './population.ts';
import { type Server, startServer } from './process.ts';
import type { PromiseName } from './promises.ts';
import type { Subject } from './rounds.ts';
import type { Requests, Scenario } from './scenarios.ts';
import { headersOf, type Vault } from './vault.ts';

/** A vault and the tokens in it. */
export interface Stage {
  readonly vault: Vault;
  readonly population: Population;
}

export interface Cast {
  readonly yardstick: Server;
  readonly stage: Stage;
  readonly without: Readonly<Partial<Record<PromiseName, Stage>>>;
  readonly load: ApplyLoad;
}

const connectionsUsual = 64;

/** The yardstick comes first. Who breaks a promise is called `without` and its name. */
export async function subjectsOf(scenario: Scenario, cast: Cast): Promise<Subject[]> {
  const { work, prices = [], plain } = scenario;
  if (work === 'lines') return linesSubjects(cast);
  const own = await prepare(work, cast.stage);
  await setAnswer(cast.yardstick, await exampleAnswer(work, own, cast.stage.vault));
  const subject = (name: string, { vault }: Stage, requests: readonly RequestOf[]): Subject => ({
    name,
    watched: watchedOf(vault),
    values: work.values ?? 1,
    isWarm: false,
    shoot: loadOf(cast, work, { url: vault.server.url, key: keyOf(work, vault), requests }),
  });
  const subjects = [
    {
      ...subject('yardstick', cast.stage, own),
      watched: { pid: cast.yardstick.pid },
      isWarm: true,
      shoot: loadOf(cast, work, { url: cast.yardstick.url, key: 'none', requests: own }),
    },
    subject('vault', cast.stage, own),
  ];
  if (plain !== undefined) {
    const requests = await prepare(plain.requests, cast.stage);
    subjects.push(subject(`without ${plain.without}`, cast.stage, requests));
  }
  for (const promise of prices) {
    const other = cast.without[promise];
    if (other) subjects.push(subject(`without ${promise}`, other, await prepare(work, other)));
  }
  return subjects;
}

export interface Shot extends Pick<Cast, 'stage' | 'load'> {
  readonly seconds: number;
}

/** One load on one vault, outside of all turns. */
export async function shootAt(work: Requests, { stage, load, seconds }: Shot): Promise<LoadResult> {
  const requests = await prepare(work, stage);
  const { url } = stage.vault.server;
  return loadOf({ load }, work, { url, key: keyOf(work, stage.vault), requests })(seconds);
}

/** One import, outside of all turns. */
export function importTo({ server, keys }: Vault, seconds: number): Promise<LoadResult> {
  return postLinesFor(seconds, bulkTarget(server.url, keys.reveal), newCards());
}

function prepare(work: Requests, { vault, population }: Stage): Promise<RequestOf[]> {
  return Promise.resolve(work.of(vault, population));
}

interface Aim {
  readonly url: string;
  readonly key: string;
  readonly requests: readonly RequestOf[];
}

function loadOf(
  { load }: Pick<Cast, 'load'>,
  { method, connections = connectionsUsual }: Requests,
  aim: Aim,
) {
  const headers = headersOf(aim.key, method);
  const { url, requests } = aim;
  return (seconds: number) =>
    load({ url, headers, method, requests, connections, seconds, serial: takeSerials() });
}

/** What the vault answers to the first request, so that the yardstick answers as much. */
function exampleAnswer(work: Requests, [first]: RequestOf[], vault: Vault): Promise<string> {
  if (first === undefined) throw new Error('a scenario has at least one request');
  const { path, body } = first;
  const filled = body?.replaceAll(cardPlace, cardNumber(takeSerials(1)));
  const request = filled === undefined ? { path } : { path, body: filled };
  return vault.send(work.method, request, keyOf(work, vault));
}

async function linesSubjects(cast: Cast): Promise<Subject[]> {
  const { vault } = cast.stage;
  const example = { path: '/tokens', body: cardBody(cardNumber(takeSerials(1))) };
  const token = JSON.parse(await vault.send('POST', example));
  await setAnswer(cast.yardstick, JSON.stringify({ line: 1, status: 201, token }));
  const importing = (url: string, key: string) => (seconds: number) =>
    postLinesFor(seconds, bulkTarget(url, key), newCards());
  const { yardstick } = cast;
  return [
    {
      name: 'yardstick',
      values: 1,
      isWarm: true,
      watched: { pid: yardstick.pid },
      shoot: importing(yardstick.url, 'none'),
    },
    {
      name: 'vault',
      values: 1,
      isWarm: false,
      watched: watchedOf(vault),
      shoot: importing(vault.server.url, vault.keys.reveal),
    },
  ];
}

function* newCards(): Generator<string> {
  for (let serial = takeSerials(); ; serial += 1) yield cardBody(cardNumber(serial));
}

function keyOf({ transform = 'reveal' }: Requests, vault: Vault): string {
  return vault.keys[transform];
}

function watchedOf({ server, storage }: Vault) {
  return { pid: server.pid, databaseCpuSeconds: () => storage.cpuSeconds() };
}

export async function startYardstick(): Promise<Server> {
  const port = await freePort();
  const env = { YARDSTICK_PORT: String(port) };
  return startServer({ script: 'exec node bench/yardstick.ts', port, env, readyPath: '/' });
}

async function setAnswer({ url }: Server, answer: string): Promise<void> {
  const response = await fetch(url, { method: 'PUT', body: answer });
  await response.arrayBuffer();
}
