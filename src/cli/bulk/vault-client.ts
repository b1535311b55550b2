/** Talking to a running vault: its address, and a key that is never given on the command line. */
import { type ClientRequest, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { readVariable } from '../../runtime/config/config.ts';
import { type Flag, type Flags, UsageError } from '../terminal/command.ts';
import { readGivenStream } from '../terminal/given-text.ts';
import { ResponseError } from '../terminal/response-error.ts';
import { readKeyFile, requireEncrypted } from '../terminal/sent-key.ts';
import type { Terminal } from '../terminal/terminal.ts';

const urlVariable = 'STRONGROOM_URL';
const urlDefault = 'http://127.0.0.1:8080';
const keyVariableDefault = 'STRONGROOM_KEY';
const prefixDefault = 'SVC';

export const clientFlags: Readonly<Record<string, Flag>> = {
  url: {
    kind: 'string',
    value: 'URL',
    meaning: `address of the vault (default: the variable ${urlVariable}, or ${urlDefault})`,
  },
  'key-env': {
    kind: 'string',
    value: 'VARIABLE',
    meaning: `environment variable that holds the key (default: ${keyVariableDefault})`,
  },
  'key-file': {
    kind: 'string',
    value: 'FILE',
    meaning: 'file that holds the key, instead of a variable',
  },
  'header-prefix': {
    kind: 'string',
    value: 'PREFIX',
    meaning: `prefix of the service's headers (default: ${prefixDefault})`,
  },
};

export interface VaultExchange {
  /** Write its body and end it. */
  readonly request: ClientRequest;
  /** Rejects with `ResponseError` unless the status is 200. It may come before the request has ended. */
  readonly pendingResponse: Promise<IncomingMessage>;
}

export interface VaultClient {
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: string;
  open(method: 'GET' | 'POST', path: string, mediaType?: string): VaultExchange;
}

/** @throws UsageError when there is no key, or no address. */
export function createVaultClient({ env }: Terminal, flags: Flags): VaultClient {
  const base = String(flags['url'] ?? readVariable(env, urlVariable) ?? urlDefault).replace(
    /\/$/,
    '',
  );
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    throw new UsageError(`--url or ${urlVariable} must be an http or https address`);
  }
  requireEncrypted(new URL(base), `--url or ${urlVariable}`);
  const key = readKey(env, flags);
  const prefix = String(flags['header-prefix'] ?? prefixDefault);
  return {
    url: base,
    key,
    open: (method, path, mediaType) => {
      const send = base.startsWith('https:') ? tlsRequest : plainRequest;
      const request = send(base + path, {
        method,
        headers: {
          [`${prefix}-API-KEY`]: key,
          ...(mediaType !== undefined && { 'content-type': mediaType }),
        },
      });
      return { request, pendingResponse: responseTo(request) };
    },
  };
}

function readKey(env: Terminal['env'], flags: Flags): string {
  const file = flags['key-file'];
  if (typeof file === 'string') return readKeyFile(file);
  const variable = String(flags['key-env'] ?? keyVariableDefault);
  const key = readVariable(env, variable);
  if (key !== undefined) return key;
  throw new UsageError(`there is no key: set the variable ${variable}, or use --key-file`);
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('error', (error) => reject(unreachable(request, error)));
    request.once('response', (response) => {
      if (response.statusCode === 200) resolve(response);
      else void textOf(response).then((text) => reject(refusalOf(response, text)), reject);
    });
  });
}

/** The address without what a URL may hold besides: a user, a query. */
function unreachable(request: ClientRequest, error: NodeJS.ErrnoException): ResponseError {
  const address = `${request.protocol}//${request.getHeader('host')}`;
  const advice = /^(?:ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ETIMEDOUT)$/.test(error.code ?? '')
    ? '; start the vault there, or give its address with --url or STRONGROOM_URL'
    : '';
  return new ResponseError(`cannot reach ${address}: ${error.code ?? error.message}${advice}`);
}

/** The whole of a response that is short. */
export async function textOf(response: IncomingMessage): Promise<string> {
  return readGivenStream('the response', response);
}

function refusalOf({ statusCode }: IncomingMessage, text: string): ResponseError {
  let detail = '';
  try {
    ({ detail = '' } = JSON.parse(text) as { detail?: string });
  } catch {
    // This is not a response of a vault; its text may hold anything, so it is not repeated.
  }
  return new ResponseError(`the vault returned ${statusCode}. ${detail}`.trim(), statusCode);
}
