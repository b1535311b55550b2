/** The attributes of a body or a response, next to their operation; what is nested opens in place. */
import type { JSX } from 'preact';
import { type Description, nameIn, type Schema } from './document.ts';
import { Inline } from './text.tsx';

interface Context {
  readonly description: Description;
  /** The schemas around this one: one that contains itself is not opened again. */
  readonly within: readonly string[];
}

/** A schema without references, and the name it has in the document. */
function resolved(schema: Schema, { description, within }: Context) {
  if (schema.$ref === undefined) return { schema, name: schema.title, within };
  const name = nameIn(schema.$ref);
  const { $ref: _, ...beside } = schema;
  const found = description.components.schemas[name] ?? {};
  return { schema: { ...found, ...beside } as Schema, name, within: [...within, name] };
}

interface FieldsProps {
  readonly schema: Schema;
  readonly description: Description;
  readonly within?: readonly string[];
  /** Decides which of several forms is open. */
  readonly example?: unknown;
}

export function Fields({
  schema: given,
  description,
  within: outer = [],
  example,
}: FieldsProps): JSX.Element {
  const context = { description, within: outer };
  const { schema, within } = resolved(given.contentSchema ?? given, context);
  const inside = { description, within };
  const variants = variantsOf(schema, inside);
  if (variants.length > 1) {
    const opened = Math.max(
      0,
      variants.findIndex((one) => isOfForm(example, one, inside)),
    );
    return (
      <div class="variants">
        <p class="soft">One of {variants.length} forms:</p>
        {variants.map((variant, at) => (
          <details class="variant" open={at === opened}>
            <summary>{labelOf(variant, inside, at)}</summary>
            <Fields schema={variant} description={description} within={within} />
          </details>
        ))}
      </div>
    );
  }
  const one = variants[0] ?? schema;
  const { schema: shown, within: around } = resolved(one, inside);
  const properties = Object.entries(shown.properties ?? {});
  if (properties.length === 0) {
    return (
      <p>
        <span class="type">{typeOf(shown, inside)}</span> <Meaning schema={shown} />
      </p>
    );
  }
  return (
    <ul class="fields">
      {properties.map(([name, property]) => (
        <Field
          name={name}
          schema={property}
          isRequired={shown.required?.includes(name) ?? false}
          context={{ description, within: around }}
        />
      ))}
    </ul>
  );
}

interface FieldProps {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly context: Context;
}

function Field({ name, schema, isRequired, context }: FieldProps): JSX.Element {
  const inner = nestedOf(schema, context);
  return (
    <li class="field">
      <FieldHead name={name} type={typeOf(schema, context)} isRequired={isRequired} />
      <Meaning schema={resolved(schema, context).schema} />
      {inner && (
        <details class="nested">
          <summary>
            Attributes of <code>{name}</code>
          </summary>
          <Fields schema={inner} description={context.description} within={context.within} />
        </details>
      )}
    </li>
  );
}

interface FieldHeadProps {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
}

export function FieldHead({ name, type, isRequired }: FieldHeadProps): JSX.Element {
  return (
    <div class="field-head">
      <code class="field-name">{name}</code> <span class="type">{type}</span>
      {isRequired && <span class="required">required</span>}
    </div>
  );
}

export function Meaning({ schema }: { readonly schema: Schema }): JSX.Element | null {
  const { description = '' } = schema;
  const bounds = boundsOf(schema);
  const values = valuesOf(schema);
  if (description === '' && bounds === '' && values.length === 0) return null;
  return (
    <>
      {(description !== '' || bounds !== '') && (
        <p>
          <Inline text={description} /> {bounds !== '' && <span class="soft">{bounds}</span>}
        </p>
      )}
      {values.length > 0 && (
        <p class="values">
          {values.map((value) => (
            <code>{value}</code>
          ))}
        </p>
      )}
    </>
  );
}

/** The schema whose attributes are shown below a field. */
function nestedOf(schema: Schema, context: Context): Schema | undefined {
  const { schema: shown, name, within } = resolved(schema, context);
  if (name !== undefined && context.within.includes(name)) return undefined;
  if (shown.items) return nestedOf(shown.items, { ...context, within });
  if (typeof shown.additionalProperties === 'object') {
    return nestedOf(shown.additionalProperties, { ...context, within });
  }
  if (Object.keys(shown.properties ?? {}).length > 0) return schema;
  const variants = variantsOf(shown, context).filter((one) =>
    nestedOf(one, { ...context, within }),
  );
  if (variants.length === 0) return undefined;
  return variants.length === 1 ? variants[0] : { anyOf: variants };
}

/** The alternatives of a schema, flattened; `null` is part of the type instead. */
function variantsOf(schema: Schema, context: Context): readonly Schema[] {
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (!alternatives) return [];
  return alternatives.flatMap((one) => {
    const { schema: inner } = resolved(one, context);
    if (inner.type === 'null') return [];
    const nested = variantsOf(inner, context);
    return nested.length > 0 ? nested : [one];
  });
}

/** Whether a value has the constants of a form. */
function isOfForm(value: unknown, schema: Schema, context: Context): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const constants = Object.entries(resolved(schema, context).schema.properties ?? {}).filter(
    ([, one]) => 'const' in one,
  );
  const members = value as Readonly<Record<string, unknown>>;
  return constants.length > 0 && constants.every(([name, one]) => members[name] === one.const);
}

/** A form by the value that tells it from the others, else by its name. */
function labelOf(schema: Schema, context: Context, at: number): JSX.Element {
  const { schema: shown, name } = resolved(schema, context);
  const told = Object.entries(shown.properties ?? {}).find(([, one]) => 'const' in one);
  if (told) {
    return (
      <>
        <code>{told[0]}</code> is <code>{JSON.stringify(told[1].const)}</code>
      </>
    );
  }
  return <>{name ?? (shown.type === undefined ? `Form ${at + 1}` : typeOf(shown, context))}</>;
}

/** In a few words. */
export function typeOf(given: Schema, context: Context): string {
  const { schema } = resolved(given, context);
  const { type, items, additionalProperties, format } = schema;
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) {
    return [...new Set(alternatives.map((one) => typeOf(one, context)))].join(' or ');
  }
  if (schema.enum || 'const' in schema) {
    const value = schema.enum?.[0] ?? schema.const;
    return value === null ? 'null' : typeof value;
  }
  if (type === 'array') return items ? `array of ${plural(typeOf(items, context))}` : 'array';
  if (type === 'object' && typeof additionalProperties === 'object') {
    return `object of ${plural(typeOf(additionalProperties, context))}`;
  }
  if (type === undefined) return schema.properties ? 'object' : 'any JSON';
  const names = Array.isArray(type) ? type.join(' or ') : String(type);
  return format === undefined ? names : `${names} (${format})`;
}

function plural(type: string): string {
  return /^(?:string|number|integer|object|boolean)$/.test(type) ? `${type}s` : type;
}

function valuesOf(schema: Schema): readonly string[] {
  const values = schema.enum ?? ('const' in schema ? [schema.const] : []);
  return values.map((value) => JSON.stringify(value));
}

const ranges = [
  ['minimum', 'maximum', ''],
  ['minLength', 'maxLength', ' characters'],
  ['minItems', 'maxItems', ' items'],
  [undefined, 'maxProperties', ' names'],
] as const;

function boundsOf(schema: Schema): string {
  const plain = schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;
  return ranges
    .flatMap(([low, high, unit]) => {
      const min = low && plain[low];
      const max = plain[high];
      const written = (value: number) => `${value.toLocaleString('en')}${unit}`;
      if (min !== undefined && max !== undefined && max < 2 ** 31 - 1) {
        return [
          min === max
            ? `Exactly ${written(max)}.`
            : `${min.toLocaleString('en')} to ${written(max)}.`,
        ];
      }
      if (max !== undefined && max < 2 ** 31 - 1) return [`At most ${written(max)}.`];
      return min === undefined || min <= 1 ? [] : [`At least ${written(min)}.`];
    })
    .join(' ');
}
