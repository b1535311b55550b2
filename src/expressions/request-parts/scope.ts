/** The variables that expressions of a request may name besides tokens. */
import { Tokenizer, TypeGuards } from 'liquidjs';
import { isObject, type Json } from '../../base/json.ts';
import { ExpressionError, UnknownNameError } from '../evaluation/error.ts';
import type { ExpressionScope } from '../evaluation/evaluation.ts';
import type { Reference } from '../reading.ts';
import type { ValueToken } from '../syntax-flaws.ts';

type TextsByName = Readonly<Record<string, string>>;

/** An absent member is not available where the string is used: naming it is an error. */
export interface RequestScope {
  readonly valueOf: (reference: Reference) => Json | undefined;
  /** Of the proxy: `config: NAME` and `proxy.config.NAME`. */
  readonly config?: TextsByName;
  /** `proxy.request`: the headers by name as they were sent, and the body as a string. */
  readonly request?: { readonly headers: TextsByName; readonly body?: Json };
  /** The decrypted form of what the caller sent encrypted. */
  readonly encrypted?: Json;
  /** The tokens that transforms made, by the identifiers of the transforms. */
  readonly transforms?: ReadonlyMap<string, Json>;
  /** The body of the destination's response. */
  readonly res?: Json;
  readonly failures?: FailuresInScope;
}

/**
 * Where values are in the scope that the caller may not see, no failure of an expression says anything about them: its
 * value is null in its place, and the request goes on. Otherwise a filter that fails for some values only would be an
 * oracle: some requests would give a whole card number.
 */
export interface FailuresInScope {
  /** Whether the caller may not read the whole of a token that the call refers to. */
  readonly areConcealed: boolean;
  /** Called for each failure that is not shown. */
  readonly onConcealed: () => void;
}

/**
 * Decided by what is in the scope and not by what an expression names: a part of the call may spell a name for another,
 * or read what another has written. Nobody may read configuration and encrypted data.
 */
export function concealing({ failures, config = {}, encrypted }: RequestScope) {
  const isSecret = encrypted !== undefined || Object.keys(config).length > 0;
  return isSecret || failures?.areConcealed ? failures : undefined;
}

/** The names that are variables of the language, so that they can also be arguments of filters. */
export type Variables = ExpressionScope;

export function variablesOf({ config, request, encrypted, res }: RequestScope): Variables {
  const proxy = { ...(request && { request }), ...(config && { config }) };
  return {
    ...((request || config) && { proxy: proxy as Json }),
    ...(encrypted !== undefined && { encrypted }),
    ...(res !== undefined && { res }),
  };
}

const roots = new Set(['proxy', 'encrypted', 'res']);

/** True where an expression begins with a variable. All other words are ids of tokens. */
export function beginsWithVariable(text: string, at: number): boolean {
  const pattern = /\s*(?:proxy|encrypted|res)\s*(?:[.[|]|\}\})/y;
  pattern.lastIndex = at;
  return pattern.test(text);
}

/** The names in one path of variables, as far as they are literal. */
export type VariablePath = readonly string[];

export interface VariablesRead {
  readonly paths: readonly VariablePath[];
  /** The same content with `res` for the whole of the body, which callers write as `res.json`. */
  readonly content: string;
}

/**
 * The variables that an expression reads. `content` is everything between its braces, a valid value with filters.
 *
 * @throws ExpressionError for a name that no request has.
 */
export function variablesRead(content: string, known: readonly string[] = []): VariablesRead {
  const paths: VariablePath[] = [];
  const bodies: (readonly [begin: number, end: number])[] = [];
  const { initial, filters } = new Tokenizer(content).readFilteredValue();
  const given = filters.flatMap(({ args }) =>
    args.map((argument) => (Array.isArray(argument) ? argument[1] : argument)),
  );
  const pending: (ValueToken | undefined)[] = [...initial.postfix, ...given];
  while (pending.length > 0) {
    const token = pending.pop();
    if (!TypeGuards.isPropertyAccessToken(token)) continue;
    const { props } = token;
    pending.push(token.variable, ...props);
    const path: string[] = [];
    for (const step of props) {
      if (!('content' in step) || TypeGuards.isPropertyAccessToken(step)) break;
      path.push(String(step.content));
    }
    const [root = '', member] = path;
    if (known.includes(root)) continue;
    if (!roots.has(root)) throw new ExpressionError('a filter is given an unknown name');
    const [first, second] = props;
    if (root !== 'res' || member !== 'json' || !first || !second) {
      paths.push(path);
    } else {
      paths.push([root]);
      bodies.push([first.end, second.end]);
    }
  }
  return { paths, content: without(content, bodies) };
}

function without(text: string, ranges: readonly (readonly [number, number])[]): string {
  return ranges
    .toSorted(([one], [other]) => other - one)
    .reduce((left, [begin, end]) => left.slice(0, begin) + left.slice(end), text);
}

/** @throws ExpressionError when the request does not have what the path names. */
export function checkPath(path: VariablePath, variables: Variables): void {
  const [root = '', ...steps] = path;
  const variable = variables[root];
  if (variable === undefined) throw new UnknownNameError(`"${root}" is not available here`);
  // Missing data is null, as everywhere. Headers and configuration are known by name.
  if (root !== 'proxy') return;
  let value: Json | undefined = variable;
  for (const step of steps) {
    if (!isObject(value)) return;
    value = Object.hasOwn(value, step) ? value[step] : undefined;
    if (value === undefined) throw new UnknownNameError('names what this request does not have');
  }
}

/** @throws ExpressionError when there is no such entry. */
export function configured(name: string, { config }: RequestScope): string {
  if (config === undefined) throw new UnknownNameError('"config" is not available here');
  const value = Object.hasOwn(config, name) ? config[name] : undefined;
  if (value !== undefined) return value;
  throw new UnknownNameError('names an entry that the configuration does not have');
}

/** @throws ExpressionError when no transform of that identifier made a token. */
export function transformed(identifier: string, { transforms }: RequestScope): Json {
  const value = transforms?.get(identifier);
  if (value !== undefined) return value;
  throw new UnknownNameError('names a transform that has not made a token here');
}
