/**
 * What is done at a commit besides the commit itself. The rooms above the store contribute steps, and
 * `runtime/commit-steps.ts` lists them.
 */
import type { Change, CommitOutcome } from '../change.ts';
import type { Store } from '../store.ts';

export interface CommitStep {
  /** For a step that has nothing to do for a change of entries alone, which is that of nearly every read. */
  readonly isForRows?: true;
  /**
   * The change as the next step gets it, or `undefined` where the step has recorded it in another way and nothing is
   * left to commit. Nearly every step finds all that it needs in memory and returns no promise.
   * @throws what the caller of `commit` gets; nothing of the change is done then.
   */
  prepare?(change: Change): PreparedChange | Promise<PreparedChange>;
  /**
   * Called when the commit has ended, whichever way, those first whose `prepare` came last.
   * @throws what the caller of `commit` gets in place of the outcome.
   */
  conclude?(ended: EndedCommit): void;
}

type PreparedChange = Change | undefined;

export interface EndedCommit {
  /** As the steps have prepared it. */
  readonly change: Change;
  readonly tookMs: number;
  /** Absent if the commit or a step has failed. */
  readonly outcome: CommitOutcome | undefined;
}

const recorded: CommitOutcome = {};

/**
 * The store of a thread, whose `commit` does the steps.
 * @param onWait is called where a caller is about to wait for the store.
 */
export function withCommitSteps(
  store: Store,
  steps: readonly CommitStep[],
  onWait?: () => void,
): Store {
  const commit = createCommit(store, steps);
  if (onWait === undefined) return { ...store, commit };
  return {
    ...store,
    get: (table, key) => {
      onWait();
      return store.get(table, key);
    },
    select: (query) => {
      onWait();
      return store.select(query);
    },
    scan: (query, payer) => {
      onWait();
      return store.scan(query, payer);
    },
    commit: (change) => {
      onWait();
      return commit(change);
    },
  };
}

function createCommit(store: Pick<Store, 'commit'>, steps: readonly CommitStep[]): Store['commit'] {
  const preparing = steps.filter(({ prepare }) => prepare !== undefined);
  const concluding = steps.filter(({ conclude }) => conclude !== undefined).reverse();
  const concludesAll = concluding.some(({ isForRows }) => isForRows === undefined);

  function prepareFrom(first: number, change: Change): PreparedChange | Promise<PreparedChange> {
    let prepared: PreparedChange = change;
    for (let at = first; at < preparing.length && prepared !== undefined; at++) {
      const step = preparing[at];
      if (step?.isForRows && !hasRows(prepared)) continue;
      const next: ReturnType<NonNullable<CommitStep['prepare']>> | undefined =
        step?.prepare?.(prepared);
      if (next instanceof Promise) {
        return next.then((ready) => ready && prepareFrom(at + 1, ready));
      }
      prepared = next;
    }
    return prepared;
  }

  /** Every step concludes, also where another one fails. */
  function conclude(all: EndedCommit): void {
    let ended = all;
    let failure: { readonly error: unknown } | undefined;
    for (const step of concluding) {
      try {
        step.conclude?.(ended);
      } catch (error) {
        failure = { error };
        ended = { ...all, outcome: undefined };
      }
    }
    if (failure) throw failure.error;
  }

  async function commitInSteps(
    given: Change,
    preparation: PreparedChange | Promise<PreparedChange>,
  ): Promise<CommitOutcome> {
    const begun = performance.now();
    let change = given;
    let outcome: CommitOutcome | undefined;
    try {
      const prepared = await preparation;
      change = prepared ?? given;
      outcome = prepared === undefined ? recorded : await store.commit(prepared);
    } finally {
      conclude({ change, outcome, tookMs: performance.now() - begun });
    }
    return outcome;
  }

  return (given) => {
    let preparation: ReturnType<typeof prepareFrom>;
    try {
      preparation = prepareFrom(0, given);
    } catch (error) {
      preparation = Promise.reject(error);
    }
    // Nearly every read: nothing is waited for, and nothing concludes.
    if (preparation instanceof Promise || preparation === undefined || concludesAll) {
      return commitInSteps(given, preparation);
    }
    return concluding.length > 0 && hasRows(preparation)
      ? commitInSteps(given, preparation)
      : store.commit(preparation);
  };
}

/** Whether the change writes more than entries. */
function hasRows(change: Change): boolean {
  const { insert, replace, remove, reseal, refingerprint } = change;
  return (insert ?? replace ?? remove ?? reseal ?? refingerprint) !== undefined;
}
