/** What a tenant and its operator can set: settings through the API, quotas on the command line. */
import { day, hour, minute, second } from '../base/clock.ts';
import { invalid, VaultError } from '../base/errors.ts';
import { createValidationErrors } from '../base/validation-errors.ts';
import { flawOfDestinations } from './destinations.ts';

interface Setting {
  readonly default: string;
  /** Returns what is wrong with a string. */
  readonly flawOf: (text: string) => string | undefined;
}

const oneOf = (first: string, ...others: readonly string[]): Setting => {
  const values = [first, ...others];
  const message = `must be one of ${values.toSorted().join(', ')}`;
  return { default: first, flawOf: (text) => (values.includes(text) ? undefined : message) };
};

const flag = (on: boolean): Setting => oneOf(String(on), String(!on));

/** All settings are strings on the wire, including flags. */
export const settingRows = {
  fingerprint_tokens: flag(true),
  deduplicate_tokens: flag(false),
  token_deduplication_behavior: oneOf('read_existing', 'update_existing'),
  /** The service that checks whether a bank account can receive transfers. */
  bank_verification_provider: oneOf('rules', 'http'),
  /** Whether requests to destinations that the caller names are refused. */
  disable_ephemeral_proxy: flag(false),
  /** Hosts to which proxies may send; all where it is empty. */
  proxy_destinations: { default: '', flawOf: flawOfDestinations },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settingRows;
export type Settings = Readonly<Record<SettingName, string>>;

interface Quota {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** Durations are milliseconds, and may be written as `2h`. */
  readonly unit: 'count' | 'duration';
  readonly meaning: string;
}

export const quotaRows = {
  tokenize_limit: {
    default: 1000,
    min: 1,
    max: 100_000,
    unit: 'count',
    meaning: 'tokens in one tokenize request',
  },
  detokenize_limit: {
    default: 1000,
    min: 1,
    max: 100_000,
    unit: 'count',
    meaning: 'expressions in one detokenize request',
  },
  cvc_retention: {
    default: hour,
    min: 0,
    max: 365 * day,
    unit: 'duration',
    meaning: 'how long a card code is stored',
  },
  token_intent_retention: {
    default: day,
    min: 0,
    max: 2 * day,
    unit: 'duration',
    meaning: 'how long a token intent is stored',
  },
  application_limit: {
    default: 10_000,
    min: 1,
    max: 1_000_000,
    unit: 'count',
    meaning: 'applications of the tenant',
  },
  proxy_limit: {
    default: 500,
    min: 0,
    max: 10_000,
    unit: 'count',
    meaning: 'proxies of the tenant',
  },
  proxy_token_limit: {
    default: 100,
    min: 1,
    max: 1000,
    unit: 'count',
    meaning: 'tokens in one call of a proxy',
  },
  reactor_limit: {
    default: 500,
    min: 0,
    max: 10_000,
    unit: 'count',
    meaning: 'reactors of the tenant',
  },
  reactor_token_limit: {
    default: 100,
    min: 1,
    max: 1000,
    unit: 'count',
    meaning: 'tokens in one call of a reactor',
  },
  reactor_run_limit: {
    default: 1000,
    min: 0,
    max: 100_000,
    unit: 'count',
    meaning: 'asynchronous calls of reactors that have not ended',
  },
  reactor_storage_limit: {
    default: 268_435_456,
    min: 0,
    max: 1_099_511_627_776,
    unit: 'count',
    meaning: 'bytes of calls of reactors that are stored: those that wait, results, and logs',
  },
  /** The largest value is no limit. */
  token_storage: {
    default: 1_125_899_906_842_624,
    min: 0,
    max: 1_125_899_906_842_624,
    unit: 'count',
    meaning: 'bytes that all applications of the tenant have stored',
  },
  public_application_storage: {
    default: 1_073_741_824,
    min: 0,
    max: 1_125_899_906_842_624,
    unit: 'count',
    meaning: 'bytes that one public application and its sessions have stored',
  },
  webhook_limit: {
    default: 20,
    min: 0,
    max: 100,
    unit: 'count',
    meaning: 'webhooks of the tenant',
  },
  alert_backup_age: {
    default: 2 * day,
    min: hour,
    max: 365 * day,
    unit: 'duration',
    meaning: 'age of the newest backup that raises an alert, where one was made',
  },
  alert_bin: {
    default: 100,
    min: 2,
    max: 1_000_000_000,
    unit: 'count',
    meaning: 'cards of one BIN that a key creates or reveals in an hour that raise an alert',
  },
  alert_export_lag: {
    default: 5 * minute,
    min: second,
    max: 30 * day,
    unit: 'duration',
    meaning: 'how long the export of the log may fail before it raises an alert',
  },
  alert_refusals: {
    default: 50,
    min: 2,
    max: 1_000_000,
    unit: 'count',
    meaning: 'refused requests of one key in a minute that raise an alert',
  },
  alert_reveals: {
    default: 100,
    min: 1,
    max: 1_000_000_000,
    unit: 'count',
    meaning: 'values that a key reveals in an hour, far above its week, that raise an alert',
  },
  log_retention: {
    default: 400 * day,
    min: day,
    max: 36_500 * day,
    unit: 'duration',
    meaning: 'how long log entries are stored',
  },
} as const satisfies Record<string, Quota>;

export type QuotaName = keyof typeof quotaRows;
export type Quotas = Readonly<Record<QuotaName, number>>;

/** @throws VaultError `validation_failed` naming every setting that is unknown or has another value. */
export function parseSettings(given: Readonly<Record<string, string>>): Partial<Settings> {
  const errors = createValidationErrors();
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(settingRows, name)) {
      errors.add(`settings.${name}`, 'is not a known setting');
      continue;
    }
    const flaw = settingRows[name as SettingName].flawOf(value);
    if (flaw !== undefined) errors.add(`settings.${name}`, flaw);
  }
  errors.settle();
  return given;
}

const durations: Readonly<Record<string, number>> = {
  ms: 1,
  s: second,
  m: minute,
  h: hour,
  d: day,
};

/**
 * A quota as an operator writes it: a whole number, or for a duration also one of `s`, `m`, `h`, `d`.
 * @throws VaultError `validation_failed` when there is no such quota, or not of this size.
 */
export function parseQuota(name: string, text: string): Partial<Quotas> {
  if (!Object.hasOwn(quotaRows, name)) {
    throw invalid(name, `is not a quota; the quotas are ${Object.keys(quotaRows).join(', ')}`);
  }
  const { min, max, unit } = quotaRows[name as QuotaName];
  const [, digits = '', suffix = 'ms'] = /^([0-9]{1,16})(ms|s|m|h|d)?$/.exec(text) ?? [];
  const factor = unit === 'duration' ? durations[suffix] : 1;
  const value = Number(digits) * (factor ?? 1);
  const suffixed = unit === 'count' && /[a-z]/.test(text);
  if (digits === '' || suffixed || value < min || value > max) {
    const form =
      unit === 'duration'
        ? `a duration from ${formatDuration(min)} to ${formatDuration(max)}, such as 90s, 15m, 2h or 7d`
        : `a whole number from ${min} to ${max}`;
    throw invalid(name, `must be ${form}`);
  }
  return { [name]: value };
}

/** A quota as operators write it: `1h` rather than 3600000. */
export function formatQuota(name: QuotaName, value: number): string {
  return quotaRows[name].unit === 'duration' ? formatDuration(value) : String(value);
}

/** In the largest unit of which it is a whole number. */
function formatDuration(value: number): string {
  const [suffix = 'ms', factor = 1] =
    Object.entries(durations).findLast(([, unit]) => value % unit === 0 && value >= unit) ?? [];
  return value === 0 ? '0s' : `${value / factor}${suffix}`;
}

/** The stored settings over the defaults. */
export function settingsOf(stored: string): Settings {
  return withDefaults(settingRows, stored) as Settings;
}

/** The stored quotas over the defaults. */
export function quotasOf(stored: string): Quotas {
  return withDefaults(quotaRows, stored) as Quotas;
}

/** The limits of a tenant, by the quota that sets each of them. */
/** What each of these limits, as texts name it. */
export const limited = {
  application_limit: 'applications',
  proxy_limit: 'proxies',
  reactor_limit: 'reactors',
  webhook_limit: 'webhooks',
} as const satisfies Partial<Record<QuotaName, string>>;

/**
 * Requests of one tenant that arrive on several threads at once may exceed the limit by their number.
 * @throws VaultError `unprocessable` where the tenant has as many as it may.
 */
export function requireRoom(
  quotas: Quotas,
  name: keyof typeof limited,
  [counted]: readonly { readonly count: number }[],
): void {
  const limit = quotas[name];
  if ((counted?.count ?? 0) < limit) return;
  throw new VaultError('unprocessable', {
    public: `A tenant has at most ${limit} ${limited[name]} (quota ${name}); delete one first.`,
  });
}

function withDefaults(
  rows: Readonly<Record<string, { default: unknown }>>,
  stored: string,
): unknown {
  const given = JSON.parse(stored) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(rows).map(([name, row]) => [name, given[name] ?? row.default]),
  );
}
