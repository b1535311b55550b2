/** Versions, numbers and quotas that documents name are those of the code. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { engineBytesMax, logBytesMax } from '../src/reactors/sandbox/limits.ts';
import { formatQuota, quotaRows, settingRows } from '../src/rules/settings.ts';
import { constantIn } from './support/constants.ts';
import { committedPaths, root } from './support/source.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const json = (path: string) => JSON.parse(read(path));
/** Words flow over the ends of lines. */
const documents = committedPaths()
  .filter((path) => /^(?:README|SECURITY|docs\/(?!adr\/).*)\.md$/.test(path))
  .map((path) => ({ path, text: read(path).replace(/\s*\n\s*(?![|\n#-])/g, ' ') }));

const minute = 60_000;
const mib = 1_048_576;
const manifest = json('package.json');
const minor = (name: string) => /^\d+\.\d+/.exec(manifest.devDependencies[name])?.[0];

interface Fact {
  /** What a document says, with the value in its only group. */
  readonly said: RegExp;
  readonly value: number | string | undefined;
}

const facts: readonly Fact[] = [
  {
    said: /Node\.js (\d+) and later/g,
    value: /\d+/.exec(json('packages/client/package.json').engines.node)?.[0],
  },
  {
    said: /at most (\d+) KiB in a browser/g,
    value: constantIn('tests/client/bundle.test.ts', 'bytesMax') / 1024,
  },
  { said: /Node SDK (\d+\.\d+)/g, value: minor('@basis-theory/node-sdk') },
  { said: /JavaScript library (\d+\.\d+)/g, value: minor('@basis-theory/basis-theory-js') },
  {
    said: /Python (\d\.\d+) or later/g,
    value: /requires-python = ">=(.*?)"/.exec(read('packages/python/pyproject.toml'))?.[1],
  },
  {
    said: /PostgreSQL \((\d+) to 18/g,
    value: constantIn('src/store/postgres/start.ts', 'versionMin'),
  },
  {
    said: /(\d+) minutes, or until the `expires_at`/g,
    value: constantIn('src/access/sessions/sessions.ts', 'sessionLifeMs') / minute,
  },
  {
    said: /application has at most ([\d,]+) rules/g,
    value: constantIn('src/rules/access-rules.ts', 'rulesMax'),
  },
  {
    said: /rules and (\d+) permissions/g,
    value: constantIn('src/rules/access-rules.ts', 'permissionsMax'),
  },
  { said: /\*\*(\d+) requests in 10 seconds for each public/g, value: requestsOf('perVisitor') },
  {
    said: /failed authentication \| (\d+) requests in 10 seconds/g,
    value: requestsOf('failedAuthentication'),
  },
  {
    said: /tenant has at most (\d+) keys/g,
    value: constantIn('src/access/client-keys/resource.ts', 'clientKeysMax'),
  },
  {
    said: /up to (\d+) requests for a webhook/g,
    value: constantIn('src/webhooks/deliveries/receiver.ts', 'attemptsMax'),
  },
  {
    said: /requests for a webhook, (\d+) for a tenant/g,
    value: constantIn('src/runtime/delivery-worker.ts', 'attemptsOfTenantMax'),
  },
  {
    said: /events and deliveries for (\d+) days/g,
    value: constantIn('src/runtime/jobs/remove-events.ts', 'eventsKeptMs') / (1440 * minute),
  },
  {
    said: /A query has at most (\d+) characters/g,
    value: constantIn('src/tokens/search/search-query.ts', 'queryLengthMax'),
  },
  {
    said: /an expression \| ([\d,]+) characters/g,
    value: constantIn('src/expressions/engine.ts', 'expressionLengthMax'),
  },
  {
    said: /one evaluation \| ([\d,]+) units/g,
    value: constantIn('src/expressions/evaluation/budget.ts', 'workMax'),
  },
  {
    said: /units of work and ([\d,]+) steps/g,
    value: constantIn('src/expressions/evaluation/budget.ts', 'stepsMax'),
  },
  {
    said: /body of a proxy call with expressions \| (\d+) MiB/g,
    value:
      constantIn('src/expressions/request-parts/forms.ts', 'bodyWithExpressionsBytesMax') / mib,
  },
  {
    said: /A body with expressions has at most (\d+) MiB/g,
    value:
      constantIn('src/expressions/request-parts/forms.ts', 'bodyWithExpressionsBytesMax') / mib,
  },
  {
    said: /transforms read must be UTF-8 text of at most (\d+) MiB/g,
    value: constantIn('src/proxies/calls/response-body.ts', 'transformedBytesMax') / mib,
  },
  {
    said: /is stored, sealed, for 24 hours: (\d+) KiB of a call/g,
    value: logBytesMax / 1024,
  },
  {
    said: /WebAssembly engine with (\d+) MiB of memory/g,
    value: engineBytesMax / mib,
  },
  {
    said: /bytes of a body, or of a bulk line \| (\d+) MiB/g,
    value: constantIn('src/http/protocol/body.ts', 'bodyBytesMax') / mib,
  },
  {
    said: /key has at most (\d+) characters/g,
    value: constantIn('src/http/idempotency/idempotency.ts', 'idempotencyKeyLengthMax'),
  },
  {
    said: /or at least (\d+) characters \(400\)/g,
    value: constantIn('src/http/idempotency/idempotency.ts', 'publicKeyLengthMin'),
  },
  {
    said: /gives requests \*\*(\d+) seconds\*\* to finish/g,
    value: constantIn('src/http/transport.ts', 'finishMsMax') / 1000,
  },
  {
    said: /client has (\d+) seconds for each step/g,
    value: constantIn('src/http/transport.ts', 'requestTimeoutMs') / 1000,
  },
  {
    said: /address has at most ([\d,]+) connections/g,
    value: constantIn('src/http/limits/connections.ts', 'addressConnectionsMax'),
  },
  {
    said: /at most ([\d,]+) rows a second/g,
    value: constantIn('src/runtime/jobs/pace.ts', 'rowsPerSecondMax'),
  },
  {
    said: /1 to 60, default (\d+)/g,
    value: constantIn('src/proxies/definition.ts', 'timeoutSecondsDefault'),
  },
  {
    said: /the next batch \((\d+) tokens/g,
    value: constantIn('src/tokens/export.ts', 'batchTokensMax'),
  },
];

for (const { said, value } of facts) {
  test(`documents agree with the code: ${said.source}`, () => {
    const found = documents.flatMap(({ path, text }) =>
      [...text.matchAll(said)].map(([, one = '']) => `${path}: ${one.replaceAll(',', '')}`),
    );
    assert.ok(found.length > 0, 'no document says it');
    assert.deepEqual(
      found,
      found.map((one) => one.replace(/: .*/, `: ${value}`)),
    );
  });
}

test('each quota is in a guide, and wherever it stands it has its default', () => {
  const seen = new Set<string>();
  const wrong: string[] = [];
  for (const { path, text } of documents) {
    const rows = [...text.matchAll(/\| `(\w+)` \| ([^|]+?) \|/g)].map(([, name, said]) => [
      name,
      said,
    ]);
    const mentions = [
      ...text.matchAll(
        /(\d[\d,]*(?: (?:[KMG]iB|hours?|h|d))?)[^.|(\d]{0,60}\((?:the quota )?`(\w+)`\)/g,
      ),
    ];
    for (const [name = '', said = ''] of [
      ...rows,
      ...mentions.map(([, one, quota]) => [quota, one]),
    ]) {
      if (!Object.hasOwn(quotaRows, name)) continue;
      seen.add(name);
      const forms = formsOf(name as keyof typeof quotaRows);
      if (!forms.includes(said)) wrong.push(`${path}: ${name} is ${said}, and not ${forms[0]}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(
    Object.keys(quotaRows).filter((name) => !seen.has(name) && name !== 'webhook_limit'),
    [],
  );
});

test('each setting of a tenant is in the guide', () => {
  const guide = read('docs/access.md');
  assert.deepEqual(
    Object.keys(settingRows).filter((name) => !guide.includes(`\`${name}\``)),
    [],
  );
});

/** As documents write a default. */
function formsOf(name: keyof typeof quotaRows): string[] {
  const { default: value, max, unit } = quotaRows[name];
  if (unit === 'duration') {
    const short = formatQuota(name, value);
    return [
      short.replace(/^(\d+)m$/, '$1 min').replace(/^(\d+)([hd])$/, '$1 $2'),
      short,
      ...(value === 24 * 60 * minute ? ['24 h', '24 hours'] : []),
    ];
  }
  if (name.includes('storage')) {
    const size = value >= 1024 * mib ? `${value / mib / 1024} GiB` : `${value / mib} MiB`;
    return value === max ? ['none (1 PiB)'] : [size];
  }
  return [String(value), value.toLocaleString('en-US')];
}

/** Of a rule of rate limits. */
function requestsOf(name: string): string | undefined {
  const source = read('src/http/limits/rate-limit-rules.ts');
  return new RegExp(`const ${name}\\b[^]*?requests: (\\d+)`).exec(source)?.[1];
}
