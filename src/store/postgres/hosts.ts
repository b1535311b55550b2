/** The servers that a URL names, in the form of libpq: one host, or several that replace each other. */
import { invalid } from '../../base/errors.ts';

export interface DatabaseHost {
  /** `host:port`, as in messages. */
  readonly name: string;
  readonly host: string;
  readonly port: number | undefined;
  /** For the driver, which takes one host. */
  readonly url: string;
}

/** A primary and its standbys; each of them is checked at a failover. */
export const hostsMax = 8;

export const portDefault = 5432;
const portMax = 65_535;

/** Scheme, user, hosts, path and parameters. `URL` does not parse several hosts. */
const form = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?/;
/** Characters that the driver drops or cuts off: it would read a different URL than the one that was checked. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
const unreadable = /[\u0000-\u0020\u007f#]/;

type NamedHost = readonly [host: string, port: string | undefined];

const hostAndPort = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/;

/** The value for a server that accepts writes, the only kind that a vault can use. */
const attributes: ReadonlySet<string> = new Set(['read-write', 'primary']);
const attributesName = 'target_session_attrs';

/**
 * In the order of the URL.
 * @throws VaultError `validation_failed` when it names a host twice, or asks for a server that takes no writes.
 */
export function hostsOf(text: string): readonly DatabaseHost[] {
  if (unreadable.test(text)) {
    throw invalid(
      'url',
      'must not have spaces, line breaks or #; in a password they are percent-encoded',
    );
  }
  const parts = form.exec(text);
  if (!parts) throw invalid('url', 'must begin with postgres://');
  const [, scheme = '', user = '', authority = '', path = '', query = ''] = parts;
  const parameters = new URLSearchParams(query);
  const requested = parameters.get(attributesName) ?? 'read-write';
  if (!attributes.has(requested)) {
    throw invalid('url', `must have ${attributesName}=read-write, because the vault writes`);
  }
  const inParameter = parameters.getAll('host').at(-1);
  const list = (inParameter || authority)
    .split(',')
    .map((one) => (inParameter ? [one, undefined] : partsOf(one)) as NamedHost);
  const [only = ['', undefined]] = list;
  if (list.length === 1) return [single(text, parameters, only)];

  const ports = parameters.get('port')?.split(',') ?? [];
  if (ports.length > 1 && ports.length !== list.length) {
    throw invalid('url', 'must name one port for all hosts, or one for each');
  }
  if (list.length > hostsMax) throw invalid('url', `must name at most ${hostsMax} hosts`);
  for (const name of ['host', 'port', attributesName]) parameters.delete(name);
  const rest = `${path}${parameters.size === 0 ? '' : `?${parameters}`}`;
  const hosts = list.map(([host, own], index) => {
    const port = portOf(ports[index] || ports[0] || own);
    if (host === '') throw invalid('url', 'must name a host before and after each comma');
    const written = host.startsWith('/') ? encodeURIComponent(host) : bracketed(host);
    return { ...nameOf(host, port), url: `${scheme}${user}${written}:${port}${rest}` };
  });
  if (new Set(hosts.map(({ name }) => name)).size < hosts.length) {
    throw invalid('url', 'must name each host once');
  }
  return hosts;
}

function nameOf(host: string, port: number): Pick<DatabaseHost, 'name' | 'host' | 'port'> {
  return { name: `${bracketed(host)}:${port}`, host, port };
}

/** Passed to the driver unchanged, which adds settings from its own variables. */
function single(text: string, parameters: URLSearchParams, [host, own]: NamedHost): DatabaseHost {
  const port = parameters.getAll('port').at(-1) || own || '';
  const known = port === '' ? undefined : portOf(port);
  // As the driver parses it, also without a host.
  if (![text, text.replace('@/', '@host/')].some((one) => URL.canParse(one, 'postgres://host'))) {
    throw invalid('url', 'must be a URL');
  }
  const name = `${bracketed(host) || 'the server'}${known === undefined ? '' : `:${known}`}`;
  return { name, host, port: known, url: text };
}

function partsOf(text: string): NamedHost {
  const [, host = '', port] = hostAndPort.exec(text) ?? [];
  return [decode(host.replace(/^\[|\]$/g, '')), port];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('url', 'must have hosts that are percent-encoded correctly');
  }
}

function portOf(text: string | undefined): number {
  if (text === undefined || text === '') return portDefault;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= portMax) return port;
  throw invalid('url', `must have ports from 1 to ${portMax}`);
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
