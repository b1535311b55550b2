/** `strongroom agent run`: starts a program that holds placeholders, and whose requests pass through the vault. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import { second } from '../../base/clock.ts';
import { systemCodeOf } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { pooledRandom } from '../../base/random.ts';
import { readVariable } from '../../runtime/config/config.ts';
import { type Profile, profilesFile } from '../resources/profiles.ts';
import { requestVault } from '../resources/request.ts';
import { type Command, type Flags, repeated, UsageError } from '../terminal/command.ts';
import { ResponseError } from '../terminal/response-error.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { keyFlags, profileIn } from './agent-key.ts';
import { makeAgentFolder, type ProgramSettings, programEnvironment } from './environment.ts';
import { insidePort, requireOwnNetwork, wordsInside } from './network.ts';
import { startRelay } from './relay.ts';
import { placeholdersFor, readVariablesFile } from './variables.ts';

const egressPortDefault = 8082;
const connectMsMax = 10 * second;

/** As shells have them. */
const exitCodes = { isMissing: 127, cannotStart: 126, signal: 128 } as const;

export const agentRun: Command = {
  summary:
    'Start a program that sends its requests through the forward proxy of a running vault, and holds placeholders ' +
    'in place of values. They are sent with the key of an application with egress policies, which the program does ' +
    'not get: when this command ends, so does its way to the vault. The exit code is that of the program: 128 and ' +
    'the number of the signal that ended it, 127 if there is no such program, 126 if it cannot be started.',
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
    only: {
      kind: 'boolean',
      meaning:
        'the program has a network of its own, without another way out (Linux, with unshare, ip, and setpriv)',
    },
    'direct-loopback': {
      kind: 'boolean',
      meaning: 'the program reaches servers on this machine without the vault',
    },
    ...keyFlags,
  },
  examples: [
    '--key-file agent.key --variables agent.variables -- node agent.js',
    '--profile agent -- python3 report.py',
  ],
  run: async (flags, terminal) => {
    const words = repeated(flags, 'COMMAND');
    if (words.length === 0) throw new UsageError('the COMMAND is missing, after --');
    const isOnly = flags['only'] === true;
    const isLoopbackDirect = flags['direct-loopback'] === true;
    if (isOnly && isLoopbackDirect)
      throw new UsageError('give --only or --direct-loopback, not both');
    // In its namespaces it has no rights, but owns what root owns, such as settings of the kernel below /proc/sys.
    if (isOnly && process.geteuid?.() === 0)
      throw new UsageError('--only does not confine a program of root; run it as another user');
    const file = flags['variables'];
    const variables = typeof file === 'string' ? readVariablesFile(file) : [];
    const profile = profileIn(flags, terminal);
    const proxy = egressUrlIn(flags, terminal, profile);
    await requireHarmless(profile);
    const certificate = await authorityOf(profile);
    const placeholders = await placeholdersFor(profile, variables);
    await requireListening(proxy);
    const hidden = [flags['key-file'], profilesFile(terminal.env)].flatMap((one) =>
      typeof one === 'string' ? [one] : [],
    );
    return runProgram(words, terminal, {
      certificate,
      proxy,
      key: profile.key,
      placeholders,
      isLoopbackDirect,
      hidden: isOnly ? hidden : undefined,
    });
  },
};

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
 * The program may be able to read the file of the key, so the key itself must show no value.
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

/** `undefined` where the policies have tunnels alone, so that no connection is opened. */
async function authorityOf(profile: Profile): Promise<string | undefined> {
  const asked = { method: 'GET', path: '/egress/authority' };
  const response = await requestVault(profile, asked).catch((error: unknown) => {
    if (error instanceof ResponseError && error.status === 409) return undefined;
    throw error;
  });
  if (response === undefined) return undefined;
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

const passedOn = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR2', 'SIGWINCH'] as const;
/** A terminal sends these to all programs of its session, which must not get them twice. */
const ofTerminal: readonly string[] = ['SIGINT', 'SIGQUIT', 'SIGWINCH'];

interface ProgramStart extends Pick<ProgramSettings, 'placeholders' | 'isLoopbackDirect'> {
  /** Of the authority that it has to trust. */
  readonly certificate: string | undefined;
  readonly proxy: URL;
  readonly key: string;
  /** Of a program in a network of its own, the files that it must not read. */
  readonly hidden: readonly string[] | undefined;
}

const passwordBytes = 24;

/** Resolves to the exit code when the program has ended; by then its way to the vault is closed, its files removed. */
async function runProgram(
  words: readonly string[],
  terminal: Terminal,
  { certificate, proxy, key, hidden, ...settings }: ProgramStart,
): Promise<number> {
  const folder = makeAgentFolder(certificate);
  try {
    const password = pooledRandom()(passwordBytes).toString('hex');
    const door = join(folder.path, 'door');
    const own = hidden && { door, hidden, path: terminal.env['PATH'] ?? '' };
    if (own) requireOwnNetwork(own);
    const place = own ? { path: door } : { host: '127.0.0.1', port: 0 };
    const relay = await startRelay({ proxy, key, password }, place);
    const port = own ? insidePort : relay.port;
    const proxyUrl = `http://agent:${password}@127.0.0.1:${port}`;
    const env = programEnvironment(terminal.env, { ...settings, ...folder, proxyUrl });
    try {
      return await untilEnd(own ? wordsInside(words, own) : words, terminal, {
        env,
        isInside: own !== undefined,
      });
    } finally {
      relay.close();
    }
  } finally {
    folder.remove();
  }
}

interface StartedProgram {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether its first process passes signals on, in a session without a terminal. */
  readonly isInside: boolean;
}

async function untilEnd(
  [program = '', ...given]: readonly string[],
  terminal: Terminal,
  { env, isInside }: StartedProgram,
): Promise<number> {
  let child: ChildProcess | undefined;
  const listeners = passedOn.map((signal) => {
    const isTwice = !isInside && ofTerminal.includes(signal) && terminal.stdin.isTTY === true;
    return [signal, () => void (isTwice || (child && send(child, signal, isInside)))] as const;
  });
  for (const [signal, listener] of listeners) process.on(signal, listener);
  try {
    // With the terminal of a shell, it could type commands there (TIOCSTI, CVE-2017-5226), which run outside.
    child = spawn(program, given, { env, stdio: 'inherit', detached: isInside });
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? exitCodes.signal + (constants.signals[signal ?? 'SIGKILL'] ?? 0);
  } catch (error) {
    const reason = systemCodeOf(error);
    if (reason === undefined) throw error;
    terminal.stderr.write(`strongroom agent run: the program cannot be started: ${reason}\n`);
    return reason === 'ENOENT' ? exitCodes.isMissing : exitCodes.cannotStart;
  } finally {
    for (const [signal, listener] of listeners) process.off(signal, listener);
  }
}

/** `unshare` itself ignores signals; its only child is the first process of the program's own. */
function send(child: ChildProcess, signal: NodeJS.Signals, isInside: boolean): void {
  if (!isInside) {
    child.kill(signal);
    return;
  }
  const { pid } = child;
  const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
  if (first) process.kill(Number(first), signal);
}
