/** Requests made from the declarations of routes: the least that is valid, with a text at every place. */
import type { Route } from '../../src/http/protocol/route.ts';

export interface MadeRequest {
  /** Where the text stands: `params.id`, `query.start`, `body.nonce`. */
  readonly place: string;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly mediaType: string;
}

interface Shape {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
}

/** Values by attribute that let a request get past its validation, to where ids are looked up. */
export type Plausible = Readonly<Record<string, unknown>>;

/** One request for each place where a client may put a text; one without any when there is none. */
export function requestsWith(route: Route, text: string, plausible: Plausible): MadeRequest[] {
  const { params, query, body } = route as unknown as Record<string, Shape | undefined>;
  const names = Object.keys(params?.properties ?? {});
  const path = (named: string | undefined) =>
    names.reduce(
      (made, name) =>
        made.replace(
          `:${name}`,
          encodeURIComponent(name === named ? text : String(plausible[name] ?? 'x')),
        ),
      route.path,
    );
  const whole = body && minimal(body, plausible);
  const base = {
    method: route.method,
    mediaType: route.mediaType ?? 'application/json',
    ...(whole !== undefined && { body: whole }),
  };
  const inPath = names.map((name) => ({ ...base, place: `params.${name}`, path: path(name) }));
  const inQuery = Object.entries(query?.properties ?? {})
    .filter(([, shape]) => takesText(shape))
    .map(([name]) => ({
      ...base,
      place: `query.${name}`,
      path: `${path(undefined)}?${name}=${encodeURIComponent(text)}`,
    }));
  const inBody = [undefined, ...optionalIn(body, plausible)].flatMap((beside) =>
    placements(body ?? { type: 'null' }, text, plausible).map(([place, value]) => ({
      ...base,
      place: `body${place}${beside === undefined ? '' : ` beside ${beside}`}`,
      path: path(undefined),
      body:
        beside === undefined
          ? value
          : { [beside]: plausible[beside], ...(value as Record<string, unknown>) },
    })),
  );
  const made = [...inPath, ...inQuery, ...inBody];
  return made.length > 0 ? made : [{ ...base, place: 'nowhere', path: route.path }];
}

/** What some requests must name besides, though each of it alone is optional. */
const named = ['application_id', 'container'];

function optionalIn(body: Shape | undefined, plausible: Plausible): string[] {
  return named.filter((name) => body?.properties?.[name] && plausible[name] !== undefined);
}

function takesText(shape: Shape): boolean {
  return (
    (shape.type === 'string' && shape.enum === undefined) ||
    (shape.type === 'array' && shape.items !== undefined && takesText(shape.items))
  );
}

/** The least value that the shape allows, from the plausible ones where their name fits. */
function minimal(shape: Shape, plausible: Plausible): unknown {
  if (shape.anyOf?.[0]) return minimal(shape.anyOf[0], plausible);
  if (shape.enum) return shape.enum[0];
  if (shape.type === 'object') {
    return Object.fromEntries(
      (shape.required ?? []).map((name) => [
        name,
        plausible[name] ?? minimal(shape.properties?.[name] ?? {}, plausible),
      ]),
    );
  }
  if (shape.type === 'array') return [];
  if (shape.type === 'integer' || shape.type === 'number') return shape.minimum ?? 1;
  if (shape.type === 'boolean') return true;
  return 'x';
}

type Placed = readonly [place: string, value: unknown];

/** The value with the text at one place each: a text, an element, a member, an expression in any JSON. */
function placements(shape: Shape, text: string, plausible: Plausible): Placed[] {
  const expressions = [`{{ ${text} }}`, `{{ token: ${text} }}`];
  if (shape.anyOf) return shape.anyOf.flatMap((one) => placements(one, text, plausible));
  if (shape.enum) return [];
  if (shape.type === 'string') return [['', text]];
  if (shape.type === 'array' && shape.items) {
    return placements(shape.items, text, plausible).map(([at, value]) => [`[]${at}`, [value]]);
  }
  if (shape.type === 'object') {
    const whole = minimal(shape, plausible) as Record<string, unknown>;
    return Object.entries(shape.properties ?? {}).flatMap(([name, member]) =>
      placements(member, text, plausible).map(
        ([at, value]): Placed => [`.${name}${at}`, { ...whole, [name]: value }],
      ),
    );
  }
  if (shape.type !== undefined) return [];
  return [
    ['', text],
    ...expressions.map((one): Placed => ['{{}}', { value: one }]),
    ['.tokens{{}}', { tokens: expressions.slice(0, 1) }],
    ['.token_intent_id', { token_intent_id: text }],
  ];
}
