/** Parameters of paths and queries. */
import type { TSchema } from 'typebox';
import type { Schema } from '../schemas/shared.ts';
import { meaningOf } from './attributes.ts';
import type { Components } from './components.ts';
import { containerShape, metadataForm } from './forms.ts';
import type { Operation } from './operation.ts';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly style?: 'deepObject';
  readonly explode?: true;
  readonly example?: string;
}

const ofPaths: Readonly<Record<string, string>> = {
  id: 'The id of what the request is about.',
  keyId: 'The id of the key.',
  requestId: 'The id of the asynchronous call.',
};

const ofQueries: Readonly<Record<string, string>> = {
  id: 'Only these; repeat it for several.',
  type: 'Only of this type.',
  name: 'Only of this name; `*` stands for any text.',
  container: 'Only in this container and those below it.',
  fingerprint: 'Only with this fingerprint.',
  entity_type: 'Only entries about this kind of thing.',
  entity_id: 'Only entries about the thing with this id.',
  application_type: 'Only those that this type of application may hold.',
  bin: 'The first 6 to 8 digits of a card number, never more.',
};

/** What is checked behind the schema, in whose place another message says what is wrong. */
const forms: Readonly<Record<string, Schema>> = {
  bin: { pattern: '^[0-9]{6,8}$' },
  container: containerShape,
};

const metadata = {
  description:
    'Only with these metadata. Also understood: `metadata.<name>=<text>`, and `metadata` as a JSON object.',
  schema: metadataForm,
  style: 'deepObject',
  explode: true,
} as const;

export function parametersOf({ route, row }: Operation, components: Components): Parameter[] {
  return [
    ...partOf(route.params, 'path', { examples: row?.example.params, components }),
    ...partOf(route.query, 'query', { examples: row?.example.query, components }),
  ];
}

interface ParameterSources {
  readonly examples: Readonly<Record<string, string>> | undefined;
  readonly components: Components;
}

function partOf(
  schema: TSchema | undefined,
  place: 'path' | 'query',
  { examples, components }: ParameterSources,
): Parameter[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    readonly properties?: Readonly<Record<string, object>>;
    readonly required?: readonly string[];
  };
  const known = place === 'path' ? ofPaths : ofQueries;
  return Object.entries(properties).map(([name, parameter]): Parameter => {
    const base = { name, in: place, required: place === 'path' || required.includes(name) };
    if (name === 'metadata') return { ...base, ...metadata };
    const description = known[name] ?? meaningOf(undefined, name) ?? '';
    const plain = { ...components.refer(parameter), ...forms[name] };
    const example = exampleOf(plain, examples?.[name]);
    return { ...base, description, schema: plain, ...(example !== undefined && { example }) };
  });
}

/** Queries are text; an example has the type of its schema. */
function exampleOf({ type }: Schema, text: string | undefined): never | undefined {
  if (text === undefined) return undefined;
  if (type === 'integer') return Number(text) as never;
  return (type === 'array' ? [text] : text) as never;
}
