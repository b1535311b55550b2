/** Performs declared operations for a tool: each step of a request, and a caller who sees masks at most. */
import type { Clock } from '../../base/clock.ts';
import { nextStep } from '../../base/processor-time.ts';
import { type Caller, withOwnOpenings, withRights } from '../../rules/caller.ts';
import { perform } from '../../rules/operation.ts';
import { showingAtMost } from '../../rules/policy.ts';
import type { Reply } from '../../rules/reply.ts';
import type { Store } from '../../store/store.ts';
import type { RequestAdmission } from '../limits/admission.ts';
import type { Holder, RouteLimits } from '../limits/rate-limit.ts';
import type { RequestContext } from '../protocol/request-context.ts';
import type { Route, WholeRoute } from '../protocol/route.ts';
import { compileSerializer, type Serialize } from '../protocol/serialization.ts';
import { createValidation } from '../protocol/validation.ts';
import type { OperationInput, ToolTools } from './tool.ts';

export interface OperationPerforming {
  readonly store: Store;
  readonly clock: Clock;
  readonly admission: RequestAdmission;
  readonly rateLimits: (route: Route) => RouteLimits;
}

interface PreparedRoute {
  readonly limits: RouteLimits;
  readonly validate: ReturnType<typeof createValidation>;
  readonly serialize: Serialize;
}

/** The result is for the tools of one request, which `context` is. */
export function createPerformOperation(
  options: OperationPerforming,
): (context: RequestContext) => Pick<ToolTools, 'perform' | 'performUnopened'> {
  const { store, clock, admission } = options;
  const known = new Map<WholeRoute, PreparedRoute>();

  function prepared(route: WholeRoute): PreparedRoute {
    const found = known.get(route);
    if (found) return found;
    const made = {
      limits: options.rateLimits(route),
      validate: createValidation(route),
      serialize: compileSerializer(route.reply.body),
    };
    known.set(route, made);
    return made;
  }

  return (context) => {
    const run = async (
      route: WholeRoute,
      given: OperationInput,
      as: (caller: Caller) => Caller,
    ): Promise<unknown> => {
      await turnOfTool(context);
      const { limits, validate, serialize } = prepared(route);
      const sender = admission.senderOf(context);
      await limits.byAddress(sender, context);
      const count = (holder: Holder) => limits.byKey({ ...sender, holder }, context);
      const caller = as(await admission.admit(route, context, count));
      const input: Pick<RequestContext, 'params' | 'query' | 'body'> = {
        params: given.params ?? {},
        query: given.query ?? {},
        body: given.body,
      };
      validate(input);
      const stands = async () => admission.admit(route, context);
      const decide = route.handle({ ...input, caller } as never);
      const reply = await perform({ store, actor: caller, clock, route, stands }, decide);
      return bodyOf(reply, serialize, stands, as);
    };
    return {
      perform: (route, input) => run(route, input, seeingMasks),
      performUnopened: (route, input) => run(route, input, withOwnOpenings),
    };
  };
}

/**
 * Before each thing that a tool does. Its call is charged for what it has done so far, and ends here once its client
 * has left: one call may do a hundred things.
 */
export async function turnOfTool({ share }: RequestContext): Promise<void> {
  await nextStep();
  await share?.turnOfPart();
}

/**
 * The only caller for whom tools open values. As results reach a model that others may talk to, it finds none by
 * guessing either.
 */
function seeingMasks(caller: Caller): Caller {
  const { policy, authorizer } = caller;
  const rights = { policy: showingAtMost(policy, 'mask'), ...(authorizer && { authorizer }) };
  return { ...withOwnOpenings(withRights(caller, rights)), forVisitor: true };
}

async function bodyOf(
  { body, list }: Reply,
  serialize: Serialize,
  stands: () => Promise<Caller>,
  as: (caller: Caller) => Caller,
): Promise<unknown> {
  if (list === undefined) {
    const isObject = typeof body === 'object' && body !== null;
    return isObject ? JSON.parse(serialize(body)) : body;
  }
  const data: object[] = [];
  for (const item of list.items) {
    const one = await item(async () => as(await stands()));
    if (one !== undefined) data.push(one);
  }
  return JSON.parse(serialize({ pagination: list.pagination, data }));
}
