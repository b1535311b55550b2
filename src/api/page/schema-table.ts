/** Schemas as tables: a row for each attribute, with links to the schemas it refers to. */
import type { Schema } from '../openapi/components.ts';
import { code, type Html, html, inline, link, list, table } from './html.ts';

export function schemaAnchor(name: string): string {
  return `schema-${name}`;
}

/** The type of a value, in a few words. */
export function typeOf(schema: Schema): Html {
  const { $ref, type, items, anyOf, oneOf, additionalProperties, format } = schema;
  const values = schema['enum'] ?? ('const' in schema ? [schema['const']] : undefined);
  if (typeof $ref === 'string') return refLink($ref);
  const members = (anyOf ?? oneOf) as readonly Schema[] | undefined;
  if (members) return list(members.map(typeOf), ' or ');
  if (Array.isArray(values))
    return list(
      values.map((one) => code(JSON.stringify(one))),
      ' ',
    );
  if (type === 'array') return html`list of ${items ? typeOf(items as Schema) : 'any JSON'}`;
  if (type === 'object' && typeof additionalProperties === 'object') {
    return html`object of ${typeOf(additionalProperties as Schema)}`;
  }
  if (type === undefined) return html`any JSON`;
  if (Array.isArray(type)) return html`${type.join(' or ')}`;
  return format === undefined ? html`${String(type)}` : html`${String(type)} (${String(format)})`;
}

function refLink(reference: string): Html {
  const name = reference.split('/').at(-1) ?? '';
  return link(schemaAnchor(name), name);
}

/** What bounds a value. */
function boundsOf(schema: Schema): string {
  const plain = (schema['anyOf'] as readonly Schema[] | undefined)?.[0] ?? schema;
  return limits
    .map(([min, max, unit]) => rangeOf(plain[min], plain[max], unit))
    .filter((range) => range !== '')
    .join(', ');
}

const limits = [
  ['minimum', 'maximum', ''],
  ['minLength', 'maxLength', ' characters'],
  ['minItems', 'maxItems', ' items'],
] as const;

function rangeOf(min: unknown, max: unknown, unit: string): string {
  const [from, to] = [min, max].map((value) =>
    typeof value === 'number' && unit !== '' ? value.toLocaleString('en') : value,
  );
  if (min !== undefined && max !== undefined) return `${from} to ${to}${unit}`;
  if (max !== undefined) return `at most ${to}${unit}`;
  return min === undefined ? '' : `at least ${from}${unit}`;
}

/** Nothing for a schema without attributes. */
export function attributesTable(caption: string, schema: Schema): Html | undefined {
  const properties = schema['properties'] as Readonly<Record<string, Schema>> | undefined;
  if (properties === undefined) return undefined;
  const required = (schema['required'] ?? []) as readonly string[];
  return table(
    caption,
    ['Attribute', 'Type', 'Meaning'],
    Object.entries(properties).map(([name, one]) => [
      html`${code(name)}${required.includes(name) ? html` <strong>required</strong>` : ''}`,
      typeOf(one),
      meaningOf(one),
    ]),
  );
}

export function meaningOf(schema: Schema): Html {
  const bounds = boundsOf(schema);
  const said = inline(String(schema['description'] ?? ''));
  return bounds === '' ? said : html`${said} <span class="soft">(${bounds})</span>`;
}
