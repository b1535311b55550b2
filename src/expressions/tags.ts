/** The tags of the language, and liquidjs's loops and branches made to pay for what they go through. */
import {
  AssignTag,
  BreakTag,
  CaptureTag,
  CaseTag,
  CommentTag,
  type Context,
  ContinueTag,
  type Emitter,
  evalTokenValue,
  ForTag,
  IfTag,
  RawTag,
  type Template,
  TypeGuards,
  toValue,
  UnlessTag,
} from 'liquidjs';
import { memberWork } from './evaluation/budget.ts';
import { operatorWork, payForSide } from './evaluation/comparing.ts';
import { EvaluationContext } from './evaluation/context.ts';
import { ExpressionError } from './evaluation/error.ts';
import { TextEmitter } from './evaluation/text.ts';

/** Numbers that one range may count. */
export const rangeMax = 10_000;

class BoundedFor extends ForTag {
  override *render(
    context: Context,
    emitter: Emitter,
  ): Generator<unknown, undefined | string, Template[]> {
    const { budget } = EvaluationContext.evaluationOf(context);
    if (TypeGuards.isRangeToken(this.collection)) {
      const least: unknown = yield evalTokenValue(this.collection.lhs, context);
      const most: unknown = yield evalTokenValue(this.collection.rhs, context);
      checkRange(Number(least), Number(most));
    } else {
      const collection: unknown = yield evalTokenValue(this.collection, context);
      // Both an object and an array are turned into a list of their members first.
      if (Array.isArray(collection)) budget.use(collection.length * memberWork);
      else if (typeof collection === 'object') {
        budget.use(Object.keys(collection ?? {}).length * memberWork);
      }
    }
    return (yield* super.render(context, emitter)) as undefined | string;
  }
}

/** liquidjs counts upwards by adding one, which never ends where doubles are sparser than that. */
function checkRange(least: number, most: number): void {
  if (Number.isSafeInteger(least) && Number.isSafeInteger(most) && most - least < rangeMax) return;
  throw new ExpressionError(
    `a range must begin and end with a whole number and have at most ${rangeMax} numbers`,
  );
}

class BoundedCase extends CaseTag {
  override *render(context: Context, emitter: Emitter): Generator<unknown, void, unknown> {
    const { budget } = EvaluationContext.evaluationOf(context);
    const target: unknown = toValue(yield this.value.value(context));
    for (const { values } of this.branches) {
      for (const _value of values) {
        budget.use(operatorWork);
        payForSide(target, budget);
      }
    }
    yield* super.render(context, emitter);
  }
}

class BoundedCapture extends CaptureTag {
  override *render(context: Context): Generator<unknown, void, string> {
    const emitter = new TextEmitter(EvaluationContext.evaluationOf(context).budget);
    yield this.liquid.renderer.renderTemplates(this.templates, context, emitter);
    context.bottom()[this.variable] = emitter.buffer;
  }
}

/** Every tag by name. What reads files, alters the caller's variables or nests languages is absent. */
export const tags = {
  assign: AssignTag,
  break: BreakTag,
  capture: BoundedCapture,
  case: BoundedCase,
  comment: CommentTag,
  continue: ContinueTag,
  for: BoundedFor,
  if: IfTag,
  raw: RawTag,
  unless: UnlessTag,
};
