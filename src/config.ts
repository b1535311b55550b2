/** Configuration: the only reader of the environment. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LogLevel } from './lib/log.ts';

export interface Config {
  readonly host: string;
  readonly port: number;
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
}

/** A variable is missing or has a value it cannot have. The message never holds the value. */
export class ConfigError extends Error {
  constructor(variable: string, problem: string) {
    super(`${variable} ${problem}.`);
    this.name = 'ConfigError';
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

const bootstrapKeyForm = /^[A-Za-z0-9_.]{32,200}$/;
const prefixForm = /^[A-Za-z][A-Za-z0-9]{0,19}$/;
const loopback = new Set(['127.0.0.1', '::1', 'localhost']);
const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

/**
 * Reads the configuration; variables that are empty count as absent.
 * @throws ConfigError naming the variable that is wrong.
 */
export function readConfig(environment: Environment = process.env): Config {
  const read = (name: string) => environment[`STRONGROOM_${name}`] || undefined;
  const dataDir = read('DATA_DIR') ?? './data';
  const host = read('HOST') ?? '127.0.0.1';
  const tls = readTls(read);
  if (!loopback.has(host) && !tls && read('TLS') !== 'off') {
    throw new ConfigError(
      'STRONGROOM_HOST',
      'is not a loopback address, so card numbers would cross the network in clear. Set ' +
        'STRONGROOM_TLS_CERT and STRONGROOM_TLS_KEY, or STRONGROOM_TLS=off if a proxy in front terminates TLS',
    );
  }
  return {
    host,
    port: readPort(read('PORT')),
    dataDir,
    databaseUrl: readDatabaseUrl(read('DATABASE_URL')),
    rootKey: read('ROOT_KEY'),
    rootKeyFile: read('ROOT_KEY_FILE') ?? join(dataDir, 'root.key'),
    headerPrefixes: readPrefixes(read('HEADER_PREFIXES') ?? 'SVC'),
    tls,
    bootstrap: {
      tenant: read('BOOTSTRAP_TENANT') ?? 'default',
      type: oneOf('STRONGROOM_BOOTSTRAP_TENANT_TYPE', read('BOOTSTRAP_TENANT_TYPE') ?? 'test', [
        'test',
        'production',
      ]),
      key: readBootstrapKey(read('BOOTSTRAP_KEY')),
    },
    logLevel: oneOf('STRONGROOM_LOG_LEVEL', read('LOG_LEVEL') ?? 'info', logLevels),
  };
}

function readTls(read: (name: string) => string | undefined): Config['tls'] {
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

function readPort(text = '8080'): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new ConfigError('STRONGROOM_PORT', 'must be a port from 0 to 65535');
}

function readDatabaseUrl(text: string | undefined): string | undefined {
  if (text === undefined || /^postgres(?:ql)?:\/\//.test(text)) return text;
  throw new ConfigError('STRONGROOM_DATABASE_URL', 'must begin with postgres://');
}

function readPrefixes(text: string): string[] {
  const prefixes = text.split(',').map((prefix) => prefix.trim().toUpperCase());
  if (prefixes.every((prefix) => prefixForm.test(prefix))) return [...new Set(prefixes)];
  throw new ConfigError('STRONGROOM_HEADER_PREFIXES', 'must be a list such as SVC,BT');
}

function readBootstrapKey(text: string | undefined): string | undefined {
  if (text === undefined || (bootstrapKeyForm.test(text) && !text.startsWith('key_'))) return text;
  throw new ConfigError(
    'STRONGROOM_BOOTSTRAP_KEY',
    'must have 32 to 200 characters out of A-Z a-z 0-9 _ . and must not begin with key_',
  );
}

function oneOf<T extends string>(variable: string, text: string, values: readonly T[]): T {
  const found = values.find((value) => value === text);
  if (found !== undefined) return found;
  throw new ConfigError(variable, `must be one of ${values.join(', ')}`);
}
