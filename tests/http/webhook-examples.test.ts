/** The receivers in docs/webhooks.md: as they are printed, they take what the vault sends, and nothing else. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import {
  type Arrival,
  addWebhook,
  allowing,
  startReceiver,
  webhookSecret,
} from '../support/receivers.ts';
import { root } from '../support/source.ts';
import { freePort, type Lender, temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { request, startVault } from '../support/vault.ts';

const languages = [
  { name: 'typescript', program: process.execPath, file: 'receiver.ts' },
  { name: 'python', program: 'python3', file: 'receiver.py' },
] as const;

/** The first example of a language. */
function exampleIn(language: string): string {
  const text = readFileSync(join(root, 'docs', 'webhooks.md'), 'utf8');
  const found = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(text)?.[1];
  assert.ok(found, language);
  return found;
}

async function arrivalOf(t: Lender): Promise<Arrival> {
  const receiver = await startReceiver(t);
  const vault = await startVault(t, engineOf('sqlite'), { environment: allowing(t, [receiver]) });
  const tenant = await newTenant(vault);
  await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
  await tenant.token({ type: 'token', data: 1, metadata: { name: 'Zoë' } });
  await receiver.until((arrivals) => arrivals.length === 1);
  const [arrival] = receiver.arrivals;
  assert.ok(arrival);
  return arrival;
}

async function untilListening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
  }
}

test('the receivers of the documentation verify what arrives', async (t) => {
  const arrival = await arrivalOf(t);
  for (const { name, program, file } of languages) {
    const path = join(temporaryDirectory(t), file);
    writeFileSync(path, exampleIn(name));
    const port = await freePort();
    const env = { PATH: process.env['PATH'], PORT: String(port), WEBHOOK_SECRET: webhookSecret };
    const child = spawn(program, [path], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => void child.kill());
    await untilListening(port);
    const { host: _host, connection: _connection, ...headers } = arrival.headers;
    const sendTo = (body: Buffer) =>
      request(`http://127.0.0.1:${port}/`, 'POST', { headers, body });
    const altered = Buffer.from(arrival.body);
    altered[altered.length - 3] = (altered.at(-3) ?? 0) ^ 1;
    assert.equal((await sendTo(altered)).status, 401, name);
    const said = once(child.stdout, 'data');
    assert.equal((await sendTo(arrival.body)).status, 204, name);
    assert.equal(String((await said)[0]), 'token.created 1\n');
  }
});
