/** `strongroom reactor run`: runs the code of a reactor on the developer's machine, in the same sandbox. */
import { VaultError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import type { Isolation } from '../reactors/sandbox/isolation.ts';
import {
  argumentsBytesMax,
  timeoutMsDefault,
  timeoutMsMaxAsync,
} from '../reactors/sandbox/limits.ts';
import { openSandbox } from '../reactors/sandbox/open.ts';
import { findIsolation } from '../reactors/sandbox/probe.ts';
import type {
  CodeContract,
  CodeError,
  Sandbox,
  SandboxCall,
  SandboxResult,
} from '../reactors/sandbox/sandbox.ts';
import { type Command, type Flags, UsageError } from './terminal/command.ts';
import { readGivenFile } from './terminal/given-text.ts';
import type { Terminal } from './terminal/terminal.ts';

export const reactorRun: Command = {
  summary: [
    'Run the code of a reactor in the sandbox of the vault, with its limits: the result goes to standard output,',
    'the log to standard error. There is no vault, so that bt is null and fetch is refused.',
  ].join(' '),
  operand: { name: 'file', meaning: 'the code, CommonJS' },
  flags: {
    args: { kind: 'string', value: 'JSON', meaning: 'what the function gets, {} otherwise' },
    configuration: { kind: 'string', value: 'JSON', meaning: 'texts by name' },
    image: { kind: 'string', value: 'NAME', meaning: 'node-bt, which is the default, or node22' },
    timeout: {
      kind: 'string',
      value: 'SECONDS',
      meaning: `from 1 to ${timeoutMsMaxAsync / 1000}, ${timeoutMsDefault / 1000} otherwise`,
    },
  },
  examples: [
    'sign.js --args \'{"amount": 1}\'',
    'sign.js --image node22 --configuration \'{"KEY": "x"}\'',
  ],
  run: async (flags, terminal) => {
    const call = await callOf(flags);
    const sandbox = openSandbox(await isolationHere());
    try {
      return await runIn(terminal, sandbox, call);
    } finally {
      await sandbox.close();
    }
  },
};

/** The developer's own code may run where nothing keeps it apart. */
async function isolationHere(): Promise<Isolation> {
  const isolation = (await findIsolation()) ?? (await findIsolation('none'));
  if (isolation === undefined) throw new Error('no process of code can be started here');
  return isolation;
}

async function runIn(terminal: Terminal, sandbox: Sandbox, call: SandboxCall): Promise<number> {
  const problem = await sandbox.check(call);
  if (problem !== undefined) {
    terminal.stderr.write(`strongroom reactor run: the code ${problem.message}\n`);
    return 1;
  }
  const result = await sandbox.run(call);
  for (const { level, text } of result.log) terminal.stderr.write(`${level} ${text}\n`);
  return printed(terminal, result);
}

function printed({ stdout, stderr }: Terminal, result: SandboxResult): number {
  if (result.kind === 'returned') {
    stdout.write(`${JSON.stringify(result.value, null, 2)}\n`);
    return 0;
  }
  const text = result.kind === 'threw' ? textOf(result.error) : `the code ended: ${result.reason}`;
  stderr.write(`strongroom reactor run: ${text}\n`);
  return 1;
}

function textOf({ name, status, detail, errors, place, response }: CodeError): string {
  const shown = { status, detail, errors, ...(response && { response }) };
  const at = place ? ` at line ${place.line}, column ${place.column}` : '';
  return `the code threw ${name === 'other' ? 'an error' : name}${at}: ${JSON.stringify(shown)}`;
}

async function callOf(flags: Flags): Promise<SandboxCall> {
  const { file } = flags;
  if (typeof file !== 'string') throw new UsageError('give the file with the code');
  const args = objectIn(flags, 'args');
  if (Buffer.byteLength(JSON.stringify(args)) > argumentsBytesMax) {
    throw new UsageError(`--args may have at most ${argumentsBytesMax} bytes`);
  }
  const contract = contractIn(flags);
  const configuration = objectIn(flags, 'configuration');
  return {
    tenant: 'developer',
    code: readGivenFile(file),
    contract,
    input: { [contract === 'node22' ? 'req' : 'args']: args, configuration },
    bt: false,
    timeoutMs: timeoutIn(flags),
    modules: new Map(),
    serve: refuse,
  };
}

async function refuse(): Promise<never> {
  throw new VaultError('forbidden', {
    public: 'There is no vault here that could send a request.',
  });
}

function contractIn({ image = 'node-bt' }: Flags): CodeContract {
  if (image === 'node-bt' || image === 'node22') return image;
  throw new UsageError('--image must be node-bt or node22');
}

function timeoutIn({ timeout }: Flags): number {
  if (timeout === undefined) return timeoutMsDefault;
  const ms = Number(timeout) * 1000;
  if (ms >= 1000 && ms <= timeoutMsMaxAsync) return ms;
  throw new UsageError(`--timeout must be from 1 to ${timeoutMsMaxAsync / 1000} seconds`);
}

/** The message quotes nothing of it: arguments may be card numbers. */
function objectIn(flags: Flags, name: string): JsonObject {
  const text = flags[name] ?? '{}';
  try {
    const value: unknown = JSON.parse(String(text));
    if (isObject(value)) return value;
  } catch {}
  throw new UsageError(`--${name} must be a JSON object`);
}
