/** The command line: one row per command. */
import { parseArgs } from 'node:util';
import { reasonOf, VaultError } from '../lib/errors.ts';
import { type Command, type Flags, UsageError } from './terminal/command.ts';

/** By the words that select them. Each is read when it is asked for, so that a start reads no other. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand,
  'tenant create': async () => (await import('./tenant.ts')).tenantCreate,
  'tenant list': async () => (await import('./tenant.ts')).tenantList,
  'tenant quota': async () => (await import('./tenant.ts')).tenantQuota,
  'tenant delete': async () => (await import('./tenant.ts')).tenantDelete,
  'key create': async () => (await import('./key.ts')).keyCreate,
  'key list': async () => (await import('./key.ts')).keyList,
  'key delete': async () => (await import('./key.ts')).keyDelete,
  'logs verify': async () => (await import('./logs/verify.ts')).logsVerify,
  'logs export': async () => (await import('./logs/export.ts')).logsExport,
  import: async () => (await import('./import.ts')).importCommand,
  export: async () => (await import('./export.ts')).exportCommand,
  demo: async () => (await import('./demo.ts')).demo,
};

/** Failures whose message is written for the operator. That of another may hold a value. */
const operatorErrors = new Set([
  'AnswerError',
  'ConfigError',
  'DamagedFileError',
  'DirectoryLockedError',
  'DatabaseTlsError',
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
  const selected = Object.entries(commands).find(([name]) => {
    const parts = name.split(' ');
    return parts.every((part, index) => words[index] === part);
  });
  if (!selected) {
    const asked = words.length === 0 || words[0] === 'help' || words[0] === '--help';
    (asked ? process.stdout : process.stderr).write(await usage());
    return asked ? 0 : 2;
  }
  const [name, load] = selected;
  const command = await load();
  try {
    return await command.run(readFlags(command, words.slice(name.split(' ').length)));
  } catch (error) {
    process.stderr.write(`strongroom ${name}: ${explain(error)}\n`);
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

async function usage(): Promise<string> {
  const all = await Promise.all(
    Object.entries(commands).map(async ([name, load]) => ({ name, ...(await load()) })),
  );
  const lines = all.map(({ name, summary, flags, operand }) => {
    const options = Object.entries(flags).map(
      ([flag, { meaning }]) => `      --${flag}  ${meaning}\n`,
    );
    const named = operand ? `      ${operand.name}  ${operand.meaning}\n` : '';
    const words = operand ? `${name} ${operand.name}` : name;
    return `  strongroom ${words}\n      ${summary}\n${named}${options.join('')}`;
  });
  return `Usage:\n${lines.join('\n')}`;
}
