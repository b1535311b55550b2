/** The engine: liquidjs with our filters, without its files, and with every loop bounded. */
import {
  type Context,
  defaultOperators,
  type FilterImplOptions,
  Liquid,
  type Operators,
  toValue,
} from 'liquidjs';
import { EvaluationContext } from './context.ts';
import { type Filter, filters } from './filters.ts';
import { boundedFilters } from './standard-filters.ts';
import { tags } from './tags.ts';

/** The longest expression, with the text around it. */
export const expressionLengthMax = 4000;

/** liquidjs compares lists member by member with a generator for each. */
const comparisonWork = 8;

const comparisons = ['==', '!=', '<', '<=', '>', '>=', 'contains'];

export const engine = makeEngine();

function makeEngine(): Liquid {
  const liquid = new Liquid({
    strictFilters: true,
    ownPropertyOnly: true,
    // There are no files; an empty map keeps liquidjs from ever asking the file system for one.
    templates: {},
    parseLimit: expressionLengthMax,
    operators: boundedOperators(),
    // The answer must not depend on where the server stands.
    timezoneOffset: 0,
    locale: 'en-US',
  });
  for (const name of Object.keys(liquid.tags)) delete liquid.tags[name];
  for (const [name, tag] of Object.entries(tags)) liquid.registerTag(name, tag);
  for (const name of Object.keys(liquid.filters)) liquid.unregisterFilter(name);
  for (const [name, filter] of boundedFilters) liquid.registerFilter(name, filter);
  for (const [name, filter] of filters) liquid.registerFilter(name, asLiquid(filter));
  return liquid;
}

function asLiquid(filter: Filter): FilterImplOptions {
  return function (value: unknown, ...given: unknown[]) {
    const apply = filter.apply(given.map((argument) => toValue(argument)));
    return apply(toValue(value), EvaluationContext.evaluationOf(this.context));
  };
}

/** Comparing lists goes through both, so it is paid for. */
function boundedOperators(): Operators {
  const bounded: Operators = { ...defaultOperators };
  for (const name of comparisons) {
    const operator = defaultOperators[name];
    if (operator === undefined) throw new Error(`liquidjs has no operator ${name}`);
    bounded[name] = function* (left: unknown, right: unknown, context: Context) {
      const { budget } = EvaluationContext.evaluationOf(context);
      budget.useFor(toValue(left), comparisonWork);
      budget.useFor(toValue(right), comparisonWork);
      return (yield operator(left, right, context)) as boolean;
    };
  }
  return bounded;
}
