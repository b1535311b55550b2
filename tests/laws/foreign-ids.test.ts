/** An id is stored in one way: a row under another way of writing it is nobody's, and hides nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idBytes } from '../../src/store/stored-form.ts';
import type { SqlValue } from '../../src/store/tables.ts';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { literal } from '../support/sql.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const secret = 'a secret value 5f0c';

onBothEngines('the id of a token, written in another way outside the vault', (engine) => {
  test('is found when rows are compared with the log, and is not shown as the token', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const { body } = await tenant.token({ type: 'token', data: secret });
    const id = String(body.id);
    const forms: SqlValue[] = [Buffer.from(`\u0002${id}`), Buffer.from(`\u0003${id}`)];
    let stored: SqlValue = idBytes(id);
    const write = async (form: SqlValue) => {
      const [from, to] = [literal(engine, stored), literal(engine, form)];
      await engine.run(vault.place, `update tokens set token_id = ${to} where token_id = ${from}`);
      stored = form;
    };
    // As text, no engine takes it: PostgreSQL reads it as bytes, and the tables of SQLite are strict.
    if (engine.name === 'sqlite') await assert.rejects(write(id), /BLOB column tokens.token_id/);
    for (const form of forms) {
      await write(form);

      assert.equal((await tenant.send('GET', `/tokens/${id}`)).status, 404);
      for (const path of ['/tokens', '/v2/tokens', '/tokens/export']) {
        const listed = await tenant.send('GET', path).catch(() => undefined);
        assert.equal(listed?.text.includes(secret) ?? false, false, path);
      }
      const words = ['logs', 'verify', '--state', '--json'];
      const { code, stdout } = await runCommand(words, environmentOf(vault.place));
      assert.equal(code, 3, stdout);
      const findings: { kind: string; id: string }[] = JSON.parse(stdout).findings;
      const kinds = findings.map((found) => `${found.kind} ${found.id === id}`);
      assert.deepEqual(kinds.sort(), ['inserted false', 'missing true']);
    }
  });
});
