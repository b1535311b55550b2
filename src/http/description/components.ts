/** Schemas as components: what has a title is written once and referred to by its name. */
import type { JsonObject } from '../../lib/json.ts';
import { type Schema, titleOf } from '../schemas/shared.ts';
import { meaningOf } from './attributes.ts';
import { formOf, withForm } from './forms.ts';

export interface Components {
  /** The schema with references in it; its named parts are added to the components. */
  refer(schema: object): Schema;
  /** Names a schema that has been made here. */
  define(name: string, schema: Schema): Schema;
  readonly schemas: ReadonlyMap<string, Schema>;
}

export function createComponents(): Components {
  const schemas = new Map<string, Schema>();

  function refer(schema: object): Schema {
    const name = titleOf(schema);
    if (name === undefined) return partsOf(schema, undefined);
    if (!schemas.has(name)) {
      // Before its parts: a name is taken by the first schema that has it.
      schemas.set(name, {});
      schemas.set(name, partsOf(schema, name));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function partsOf(schema: object, name: string | undefined): Schema {
    // What only validates leaves with the text of JSON.
    const plain = JSON.parse(JSON.stringify(schema)) as JsonObject;
    const parts: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(plain)) {
      parts[keyword] = convert(keyword, value, name);
    }
    return parts;
  }

  function convert(keyword: string, value: unknown, name: string | undefined): unknown {
    if (keyword === 'properties') {
      return Object.fromEntries(
        Object.entries(value as Readonly<Record<string, object>>).map(([attribute, schema]) => [
          attribute,
          explained(withForm(refer(schema), formOf(name, attribute)), meaningOf(name, attribute)),
        ]),
      );
    }
    if (keyword === 'patternProperties') {
      return Object.fromEntries(
        Object.entries(value as Readonly<Record<string, object>>).map(([pattern, schema]) => [
          pattern,
          refer(schema),
        ]),
      );
    }
    if (keyword === 'anyOf' || keyword === 'oneOf') return (value as object[]).map(refer);
    const isSchema = typeof value === 'object' && value !== null;
    if ((keyword === 'items' || keyword === 'additionalProperties') && isSchema) {
      return refer(value);
    }
    return value;
  }

  function define(name: string, schema: Schema): Schema {
    schemas.set(name, schema);
    return { $ref: `#/components/schemas/${name}` };
  }

  return { refer, define, schemas };
}

/** A description next to `$ref` is allowed since OpenAPI 3.1; one of its own says more. */
function explained(schema: Schema, description: string | undefined): Schema {
  return description === undefined || 'description' in schema ? schema : { description, ...schema };
}
