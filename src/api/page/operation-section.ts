/** One operation on the page: what it does, what it takes, what it returns, and an example. */
import { errorKinds } from '../../base/errors.ts';
import type { Schema } from '../openapi/components.ts';
import { exampleText } from '../openapi/example-text.ts';
import type { PublishedOperation } from '../openapi/published-operation.ts';
import {
  type DescribedOperation,
  type Document,
  type DocumentParameter,
  isReference,
  type MediaContents,
} from './document.ts';
import { block, code, type Html, heading, html, inline, link, list, prose, table } from './html.ts';
import { samplesOf } from './samples.ts';
import { attributesTable, meaningOf, typeOf } from './schema-table.ts';

export interface ShownOperation {
  readonly path: string;
  readonly method: string;
  readonly described: DescribedOperation;
  /** Absent for what needs no key. */
  readonly published: PublishedOperation | undefined;
}

export function operationSection(shown: ShownOperation, document: Document): Html {
  const { path, method, described, published } = shown;
  const { operationId, summary, description } = described;
  return html`<section>
${heading(3, operationId, summary)}
<p class="path"><span class="method ${method}">${method.toUpperCase()}</span> ${code(path)}</p>
${prose(description)}
${published && html`<p class="soft">Keys: ${published.kinds.join(', ')}</p>`}
${parametersTable(described, document)}
${bodyPart(described, document)}
${responsesTable(shown)}
${published && examplePart(published, document)}
</section>`;
}

function parametersTable({ parameters = [] }: DescribedOperation, document: Document) {
  const resolved = parameters.map((parameter): DocumentParameter => {
    if (!isReference(parameter)) return parameter;
    const name = parameter.$ref.split('/').at(-1) ?? '';
    return document.components.parameters[name] as DocumentParameter;
  });
  if (resolved.length === 0) return undefined;
  return table(
    'Parameters',
    ['Name', 'In', 'Type', 'Meaning'],
    resolved.map(({ name, in: place, required, description, schema }) => [
      html`${code(name)}${required ? html` <strong>required</strong>` : ''}`,
      place,
      typeOf(schema),
      meaningOf({ ...schema, description }),
    ]),
  );
}

/** The vault passes the body on, so its type is not known. */
const anyType = '*/*';

function bodyPart({ requestBody }: DescribedOperation, { components }: Document): Html | undefined {
  if (requestBody === undefined) return undefined;
  const { content, description } = requestBody;
  const [first] = Object.values(content);
  const schema = (first?.schema['contentSchema'] ?? first?.schema ?? {}) as Schema;
  const name =
    String(schema['$ref'] ?? '')
      .split('/')
      .at(-1) ?? '';
  const named = components.schemas[name] ?? {};
  return html`<h4>Body</h4>
<p>${anyType in content ? '' : html`${contentTypes(content)}. `}${inline(description)}</p>
${attributesTable('Attributes of the body', named)}
${membersOf(named)}`;
}

/** The members of a union. */
function membersOf(schema: Schema): Html | undefined {
  const members = (schema['oneOf'] ?? schema['anyOf']) as readonly Schema[] | undefined;
  return members && html`<p>One of: ${list(members.map(typeOf))}</p>`;
}

/** `application/json` with a link to its schema. */
function contentTypes(content: MediaContents): Html {
  return list(
    Object.entries(content).map(([mediaType, { schema }]) => {
      const lines = schema['contentSchema'] as typeof schema | undefined;
      return html`${code(mediaType)}: ${lines ? html`lines of ${typeOf(lines)}` : typeOf(schema)}`;
    }),
    '; ',
  );
}

function responsesTable({ described, published }: ShownOperation): Html {
  return table(
    'Responses',
    ['Status', 'Meaning'],
    Object.entries(described.responses).map(([status, response]) => [
      code(status),
      isReference(response)
        ? problemsOf(status, published)
        : html`${response.description} ${response.content && contentTypes(response.content)}`,
    ]),
  );
}

function problemsOf(status: string, published: PublishedOperation | undefined): Html {
  const codes = published?.problems.get(Number(status)) ?? [];
  const known = codes.length > 0 ? codes : codesOf(Number(status));
  return list(known.map((one) => link(`problem-${one}`, one)));
}

function codesOf(status: number): string[] {
  return Object.entries(errorKinds).flatMap(([one, kind]) => (kind.status === status ? [one] : []));
}

function examplePart(published: PublishedOperation, { components }: Document): Html {
  const { operation, isStream } = published;
  const { curl, typescript, python } = samplesOf(published, components.securitySchemes.key.name);
  const { reply } = operation.example;
  return html`<h4>Example</h4>
${block(curl)}
<details><summary>TypeScript</summary>${block(typescript)}</details>
<details><summary>Python</summary>${block(python)}</details>
${reply !== undefined && html`<p>Of the response:</p>${block(exampleText(reply, isStream).trimEnd())}`}`;
}

/** A schema on its own. */
export function schemaSection(name: string, document: Document): Html {
  const schema = document.components.schemas[name] ?? {};
  return html`<section>
${heading(3, `schema-${name}`, name)}
${prose(String(schema['description'] ?? ''))}
${membersOf(schema)}
${attributesTable(`Attributes of ${name}`, schema)}
</section>`;
}
