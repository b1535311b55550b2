/** The command line: one row per command. */
import { parseArgs } from 'node:util';
import { reasonOf, VaultError } from '../lib/errors.ts';
import { type Command, type Flags, UsageError } from './command.ts';
import { demo } from './demo.ts';
import { exportCommand } from './export.ts';
import { importCommand } from './import.ts';
import { keyCreate, keyDelete, keyList } from './key.ts';
import { logsExport } from './logs-export.ts';
import { logsVerify } from './logs-verify.ts';
import { serveCommand } from './serve.ts';
import { tenantCreate, tenantDelete, tenantList, tenantQuota } from './tenant.ts';

const commands: readonly Command[] = [
  serveCommand,
  tenantCreate,
  tenantList,
  tenantQuota,
  tenantDelete,
  keyCreate,
  keyList,
  keyDelete,
  logsVerify,
  logsExport,
  importCommand,
  exportCommand,
  demo,
];

/** Failures whose message is written for the operator. That of another may hold a value. */
const operatorErrors = new Set([
  'AnswerError',
  'ConfigError',
  'DamagedFileError',
  'DowngradeError',
  'ForeignRootKeyError',
  'NoDatabaseError',
  'OperatorFileError',
  'RootKeyError',
  'SqliteError',
  'UsageError',
]);

/** PostgreSQL's about connecting, signing in, resources and the machine, which name no value. */
const databaseErrors = /^(?:08|28|3D|53|57|58)[0-9A-Z]{3}$/;

/** Runs the command that the words select, and gives the exit code. */
export async function runCommand(words: readonly string[]): Promise<number> {
  const command = commands.find(({ name }) => {
    const parts = name.split(' ');
    return parts.every((part, index) => words[index] === part);
  });
  if (!command) {
    const asked = words.length === 0 || words[0] === 'help' || words[0] === '--help';
    (asked ? process.stdout : process.stderr).write(usage());
    return asked ? 0 : 2;
  }
  try {
    return await command.run(readFlags(command, words.slice(command.name.split(' ').length)));
  } catch (error) {
    process.stderr.write(`strongroom ${command.name}: ${explain(error)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function readFlags({ flags, operand }: Command, words: readonly string[]): Flags {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { kind, repeated = false }]) => [
      name,
      { type: kind, multiple: repeated },
    ]),
  );
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      options,
      strict: true,
      allowPositionals: operand !== undefined,
    });
    const [word, ...others] = positionals;
    if (others.length > 0) throw new UsageError(`one ${operand?.name} at a time`);
    return { ...(values as Flags), ...(operand && { [operand.name]: word }) };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : 'the flags are not valid');
  }
}

function explain(error: unknown): string {
  if (error instanceof VaultError) return explainAttributes(error) ?? error.public;
  if (!(error instanceof Error)) return reasonOf(error);
  // What the operating system refuses, it says of a file or an address.
  if (operatorErrors.has(error.name) || 'syscall' in error) return error.message;
  const code = 'code' in error ? String(error.code) : '';
  return databaseErrors.test(code) ? error.message : `${code} ${reasonOf(error)}`.trim();
}

function explainAttributes({ errors }: VaultError): string | undefined {
  if (errors === undefined) return undefined;
  return Object.entries(errors)
    .map(([name, messages]) => `${name} ${messages.join(', ')}`)
    .join('; ');
}

function usage(): string {
  const lines = commands.map(({ name, summary, flags, operand }) => {
    const options = Object.entries(flags).map(
      ([flag, { meaning }]) => `      --${flag}  ${meaning}\n`,
    );
    const named = operand ? `      ${operand.name}  ${operand.meaning}\n` : '';
    const words = operand ? `${name} ${operand.name}` : name;
    return `  strongroom ${words}\n      ${summary}\n${named}${options.join('')}`;
  });
  return `Usage:\n${lines.join('\n')}`;
}
