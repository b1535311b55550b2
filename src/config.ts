/** Configuration: the only reader of the environment. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { isOperatorKey, operatorKeyForm } from './crypto/api-key.ts';
import { parseAuthorities } from './crypto/authorities.ts';
import {
  parseRateLimits,
  type RateLimits,
  rateLimitPresets,
  rateLimitsDefault,
} from './http/limits/rate-limit-rules.ts';
import { second } from './lib/clock.ts';
import { VaultError } from './lib/errors.ts';
import { isNetwork } from './lib/network.ts';
import type { LogLevel } from './lib/telemetry/log.ts';
import { type AllowList, parseAllowList } from './outbound/allow-list.ts';
import type { OutboundOptions } from './outbound/call.ts';
import { authorityFileOf, verifiedUrl } from './store/postgres/database-url.ts';
import {
  answerDefault,
  type BankHostConfig,
  parseAnswer,
  parseHeaders,
  parseRequest,
  parseUrl,
  requestDefault,
} from './vault/enrichments/bank-host-config.ts';
import type { EnrichmentConfig } from './vault/enrichments/enrichments.ts';
import { parseSink, type SinkPlace } from './vault/logs/checkpoint-sink.ts';
import { parseHandle } from './vault/tenants/handle.ts';

export interface Config {
  readonly host: string;
  readonly port: number;
  /** So many threads answer requests. */
  readonly threads: number;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  readonly rootKey: string | undefined;
  readonly rootKeyFile: string;
  readonly headerPrefixes: readonly string[];
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly bootstrap: {
    readonly tenant: string;
    readonly type: 'test' | 'production';
    readonly key: string | undefined;
  };
  readonly logLevel: LogLevel;
  /** Where log entries are written as they commit: `stdout` or a file. */
  readonly logExport: string | undefined;
  /** Where checkpoints of the log are pushed as they are signed. */
  readonly checkpointSink: SinkPlace | undefined;
  readonly rateLimits: RateLimits;
  /** Addresses and networks of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[];
  /** Under which clients reach the vault, without a slash at its end. */
  readonly publicUrl: string | undefined;
  /** Which other hosts may be called, and who vouches for them. */
  readonly outbound: OutboundOptions;
  readonly enrichments: EnrichmentConfig;
}

/** A variable is missing or has a value it cannot have. The message never holds the value. */
export class ConfigError extends Error {
  constructor(variable: string, problem: string) {
    super(`${variable} ${problem}.`);
    this.name = 'ConfigError';
  }
}

/** A variable that the operator names, such as the one that holds a key; `undefined` when it is empty. */
export function readVariable(name: string): string | undefined {
  return process.env[name] || undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;
type Read = (name: string) => string | undefined;

const prefixForm = /^[A-Za-z][A-Za-z0-9]{0,19}$/;
export const threadsMax = 64;
const loopback = new Set(['127.0.0.1', '::1', 'localhost']);
const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

/**
 * Reads the configuration; variables that are empty count as absent.
 * @throws ConfigError naming the variable that is wrong.
 */
export function readConfig(environment: Environment = process.env): Config {
  const read: Read = (name) => environment[`STRONGROOM_${name}`] || undefined;
  const dataDir = read('DATA_DIR') ?? './data';
  const host = read('HOST') ?? '127.0.0.1';
  const outbound = readOutbound(read);
  const tls = readTls(read);
  if (!loopback.has(host) && !tls && read('TLS') !== 'off') {
    throw new ConfigError(
      'STRONGROOM_HOST',
      'is not a loopback address, so card numbers would cross the network in plaintext. Set ' +
        'STRONGROOM_TLS_CERT and STRONGROOM_TLS_KEY, or STRONGROOM_TLS=off if a proxy in front terminates TLS',
    );
  }
  return {
    host,
    port: readPort(read('PORT')),
    threads: readNumber(read, 'THREADS', { given: threadsDefault(), min: 1, max: threadsMax }),
    dataDir,
    databaseUrl: databasePlace(read('DATABASE_URL'), environment),
    rootKey: read('ROOT_KEY'),
    rootKeyFile: read('ROOT_KEY_FILE') ?? join(dataDir, 'root.key'),
    headerPrefixes: readPrefixes(read('HEADER_PREFIXES') ?? 'SVC'),
    tls,
    bootstrap: {
      tenant: parsed(read, 'BOOTSTRAP_TENANT', parseHandle) ?? 'default',
      type: oneOf('STRONGROOM_BOOTSTRAP_TENANT_TYPE', read('BOOTSTRAP_TENANT_TYPE') ?? 'test', [
        'test',
        'production',
      ]),
      key: readBootstrapKey(read('BOOTSTRAP_KEY')),
    },
    logExport: read('LOG_EXPORT'),
    checkpointSink: parsed(read, 'CHECKPOINT_SINK', (text) => parseSink(text, outbound.allow)),
    logLevel: oneOf('STRONGROOM_LOG_LEVEL', read('LOG_LEVEL') ?? 'info', logLevels),
    rateLimits: readRateLimits(read('RATE_LIMITS')),
    trustedProxies: readProxies(read('TRUSTED_PROXIES')),
    publicUrl: readPublicUrl(read('PUBLIC_URL')),
    outbound,
    enrichments: {
      routingDirectory: read('ROUTING_DIRECTORY'),
      binTable: read('BIN_TABLE'),
      bankHost: readBankHost(read, outbound.allow),
      strict: readFlag(read, 'BANK_PROVIDER_STRICT'),
      cacheMs:
        second * readNumber(read, 'BANK_PROVIDER_CACHE_SECONDS', { given: 0, min: 0, max: 86_400 }),
    },
  };
}

/** Two cores are left to the writer, the jobs and the system. Only Linux deals connections out to threads. */
function threadsDefault(): number {
  if (process.platform !== 'linux') return 1;
  return Math.min(threadsMax, Math.max(1, availableParallelism() - 2));
}

function readOutbound(read: Read): OutboundOptions {
  const database = read('DATABASE_URL');
  const pem = (file: string) => parseAuthorities(readText('STRONGROOM_OUTBOUND_CA', file));
  return {
    allow: parsed(read, 'OUTBOUND_ALLOW', parseAllowList) ?? new Set(),
    // Of a URL with several hosts, which only PostgreSQL accepts, the standard port.
    databasePort: database === undefined ? undefined : Number(URL.parse(database)?.port || 5432),
    authorities: parsed(read, 'OUTBOUND_CA', pem) ?? [],
  };
}

function readBankHost(read: Read, allow: AllowList): BankHostConfig | undefined {
  const url = parsed(read, 'BANK_PROVIDER_URL', (text) => parseUrl(text, allow));
  if (url === undefined) return undefined;
  const timeout = { given: 5000, min: 100, max: 30_000 };
  return {
    url,
    headers: parsed(read, 'BANK_PROVIDER_HEADERS', parseHeaders) ?? {},
    request: parsed(read, 'BANK_PROVIDER_REQUEST', parseRequest) ?? requestDefault,
    answer: parsed(read, 'BANK_PROVIDER_ANSWER', parseAnswer) ?? answerDefault,
    timeoutMs: readNumber(read, 'BANK_PROVIDER_TIMEOUT_MS', timeout),
    attemptsMax: readNumber(read, 'BANK_PROVIDER_ATTEMPTS', { given: 3, min: 1, max: 5 }),
  };
}

/** What `parse` makes of a variable; its errors are reported under the variable's name. */
function parsed<T>(read: Read, name: string, parse: (text: string) => T): T | undefined {
  const text = read(name);
  try {
    return text === undefined ? undefined : parse(text);
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    throw new ConfigError(
      `STRONGROOM_${name}`,
      Object.values(error.errors ?? {})
        .flat()
        .join('; '),
    );
  }
}

function readFlag(read: Read, name: string): boolean {
  const text = read(name) ?? 'false';
  return oneOf(`STRONGROOM_${name}`, text, ['true', 'false']) === 'true';
}

interface NumberForm {
  /** Where the variable is not set. */
  readonly given: number;
  readonly min: number;
  readonly max: number;
}

function readNumber(read: Read, name: string, { given, min, max }: NumberForm): number {
  const text = read(name) ?? String(given);
  const value = Number(text);
  if (/^[0-9]{1,9}$/.test(text) && value >= min && value <= max) return value;
  throw new ConfigError(`STRONGROOM_${name}`, `must be a whole number from ${min} to ${max}`);
}

function readTls(read: Read): Config['tls'] {
  const [cert, key] = [read('TLS_CERT'), read('TLS_KEY')];
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) {
    throw new ConfigError('STRONGROOM_TLS_CERT', 'and STRONGROOM_TLS_KEY must be given together');
  }
  return { cert: readText('STRONGROOM_TLS_CERT', cert), key: readText('STRONGROOM_TLS_KEY', key) };
}

function readText(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new ConfigError(variable, 'names a file that cannot be read');
  }
}

/** The name of a preset, or that of a file. */
function readRateLimits(text: string | undefined): RateLimits {
  if (text === undefined) return rateLimitsDefault;
  const preset = Object.hasOwn(rateLimitPresets, text) ? rateLimitPresets[text] : undefined;
  if (preset) return preset;
  const variable = 'STRONGROOM_RATE_LIMITS';
  const json = readText(variable, text);
  try {
    return parseRateLimits(JSON.parse(json));
  } catch (error) {
    const errors = error instanceof VaultError ? Object.entries(error.errors ?? {}) : [];
    const problems = errors.map(([path, messages]) => `${path} ${messages.join(', ')}`);
    throw new ConfigError(variable, `names a file that ${problems.join('; ') || 'is not JSON'}`);
  }
}

function readProxies(text: string | undefined): readonly string[] {
  const proxies = text?.split(',').map((proxy) => proxy.trim()) ?? [];
  if (proxies.every(isNetwork)) return proxies;
  throw new ConfigError(
    'STRONGROOM_TRUSTED_PROXIES',
    'must be a list of addresses and networks such as 10.0.0.7,192.168.0.0/16',
  );
}

function readPublicUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  const isPlain = url && !url.username && !url.password && !/[?#]/.test(text);
  if (isPlain && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '');
  throw new ConfigError(
    'STRONGROOM_PUBLIC_URL',
    'must be a URL such as https://vault.example.com, without user, query or fragment',
  );
}

function readPort(text = '8080'): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new ConfigError('STRONGROOM_PORT', 'must be a port from 0 to 65535');
}

/**
 * The URL of a PostgreSQL, which demands verified TLS beyond loopback unless the operator says otherwise.
 * @throws ConfigError when it is not such a URL, or has a weaker sslmode.
 */
export function databasePlace<T extends string | undefined>(
  text: T,
  environment: Environment = process.env,
): T | string {
  if (text === undefined) return text;
  const variable = 'STRONGROOM_DATABASE_URL';
  if (!/^postgres(?:ql)?:\/\//.test(text)) {
    throw new ConfigError(variable, 'must begin with postgres://');
  }
  const tls = environment['STRONGROOM_DATABASE_TLS'] || 'on';
  if (oneOf('STRONGROOM_DATABASE_TLS', tls, ['on', 'off']) === 'off') return text;
  const verify = (url: string) => verifiedUrl(url, environment['PGHOST'] || undefined);
  const url = parsed(() => text, 'DATABASE_URL', verify) ?? text;
  const authority = authorityFileOf(url);
  if (authority !== undefined) readText(`${variable} sslrootcert`, authority);
  return url;
}

function readPrefixes(text: string): string[] {
  const prefixes = text.split(',').map((prefix) => prefix.trim().toUpperCase());
  if (prefixes.every((prefix) => prefixForm.test(prefix))) return [...new Set(prefixes)];
  throw new ConfigError('STRONGROOM_HEADER_PREFIXES', 'must be a list such as SVC,BT');
}

function readBootstrapKey(text: string | undefined): string | undefined {
  if (text === undefined || isOperatorKey(text)) return text;
  throw new ConfigError('STRONGROOM_BOOTSTRAP_KEY', operatorKeyForm);
}

function oneOf<T extends string>(variable: string, text: string, values: readonly T[]): T {
  const found = values.find((value) => value === text);
  if (found !== undefined) return found;
  throw new ConfigError(variable, `must be one of ${values.join(', ')}`);
}
