/** Implements `fetch` in code: a request through the guarded client, to allowed hosts. */
import type { Readable } from 'node:stream';
import { second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { TraceContext } from '../../base/telemetry/trace-context.ts';
import { OutboundError } from '../../outbound/error.ts';
import type { Forward } from '../../outbound/forward.ts';
import { allowsDestination, matchesWildcard } from '../../rules/destinations.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { FetchInput, FetchOutput } from '../sandbox/sandbox.ts';

export interface Fetching {
  readonly tenant: Tenant;
  /** Patterns in lower case; null allows all that the tenant allows. */
  readonly allowedHosts: readonly string[] | null;
  readonly trace: TraceContext | undefined;
  /** From the request for which the code runs. */
  readonly loop?: string | undefined;
  readonly keyless?: true | undefined;
  readonly held: HeldResponses;
  /** From the DNS lookup to the last byte of the response. */
  readonly timeoutMs?: number;
}

/** How many response bytes of one call are in memory. Processing them takes several times as much. */
export interface HeldResponses {
  bytes: number;
}

const fetchResponseBytesMax = 4 * 1024 * 1024;
/** For responses that one call receives concurrently. */
const fetchHeldBytesMax = 2 * fetchResponseBytesMax;
const fetchTimeoutMsMax = 25 * second;
const methodForm = /^(?!CONNECT$|TRACE$)[A-Z]{1,20}$/;

/**
 * Does not follow redirects: each step would be another request, to another host.
 * @throws VaultError `forbidden` for a host that is not allowed, `bad_gateway` with the reason for a failure; neither
 * contains any part of the request or of the response.
 */
export async function fetchForCode(
  forward: Forward,
  { tenant, allowedHosts, trace, loop, keyless, held, timeoutMs = fetchTimeoutMsMax }: Fetching,
  { input, signal }: { readonly input: FetchInput; readonly signal: AbortSignal },
): Promise<FetchOutput> {
  const url = URL.parse(input.url);
  if (url === null || url.hostname === '') throw failed('the URL is not valid');
  if (!isAllowed(url, { tenant, allowedHosts })) throw refusedHost();
  if (!methodForm.test(input.method)) throw failed('the method is not one that HTTP has');
  url.hash = '';
  const ends = performance.now() + timeoutMs;
  try {
    const { status, headers, body } = await forward({
      method: input.method,
      url,
      headers: headersOf(input),
      body: input.body === undefined ? undefined : Buffer.from(input.body, 'base64'),
      timeoutMs,
      partition: tenant.id,
      signal,
      loop,
      keyless,
      ...(trace && { trace }),
    });
    const bytes = await collect(body, held, ends);
    return { status, statusText: '', headers: pairsOf(headers), body: bytes.toString('base64') };
  } catch (error) {
    if (error instanceof OutboundError) throw failed(error.message);
    throw error;
  }
}

function isAllowed(
  url: URL,
  { tenant, allowedHosts }: Pick<Fetching, 'tenant' | 'allowedHosts'>,
): boolean {
  const name = url.hostname.toLowerCase().replace(/\.$/, '');
  if (!allowsDestination(tenant.settings.proxy_destinations, name)) return false;
  return allowedHosts === null || allowedHosts.some((pattern) => matchesWildcard(pattern, name));
}

/** Requests no compression unless the code does: the code has no way to decompress a response. */
function headersOf({ headers }: FetchInput): string[] {
  const hasEncoding = headers.some(([name]) => name.toLowerCase() === 'accept-encoding');
  return [...headers.flat(), ...(hasEncoding ? [] : ['Accept-Encoding', 'identity'])];
}

/** Limits the total time: an idle timeout would not stop a host that sends a byte now and then. */
async function collect(body: Readable, held: HeldResponses, ends: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const late = () => body.destroy(new OutboundError('timeout'));
  const timer = setTimeout(late, Math.max(ends - performance.now(), 0));
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      held.bytes += chunk.length;
      // Leaving the loop closes the connection.
      if (bytes > fetchResponseBytesMax) throw new OutboundError('too_large');
      if (held.bytes > fetchHeldBytesMax) throw tooMuchAtOnce();
      chunks.push(chunk);
    }
    return Buffer.concat(chunks, bytes);
  } finally {
    clearTimeout(timer);
    held.bytes -= bytes;
  }
}

function tooMuchAtOnce(): VaultError {
  return failed(
    `responses that a call receives at the same time have at most ${fetchHeldBytesMax} bytes together`,
  );
}

function pairsOf(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, at) =>
    at % 2 === 0 ? [[name.toLowerCase(), flat[at + 1] ?? ''] as [string, string]] : [],
  );
}

function failed(reason: string): VaultError {
  return new VaultError('bad_gateway', { public: `fetch failed: ${reason}.` });
}

function refusedHost(): VaultError {
  return new VaultError('forbidden', {
    public:
      'fetch failed: the host is not among the allowed_hosts of the reactor, or not among the ' +
      'proxy_destinations of the tenant.',
  });
}
