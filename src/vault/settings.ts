/** What a tenant and its operator can set: settings through the API, quotas on the command line. */
import { day, hour } from '../lib/clock.ts';

interface Setting {
  readonly default: string;
  readonly values: readonly string[];
}

const flag = (on: boolean): Setting => ({ default: String(on), values: ['true', 'false'] });

/** Settings are texts on the wire, also where they mean yes or no. */
export const settingRows = {
  fingerprint_tokens: flag(true),
  deduplicate_tokens: flag(false),
  token_deduplication_behavior: {
    default: 'read_existing',
    values: ['read_existing', 'update_existing'],
  },
  disable_ephemeral_proxy: flag(false),
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settingRows;
export type Settings = Readonly<Record<SettingName, string>>;

interface Quota {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  readonly meaning: string;
}

/** Durations are milliseconds. */
export const quotaRows = {
  tokenize_limit: { default: 1000, min: 1, max: 100_000, meaning: 'tokens in one tokenize call' },
  detokenize_limit: {
    default: 1000,
    min: 1,
    max: 100_000,
    meaning: 'expressions in one detokenize call',
  },
  cvc_retention: { default: hour, min: 0, max: 365 * day, meaning: 'life of a card code' },
  token_intent_retention: { default: day, min: 0, max: 2 * day, meaning: 'life of a token intent' },
  log_retention: {
    default: 400 * day,
    min: day,
    max: 36_500 * day,
    meaning: 'age of readable logs',
  },
} as const satisfies Record<string, Quota>;

export type QuotaName = keyof typeof quotaRows;
export type Quotas = Readonly<Record<QuotaName, number>>;

/** The stored settings over the defaults. */
export function settingsOf(stored: string): Settings {
  return withDefaults(settingRows, stored) as Settings;
}

/** The stored quotas over the defaults. */
export function quotasOf(stored: string): Quotas {
  return withDefaults(quotaRows, stored) as Quotas;
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
