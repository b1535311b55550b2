/** The engine: liquidjs with our filters, without its files, and with every loop bounded. */
import {
  type Context,
  defaultOperators,
  type FilterImplOptions,
  Liquid,
  type Operators,
  toValue,
} from 'liquidjs';
import { argumentWork } from './evaluation/budget.ts';
import { operatorWork, payForComparing } from './evaluation/comparing.ts';
import { EvaluationContext } from './evaluation/context.ts';
import { type ExpressionFilter, filters } from './filters/filters.ts';
import { boundedFilters } from './filters/standard-filters.ts';
import { tags } from './tags.ts';

/** The longest expression, with the text around it. */
export const expressionLengthMax = 4000;

const comparisons = new Set(['==', '!=', '<', '<=', '>', '>=', 'contains']);

export const engine = makeEngine();

function makeEngine(): Liquid {
  const liquid = new Liquid({
    strictFilters: true,
    ownPropertyOnly: true,
    // There are no files. With an empty map liquidjs never accesses the file system.
    templates: {},
    parseLimit: expressionLengthMax,
    operators: boundedOperators(),
    // The response must not depend on the server's time zone.
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

function asLiquid(filter: ExpressionFilter): FilterImplOptions {
  return function (value: unknown, ...given: unknown[]) {
    const evaluation = EvaluationContext.evaluationOf(this.context);
    const values = given.map((argument) => toValue(argument));
    for (const argument of values) {
      evaluation.budget.use(argumentWork);
      evaluation.budget.useFor(argument, filter.argumentWeight);
    }
    return filter.apply(values)(toValue(value), evaluation);
  };
}

/** Operators are paid for, and comparing by what it goes through. */
function boundedOperators(): Operators {
  const bounded: Operators = { ...defaultOperators };
  for (const [name, operator] of Object.entries(defaultOperators)) {
    // With `not` the right one is the context, of which there is nothing to pay for.
    bounded[name] = function* (left: unknown, right: unknown, context?: Context) {
      const { budget } = EvaluationContext.evaluationOf(context ?? (right as Context));
      budget.use(operatorWork);
      if (comparisons.has(name)) {
        payForComparing(name, { left: toValue(left), right: toValue(right) }, budget);
      }
      return (yield operator(left, right, context as Context)) as boolean;
    };
  }
  return bounded;
}
