/** docs/openapi.json under the rules of two linters: no error and no warning. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { root } from '../support/source.ts';

const names = [
  '@redocly/openapi-core',
  '@stoplight/spectral-core',
  '@stoplight/spectral-rulesets',
] as const;
const [redocly, spectral, rulesets] = await Promise.all(names.map(installed));

const file = join(root, 'docs', 'openapi.json');
const source = readFileSync(file, 'utf8');
/** Breaks a rule of each linter. */
const broken = source.replaceAll('"operationId": "createToken"', '"operationId": "getToken"');

interface Finding {
  readonly ruleId?: string;
  readonly code?: string | number;
}

const redoclySkip = reasonWithout({ [names[0]]: redocly });
test("redocly's recommended rules find nothing", { skip: redoclySkip }, async () => {
  const config = await redocly.createConfig({ extends: ['recommended'] });
  const lint = (text: string): Promise<Finding[]> =>
    redocly.lintFromString({ source: text, absoluteRef: file, config });
  assert.deepEqual(await lint(source), []);
  const found = (await lint(broken)).map(({ ruleId }) => ruleId);
  assert.ok(found.includes('operation-operationId-unique'));
});

const spectralSkip = reasonWithout({ [names[1]]: spectral, [names[2]]: rulesets });
test("spectral's OpenAPI rules find nothing", { skip: spectralSkip }, async () => {
  const linter = new spectral.Spectral();
  linter.setRuleset({ extends: [[rulesets.oas, 'recommended']] });
  assert.deepEqual(await linter.run(source), []);
  const found = ((await linter.run(broken)) as Finding[]).map(({ code }) => code);
  assert.ok(found.includes('operation-operationId-unique'));
});
