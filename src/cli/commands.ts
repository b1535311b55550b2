/** The command line: one row per command. */
import { type CommandTable, nameIn, type Selected } from './program.ts';
import { resourceCommands } from './resources/table.ts';
import { UsageError } from './terminal/command.ts';
import { explain } from './terminal/failure.ts';
import { shownTerminal } from './terminal/shown-terminal.ts';
import type { Terminal } from './terminal/terminal.ts';

/** Commands that a running vault executes, for callers who have a key of it. */
const ofResources: CommandTable = Object.fromEntries(
  Object.entries(resourceCommands).map(([name, row]) => [
    name,
    {
      title: row.title,
      load: async () => (await import('./resources/command.ts')).resourceCommand(row),
    },
  ]),
);

/** By the words that select them. */
export const commands: CommandTable = {
  serve: {
    title: 'run the vault',
    load: async () => (await import('./serve.ts')).serveCommand,
  },
  doctor: {
    title: 'check the configuration, the root key, the database and the machine',
    load: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  },
  backup: {
    title: 'copy the database while the vault runs',
    load: async () => (await import('./backup/backup.ts')).backupCommand,
  },
  restore: {
    title: 'verify a backup, and restore it into an empty place',
    load: async () => (await import('./backup/restore.ts')).restoreCommand,
  },
  'database copy': {
    title: 'copy a whole vault to an empty place on either engine',
    load: async () => (await import('./copy/copy.ts')).databaseCopy,
  },
  'database migrate': {
    title: 'bring the database to this release, without serving',
    load: async () => (await import('./database.ts')).databaseMigrate,
  },
  'database distribute': {
    title: 'spread the tables over the servers of a Citus database',
    load: async () => (await import('./database.ts')).databaseDistribute,
  },
  'tenant create': {
    title: 'create a tenant and its management key',
    load: async () => (await import('./tenant.ts')).tenantCreate,
  },
  'tenant list': {
    title: 'list the tenants and their quotas',
    load: async () => (await import('./tenant.ts')).tenantList,
  },
  'tenant quota': {
    title: 'show or set the quotas of a tenant',
    load: async () => (await import('./tenant.ts')).tenantQuota,
  },
  'tenant hosts add': {
    title: 'give a tenant a host name for a proxy',
    load: async () => (await import('./tenant-hosts.ts')).tenantHostsAdd,
  },
  'tenant hosts list': {
    title: 'list the host names of a tenant',
    load: async () => (await import('./tenant-hosts.ts')).tenantHostsList,
  },
  'tenant hosts remove': {
    title: 'take a host name from a tenant',
    load: async () => (await import('./tenant-hosts.ts')).tenantHostsRemove,
  },
  'tenant delete': {
    title: 'destroy a tenant and its data',
    load: async () => (await import('./tenant.ts')).tenantDelete,
  },
  'key create': {
    title: 'create a key',
    load: async () => (await import('./key.ts')).keyCreate,
  },
  'key list': {
    title: 'list the keys of a tenant',
    load: async () => (await import('./key.ts')).keyList,
  },
  'key delete': {
    title: 'delete a key',
    load: async () => (await import('./key.ts')).keyDelete,
  },
  'person link': {
    title: 'print a link that signs in to the console',
    load: async () => (await import('./person.ts')).personLink,
  },
  'person add': {
    title: 'add a person who may use the console',
    load: async () => (await import('./person.ts')).personAdd,
  },
  'person list': {
    title: 'list the people who may use the console',
    load: async () => (await import('./person.ts')).personList,
  },
  'person remove': {
    title: 'remove a person, and end their sessions',
    load: async () => (await import('./person.ts')).personRemove,
  },
  'person sessions': {
    title: 'list sessions in the console, or end one',
    load: async () => (await import('./person.ts')).personSessions,
  },
  'token honey': {
    title: 'raise an alert when a token is used',
    load: async () => (await import('./token-honey.ts')).tokenHoney,
  },
  'person methods': {
    title: 'list or remove the passkeys of a person',
    load: async () => (await import('./person.ts')).personMethods,
  },
  'key find': {
    title: 'find out whose key it is',
    load: async () => (await import('./key-find.ts')).keyFind,
  },
  'key revoke': {
    title: 'end a key, with the sessions that came from it',
    load: async () => (await import('./key-find.ts')).keyRevoke,
  },
  incident: {
    title: 'report what a key was used for',
    load: async () => (await import('./incident.ts')).incidentCommand,
  },
  'keys rotate root': {
    title: 'replace the root key',
    load: async () => (await import('./keys/rotate-root.ts')).keysRotateRoot,
  },
  unseal: {
    title: 'give a sealed server a share of its root key',
    load: async () => (await import('./unseal.ts')).unsealCommand,
  },
  'keys list': {
    title: 'list the versions of keys and the rows under them',
    load: async () => (await import('./keys/list.ts')).keysList,
  },
  'keys rotate data': {
    title: 'replace the keys that seal the data of tenants',
    load: async () => (await import('./keys/rotate.ts')).keysRotate('data'),
  },
  'keys rotate search': {
    title: 'replace the keys of search terms',
    load: async () => (await import('./keys/rotate.ts')).keysRotate('search'),
  },
  'keys rotate fingerprint': {
    title: 'replace the keys of fingerprints',
    load: async () => (await import('./keys/rotate.ts')).keysRotate('fingerprint'),
  },
  'keys rotate webhooks': {
    title: 'replace the keys that sign deliveries to webhooks',
    load: async () => (await import('./keys/rotate.ts')).keysRotate('webhooks'),
  },
  'keys rotate log': {
    title: 'replace the keys that sign the log',
    load: async () => (await import('./keys/rotate.ts')).keysRotate('log'),
  },
  'keys pause': {
    title: "pause the rotations of tenants' keys",
    load: async () => (await import('./keys/pause.ts')).keysPause,
  },
  'keys resume': {
    title: "resume the rotations of tenants' keys",
    load: async () => (await import('./keys/pause.ts')).keysResume,
  },
  'keys destroy': {
    title: 'destroy a version of a key that has no rows',
    load: async () => (await import('./keys/destroy.ts')).keysDestroy,
  },
  'erasure verify': {
    title: 'check a receipt that data was erased',
    load: async () => (await import('./erasure.ts')).erasureVerify,
  },
  'logs verify': {
    title: 'prove that the audit log is as it was written',
    load: async () => (await import('./logs/verify.ts')).logsVerify,
  },
  'logs list': {
    title: 'list entries of the audit log',
    load: async () => (await import('./logs/read.ts')).logsList,
  },
  'logs who': {
    title: 'show who did something with a token',
    load: async () => (await import('./logs/read.ts')).logsWho,
  },
  'logs what': {
    title: 'show what was done with a key',
    load: async () => (await import('./logs/read.ts')).logsWhat,
  },
  'logs follow': {
    title: 'print entries of the audit log as they are written',
    load: async () => (await import('./logs/read.ts')).logsFollow,
  },
  'logs export': {
    title: 'write the audit log to a file',
    load: async () => (await import('./logs/export.ts')).logsExport,
  },
  login: {
    title: 'store the address of a vault and a key for it',
    load: async () => (await import('./resources/login.ts')).login,
  },
  logout: {
    title: 'remove a stored profile with its key',
    load: async () => (await import('./resources/login.ts')).logout,
  },
  'profile list': {
    title: 'list the stored profiles',
    load: async () => (await import('./resources/login.ts')).profileList,
  },
  'profile use': {
    title: 'use another stored profile',
    load: async () => (await import('./resources/login.ts')).profileUse,
  },
  ...ofResources,
  import: {
    title: 'create tokens from a file',
    load: async () => (await import('./bulk/import.ts')).importCommand,
  },
  export: {
    title: 'write tokens to a file',
    load: async () => (await import('./bulk/export.ts')).exportCommand,
  },
  'reactor run': {
    title: 'run the code of a reactor on this machine',
    load: async () => (await import('./reactor.ts')).reactorRun,
  },
  'agent run': {
    title: 'start a program that uses values without seeing them',
    load: async () => (await import('./agent/run.ts')).agentRun,
  },
  mcp: {
    title: 'give an agent the tools of a running vault',
    load: async () => (await import('./agent/mcp.ts')).mcp,
  },
  demo: {
    title: 'show in a minute what a vault does',
    load: async () => (await import('./demo.ts')).demo,
  },
  completion: {
    title: 'print a completion script for bash, zsh or fish',
    load: async () => (await import('./completion.ts')).completionOf(commands),
  },
};

/**
 * Runs the command that the words select.
 * @returns the exit code; failures are written to standard error.
 */
export async function runCommand(words: readonly string[], process: Terminal): Promise<number> {
  const terminal = shownTerminal(process);
  const name = nameIn(commands, words);
  // The reader of a pipe may have seen enough. A server goes on without one.
  if (name !== 'serve') terminal.stdout.on('error', (error) => endWithReader(error, terminal));
  try {
    const selected = await select(words, terminal);
    return 'code' in selected
      ? selected.code
      : await selected.command.run(selected.flags, terminal);
  } catch (error) {
    const prefix = name === undefined ? 'strongroom' : `strongroom ${name}`;
    terminal.stderr.write(`${prefix}: ${explain(error)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

/** The parser is loaded where there is more to read than the words of a command: a start is quicker without. */
async function select(words: readonly string[], terminal: Terminal): Promise<Selected> {
  const name = words.join(' ');
  const row = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (row !== undefined) return { name, command: await row.load(), flags: {} };
  const { select: parse } = await import('./select.ts');
  return parse(commands, words, terminal);
}

function endWithReader(error: NodeJS.ErrnoException, terminal: Terminal): void {
  if (error.code !== 'EPIPE') terminal.stderr.write(`strongroom: ${explain(error)}\n`);
  terminal.exit(error.code === 'EPIPE' ? 0 : 1);
}
