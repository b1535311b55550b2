/** A real OpenBao in memory, the open fork of HashiCorp Vault, for tests of the source `vault-transit`. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { nextLook } from './poll.ts';
import { freePort, type Lender } from './temporary.ts';

/** The path of its program; `bao` on the path unless given. */
const variable = 'TEST_OPENBAO_BIN';

export const program = process.env[variable] ?? 'bao';

/** A reason to skip tests where there is no OpenBao; false where there is one. */
export const withoutOpenBao =
  spawnSync(program, ['version']).status === 0
    ? false
    : `no OpenBao was found: name its program in ${variable}`;

export const rootToken = 'root';

export interface OpenBao {
  readonly address: string;
  /** Sends a request of its API as its root: POST with a body, else GET. Returns the JSON of the response. */
  call(path: string, body?: object): Promise<Record<string, unknown>>;
  /** It no longer responds, and keeps its connections, until it is resumed. */
  suspend(): Promise<void>;
  resume(): void;
}

/** With the Transit engine, and in it a key of the name `strongroom`. */
export async function startOpenBao(t: Lender): Promise<OpenBao> {
  const address = `127.0.0.1:${await freePort()}`;
  const server = spawn(
    program,
    [
      'server',
      '-dev',
      '-dev-no-store-token',
      `-dev-root-token-id=${rootToken}`,
      `-dev-listen-address=${address}`,
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  t.after(async () => {
    server.kill('SIGKILL');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  });
  await started(server.stdout);
  const bao: OpenBao = {
    address: `http://${address}`,
    call: async (path, body) => {
      const response = await fetch(`http://${address}/v1/${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { 'x-vault-token': rootToken },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`OpenBao: ${path} gave ${response.status} ${text}`);
      return text === '' ? {} : JSON.parse(text);
    },
    suspend: async () => {
      server.kill('SIGSTOP');
      // The signal stops its threads a moment later.
      while (!/^State:\tT/m.test(readFileSync(`/proc/${server.pid}/status`, 'utf8'))) {
        await nextLook();
      }
    },
    resume: () => void server.kill('SIGCONT'),
  };
  await bao.call('sys/mounts/transit', { type: 'transit' });
  await bao.call('transit/keys/strongroom', {});
  return bao;
}

/** The output stays open: OpenBao ends when it cannot write there any more. */
async function started(output: Readable): Promise<void> {
  let text = '';
  for await (const chunk of output.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (text.includes('Root Token:')) break;
  }
  output.resume();
}
