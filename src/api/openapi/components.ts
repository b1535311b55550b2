/** Schemas as components: what has a title is written once and referred to by its name. */
import { meaningOf, shownOf, titleOf } from '../declaration/shape.ts';

/** A schema as JSON, as documents hold it. */
export type Schema = Readonly<Record<string, unknown>>;

export interface Components {
  /** The schema with references in it; its named parts are added to the components. */
  refer(schema: object): Schema;
  readonly schemas: ReadonlyMap<string, Schema>;
}

export function createComponents(): Components {
  const schemas = new Map<string, Schema>();

  function refer(schema: object): Schema {
    const name = titleOf(schema);
    if (name === undefined) return partsOf(schema);
    if (!schemas.has(name)) {
      // Before its parts: a name is taken by the first schema that has it.
      schemas.set(name, {});
      schemas.set(name, partsOf(schema));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function partsOf(schema: object): Schema {
    const parts = Object.entries(shownOf(schema));
    return Object.fromEntries(parts.map(([keyword, value]) => [keyword, convert(keyword, value)]));
  }

  function convert(keyword: string, value: unknown): unknown {
    if (keyword === 'properties') return byName(value, (one) => explained(refer(one), one));
    if (keyword === 'patternProperties') return byName(value, refer);
    if (keyword === 'anyOf' || keyword === 'oneOf') return (value as object[]).map(refer);
    const isSchema = typeof value === 'object' && value !== null;
    if ((keyword === 'items' || keyword === 'additionalProperties') && isSchema) {
      return refer(value);
    }
    return value;
  }

  return { refer, schemas };
}

function byName(value: unknown, convert: (schema: object) => Schema): Record<string, Schema> {
  const members = Object.entries(value as Readonly<Record<string, object>>);
  return Object.fromEntries(members.map(([name, schema]) => [name, convert(schema)]));
}

/** OpenAPI 3.1 allows a description next to `$ref`; one of the schema itself is more specific. */
function explained(shown: Schema, attribute: object): Schema {
  const description = meaningOf(attribute);
  return description === undefined || 'description' in shown ? shown : { description, ...shown };
}
