/** `strongroom person …`, beside a server on the same data: whoever cannot sign in any more gets in again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { signedIn, useCode } from '../support/people.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

onBothEngines('the operator’s commands for people', (engine) => {
  test('a link signs in the administrator, who is made once, and the log explains every row', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const environment = environmentOf(vault.place);
    const run = (...words: string[]) => runCommand(words, environment);
    const person = async (...words: string[]) => {
      const { code, stdout, stderr } = await run(
        'person',
        ...words,
        '--tenant',
        tenant.id,
        '--json',
      );
      assert.equal(code, 0, stderr);
      return stdout
        .trim()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    };
    const codeOf = ([link]: readonly { url: string }[]) => link?.url.split('#')[1] ?? '';
    const first = codeOf(await person('link'));
    assert.deepEqual(await tenant.rows('people'), [], 'nobody is made before the link is used');
    const administrator = await signedIn(vault.url, '', await useCode(vault.url, first));
    const [made] = await person('list');
    assert.equal(made.name, 'Administrator');
    const [management = '', tokens = ''] = made.applications as string[];
    assert.equal((await administrator.send(management, 'GET', '/people')).status, 200);
    assert.equal((await administrator.send(tokens, 'GET', '/tokens')).status, 200);
    await signedIn(vault.url, '', await useCode(vault.url, codeOf(await person('link'))));
    assert.equal((await person('list')).length, 1);
    const sessions = await person('sessions');
    assert.equal(sessions.length, 2);
    await person('sessions', '--end', sessions[0].id);
    assert.equal((await person('sessions')).length, 1);
    const [ada] = await person('add', '--name', 'Ada Lovelace', '--application', tokens);
    const guest = await signedIn(
      vault.url,
      ada.id,
      await useCode(vault.url, codeOf(await person('link', '--person', ada.id))),
    );
    assert.equal((await guest.send(tokens, 'GET', '/tokens')).status, 200);
    await person('remove', '--person', ada.id);
    // Another process removed the person: the server notices within a second.
    vault.clock.advance(1_000);
    assert.equal((await guest.send(tokens, 'GET', '/tokens')).status, 401);
    const verified = await run('logs', 'verify', '--state');
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  });

  test('a person or an application that does not exist is refused', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const run = (...words: string[]) =>
      runCommand(['person', ...words, '--tenant', tenant.id], environmentOf(vault.place));
    for (const words of [
      ['link', '--person', tenant.id],
      ['remove', '--person', tenant.id],
      ['sessions', '--end', tenant.id],
      ['add', '--name', 'Ada', '--application', tenant.id],
    ]) {
      assert.equal((await run(...words)).code, 1, words.join(' '));
    }
    assert.deepEqual(await tenant.rows('people'), []);
  });
});
