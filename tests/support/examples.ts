/** The examples of this repository, as a user starts them. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { root } from './source.ts';
import type { Lender } from './temporary.ts';

/** `npm run example NAME`, until it says where its page is. */
export async function startExample(t: Lender, name: string): Promise<string> {
  const child = spawn(process.execPath, ['examples/start.ts', name, '0'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => void child.kill('SIGTERM'));
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^Open (\S+)/.exec(line)?.[1];
    if (url) return url;
  }
  throw new Error('the example did not start');
}
