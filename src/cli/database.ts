/** `strongroom database …`: the tables of this release, and how they lie where the database has several servers. */
import { bootstrap } from '../access/tenants/bootstrap.ts';
import { readConfig } from '../runtime/config/config.ts';
import { distribute, distributionStatements } from '../store/postgres/distribution.ts';
import { type Command, jsonFlag, print, UsageError } from './terminal/command.ts';
import { withVault } from './terminal/operator.ts';

export const databaseMigrate: Command = {
  summary:
    'Bring the database to this release and, where it is empty, make the tenant and its management key, as a start ' +
    'does; then end. Servers of the release before go on meanwhile.',
  flags: { json: jsonFlag },
  examples: ['', '--json'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault, config) => {
      const made = await bootstrap(vault, config.bootstrap);
      const { name = null } = made?.tenant ?? {};
      const key =
        made?.newKey === undefined ? '' : ` Its management key, shown only once: ${made.newKey}`;
      print(terminal, flags, {
        json: { created_tenant: name, ...(made?.newKey !== undefined && { key: made.newKey }) },
        line: `The database is that of this release.${name === null ? '' : ` Created the tenant "${name}".${key}`}`,
      });
      return 0;
    }),
};

export const databaseDistribute: Command = {
  summary:
    'Distribute the tables of a vault over the servers of a Citus database by tenant, and copy its directories to ' +
    'all of them. Stop the servers of the vault first; what is distributed already stays as it is.',
  flags: {
    print: { kind: 'boolean', meaning: 'print the statements, and run none' },
    json: jsonFlag,
  },
  examples: ['', '--print', '--json'],
  run: async (flags, terminal) => {
    if (flags['print'] === true) {
      const statements = distributionStatements().map(({ statement }) => statement);
      print(terminal, flags, {
        json: { statements },
        line: statements.map((one) => `${one};`).join('\n'),
      });
      return 0;
    }
    const { databaseUrl } = readConfig(terminal.env);
    if (databaseUrl === undefined) {
      throw new UsageError(
        'the embedded database has one server; set STRONGROOM_DATABASE_URL to that of Citus',
      );
    }
    const tables = (await distribute(databaseUrl)).map(({ table }) => table);
    print(terminal, flags, {
      json: { tables },
      line:
        tables.length === 0
          ? 'Every table was distributed already.'
          : `Distributed ${tables.length} tables: ${tables.join(', ')}.`,
    });
    return 0;
  },
};
