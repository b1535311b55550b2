/** Rows whose ids are not stored as the vault stores them: `logs verify --state` comes to an end and names each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

/** More than two pages of them. */
const count = 220;

onBothEngines('rows that are not in their places', (engine) => {
  test('do not keep verification from coming to an end, and are found', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const { body } = await tenant.token({ type: 'token', data: 1 });
    const columns = Object.keys((await engine.run(vault.place, 'select * from tokens'))[0] ?? {});
    // The text of a UUID, where the vault would store its 16 bytes, which sort before it.
    const idAt = (at: number) => {
      const text = `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`;
      const hex = `02${Buffer.from(text).toString('hex')}`;
      return engine.name === 'sqlite' ? `x'${hex}'` : `'\\x${hex}'::bytea`;
    };
    for (let at = 0; at < count; at += 1) {
      const values = columns.map((column) => (column === 'token_id' ? idAt(at) : column));
      const only = at === 0 ? '' : ' limit 1';
      await engine.run(
        vault.place,
        `insert into tokens (${columns}) select ${values} from tokens${only}`,
      );
    }
    const { stdout, code } = await runCommand(
      ['logs', 'verify', '--state', '--json'],
      environmentOf(vault.place),
    );
    assert.equal(code, 3);
    const findings: readonly { kind: string; id: string }[] = JSON.parse(stdout).findings;
    assert.equal(findings.length, count);
    assert.ok(findings.every(({ kind, id }) => kind === 'inserted' && id !== body.id));
  });
});
