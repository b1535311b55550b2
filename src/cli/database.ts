/** `strongroom database …`: how the tables lie, where the database has several servers. */
import { readConfig } from '../runtime/config/config.ts';
import { distribute, distributionStatements } from '../store/postgres/distribution.ts';
import { type Command, jsonFlag, print, UsageError } from './terminal/command.ts';

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
