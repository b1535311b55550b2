/** Where it was measured, without which no absolute number says anything. */
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { fsyncTimes } from './disk.ts';
import { digits, median } from './markdown.ts';
import { wrkVersion } from './wrk.ts';

/** Lines of Markdown. */
export function describeMachine(generator: string): string {
  const times = fsyncTimes();
  const slow = times[Math.floor(times.length * 0.99)] ?? Number.NaN;
  const [busy = Number.NaN] = loadavg();
  return [
    `- ${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown'}; load before: ${digits(busy, 2)}`,
    `- Node ${process.version}; load generator ${generator} ${versionOf(generator)}`,
    `- fsync of a 512-byte append: median ${digits(median(times), 2)} ms, p99 ${digits(slow, 2)} ms`,
  ].join('\n');
}

function versionOf(generator: string): string {
  if (generator === 'wrk') return wrkVersion();
  const manifest = new URL(import.meta.resolve('autocannon/package.json'));
  return JSON.parse(readFileSync(manifest, 'utf8')).version;
}
