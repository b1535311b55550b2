/** AWS as Moto, a Python program, plays it: for tests of the root key source `aws-kms`, where it is installed. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { nextLook } from './poll.ts';
import { freePort, type Lender } from './temporary.ts';

/** The path of its program; `moto_server` on the path unless given. */
const variable = 'TEST_MOTO_BIN';

const program = process.env[variable] ?? 'moto_server';

/** A reason to skip tests where it is not installed; false where it is. */
export const withoutMoto =
  spawnSync(program, ['--help']).status === 0
    ? false
    : `Moto was not found: pip install 'moto[server]', or name its moto_server in ${variable}`;

/** Returns its address. */
export async function startMoto(t: Lender): Promise<string> {
  const port = String(await freePort());
  const server = spawn(program, ['-H', '127.0.0.1', '-p', port], { stdio: 'ignore' });
  t.after(async () => {
    server.kill('SIGKILL');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  });
  const address = `http://127.0.0.1:${port}`;
  while (!(await responds(address))) await nextLook();
  return address;
}

async function responds(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${address}/moto-api/data.json`);
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}
