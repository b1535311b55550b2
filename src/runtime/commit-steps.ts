/** The steps of a commit, in this order. The store then notifies caches and listeners. */
import type { Tracing } from '../base/telemetry/tracing.ts';
import { commitSpans } from '../store/commit/spans.ts';
import { type CommitStep, withCommitSteps } from '../store/commit/steps.ts';
import type { Store } from '../store/store.ts';

/** The steps of every commit, including those of jobs and commands. */
export interface VaultSteps {
  readonly deriveEvents: CommitStep;
  readonly proveLog: CommitStep;
  readonly requireLivingKeys: CommitStep;
  readonly limitStorage: CommitStep;
}

/** The additional steps of requests' commits. */
export interface RequestSteps {
  readonly countRefusals?: CommitStep | undefined;
  /** Egress budgets, and alerts about unusual use. */
  readonly watchUse?: CommitStep | undefined;
  readonly tracing?: Tracing;
  /** Called where a request is about to wait for the store. */
  readonly onWait?: () => void;
}

export type StoreWith = (steps: RequestSteps) => Store;

export function storeWithSteps(
  store: Store,
  { deriveEvents, proveLog, requireLivingKeys, limitStorage }: VaultSteps,
): StoreWith {
  return ({ tracing, countRefusals, watchUse, onWait }) => {
    const steps = [
      tracing && commitSpans(store, tracing),
      // What is counted elsewhere is neither an event nor proven here.
      countRefusals,
      // After those, because what was refused reveals nothing.
      watchUse,
      // The rows of events count, and are proven, like those of the change that causes them.
      deriveEvents,
      proveLog,
      requireLivingKeys,
      limitStorage,
    ];
    return withCommitSteps(
      store,
      steps.filter((step) => step !== undefined),
      onWait,
    );
  };
}
