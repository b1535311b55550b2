/** A PostgreSQL database without servers: those that start wait until it is released. */
import { RestoreError } from '../restore-error.ts';
import type { StillDatabase } from '../still-database.ts';
import { exactIntegers, readTable } from './backup.ts';
import { migrationLock, serverName } from './engine.ts';
import { Servers } from './servers.ts';
import { explainTls } from './tls.ts';

/**
 * Each server takes the lock of migrations when it starts, so none starts while this holds it.
 * @throws RestoreError when a server or a command of the vault is connected, or one is starting.
 */
export async function holdPostgres(databaseUrl: string): Promise<StillDatabase> {
  const servers = new Servers(databaseUrl, {
    application_name: 'strongroom copy',
    types: exactIntegers,
  });
  try {
    const session = await servers.connect({}).catch((error) => {
      throw explainTls(error);
    });
    const ask = async (text: string) => (await session.query({ text })).rows[0];
    const held = await ask(`select pg_try_advisory_lock(${migrationLock}) as isheld`);
    const found = await ask(
      `select count(*)::int as connected from pg_stat_activity
        where datname = current_database() and application_name = '${serverName}'`,
    );
    if (held?.isheld !== true || found?.connected !== 0) {
      throw new RestoreError(
        'A server is connected to the database. Stop all servers first: what they write during the copy would be ' +
          'missing.',
      );
    }
    await ask('begin isolation level repeatable read read only');
    return {
      rows: (table) => readTable(session, table),
      release: () => servers.close(),
    };
  } catch (error) {
    await servers.close();
    throw error;
  }
}
