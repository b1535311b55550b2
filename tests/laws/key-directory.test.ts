/** Who can write to the database, and holds no root key, opens nothing with a key of its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, untilUsed } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const message = 'a stored key was altered outside the vault and is refused';

onBothEngines('the directory of keys', (engine) => {
  test('a row that was changed to point at another caller gives no access, and the operator is notified', async (t) => {
    const vault = await startVault(t, engine);
    const [own, other] = [await newTenant(vault), await newTenant(vault)];
    const { id } = (await other.token({ type: 'token', data: 'of the other tenant' })).body;
    const applications = new Map(
      await Promise.all(
        [own, other].map(async (tenant) => {
          const [row] = (await tenant.rows('applications')).filter(
            ({ type }) => type === 'private',
          );
          assert.ok(row);
          return [tenant, row.application_id] as const;
        }),
      ),
    );
    const key = await own.application({ permissions: ['token:create'] });
    const [known] = (await own.rows('api_keys')).slice(-1);
    const [victim] = (await other.rows('api_keys')).filter(
      (row) => row.application_id === applications.get(other),
    );
    const rows = await own.rows('api_keys');
    const used = await own.send('GET', '/applications/key', { key });
    // What notes the use writes the whole row, over what is altered beside it.
    await untilUsed(own, key);
    const row = rows.find((one) => one.application_id === used.body.id);
    assert.ok(known && victim && row);

    const at = `where key_hash = '${row.key_hash}'`;
    const change = (columns: Readonly<Record<string, string>>) => {
      const sets = Object.entries(columns).map(([name, value]) => `${name} = '${value}'`);
      return engine.run(vault.place, `update api_keys set ${sets.join(', ')} ${at}`);
    };
    const { tenant_id, application_id, key_id, proof } = row;
    const whole = { tenant_id, application_id, key_id, proof };
    const elsewhere = {
      tenant_id: other.id,
      application_id: String(applications.get(other)),
    };
    const forgeries = [
      elsewhere,
      { ...elsewhere, proof: victim.proof },
      { application_id: String(applications.get(own)) },
      { key_id: '00000000-0000-4000-8000-000000000000' },
      { proof: '' },
      { proof: `2.${proof.slice(2)}` },
    ];
    for (const forgery of forgeries) {
      await change(forgery);
      vault.clock.advance(1000);
      const errors = vault.logged.filter((line) => line.message === message).length;
      const answer = await vault.send('GET', `/tokens/${id}`, { key });
      assert.equal(answer.status, 401, JSON.stringify(Object.keys(forgery)));
      assert.equal(answer.text.includes('of the other tenant'), false);
      assert.equal(vault.logged.filter((line) => line.message === message).length, errors + 1);
      await change(whole);
    }
    vault.clock.advance(1000);
    assert.equal((await own.send('GET', '/applications/key', { key })).status, 200);
  });

  test('a session key that was pointed at another session is refused', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const open = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const session = async () => (await tenant.send('POST', '/sessions', { key: open })).body;
    const [weak, strong] = [await session(), await session()];
    const grant = { nonce: strong.nonce, permissions: ['token:create'] };
    await tenant.send('POST', '/sessions/authorize', { body: grant });
    const body = { type: 'token', data: 1 };
    const create = (key: string) => tenant.send('POST', '/tokens', { key, body });
    assert.equal((await create(weak.session_key)).status, 403);
    const strongId = (await tenant.rows('sessions')).find((row) => row.authorized_by)?.session_id;
    await engine.run(
      vault.place,
      `update api_keys set session_id = '${strongId}' where session_id is not null`,
    );
    assert.equal((await create(weak.session_key)).status, 401);
    assert.equal((await create(strong.session_key)).status, 201);
  });
});
