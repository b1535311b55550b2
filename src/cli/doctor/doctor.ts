/** `strongroom doctor`: finds problems before or while a vault runs, and says how to fix them. It changes nothing. */

import { type Config, readConfig } from '../../runtime/config/config.ts';
import { ConfigError } from '../../runtime/config/problems.ts';
import { type Command, jsonFlag } from '../terminal/command.ts';
import { explain } from '../terminal/failure.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { checkCode } from './code.ts';
import { checkDatabase } from './database.ts';
import { type Finding, reporter } from './finding.ts';
import { checkIdentityProvider } from './identity-provider.ts';
import { checkCertificate, checkDisk, checkFiles, checkServer } from './machine.ts';

export const doctorCommand: Command = {
  summary:
    'Check the configuration, the root key and other keys, rotations, the last backup, the database, durability, the ' +
    'clock, disk space, file modes and the address, how code of tenants is kept apart, and the identity provider. ' +
    'It changes nothing, also while a server runs. Exit code 1: there is a problem.',
  flags: { json: jsonFlag },
  examples: ['', '--json'],
  run: async (flags, { stdout, env }) => {
    const findings = await examine(env);
    stdout.write(
      flags['json'] === true ? `${JSON.stringify(reportOf(findings))}\n` : describe(findings),
    );
    return statusOf(findings) === 'problem' ? 1 : 0;
  },
};

async function examine(env: Terminal['env']): Promise<readonly Finding[]> {
  const { ok, problem } = reporter('configuration');
  let config: Config;
  try {
    config = readConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const advice =
      'Set or unset the variable; the other checks follow when the configuration is right.';
    return error.problems.map((text) => problem(text, advice));
  }
  const checks: Readonly<Record<string, (config: Config) => Promise<readonly Finding[]>>> = {
    // First: to read a database SQLite creates files next to it.
    files: async () => checkFiles(config, env),
    database: checkDatabase,
    disk: async () => checkDisk(config),
    certificate: async () => checkCertificate(config),
    server: checkServer,
    code: checkCode,
    'sign-in': checkIdentityProvider,
  };
  const findings: Finding[] = [ok('every variable is known and valid')];
  for (const [name, check] of Object.entries(checks)) {
    try {
      findings.push(...(await check(config)));
    } catch (error) {
      const advice = 'Run this as the user of the vault.';
      findings.push(reporter(name).problem(`it could not be checked: ${explain(error)}`, advice));
    }
  }
  return findings;
}

/** The worst of all. */
function statusOf(findings: readonly Finding[]): Finding['status'] {
  const has = (status: Finding['status']) => findings.some((finding) => finding.status === status);
  if (has('problem')) return 'problem';
  return has('warning') ? 'warning' : 'ok';
}

function reportOf(findings: readonly Finding[]): object {
  return { status: statusOf(findings), findings };
}

const indent = ' '.repeat(24);

function describe(findings: readonly Finding[]): string {
  const count = (status: Finding['status']) =>
    findings.filter((finding) => finding.status === status).length;
  const lines = findings.flatMap(({ check, status, message, advice }) => [
    `${status.padEnd(8)} ${check.padEnd(14)} ${message}`,
    ...(advice === undefined ? [] : [`${indent}${advice}`]),
  ]);
  const number = (status: 'warning' | 'problem') =>
    `${count(status)} ${status}${count(status) === 1 ? '' : 's'}`;
  const sum = `${count('ok')} ok, ${number('warning')}, ${number('problem')}`;
  return `${[...lines, sum].join('\n')}\n`;
}
