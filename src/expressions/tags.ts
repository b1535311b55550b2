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
import { nameWork } from './evaluation/budget.ts';
import { operatorWork, payForSide } from './evaluation/comparing.ts';
import { EvaluationContext } from './evaluation/context.ts';
import { ExpressionError } from './evaluation/error.ts';
import { TextEmitter } from './evaluation/text.ts';

/** Numbers that one range may count. */
export const rangeMax = 10_000;

/** Beginning a loop, and going to the next member of what it goes through. */
const loopWork = 3000;
const itemWork = 12;

/** liquidjs makes a list of a name and a value for each member of an object. */
const pairWork = 2 * nameWork;

/** Keeping a value under a name. */
const assignWork = 600;

class BoundedAssign extends AssignTag {
  override *render(context: Context): Generator<unknown, void, unknown> {
    EvaluationContext.evaluationOf(context).budget.use(assignWork);
    yield* super.render(context);
  }
}

class BoundedFor extends ForTag {
  override *render(
    context: Context,
    emitter: Emitter,
  ): Generator<unknown, undefined | string, Template[]> {
    const { budget } = EvaluationContext.evaluationOf(context);
    budget.use(loopWork);
    if (TypeGuards.isRangeToken(this.collection)) {
      const least: unknown = yield evalTokenValue(this.collection.lhs, context);
      const most: unknown = yield evalTokenValue(this.collection.rhs, context);
      checkRange(Number(least), Number(most));
      budget.use((Number(most) - Number(least) + 1) * itemWork);
    } else {
      const collection: unknown = yield evalTokenValue(this.collection, context);
      // Both an object and an array are turned into a list of their members first.
      if (Array.isArray(collection)) budget.use(collection.length * itemWork);
      else if (typeof collection === 'object') {
        budget.use(Object.keys(collection ?? {}).length * (nameWork + pairWork + itemWork));
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

/** Deciding one branch, whatever its condition is made of. */
const branchWork = 900;

class BoundedIf extends IfTag {
  override *render(context: Context, emitter: Emitter): Generator<unknown, void, string> {
    EvaluationContext.evaluationOf(context).budget.use(this.branches.length * branchWork);
    yield* super.render(context, emitter);
  }
}

class BoundedUnless extends UnlessTag {
  override *render(context: Context, emitter: Emitter): Generator<unknown, unknown, unknown> {
    EvaluationContext.evaluationOf(context).budget.use(this.branches.length * branchWork);
    return yield* super.render(context, emitter);
  }
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
  assign: BoundedAssign,
  break: BreakTag,
  capture: BoundedCapture,
  case: BoundedCase,
  comment: CommentTag,
  continue: ContinueTag,
  for: BoundedFor,
  if: BoundedIf,
  raw: RawTag,
  unless: BoundedUnless,
};
