/** Parameters of paths and queries. */
import type { TSchema } from 'typebox';
import { meaningOf } from '../declaration/shape.ts';
import type { Components, Schema } from './components.ts';
import type { PublishedOperation } from './published-operation.ts';

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

export function parametersOf(
  { operation }: PublishedOperation,
  components: Components,
): Parameter[] {
  const { params, query, example } = operation;
  return [
    ...partOf(params, 'path', { examples: example.params, components }),
    ...partOf(query, 'query', { examples: example.query, components }),
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
  return Object.entries(properties).map(([name, parameter]): Parameter => {
    const shown = components.refer(parameter);
    const example = exampleOf(shown, examples?.[name]);
    return {
      name,
      in: place,
      required: place === 'path' || required.includes(name),
      description: meaningOf(parameter) ?? '',
      schema: shown,
      ...(shown['type'] === 'object' && { style: 'deepObject', explode: true }),
      ...(example !== undefined && { example }),
    };
  });
}

/** Queries are strings; an example has the type of its schema. */
function exampleOf({ type }: Schema, text: string | undefined): never | undefined {
  if (text === undefined) return undefined;
  if (type === 'integer') return Number(text) as never;
  return (type === 'array' ? [text] : text) as never;
}
