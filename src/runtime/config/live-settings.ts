/** The settings that a running server reads again from the file of STRONGROOM_CONFIG. A variable wins. */
import Type, { type Static } from 'typebox';
import type { RoleRule } from '../../access/people/mapped-roles.ts';
import { VaultError } from '../../base/errors.ts';
import { isNetwork } from '../../base/network.ts';
import type { LogLevel } from '../../base/telemetry/log.ts';
import {
  parseRateLimits,
  type RateLimits,
  rateLimitPresets,
  rateLimitsDefault,
} from '../../http/limits/rate-limit-rules.ts';
import { compileValidator } from '../../http/protocol/validation.ts';
import { wrongVariable } from './problems.ts';
import { oneOf, readText } from './values.ts';
import type { ReadVariable } from './variables.ts';

export interface LiveSettings {
  readonly logLevel: LogLevel;
  readonly rateLimits: NamedRateLimits;
  /** Addresses and networks of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[];
  /** What people of the identity provider may act as. */
  readonly roleRules: readonly RoleRule[];
}

export interface NamedRateLimits extends RateLimits {
  /** Where the operator wrote them. */
  readonly place: string;
}

const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

const configFile = Type.Object(
  {
    log_level: Type.Optional(Type.Enum([...logLevels])),
    /** The name of a preset, or limits as in the file of STRONGROOM_RATE_LIMITS. */
    rate_limits: Type.Optional(
      Type.Union([Type.Enum(Object.keys(rateLimitPresets)), Type.Object({})]),
    ),
    trusted_proxies: Type.Optional(Type.Array(Type.String(), { maxItems: 1000 })),
  },
  { additionalProperties: false },
);

type ConfigFile = Static<typeof configFile>;

const validate = compileValidator(configFile, 'body');
const variable = 'STRONGROOM_CONFIG';

/** A reader for each setting, which throws ConfigError. The file is read once, when the first of them is called. */
export function liveSettings(read: ReadVariable): {
  readonly [N in keyof LiveSettings]: () => LiveSettings[N];
} {
  let content: ConfigFile | undefined;
  const file = () => {
    content ??= readConfigFile(read('CONFIG'));
    return content;
  };
  return {
    logLevel: () => {
      const text = read('LOG_LEVEL');
      if (text !== undefined) return oneOf('STRONGROOM_LOG_LEVEL', text, logLevels);
      return file().log_level ?? 'info';
    },
    rateLimits: () => {
      const text = read('RATE_LIMITS');
      return text === undefined ? limitsInFile(file().rate_limits) : limitsOfVariable(text);
    },
    trustedProxies: () => {
      const text = read('TRUSTED_PROXIES');
      if (text === undefined) return trustedInFile(file().trusted_proxies ?? []);
      const proxies = text.split(',').map((proxy) => proxy.trim());
      if (proxies.every(isNetwork)) return proxies;
      throw wrongVariable('STRONGROOM_TRUSTED_PROXIES', networksForm);
    },
    roleRules: () => {
      const path = read('OIDC_ROLES');
      return path === undefined ? [] : rulesInFile(path);
    },
  };
}

const word = Type.String({ minLength: 1, maxLength: 500 });

const rolesFile = Type.Array(
  Type.Object(
    {
      claim: Type.Optional(word),
      value: word,
      tenant: word,
      application: Type.String({ format: 'uuid' }),
    },
    { additionalProperties: false },
  ),
  { maxItems: 1000 },
);

const validateRoles = compileValidator(rolesFile, 'body');

/** Groups are what most providers send, and nearly always what is meant. */
const claimDefault = 'groups';

function rulesInFile(path: string): readonly RoleRule[] {
  const name = 'STRONGROOM_OIDC_ROLES';
  const text = readText(name, path);
  return checked(() => {
    const validated = validateRoles(JSON.parse(text));
    if ('error' in validated) throw validated.error;
    const rules = validated.value as Static<typeof rolesFile>;
    return rules.map((rule) => ({ claim: claimDefault, ...rule }));
  }, name);
}

function readConfigFile(path: string | undefined): ConfigFile {
  if (path === undefined) return {};
  const text = readText(variable, path);
  return checked(() => {
    const validated = validate(JSON.parse(text));
    if ('error' in validated) throw validated.error;
    return validated.value as ConfigFile;
  }, variable);
}

/**
 * What `parse` returns of the JSON in a file.
 * @throws ConfigError that says what is wrong with it.
 */
function checked<T>(parse: () => T, namedBy: string, within = ''): T {
  try {
    return parse();
  } catch (error) {
    const errors = error instanceof VaultError ? Object.entries(error.errors ?? {}) : [];
    const problems = errors.map(([path, messages]) => `${within}${path} ${messages.join(', ')}`);
    const problem = problems.length === 0 ? 'that is not JSON' : `in which ${problems.join('; ')}`;
    throw wrongVariable(namedBy, `names a file ${problem}`);
  }
}

function limitsInFile(given: ConfigFile['rate_limits']): NamedRateLimits {
  const place = `rate_limits in the file of ${variable}`;
  if (given === undefined) return { ...rateLimitsDefault, place };
  const preset = typeof given === 'string' ? rateLimitPresets[given] : undefined;
  const limits = preset ?? checked(() => parseRateLimits(given), variable, 'rate_limits.');
  return { ...limits, place };
}

/** The name of a preset, or that of a file. */
function limitsOfVariable(text: string): NamedRateLimits {
  const place = 'STRONGROOM_RATE_LIMITS';
  const preset = Object.hasOwn(rateLimitPresets, text) ? rateLimitPresets[text] : undefined;
  if (preset) return { ...preset, place };
  const json = readText(place, text);
  return { ...checked(() => parseRateLimits(JSON.parse(json)), place), place };
}

const networksForm = 'must be a list of addresses and networks such as 10.0.0.7,192.168.0.0/16';

function trustedInFile(proxies: readonly string[]): readonly string[] {
  if (proxies.every(isNetwork)) return proxies;
  throw wrongVariable(variable, `names a file in which trusted_proxies ${networksForm}`);
}
