/** The router of docs/move.md leads each tenant's host to its vault, and elsewhere once its line was changed. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request as send } from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import { codeBlocksOf } from '../support/code-blocks.ts';
import { onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { untilAccepts } from '../support/poolers.ts';
import { root } from '../support/source.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';
import { startVault } from '../support/vault.ts';

const skip = spawnSync('nginx', ['-v']).error !== undefined && 'this machine has no nginx';

/** Each place that a test has otherwise must be in the document. */
function replaced(text: string, by: readonly (readonly [string, string])[]): string {
  return by.reduce((changed, [from, to]) => {
    assert.ok(changed.includes(from), from);
    return changed.replaceAll(from, to);
  }, text);
}

onBothEngines('the router of cells', (engine) => {
  test('leads a host to its vault, and to another one after a reload, and fails no request', {
    skip,
  }, async (t) => {
    const directory = temporaryDirectory(t);
    const { cert } = writeCertificate(directory);
    const cells = [await startVault(t, engine), await startVault(t, engine)] as const;
    const keys = await Promise.all(cells.map((cell) => cell.application()));
    const port = await freePort();
    const path = 'docs/move.md';
    const blocks = codeBlocksOf(path, readFileSync(join(root, path), 'utf8'));
    const [block] = blocks.filter(({ code }) => code.includes('map $host $cell'));
    assert.ok(block);
    const configure = (cell: 1 | 2) => {
      const router = replaced(block.code, [
        ['10.0.1.11:8080', new URL(cells[0].url).host],
        ['10.0.2.11:8080', new URL(cells[1].url).host],
        ['listen 443 ', `listen 127.0.0.1:${port} `],
        ['/etc/nginx/tls/vault.crt', join(directory, 'tls.crt')],
        ['/etc/nginx/tls/vault.key', join(directory, 'tls.key')],
        ['acme.vault.example    http://cell-2', `acme.vault.example    http://cell-${cell}`],
      ]);
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${directory}/${name};`,
      );
      const user = process.getuid?.() === 0 ? 'user root;' : '';
      writeFileSync(
        join(directory, 'main.conf'),
        `${user} daemon off; pid ${directory}/pid; error_log ${directory}/error.log;
events {}
http { access_log off; ${temporary.join(' ')} ${router} }\n`,
      );
    };
    configure(2);
    const words = ['-p', directory, '-e', join(directory, 'start.log')];
    const nginx = spawn('nginx', [...words, '-c', join(directory, 'main.conf')], {
      stdio: 'ignore',
    });
    const exited = once(nginx, 'exit');
    t.after(async () => {
      nginx.kill('SIGTERM');
      await exited;
    });
    await untilAccepts(port);

    const statusOf = async (host: string, key: string | undefined): Promise<number> => {
      const headers = { host, 'svc-api-key': key ?? '' };
      const options = { port, ca: cert, servername: 'localhost', agent: false, headers } as const;
      const request = send(`https://127.0.0.1/v2/tokens`, options).end();
      const [response] = await once(request, 'response');
      response.resume();
      await once(response, 'close');
      return response.statusCode;
    };
    /** Which of the two vaults knows its key behind this host. */
    const statusesOf = (host: string) => Promise.all(keys.map((key) => statusOf(host, key)));
    assert.deepEqual(await statusesOf('acme.vault.example'), [401, 200]);
    assert.deepEqual(await statusesOf('other.vault.example'), [200, 401]);

    configure(1);
    nginx.kill('SIGHUP');
    const isAt = async (wanted: readonly number[]) => {
      const found = await statusesOf('acme.vault.example');
      for (const status of found) assert.ok(status === 200 || status === 401, `${status}`);
      return found.join() === wanted.join();
    };
    while (!(await isAt([200, 401]))) await nextLook();
    assert.deepEqual(await statusesOf('other.vault.example'), [200, 401]);
  });
});
