/** Configuration: the only reader of the environment. */
import { availableParallelism, hostname } from 'node:os';
import { join } from 'node:path';
import type { ProviderConfig } from '../../access/people/identity-provider.ts';
import { parseHandle } from '../../access/tenants/handle.ts';
import { parseSink, type SinkPlace } from '../../audit/checkpoint-sink.ts';
import { type LogExportPlace, parseLogExport } from '../../audit/push/place.ts';
import { day, hour, minute, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { isOperatorKey, operatorKeyForm } from '../../keys/api-key.ts';
import { parseAuthorities } from '../../keys/authorities.ts';
import { type AllowList, parseAllowList } from '../../outbound/allow-list.ts';
import type { OutboundOptions } from '../../outbound/forward.ts';
import { comparedName, hostLengthMax, isDnsName, type VaultNames } from '../../rules/host-names.ts';
import { authorityFileOf, verifiedUrl } from '../../store/postgres/database-url.ts';
import { hostsOf, portDefault } from '../../store/postgres/hosts.ts';
import {
  type BankHostConfig,
  parseHeaders,
  parseRequest,
  parseResponse,
  parseUrl,
  requestDefault,
  responseDefault,
} from '../../tokens/enrichments/bank-host-config.ts';
import type { EnrichmentConfig } from '../../tokens/enrichments/enrichments.ts';
import { readDistribution } from './database.ts';
import { type LiveSettings, liveSettings } from './live-settings.ts';
import { readIdentityProvider } from './oidc.ts';
import { readAll, wrongVariable } from './problems.ts';
import { type ReactorConfig, readReactors } from './reactors.ts';
import { type RootKeyConfig, readRootKey } from './root-key.ts';
import { readTls, type TlsPair } from './tls.ts';
import {
  type Address,
  oneOf,
  parsed,
  readAddress,
  readFlag,
  readNumber,
  readPort,
  readText,
} from './values.ts';
import {
  type Environment,
  type ReadVariable,
  readerOf,
  refuseUnknown,
  type VariableName,
} from './variables.ts';

export interface Config extends LiveSettings {
  readonly host: string;
  readonly port: number;
  /** The number of threads that serve requests. */
  readonly threads: number;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  /** Whether a start distributes tables over the servers of Citus. */
  readonly isDistributed: boolean;
  /** So many bytes of the disk stay free for reading and deleting; `undefined` for a part of the disk. */
  readonly freeBytesMin: number | undefined;
  readonly rootKey: RootKeyConfig;
  readonly rootKeyFile: string;
  /** The age of data keys at which rows under them are sealed again; infinite for never. */
  readonly keyMaxAgeMs: number;
  /** A data key seals what is written within this time; infinite where no period ends. */
  readonly keyPeriodMs: number;
  readonly headerPrefixes: readonly string[];
  readonly tls: TlsPair | undefined;
  readonly bootstrap: {
    readonly tenant: string;
    readonly type: 'test' | 'production';
    readonly key: string | undefined;
    /** The file with the management key, or for it; only the first start uses it. */
    readonly keyFile: string | undefined;
  };
  /** Whether each request is a line of the operator's log. */
  readonly accessLog: boolean;
  /** The address of the forward proxy for programs; there is none unless it is given. */
  readonly egressAddress: Address | undefined;
  /** The address that serves metrics; then no other does. */
  readonly metricsAddress: Address | undefined;
  /** Whether the address of clients serves them. */
  readonly showsMetrics: boolean;
  /** The URL of a collector of OpenTelemetry traces, without a slash at its end. */
  readonly otlpEndpoint: string | undefined;
  /** The destination of log entries as they commit. */
  readonly logExport: LogExportPlace | undefined;
  /** A file with the header `Authorization` for an https collector of the log. */
  readonly logExportAuthorizationFile: string | undefined;
  /** The destination of log checkpoints as they are signed. */
  readonly checkpointSink: SinkPlace | undefined;
  /** Under which clients reach the vault, without a slash at its end. */
  readonly publicUrl: string | undefined;
  /** The vault's own hosts, and the domain below which every proxy has a host. */
  readonly names: VaultNames;
  /** The other hosts that may be called, and the certificate authorities for them. */
  readonly outbound: OutboundOptions;
  readonly enrichments: EnrichmentConfig;
  readonly reactors: ReactorConfig;
  /** Whether the console is served. */
  readonly console: boolean;
  /** With which people sign in to the console. */
  readonly identityProvider: ProviderConfig | undefined;
}

/** The settings that a running server can reload. */
export interface Reloadable extends LiveSettings, Pick<Config, 'tls'> {}

/** A variable that the operator names, such as the one that holds a key; `undefined` when it is empty. */
export function readVariable(environment: Environment, name: string): string | undefined {
  return environment[name] || undefined;
}

const prefixForm = /^[A-Za-z][A-Za-z0-9]{0,19}$/;
export const threadsMax = 64;
/** The key of a proxy and a dot come before it. */
const proxyDomainLengthMax = hostLengthMax - 39;
const loopback = new Set(['127.0.0.1', '::1', 'localhost']);
const ageUnits = { s: second, m: minute, h: hour, d: day } as const;

/** @throws ConfigError unless it is a duration such as `365d`, or `off`, which is infinite. */
function readAge(read: ReadVariable, name: VariableName, given: string): number {
  const text = read(name) ?? given;
  if (text === 'off') return Number.POSITIVE_INFINITY;
  const [, digits, unit] = /^([1-9][0-9]{0,7})([smhd])$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits) * ageUnits[unit as keyof typeof ageUnits];
  throw wrongVariable(`STRONGROOM_${name}`, `must be a duration such as ${given}, or off`);
}

/**
 * Reads the configuration; variables that are empty count as absent.
 * @throws ConfigError naming every variable that is wrong or unknown.
 */
export function readConfig(given: Environment): Config {
  const environment = withDatabaseUrl(given);
  const read = readerOf(environment);
  const dataDir = read('DATA_DIR') ?? './data';
  const rootKeyFile = read('ROOT_KEY_FILE') ?? join(dataDir, 'root.key');
  const outboundAllow = () => parsed(read, 'OUTBOUND_ALLOW', parseAllowList) ?? new Set<string>();
  const { unknown: _none, ...config } = readAll<Config & { readonly unknown: undefined }>({
    unknown: () => void refuseUnknown(environment),
    host: () => readHost(read),
    port: () => readPort(read('PORT')),
    threads: () =>
      readNumber(read, 'THREADS', { given: threadsDefault(), min: 1, max: threadsMax }),
    dataDir: () => dataDir,
    databaseUrl: () => databasePlace(read('DATABASE_URL'), environment),
    isDistributed: () => readDistribution(read),
    freeBytesMin: () => readFreeSpace(read),
    rootKey: () => readRootKey(read, { environment, file: rootKeyFile }),
    rootKeyFile: () => rootKeyFile,
    keyMaxAgeMs: () => readAge(read, 'KEY_MAX_AGE', '365d'),
    keyPeriodMs: () => readAge(read, 'DATA_KEY_PERIOD', '30d'),
    headerPrefixes: () => readPrefixes(read('HEADER_PREFIXES') ?? 'SVC'),
    tls: () => readTls(read),
    bootstrap: () => readBootstrap(read),
    logExport: () => parsed(read, 'LOG_EXPORT', parseLogExport),
    logExportAuthorizationFile: () => read('LOG_EXPORT_AUTHORIZATION_FILE'),
    checkpointSink: () =>
      parsed(read, 'CHECKPOINT_SINK', (text) => parseSink(text, outboundAllow())),
    accessLog: () =>
      oneOf('STRONGROOM_ACCESS_LOG', read('ACCESS_LOG') ?? 'off', ['on', 'off']) === 'on',
    egressAddress: () => readEgressAddress(read),
    metricsAddress: () => readAddress(read, 'METRICS_ADDRESS'),
    showsMetrics: () => read('METRICS_ADDRESS') === undefined && isOnLoopback(read),
    otlpEndpoint: () => readOtlpEndpoint(read('OTLP_ENDPOINT')),
    ...liveSettings(read),
    publicUrl: () => readPublicUrl(read('PUBLIC_URL')),
    names: () => readNames(read),
    outbound: () => readOutbound(read, outboundAllow),
    enrichments: () => readEnrichments(read, outboundAllow),
    reactors: () => readReactors(read),
    console: () => readConsole(read),
    identityProvider: () => readIdentityProvider(read, () => readPublicUrl(read('PUBLIC_URL'))),
  });
  return config;
}

/**
 * Reads the configuration for another place: the variables that name one are those given, and how its tables lie is
 * what the database says.
 * @throws ConfigError like {@link readConfig}.
 */
export function readConfigAt(
  environment: Environment,
  place: { readonly DATABASE_URL: string } | { readonly DATA_DIR: string },
): Config {
  const {
    STRONGROOM_DATABASE_URL: _url,
    STRONGROOM_DATABASE_URL_FILE: _file,
    STRONGROOM_DATABASE_DISTRIBUTE: _distribute,
    ...others
  } = environment;
  const named = Object.entries(place).map(([name, value]) => [`STRONGROOM_${name}`, value]);
  return readConfig({ ...others, ...Object.fromEntries(named) });
}

/**
 * Reads again the files that variables name.
 * @throws ConfigError as {@link readConfig} does.
 */
export function readReloadable(environment: Environment): Reloadable {
  const read = readerOf(environment);
  return readAll<Reloadable>({ ...liveSettings(read), tls: () => readTls(read) });
}

/** With the URL of the database as if a variable had it, where a file does: it has a password. */
function withDatabaseUrl(environment: Environment): Environment {
  const read = readerOf(environment);
  const file = read('DATABASE_URL_FILE');
  if (file === undefined) return environment;
  const variable = 'STRONGROOM_DATABASE_URL_FILE';
  if (read('DATABASE_URL') !== undefined) {
    throw wrongVariable(variable, 'cannot be combined with STRONGROOM_DATABASE_URL');
  }
  return { ...environment, STRONGROOM_DATABASE_URL: readText(variable, file).trim() };
}

const mebibyte = 2 ** 20;

function readFreeSpace(read: ReadVariable): number | undefined {
  if (read('FREE_SPACE_MIN') === undefined) return undefined;
  return mebibyte * readNumber(read, 'FREE_SPACE_MIN', { given: 0, min: 0, max: 999_999_999 });
}

function readHost(read: ReadVariable): string {
  const host = read('HOST') ?? '127.0.0.1';
  const isEncrypted = read('TLS_CERT') !== undefined || read('TLS_KEY') !== undefined;
  if (loopback.has(host) || isEncrypted || read('TLS') === 'off') return host;
  throw wrongVariable(
    'STRONGROOM_HOST',
    'is not a loopback address, so card numbers would cross the network in plaintext. Set ' +
      'STRONGROOM_TLS_CERT and STRONGROOM_TLS_KEY, or STRONGROOM_TLS=off if a proxy in front terminates TLS',
  );
}

/** Programs send their key there, and values in their responses come from there. */
function readEgressAddress(read: ReadVariable): Address | undefined {
  const address = readAddress(read, 'EGRESS_ADDRESS');
  const isEncrypted = read('TLS_CERT') !== undefined || read('TLS_KEY') !== undefined;
  if (!address || loopback.has(address.host) || isEncrypted || read('TLS') === 'off')
    return address;
  throw wrongVariable(
    'STRONGROOM_EGRESS_ADDRESS',
    'is not a loopback address, so keys would cross the network in plaintext. Set STRONGROOM_TLS_CERT and ' +
      'STRONGROOM_TLS_KEY, or STRONGROOM_TLS=off if only this network reaches it',
  );
}

/** Whether only this machine reaches the address of clients. */
function isOnLoopback(read: ReadVariable): boolean {
  return loopback.has(read('HOST') ?? '127.0.0.1');
}

/** Unless the operator decides, it is served where only this machine reaches it. */
function readConsole(read: ReadVariable): boolean {
  const given = isOnLoopback(read) ? 'on' : 'off';
  return oneOf('STRONGROOM_CONSOLE', read('CONSOLE') ?? given, ['on', 'off']) === 'on';
}

function readBootstrap(read: ReadVariable): Config['bootstrap'] {
  const type = read('BOOTSTRAP_TENANT_TYPE') ?? 'test';
  return readAll<Config['bootstrap']>({
    tenant: () => parsed(read, 'BOOTSTRAP_TENANT', parseHandle) ?? 'default',
    type: () => oneOf('STRONGROOM_BOOTSTRAP_TENANT_TYPE', type, ['test', 'production']),
    key: () => readBootstrapKey(read('BOOTSTRAP_KEY')),
    keyFile: () => {
      const file = read('BOOTSTRAP_KEY_FILE');
      if (file === undefined || read('BOOTSTRAP_KEY') === undefined) return file;
      throw wrongVariable(
        'STRONGROOM_BOOTSTRAP_KEY_FILE',
        'cannot be combined with STRONGROOM_BOOTSTRAP_KEY',
      );
    },
  });
}

function readEnrichments(read: ReadVariable, allow: () => AllowList): EnrichmentConfig {
  const cache = { given: 0, min: 0, max: 86_400 };
  return readAll<EnrichmentConfig>({
    routingDirectory: () => read('ROUTING_DIRECTORY'),
    binTable: () => read('BIN_TABLE'),
    bankHost: () => readBankHost(read, allow),
    strict: () => readFlag(read, 'BANK_PROVIDER_STRICT'),
    cacheMs: () => second * readNumber(read, 'BANK_PROVIDER_CACHE_SECONDS', cache),
  });
}

/** Two cores are left to the writer, the jobs and the system. Only Linux deals connections out to threads. */
function threadsDefault(): number {
  if (process.platform !== 'linux') return 1;
  return Math.min(threadsMax, Math.max(1, availableParallelism() - 2));
}

function readOutbound(read: ReadVariable, allow: () => AllowList): OutboundOptions {
  const pem = (file: string) => parseAuthorities(readText('STRONGROOM_OUTBOUND_CA', file));
  return readAll<OutboundOptions>({
    allow,
    databasePorts: () => databasePortsOf(read('DATABASE_URL')),
    authorities: () => parsed(read, 'OUTBOUND_CA', pem) ?? [],
  });
}

/** None of a URL that cannot be used, which its own variable says. */
function databasePortsOf(text: string | undefined): readonly number[] {
  if (text === undefined) return [];
  try {
    return hostsOf(text).map(({ port }) => port ?? portDefault);
  } catch (error) {
    if (error instanceof VaultError) return [];
    throw error;
  }
}

function readBankHost(read: ReadVariable, allow: () => AllowList): BankHostConfig | undefined {
  if (read('BANK_PROVIDER_URL') === undefined) return undefined;
  const timeout = { given: 5000, min: 100, max: 30_000 };
  const attempts = { given: 3, min: 1, max: 5 };
  return readAll<BankHostConfig>({
    url: () => parsed(read, 'BANK_PROVIDER_URL', (text) => parseUrl(text, allow())) ?? '',
    headers: () => parsed(read, 'BANK_PROVIDER_HEADERS', parseHeaders) ?? {},
    request: () => parsed(read, 'BANK_PROVIDER_REQUEST', parseRequest) ?? requestDefault,
    answer: () => parsed(read, 'BANK_PROVIDER_ANSWER', parseResponse) ?? responseDefault,
    timeoutMs: () => readNumber(read, 'BANK_PROVIDER_TIMEOUT_MS', timeout),
    attemptsMax: () => readNumber(read, 'BANK_PROVIDER_ATTEMPTS', attempts),
  });
}

/** In plaintext too: spans hold no values, and collectors are mostly on the same machine. */
function readOtlpEndpoint(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  const isPlain = url && !url.username && !url.password && !/[?#]/.test(text);
  if (isPlain && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '');
  throw wrongVariable(
    'STRONGROOM_OTLP_ENDPOINT',
    'must be a URL such as http://127.0.0.1:4318, without user, query or fragment',
  );
}

function readPublicUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  const isPlain = url && !url.username && !url.password && !/[?#]/.test(text);
  if (isPlain && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '');
  throw wrongVariable(
    'STRONGROOM_PUBLIC_URL',
    'must be a URL such as https://vault.example.com, without user, query or fragment',
  );
}

/** Requests with these names are the vault's, whichever of them clients use. */
function readNames(read: ReadVariable): VaultNames {
  const proxyDomain = readProxyDomain(read('PROXY_DOMAIN'));
  const publicName = URL.parse(read('PUBLIC_URL') ?? '')?.hostname;
  const own = [publicName, read('HOST'), hostname(), proxyDomain];
  return { own: own.flatMap((name) => (name ? [comparedName(name)] : [])), proxyDomain };
}

function readProxyDomain(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const domain = comparedName(text);
  if (isDnsName(domain) && domain.length <= proxyDomainLengthMax) return domain;
  throw wrongVariable(
    'STRONGROOM_PROXY_DOMAIN',
    `must be a DNS name such as proxy.example.com, of at most ${proxyDomainLengthMax} characters`,
  );
}

/**
 * The URL of a PostgreSQL, which demands verified TLS beyond loopback unless the operator says otherwise.
 * @throws ConfigError when it is not such a URL, or has a weaker sslmode.
 */
export function databasePlace<T extends string | undefined>(
  text: T,
  environment: Environment,
): T | string {
  if (text === undefined) return text;
  const variable = 'STRONGROOM_DATABASE_URL';
  if (!/^postgres(?:ql)?:\/\//.test(text)) {
    throw wrongVariable(variable, 'must begin with postgres://');
  }
  const tls = environment['STRONGROOM_DATABASE_TLS'] || 'on';
  const isVerified = oneOf('STRONGROOM_DATABASE_TLS', tls, ['on', 'off']) === 'on';
  const verify = (url: string) => {
    hostsOf(url);
    return isVerified ? verifiedUrl(url, environment['PGHOST'] || undefined) : url;
  };
  const url = parsed(() => text, 'DATABASE_URL', verify) ?? text;
  const authority = authorityFileOf(url);
  if (isVerified && authority !== undefined) readText(`${variable} sslrootcert`, authority);
  return url;
}

function readPrefixes(text: string): string[] {
  const prefixes = text.split(',').map((prefix) => prefix.trim().toUpperCase());
  if (prefixes.every((prefix) => prefixForm.test(prefix))) return [...new Set(prefixes)];
  throw wrongVariable('STRONGROOM_HEADER_PREFIXES', 'must be a list such as SVC,BT');
}

function readBootstrapKey(text: string | undefined): string | undefined {
  if (text === undefined || isOperatorKey(text)) return text;
  throw wrongVariable('STRONGROOM_BOOTSTRAP_KEY', operatorKeyForm);
}
