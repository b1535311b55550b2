/** `strongroom agent run`: starts a program that holds placeholders, and whose requests pass through the vault. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { connect } from 'node:net';
import { constants } from 'node:os';
import { second } from '../../base/clock.ts';
import { systemCodeOf } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { exposedMode } from '../../base/private-file.ts';
import { readVariable } from '../../runtime/config/config.ts';
import { type Profile, profileFor } from '../resources/profiles.ts';
import { requestVault } from '../resources/request.ts';
import { type Command, type Flags, repeated, UsageError } from '../terminal/command.ts';
import { readGivenFile } from '../terminal/given-text.ts';
import { ResponseError } from '../terminal/response-error.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type ProgramSettings, programEnvironment, writeAuthorityFiles } from './environment.ts';
import { placeholdersFor, readVariablesFile } from './variables.ts';

const egressPortDefault = 8082;
const connectMsMax = 10 * second;

/** As shells have them. */
const exitCodes = { isMissing: 127, cannotStart: 126, signal: 128 } as const;

export const agentRun: Command = {
  summary:
    'Start a program that sends its requests through the forward proxy of a running vault, and holds placeholders ' +
    'in place of values. It gets the key of an application with egress policies, by which it reveals nothing. The ' +
    'exit code is that of the program: 128 and the number of the signal that ended it, 127 if there is no such ' +
    'program, 126 if it cannot be started.',
  operand: { name: 'COMMAND', meaning: 'the program and its arguments, after --', takesRest: true },
  flags: {
    variables: {
      kind: 'string',
      value: 'FILE',
      meaning: 'lines NAME=token:ID#property: variables of the program that get a placeholder',
    },
    egress: {
      kind: 'string',
      value: 'ADDRESS',
      meaning:
        'HOST:PORT or the URL of the forward proxy (default: STRONGROOM_EGRESS_ADDRESS, or port ' +
        `${egressPortDefault} of the vault)`,
    },
    'direct-loopback': {
      kind: 'boolean',
      meaning: 'the program reaches servers on this machine without the vault',
    },
    'key-file': {
      kind: 'string',
      value: 'FILE',
      meaning:
        'a file that holds the key, for the vault at STRONGROOM_URL or http://127.0.0.1:8080',
    },
    profile: {
      kind: 'string',
      value: 'NAME',
      ids: 'profile',
      meaning:
        'a vault and a key that strongroom login has stored (default: STRONGROOM_KEY, or the current profile)',
    },
  },
  examples: [
    '--key-file agent.key --variables agent.variables -- node agent.js',
    '--profile agent -- python3 report.py',
  ],
  run: async (flags, terminal) => {
    const words = repeated(flags, 'COMMAND');
    if (words.length === 0) throw new UsageError('the COMMAND is missing, after --');
    const file = flags['variables'];
    const variables = typeof file === 'string' ? readVariablesFile(file) : [];
    const profile = profileIn(flags, terminal);
    const proxy = egressUrlIn(flags, terminal, profile);
    await requireHarmless(profile);
    const certificate = await authorityOf(profile);
    const placeholders = await placeholdersFor(profile, variables);
    await requireListening(proxy);
    return runProgram(words, terminal, {
      certificate,
      proxyUrl: `${proxy.protocol}//agent:${encodeURIComponent(profile.key)}@${proxy.host}`,
      placeholders,
      isLoopbackDirect: flags['direct-loopback'] === true,
    });
  },
};

function profileIn(flags: Flags, { env }: Terminal): Profile {
  const { 'key-file': file, profile } = flags;
  if (typeof file !== 'string') {
    return profileFor(env, typeof profile === 'string' ? profile : undefined);
  }
  if (profile !== undefined) throw new UsageError('give --key-file or --profile, not both');
  if (exposedMode(statSync(file)) !== undefined) {
    throw new UsageError('others may read the file of --key-file; run chmod 600 on it');
  }
  const url = readVariable(env, 'STRONGROOM_URL') ?? 'http://127.0.0.1:8080';
  return { url, key: readGivenFile(file).trim() };
}

/** Without a scheme it has that of the vault: one certificate serves both. */
function egressUrlIn(flags: Flags, { env }: Terminal, profile: Profile): URL {
  const { protocol, hostname } = new URL(profile.url);
  const given = flags['egress'] ?? readVariable(env, 'STRONGROOM_EGRESS_ADDRESS');
  const address = typeof given === 'string' ? given : `${hostname}:${egressPortDefault}`;
  const text = address.includes('://') ? address : `${protocol}//${address}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.pathname !== '/') {
    throw new UsageError('--egress must be HOST:PORT, or an http or https address');
  }
  // Where every address is listened on, this machine is one of them.
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return url;
}

/** What shows a program the data of tokens, under a rule that reveals it. */
const showing = ['token:read', 'token:search', 'token:update'];

/**
 * The program has the key, so the key itself must show no value.
 * @throws ResponseError with the permissions that would.
 */
async function requireHarmless(profile: Profile): Promise<void> {
  const application = await requestVault(profile, { method: 'GET', path: '/applications/key' });
  const rules = listIn(isObject(application) ? application['rules'] : undefined);
  const revealed = rules
    .filter(isObject)
    .filter(({ transform }) => transform === 'reveal')
    .flatMap(({ permissions }) => listIn(permissions));
  const found = showing.filter((permission) => revealed.includes(permission));
  if (found.length === 0) return;
  throw new ResponseError(
    `the key would show values to the program: a rule of its application reveals by ${found.join(' and ')}; ` +
      'use the key of an application that has only proxy:invoke',
  );
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

async function authorityOf(profile: Profile): Promise<string> {
  const response = await requestVault(profile, { method: 'GET', path: '/egress/authority' });
  const certificate = isObject(response) ? response['certificate'] : undefined;
  if (typeof certificate === 'string') return certificate;
  throw new ResponseError('the response has no certificate; is there a vault at this address?');
}

/** @throws ResponseError that says so in one place, which a program would report in a hundred forms. */
async function requireListening({ protocol, hostname, port, host }: URL): Promise<void> {
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || (protocol === 'https:' ? 443 : 80)),
    timeout: connectMsMax,
  });
  socket.once('timeout', () => socket.destroy(new Error('timeout')));
  try {
    await once(socket, 'connect');
  } catch (error) {
    throw new ResponseError(
      `cannot reach the forward proxy at ${host}: ${systemCodeOf(error) ?? 'timeout'}; set ` +
        'STRONGROOM_EGRESS_ADDRESS for the vault, or give the address with --egress',
    );
  } finally {
    socket.destroy();
  }
}

const passedOn = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR2'] as const;
/** A terminal sends these to the program too, which must not get them twice. */
const ofTerminal: readonly string[] = ['SIGINT', 'SIGQUIT'];

interface ProgramStart extends Omit<ProgramSettings, 'files'> {
  /** Of the authority that it has to trust. */
  readonly certificate: string;
}

/** Resolves to the exit code when the program has ended; by then its files are removed. */
async function runProgram(
  [program = '', ...given]: readonly string[],
  terminal: Terminal,
  { certificate, ...settings }: ProgramStart,
): Promise<number> {
  let child: ChildProcess | undefined;
  const listeners = passedOn.map((signal) => {
    const isTwice = ofTerminal.includes(signal) && terminal.stdin.isTTY === true;
    return [signal, () => void (isTwice || child?.kill(signal))] as const;
  });
  for (const [signal, listener] of listeners) process.on(signal, listener);
  const files = writeAuthorityFiles(certificate);
  try {
    const env = programEnvironment(terminal.env, { ...settings, files });
    child = spawn(program, given, { env, stdio: 'inherit' });
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? exitCodes.signal + (constants.signals[signal ?? 'SIGKILL'] ?? 0);
  } catch (error) {
    const reason = systemCodeOf(error);
    if (reason === undefined) throw error;
    terminal.stderr.write(`strongroom agent run: the program cannot be started: ${reason}\n`);
    return reason === 'ENOENT' ? exitCodes.isMissing : exitCodes.cannotStart;
  } finally {
    for (const [signal, listener] of listeners) process.off(signal, listener);
    files.remove();
  }
}
