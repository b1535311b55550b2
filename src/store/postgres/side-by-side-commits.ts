/** Commits of different tenants side by side, where tables are distributed and each statement is of one tenant. */
import type { CommitOutcome, FlatChange } from '../change.ts';
import type { Committer } from './commit.ts';
import { tenantOf } from './independent-groups.ts';

/**
 * Connections of a lane. A commit on several machines waits for each of them in turn, and most of that time the
 * processors have other tenants to serve.
 */
const width = 4;

/**
 * A lane of several committers, each with a connection and a log stream of its own. A tenant has one of them, so that
 * its changes stay in order and its log in as many streams as there are lanes. On one machine only the first is used.
 */
export function commitSideBySide(
  create: () => Committer,
  isDistributed: () => Promise<boolean>,
): Committer {
  const first = create();
  const committers = [first];

  function committerAt(place: number): Committer {
    while (committers.length <= place) committers.push(create());
    return committers[place] ?? first;
  }

  return {
    commit: async (changes, giveUpAt, settle) => {
      if (!(await isDistributed())) return first.commit(changes, giveUpAt, settle);
      const places = Map.groupBy(changes.keys(), (index) => placeOf(changes[index]));
      const outcomes: (CommitOutcome | Error)[] = [];
      await Promise.all(
        Array.from(places, async ([place, indexes]) => {
          const own = indexes.flatMap((index) => changes[index] ?? []);
          const settleOwn: typeof settle = (at, outcome) => settle?.(indexes[at] ?? -1, outcome);
          const committed = await committerAt(place).commit(own, giveUpAt, settleOwn);
          for (const [at, outcome] of committed.entries()) {
            const index = indexes[at];
            if (index === undefined) continue;
            outcomes[index] = outcome;
            settle?.(index, outcome);
          }
        }),
      );
      return outcomes;
    },
    close: async () => {
      await Promise.all(committers.map((committer) => committer.close()));
    },
  };
}

/** The same for all changes of a tenant, whose id is random. */
function placeOf(change: FlatChange | undefined): number {
  const beginning = String(change && tenantOf(change)).slice(0, 8);
  return (Number.parseInt(beginning, 16) >>> 0) % width;
}
