/** `npm run bench`: the vault against the yardstick, scenario by scenario, engine by engine. */
import { type EngineResult, measureEngine } from './engine.ts';
import { type Plan, readPlan, usage } from './flags.ts';
import { goalTable } from './goals.ts';
import { describeMachine } from './machine.ts';
import { digits } from './markdown.ts';
import type { Server } from './process.ts';
import { factTable, failures, pricesOf, priceTable, scenarioTable } from './report.ts';
import { startYardstick } from './subjects.ts';
import { benchThreads } from './threads.ts';
import { headersOf } from './vault.ts';
import { warmUp } from './warm-up.ts';

const plan = readPlan();
if (plan === undefined) say(usage);
else process.exitCode = plan.threads ? await benchThreads(plan, say) : await bench(plan);

/** @returns 1 when any request failed. */
async function bench(plan: Plan): Promise<number> {
  const started = performance.now();
  const machine = describeMachine(plan.generator);
  say(machine);
  const yardstick = await startYardstick();
  await warmUpYardstick(yardstick, plan);
  const results: EngineResult[] = [];
  for (const engine of plan.engines) {
    results.push(await measureEngine(engine, { plan, yardstick, say }));
  }
  await yardstick.stop();
  say(`\n${machine}\n\n${results.map(pageOf).join('\n\n')}`);
  say(`\nMeasured in ${digits((performance.now() - started) / 1_000)} s.`);
  const measured = results.flatMap(({ passes }) => passes.flatMap((pass) => pass.results));
  return measured.some((result) => failures(result) > 0) ? 1 : 0;
}

/** Once, and like the vault; it does the same for all scenarios. */
async function warmUpYardstick({ url, pid }: Server, { load }: Plan): Promise<void> {
  const requests = [{ path: '/', body: '{}' }];
  const job = {
    url,
    headers: headersOf('none'),
    method: 'POST',
    requests,
    connections: 64,
  } as const;
  await warmUp({ pid, shoot: (seconds) => load({ ...job, serial: 0, seconds }) });
}

/** All of one engine. */
function pageOf(result: EngineResult): string {
  const [few] = result.passes;
  const parts = [`### ${result.engine}: ${result.version}`];
  for (const pass of result.passes) {
    parts.push(`With ${digits(pass.tokens)} tokens present:`);
    parts.push(scenarioTable(pass, pass === few ? undefined : few));
  }
  if (few && pricesOf(few).length > 0) parts.push('What each promise costs:', priceTable(few));
  parts.push('Also measured:', factTable(result), 'Goals:', goalTable(result));
  return parts.join('\n\n');
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
