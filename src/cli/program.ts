/** The table of all commands, by the words that select them. */
import type { Command, Flags } from './terminal/command.ts';

/** A row of the table of commands. */
export interface CommandRow {
  /** A few words, for the list of all. */
  readonly title: string;
  /** Reads the command when it is needed, so that a start reads no other. */
  readonly load: () => Promise<Command>;
}

export type CommandTable = Readonly<Record<string, CommandRow>>;

/** The command to run with its flags, or the exit code if help was printed or the words are wrong. */
export type Selected =
  | { readonly name: string; readonly command: Command; readonly flags: Flags }
  | { readonly code: number };

/** The help for commands that share their first words. */
export const groups: Readonly<Record<string, string>> = {
  database: 'the tables of the database, and the move to another one',
  tenant: 'tenants, their quotas and host names',
  'tenant hosts': 'host names that a tenant may give to its proxies',
  key: 'keys of applications, for the operator',
  keys: 'encryption keys of the vault and its tenants',
  'keys rotate': 'new keys in place of those in use',
  erasure: 'receipts that data was erased',
  logs: 'the audit log',
  person: 'people who use the console',
  profile: 'stored addresses and keys of vaults',
  token: 'tokens',
  app: 'applications and their keys',
  'app keys': 'further keys of an application',
  'encryption-key': 'keys by which clients encrypt',
  rule: 'access rules',
  proxy: 'proxies',
  reactor: 'reactors and their code',
  webhook: 'webhooks',
  session: 'sessions',
  approvals: 'requests of programs that wait for a person',
  agent: 'programs that use values without seeing them',
};

/** The command whose words these begin with. */
export function nameIn(table: CommandTable, words: readonly string[]): string | undefined {
  return Object.keys(table).find((name) =>
    name.split(' ').every((part, index) => words[index] === part),
  );
}
