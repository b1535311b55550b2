/**
 * What the two commonest expressions cost, as ratios to parsing the card they are evaluated on. With
 * `--hostile NAME` (an empty one for all) also what each filter takes at most, and which takes too long.
 */
import { parseArgs } from 'node:util';
import type { Json } from '../src/base/json.ts';
import { compileExpression, evaluateExpression } from '../src/expressions/expression.ts';
import { compileTemplate, evaluateTemplate } from '../src/expressions/template.ts';
import { tokenTypes } from '../src/tokens/contents/token-types.ts';
import { measureHostile, turnMsMax } from './hostile.ts';
import { median } from './markdown.ts';

const cardText =
  '{"number":"4242424242424242","expiration_month":12,"expiration_year":2030,"cvc":"123"}';
const card = JSON.parse(cardText) as Json;
const { mask } = tokenTypes.card;
const { fingerprint } = tokenTypes.token;

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '9' }, hostile: { type: 'string' } },
});
const rounds = Number(values.rounds);
const runsPerRound = 20_000;

/** As the vault calls them: compiling is a look-up by text after the first time. */
const subjects: Record<string, () => unknown> = {
  'JSON.parse of the card': () => JSON.parse(cardText),
  'card mask, compiled': (() => {
    const template = compileTemplate(mask, 'mask');
    return () => evaluateTemplate(template, { data: card });
  })(),
  'card mask, looked up': () => evaluateTemplate(compileTemplate(mask, 'mask'), { data: card }),
  '{{ data | stringify }}, compiled': (() => {
    const expression = compileExpression(fingerprint);
    return () => evaluateExpression(expression, { data: card });
  })(),
  '{{ data | stringify }}, looked up': () =>
    evaluateExpression(compileExpression(fingerprint), { data: card }),
  "{{ data.number | remove: '4' }}, looked up": () =>
    evaluateExpression(compileExpression("{{ data.number | remove: '4' }}"), { data: card }),
};

let sink: unknown;

/** Microseconds for one run. */
function timeOf(run: () => unknown): number {
  const start = process.hrtime.bigint();
  for (let count = 0; count < runsPerRound; count += 1) sink = run();
  return Number(process.hrtime.bigint() - start) / runsPerRound / 1000;
}

// The subjects take measurements, so that whatever slows the machine slows them alike.
const times = new Map(Object.keys(subjects).map((name) => [name, [] as number[]]));
for (let round = 0; round < rounds; round += 1) {
  for (const [name, run] of Object.entries(subjects)) times.get(name)?.push(timeOf(run));
}

const unit = median(times.get('JSON.parse of the card') ?? []);
for (const [name, measured] of times) {
  const time = median(measured);
  const line = `${name.padEnd(44)} ${time.toFixed(2)} µs   ${(time / unit).toFixed(2)}`;
  process.stdout.write(`${line}\n`);
}
if (sink === undefined) process.exitCode = 1;

if (values.hostile !== undefined) {
  const measured = [];
  for (const one of measureHostile(values.hostile)) {
    measured.push(one);
    process.stderr.write(
      `${one.filter}: ${one.ms.toFixed(1)} ms, ${one.input}: ${one.expression.slice(0, 100)}\n`,
    );
  }
  measured.sort((a, b) => b.ms - a.ms);
  for (const { filter, input, expression, ms } of measured) {
    const mark = ms > turnMsMax ? `over ${turnMsMax} ms` : '';
    const line = `${filter.padEnd(24)} ${ms.toFixed(1).padStart(8)} ms ${mark.padEnd(11)} ${input.padEnd(26)}`;
    process.stdout.write(`${line} ${expression.slice(0, 120)}\n`);
  }
}
