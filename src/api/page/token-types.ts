/** The types of tokens on the page, from the table that checks them. */
import { type TokenType, tokenTypes } from '../../tokens/contents/token-types.ts';
import type { Schema } from '../openapi/components.ts';
import { createComponents } from '../openapi/components.ts';
import { exampleText } from '../openapi/example-text.ts';
import { tokenData, tokenTypeNames } from '../token-shapes.ts';
import { block, code, type Html, heading, html, list, prose, table } from './html.ts';
import { attributesTable, meaningOf } from './schema-table.ts';

export function tokenTypesSection(): Html {
  const defaults = table(
    'Defaults of the types',
    ['Type', 'Container', 'Mask', 'Fingerprint', 'Search indexes'],
    tokenTypeNames.map((name) => {
      const type: TokenType = tokenTypes[name];
      return [
        html`<a href="#type-${name}">${code(name)}</a>`,
        code(type.container),
        type.mask === undefined ? 'none' : code(JSON.stringify(type.mask)),
        code(type.fingerprint),
        type.searchIndexes.length === 0 ? 'none' : list(type.searchIndexes.map(code), ' '),
      ];
    }),
  );
  return html`${heading(2, 'token-types', 'Token types')}
${prose(
  'The type of a token says which data it may have, and what it gets where the request says nothing. A token without ' +
    'a mask shows nothing to callers whose rules say `mask`.',
)}
${defaults}
${tokenTypeNames.map(typeSection)}`;
}

function typeSection(name: (typeof tokenTypeNames)[number]): Html {
  const { code: codeProperty, summary } = tokenTypes[name] as TokenType;
  const data = tokenData[name];
  const schema = dataSchema(data);
  const [example] = (data as { readonly examples?: readonly unknown[] }).examples ?? [];
  const shown = summary && Object.keys(summary(example as never))[0];
  return html`<section>
${heading(3, `type-${name}`, code(name))}
<p>${meaningOf(schema)}</p>
${attributesTable(`Data of ${name}`, schema)}
${codeProperty && html`<p>${code(codeProperty)} is deleted after the quota ${code('cvc_retention')}.</p>`}
${shown && html`<p>Shown in the clear next to the data: ${code(shown)}.</p>`}
${block(exampleText({ type: name, data: example }, false))}
</section>`;
}

/** With the meaning of each attribute. */
function dataSchema(data: object): Schema {
  const components = createComponents();
  const referred = components.refer(data);
  return [...components.schemas.values()].at(0) ?? referred;
}
