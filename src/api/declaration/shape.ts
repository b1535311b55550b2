/** Shapes of TypeBox with what the document needs besides: a meaning for each attribute, and more limits. */
import Type, { type TObject, type TObjectOptions, type TSchema } from 'typebox';

// Neither is a keyword, and neither can be enumerated: validation and serialization see the bare schema.
const meaning = '~meaning';
const shown = '~shown';

/** An attribute of an object, or a parameter, with its meaning there. */
export type Attribute<T extends TSchema = TSchema> = T & { readonly [meaning]: string };

export type Attributes = Readonly<Record<string, Attribute>>;

/** @param text its meaning, in one line, or another attribute with the same meaning. */
export function attribute<T extends TSchema>(schema: T, text: string | Attribute): Attribute<T> {
  return withHidden(schema, meaning, typeof text === 'string' ? text : text[meaning]);
}

/** An object; without a meaning for each of its attributes it does not compile. */
export function object<A extends Attributes>(
  attributes: A,
  options: TObjectOptions = {},
): TObject<A> {
  return Type.Object(attributes, options);
}

/** Limits that the document shows, and that code behind the schema checks to give a better message. */
export function documented<T extends TSchema>(schema: T, limits: object): T {
  return shownAs(schema, { ...schema, ...limits });
}

/** The document has another schema in the place of this one. */
export function shownAs<T extends TSchema>(schema: T, other: object): T {
  return withHidden(schema, shown, other);
}

/** The meaning of an attribute; `undefined` for other schemas. */
export function meaningOf(schema: object): string | undefined {
  return (schema as Partial<Attribute>)[meaning];
}

/** The schema as the document has it. */
export function shownOf(schema: object): object {
  return (schema as { readonly [shown]?: object })[shown] ?? schema;
}

/** The name of a schema in the document; a schema without one is written where it is used. */
export function titleOf(schema: object): string | undefined {
  return 'title' in schema ? String(schema.title) : undefined;
}

/** A copy, because one schema is used for many attributes. */
function withHidden<T extends TSchema, K extends string, V>(schema: T, key: K, value: V) {
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema));
  Object.defineProperty(copy, key, { value, configurable: true, writable: true });
  return copy as T & { readonly [key in K]: V };
}
