/** JSONPath, RFC 9535, as far as it can be evaluated in bounded time: the filter `json`. */
import assert from 'node:assert/strict';
import {
  JSONPathEnvironment,
  JSONPathNode,
  type JSONPathQuery,
  type JSONValue,
  jsonpath,
} from 'json-p3';
import { type Json, nestingMax } from '../../base/json.ts';
import { LruCache } from '../../base/lru-cache.ts';
import type { Budget } from '../evaluation/budget.ts';
import { ExpressionError } from '../evaluation/error.ts';

const { selectors, expressions } = jsonpath;
type Selector = JSONPathQuery['segments'][number]['selectors'][number];
type FilterPart = InstanceType<typeof expressions.FilterExpression>;

const pathLengthMax = 1000;
const segmentsMax = 100;
/** Units of work for a node: json-p3 creates an object and a path of names for each. */
const nodeWork = 64;
/** For each segment before it: the path of a node is copied from the node above. */
const levelWork = 2;
/** A factor for a member of an object, whose names are listed first. */
const namedFactor = 3;
/** How many compiled paths are cached, see {@link LruCache}. */
const pathsKeptMax = 200_000;

interface Selection {
  readonly selector: Selector;
  /** Units of work for each member the selector looks at. */
  readonly cost: number;
  /** How often it visits each member as a whole, to compare or to measure it. */
  readonly comparisons: number;
}

/** A compiled path. */
export interface JsonPath {
  readonly segments: readonly { readonly descends: boolean; readonly selections: Selection[] }[];
}

const environment = new JSONPathEnvironment();
// match() and search() would run a caller's regular expression over data without a limit of time.
environment.functionRegister.delete('match');
environment.functionRegister.delete('search');

const paths = new LruCache<JsonPath>(pathsKeptMax);

/** @throws ExpressionError saying what a path must be. */
export function compilePath(text: string): JsonPath {
  const known = paths.get(text);
  if (known !== undefined) return known;
  if (text.length > pathLengthMax) {
    throw new ExpressionError(`a JSONPath must have at most ${pathLengthMax} characters`);
  }
  const path = { segments: parse(text).segments.map(planOf) };
  if (path.segments.length > segmentsMax) {
    throw new ExpressionError(`a JSONPath must have at most ${segmentsMax} segments`);
  }
  paths.set(text, path);
  return path;
}

/** The value of the only match, or `null` without one. */
export function followPath(path: JsonPath, value: Json, budget: Budget): Json {
  const root = value as JSONValue;
  let nodes: Iterable<JSONPathNode> = [new JSONPathNode(root, [], root)];
  for (const [level, { descends, selections }] of path.segments.entries()) {
    const work = nodeWork + level * levelWork;
    nodes = select(descends ? descend(nodes, budget) : nodes, { selections, work, budget });
  }
  const [match, other] = take(nodes, 2);
  if (other !== undefined)
    throw new ExpressionError('json found several matches; the path must match only one');
  return (match?.value ?? null) as Json;
}

/** A name or an index: one step of a path that leads to one place. */
export type Step = string | number;

/** The steps of a singular path (RFC 9535, section 2.3.5.1); `undefined` for any other text. */
export function singularSteps(text: string): readonly Step[] | undefined {
  if (text.length > pathLengthMax) return undefined;
  try {
    const query = environment.compile(text);
    if (!query.singularQuery() || query.segments.length > nestingMax) return undefined;
    return query.segments.flatMap((segment) => segment.selectors.map(stepOf));
  } catch {
    return undefined;
  }
}

function stepOf(selector: Selector): Step {
  if (selector instanceof selectors.NameSelector) return selector.name;
  assert(selector instanceof selectors.IndexSelector, 'a singular path has names and indexes');
  return selector.index;
}

function parse(text: string): JSONPathQuery {
  try {
    return environment.compile(text);
  } catch {
    throw new ExpressionError(
      "json needs a JSONPath such as '$.a[0]' (RFC 9535, without match and search)",
    );
  }
}

function planOf(segment: JSONPathQuery['segments'][number]): JsonPath['segments'][number] {
  return {
    descends: segment.toString().startsWith('..'),
    selections: segment.selectors.map((selector) =>
      selector instanceof selectors.FilterSelector
        ? { selector, ...costOf(selector.expression) }
        : { selector, cost: 1, comparisons: 0 },
    ),
  };
}

/**
 * A filter may only read its own member, by a singular path, so that its cost is known in advance.
 * `$[?count($..*) > 1]` would visit everything once for each member.
 */
function costOf(part: FilterPart): Omit<Selection, 'selector'> {
  if (part instanceof expressions.FilterQuery) {
    if (part instanceof expressions.RelativeQuery && part.path.singularQuery()) {
      return { cost: 1 + part.path.segments.length, comparisons: 0 };
    }
    throw new ExpressionError("a JSONPath filter may only use single values below '@'");
  }
  const inner = partsOf(part).map(costOf);
  const compares = part instanceof expressions.InfixExpression && !part.logical;
  const measures = part instanceof expressions.FunctionExtension;
  return inner.reduce(
    (sum, { cost, comparisons }) => ({
      cost: sum.cost + cost,
      comparisons: sum.comparisons + comparisons,
    }),
    { cost: 1, comparisons: compares || measures ? 1 : 0 },
  );
}

function partsOf(part: FilterPart): readonly FilterPart[] {
  if (part instanceof expressions.LogicalExpression) return [part.expression];
  if (part instanceof expressions.PrefixExpression) return [part.right];
  if (part instanceof expressions.InfixExpression) return [part.left, part.right];
  if (part instanceof expressions.FunctionExtension) return part.args;
  return [];
}

interface NodeSelection {
  readonly selections: readonly Selection[];
  /** For each created node. */
  readonly work: number;
  readonly budget: Budget;
}

function* select(
  nodes: Iterable<JSONPathNode>,
  { selections, work, budget }: NodeSelection,
): Generator<JSONPathNode> {
  for (const node of nodes) {
    for (const { selector, cost, comparisons } of selections) {
      budget.use(cost * work * widthOf(node.value, selector));
      if (comparisons > 0) budget.useFor(node.value, comparisons);
      yield* selector.resolve(node);
    }
  }
}

/** The nodes and everything below them, parents first. */
function* descend(nodes: Iterable<JSONPathNode>, budget: Budget): Generator<JSONPathNode> {
  for (const node of nodes) {
    const stack = [node];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      yield next;
      const { value } = next;
      if (typeof value !== 'object' || value === null) continue;
      const members = Object.values(value) as JSONValue[];
      budget.use((members.length + 1) * nodeWork * (Array.isArray(value) ? 1 : namedFactor));
      for (const member of members.reverse()) stack.push(new JSONPathNode(member, [], node.root));
    }
  }
}

function widthOf(value: unknown, selector: Selector): number {
  if (selector instanceof selectors.NameSelector) return 1;
  if (selector instanceof selectors.IndexSelector) return 1;
  if (typeof value !== 'object' || value === null) return 1;
  // Listing the names of an object costs the same when it has none.
  return Array.isArray(value) ? 1 + value.length : (1 + Object.keys(value).length) * namedFactor;
}

function take<T>(items: Iterable<T>, count: number): T[] {
  const taken: T[] = [];
  for (const item of items) {
    taken.push(item);
    if (taken.length === count) break;
  }
  return taken;
}
