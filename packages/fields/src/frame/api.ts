/** Calls to the vault, from a frame of its own origin. */
import type { Problem } from '../protocol.ts';

export class CallError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** A header of the vault under the prefix that it uses. */
export function header(name: string): string {
  return `${document.documentElement.dataset['prefix'] ?? 'SVC'}-${name}`;
}

/** The key is in the path of every frame. */
export const publicKey = decodeURIComponent(location.pathname.split('/').pop() ?? '');

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly key: string;
  readonly body?: unknown;
  readonly mediaType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answered {
  readonly status: number;
  /** JSON where it is JSON, otherwise a string. */
  readonly body: unknown;
}

/** Never throws for a status. @throws CallError where the vault does not respond. */
export async function send({
  method,
  path,
  key,
  body,
  mediaType,
  headers,
}: Call): Promise<Answered> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: {
        ...headers,
        [header('API-KEY')]: key,
        ...(body !== undefined && { 'Content-Type': mediaType ?? 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      credentials: 'omit',
      redirect: 'error',
    });
  } catch {
    const isOffline = !navigator.onLine;
    throw new CallError({
      code: isOffline ? 'offline' : 'vault_unreachable',
      message: isOffline
        ? 'The browser is offline. Nothing was sent.'
        : 'The vault did not respond. Try again with the same idempotency key.',
    });
  }
  const text = await response.text();
  try {
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  } catch {
    return { status: response.status, body: text };
  }
}

/** @throws CallError with the problem document. */
export async function sendOk(call: Call): Promise<unknown> {
  const { status, body } = await send(call);
  if (status < 300) return body;
  throw new CallError(problemOf(status, body));
}

function problemOf(status: number, body: unknown): Problem {
  const { type, detail, title } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const code = typeof type === 'string' ? (type.split(/[/:]/).pop() ?? '') : '';
  return {
    code: code === '' ? 'refused' : code,
    message: String(detail ?? title ?? `The vault responded with ${status}.`),
    status,
    document: body,
  };
}
