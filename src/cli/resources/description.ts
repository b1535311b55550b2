/** The operations of the API, as commands for resources need them, from the description that is made from `api/`. */
import { readFileSync } from 'node:fs';
import { descriptionPath } from '../../base/installation/manifest.ts';

/** How the text of an option becomes the value of an attribute. */
export type AttributeForm = 'text' | 'number' | 'boolean' | 'texts' | 'map' | 'json';

export interface Attribute {
  readonly name: string;
  readonly description: string;
  readonly form: AttributeForm;
  readonly choices: readonly string[] | undefined;
}

export interface CommandOperation {
  readonly method: string;
  /** With parameters such as `{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description: string | undefined;
  readonly query: readonly Attribute[];
  readonly body: readonly Attribute[];
  /** Of the body; undefined where the operation takes none. */
  readonly mediaType: string | undefined;
}

interface AttributeSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly items?: AttributeSchema;
  readonly properties?: Readonly<Record<string, AttributeSchema>>;
  readonly additionalProperties?: AttributeSchema | boolean;
  readonly anyOf?: readonly AttributeSchema[];
  readonly oneOf?: readonly AttributeSchema[];
}

interface ListedParameter {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
  readonly schema: AttributeSchema;
}

interface ListedOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly (ListedParameter | { readonly $ref: string })[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: AttributeSchema }>>;
  };
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ListedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, AttributeSchema>> };
}

/** A megabyte of JSON, which the completion of all commands needs for each of them. */
const readDescription = once(
  () => JSON.parse(readFileSync(descriptionPath, 'utf8')) as ApiDocument,
);

function once<T>(read: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= read();
    return value;
  };
}

/** @throws Error if no operation has the id. */
export function describedOperation(id: string): CommandOperation {
  const document = readDescription();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation.operationId !== id) continue;
      const { summary, description, parameters = [], requestBody } = operation;
      const [mediaType, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
      const query = parameters.filter(
        (one) => 'in' in one && one.in === 'query',
      ) as ListedParameter[];
      return {
        method: method.toUpperCase(),
        path,
        summary,
        description,
        query: query.map(({ name, schema, ...more }) =>
          attributeOf(document, name, { ...schema, ...more }),
        ),
        body: content ? bodyAttributes(document, content.schema) : [],
        mediaType,
      };
    }
  }
  throw new Error(`the API has no operation ${id}`);
}

/** Of all alternatives together: which go together, the vault says. */
function bodyAttributes(document: ApiDocument, schema: AttributeSchema): readonly Attribute[] {
  const found = new Map<string, AttributeSchema[]>();
  for (const alternative of alternativesOf(document, schema)) {
    for (const [name, property] of Object.entries(alternative.properties ?? {})) {
      found.set(name, [...(found.get(name) ?? []), property]);
    }
  }
  return [...found].map(([name, [first, ...others]]) =>
    attributeOf(document, name, { ...first, anyOf: [first ?? {}, ...others] }),
  );
}

function alternativesOf(
  document: ApiDocument,
  schema: AttributeSchema,
): readonly AttributeSchema[] {
  const { $ref, anyOf, oneOf } = schema;
  const name = $ref?.slice('#/components/schemas/'.length);
  if (name !== undefined) return alternativesOf(document, document.components.schemas[name] ?? {});
  const alternatives = anyOf ?? oneOf;
  return alternatives ? alternatives.flatMap((one) => alternativesOf(document, one)) : [schema];
}

function attributeOf(document: ApiDocument, name: string, schema: AttributeSchema): Attribute {
  const { description = '' } = schema;
  const forms = alternativesOf(document, schema).filter(({ type }) => type !== 'null');
  const choices = forms.flatMap((one) => one.enum ?? one.items?.enum ?? []).map(String);
  return {
    name,
    description,
    form: formOf(forms),
    choices: choices.length > 0 ? [...new Set(choices)] : undefined,
  };
}

function formOf(forms: readonly AttributeSchema[]): AttributeForm {
  const all = new Set(forms.map(formOfOne));
  const [only = 'json'] = all;
  return all.size === 1 ? only : 'json';
}

function formOfOne(schema: AttributeSchema): AttributeForm {
  const { type, items, additionalProperties } = schema;
  if (type === 'string' || schema.enum?.every((one) => typeof one === 'string')) return 'text';
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'boolean') return 'boolean';
  if (type === 'array') return items && formOfOne(items) === 'text' ? 'texts' : 'json';
  const hasTexts =
    typeof additionalProperties === 'object' &&
    [additionalProperties, ...(additionalProperties.anyOf ?? [])].some(
      (one) => one.type === 'string',
    );
  return type === 'object' && hasTexts ? 'map' : 'json';
}
