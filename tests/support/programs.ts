/** Programs of other languages, run while the vault of this process responds. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Environment } from './process.ts';

export interface Ran {
  /** `absent` where there is no such program. */
  readonly code: number | null | 'absent';
  readonly stdout: string;
  readonly stderr: string;
}

export async function runProgram(words: readonly string[], environment: Environment): Promise<Ran> {
  const [program = '', ...rest] = words;
  const env = { PATH: process.env['PATH'], ...environment };
  const child = spawn(program, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed: Buffer[] = [];
  const complained: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => printed.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => complained.push(chunk));
  const code = await once(child, 'close').then(
    ([status]) => status,
    () => 'absent' as const,
  );
  return {
    code,
    stdout: String(Buffer.concat(printed)),
    stderr: String(Buffer.concat(complained)),
  };
}
