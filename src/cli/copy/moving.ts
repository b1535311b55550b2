/** The steps of a copy that are the same of a whole vault and of one tenant. */
import { second } from '../../base/clock.ts';
import { writing } from '../../store/copying/copy-database.ts';
import {
  applyNotes,
  copyChanges,
  orderWaitingEvents,
  type RowCopying,
  walkRows,
} from '../../store/copying/rows.ts';
import {
  announceMove,
  type Stopped,
  StopTooLongError,
  stopForGood,
  withdrawMove,
} from '../../store/copying/source.ts';
import { RestoreError } from '../../store/restore-error.ts';
import { startProgress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { digestsNow, digestsOf, requireSame, type TableDigests } from './verify.ts';

export interface Copied {
  readonly tables: TableDigests;
  /** Whether it went on where an earlier one had stopped. */
  readonly resumed: boolean;
  readonly endedSessions?: number | undefined;
  readonly moved?: Moved;
}

/** Without the time for which writes waited, where an interrupted copy was finished later. */
export type Moved = Pick<Stopped, 'movedAt'> & Partial<Stopped>;

/** With progress, also of what an earlier copy has done. */
export async function walk(terminal: Terminal, copying: RowCopying): Promise<void> {
  const progress = startProgress(terminal, 'rows', undefined);
  try {
    await walkRows(copying, progress.report);
  } finally {
    progress.finish();
  }
}

/** What took no longer to be copied leaves little for the time in which writes wait. */
const shortRoundMs = 2 * second;
/** Rounds after which changes come faster than they are copied. */
const roundsMax = 50;

export async function compareAsOfOneMoment(copying: RowCopying): Promise<TableDigests> {
  const { source, target } = copying;
  let own: TableDigests = {};
  await copyChanges(copying, async () => {
    own = await digestsOf(source, copying);
    requireSame(own, await digestsNow(target.database, copying));
  });
  return own;
}

/** Copies what has changed since, until little is left, and then the rest while writes wait. */
export async function move(copying: RowCopying): Promise<Stopped> {
  const { source, tables, tenant } = copying;
  for (let round = 0; round < roundsMax; round++) {
    const begun = performance.now();
    await copyChanges(copying);
    if (performance.now() - begun > shortRoundMs) continue;
    try {
      if (tenant !== undefined) {
        await announceMove(source, tenant);
        await copyChanges(copying);
      }
      return await stopForGood(source, { tables, tenant }, async (check) => {
        const { database } = copying.target;
        await writing(database, () => applyNotes(copying, check), { lasts: true });
        await orderWaitingEvents(copying);
      });
    } catch (error) {
      // The source went on, and the next round takes what came meanwhile.
      if (!(error instanceof StopTooLongError)) throw error;
      if (tenant !== undefined) await withdrawMove(source, tenant);
    }
  }
  throw new RestoreError(
    'The vault changes faster than it can be copied, so that too much would be left for the time in which writes ' +
      'wait. Run the same command again at a quieter time: it goes on where it stopped.',
  );
}
