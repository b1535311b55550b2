/** What the reference shows beside operations: the tables of the code that decide it, as JSON. */
import { errorKinds } from '../../base/errors.ts';
import { expressionLengthMax } from '../../expressions/engine.ts';
import { filters } from '../../expressions/filters/filters.ts';
import { boundedFilters } from '../../expressions/filters/standard-filters.ts';
import own from '../../expressions/vectors/filters.json' with { type: 'json' };
import published from '../../expressions/vectors/published.json' with { type: 'json' };
import { bodyBytesMax } from '../../http/protocol/body.ts';
import { bodyNestingMax } from '../../http/protocol/nesting.ts';
import { cursorLengthMax } from '../../keys/cursor.ts';
import { permissions } from '../../rules/permissions.ts';
import { formatQuota, type QuotaName, quotaRows, settingRows } from '../../rules/settings.ts';
import {
  dataLengthMax,
  metadataKeysMax,
  searchIndexesLengthMax,
} from '../../tokens/contents/contents.ts';
import { type TokenType, tokenTypes } from '../../tokens/contents/token-types.ts';
import { queryLengthMax } from '../../tokens/search/search-query.ts';
import { tokenData, tokenTypeNames } from '../token-shapes.ts';
import type { Components } from './components.ts';
import { filterMeanings } from './filter-meanings.ts';
import { problemMeanings } from './problem-meanings.ts';

export function referenceFacts(components: Components): object {
  return {
    problems: Object.fromEntries(
      Object.entries(errorKinds).map(([code, kind]) => [
        code,
        { ...kind, ...problemMeanings[code as keyof typeof errorKinds] },
      ]),
    ),
    keyKinds,
    permissions: Object.entries(permissions).map(([name, row]) => ({
      name,
      description: row.description,
      kinds: row.kinds,
      transform: row.impliedTransform ?? '',
    })),
    limits: limits.map(([name, most]) => ({ name, most })),
    quotas: Object.entries(quotaRows).map(([name, row]) => ({
      name,
      meaning: row.meaning,
      default: formatQuota(name as QuotaName, row.default),
      min: formatQuota(name as QuotaName, row.min),
      max: formatQuota(name as QuotaName, row.max),
    })),
    settings: Object.entries(settingRows).map(([name, row]) => ({ name, default: row.default })),
    tokenTypes: tokenTypeNames.map((name) => tokenTypeFacts(name, components)),
    filters: [
      ...[...filters].map(([name, { arguments: given }]) => ({
        name,
        isStandard: false,
        arguments: given.map(({ name: argument, form, fallback }) => ({
          name: argument,
          form,
          ...(fallback !== undefined && { fallback }),
        })),
      })),
      ...[...boundedFilters.keys()]
        .sort()
        .map((name) => ({ name, isStandard: true, arguments: [] })),
    ].map((filter) => ({
      ...filter,
      meaning: filterMeanings[filter.name] ?? '',
      examples: examplesOf(filter.name),
    })),
  };
}

const keyKinds = {
  private: 'Servers. They work with tokens, as their rules and permissions allow.',
  public:
    'Web pages and apps, where anyone can read the key. They create and change tokens, and create sessions.',
  management:
    'Administration: applications, proxies, logs, the tenant. They never see data of tokens.',
  session: 'One page or app for some minutes, after a private key has authorized it.',
};

const limits: readonly (readonly [string, number])[] = [
  ['Bytes of a body, or of a line of a bulk body', bodyBytesMax],
  ['Levels of nesting of a body', bodyNestingMax],
  ['Characters of the data of a token, as JSON', dataLengthMax],
  ['Names in metadata', metadataKeysMax],
  ['Characters of all search indexes of a token', searchIndexesLengthMax],
  ['Characters of an expression', expressionLengthMax],
  ['Characters of a search query', queryLengthMax],
  ['Characters of a cursor', cursorLengthMax],
];

function tokenTypeFacts(name: (typeof tokenTypeNames)[number], components: Components): object {
  const type: TokenType = tokenTypes[name];
  const data = tokenData[name];
  const [example] = (data as { readonly examples?: readonly unknown[] }).examples ?? [];
  const summary = type.summary && Object.keys(type.summary(example as never))[0];
  return {
    name,
    schema: components.refer(data),
    container: type.container,
    ...(type.mask !== undefined && { mask: type.mask }),
    fingerprint: type.fingerprint,
    searchIndexes: type.searchIndexes,
    ...(type.code !== undefined && { code: type.code }),
    ...(summary !== undefined && { summary }),
    ...(example !== undefined && { example }),
  };
}

/** What an expression gives on some data, or how it fails. */
interface Vector {
  readonly data: unknown;
  readonly expression: string;
  readonly result?: unknown;
  readonly pattern?: string;
  readonly error?: string;
  readonly invalid?: string;
}

const vectors: readonly Vector[] = [...published, ...own];

/** The vectors that test the filter. */
function examplesOf(name: string): readonly object[] {
  const use = new RegExp(`\\|\\s*${name}\\b`);
  return vectors
    .filter(({ expression }) => use.test(expression))
    .map((vector) => ({
      data: vector.data,
      expression: vector.expression,
      outcome: outcomeOf(vector),
    }));
}

function outcomeOf({ result, pattern, error, invalid }: Vector): string {
  if (invalid !== undefined) return `Refused: ${invalid}`;
  if (error !== undefined) return `Fails: ${error}`;
  if (pattern !== undefined) return `Random, and matches \`${pattern}\``;
  return `\`${JSON.stringify(result)}\``;
}
