/** The filters of the expression language on the page, each with the vectors that test it. */
import { filters } from '../../expressions/filters/filters.ts';
import { boundedFilters } from '../../expressions/filters/standard-filters.ts';
import own from '../../expressions/vectors/filters.json' with { type: 'json' };
import published from '../../expressions/vectors/published.json' with { type: 'json' };
import { filterMeanings } from './filter-meanings.ts';
import { code, type Html, heading, html, inline, prose, table } from './html.ts';

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

export function expressionsSection(): Html {
  const ours = [...filters].map(
    ([name, { arguments: given }]) => html`<section>
${heading(3, `filter-${name}`, code(name))}
${meaningOf(name)}
${
  given.length > 0 &&
  table(
    `Arguments of ${name}`,
    ['Argument', 'Must be', 'Unless given'],
    given.map((argument) => [
      code(argument.name),
      inline(argument.form),
      argument.fallback === undefined ? 'required' : code(JSON.stringify(argument.fallback)),
    ]),
  )
}
${vectorsTable(name)}
</section>`,
  );
  const standard = [...boundedFilters.keys()].sort();
  return html`${heading(2, 'expressions', 'Expressions')}
${prose(
  'An expression is a text with `{{ … }}` in it. It picks a value, changes it with filters, and gives the result. ' +
    'A text that is exactly one `{{ … }}` gives the value with its type; any other gives text. The language is ' +
    'Liquid with the filters below. Masks, search indexes, fingerprint expressions, ids and bodies of detokenize ' +
    'consist of expressions.',
)}
${heading(3, 'standard-filters', 'Standard filters of Liquid')}
${standard.map(
  (name) => html`<section>
${heading(4, `filter-${name}`, code(name))}
${meaningOf(name)}
${vectorsOf(name).length > 0 && vectorsTable(name)}
</section>`,
)}
${ours}`;
}

function meaningOf(name: string): Html {
  return prose(filterMeanings[name] ?? '');
}

function vectorsOf(name: string): readonly Vector[] {
  const use = new RegExp(`\\|\\s*${name}\\b`);
  return vectors.filter(({ expression }) => use.test(expression));
}

function vectorsTable(name: string): Html {
  return table(
    `Vectors of ${name}`,
    ['Data', 'Expression', 'Result'],
    vectorsOf(name).map((vector) => [
      code(JSON.stringify(vector.data)),
      code(vector.expression),
      outcomeOf(vector),
    ]),
  );
}

function outcomeOf({ result, pattern, error, invalid }: Vector): Html {
  if (invalid !== undefined) return html`refused: ${invalid}`;
  if (error !== undefined) return html`fails: ${error}`;
  if (pattern !== undefined) return html`random, such as matches ${code(pattern)}`;
  return code(JSON.stringify(result));
}
