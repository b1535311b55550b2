/** What an operator reads when the disk of either place of a copy is full. */
import { systemCodeOf } from '../../base/errors.ts';
import { isDiskFull } from '../postgres/failure.ts';
import { RestoreError } from '../restore-error.ts';
import { isFull } from '../sqlite/failure.ts';

/** @returns the error, or in place of one for want of room what to do about it. */
export function explainFull(error: unknown, place: string): unknown {
  if (!isFull(error) && !isDiskFull(error) && systemCodeOf(error) !== 'ENOSPC') return error;
  return fullDisk(place, 'full', error);
}

/** @param state whether it is full, or has only the room that servers leave for reading and deleting. */
export function fullDisk(place: string, state: 'full' | 'nearly full', cause?: unknown) {
  return new RestoreError(
    `The disk of ${place} is ${state}. The copy is not complete, and no server serves it. Make room there, and run ` +
      'the same command again: it goes on where it stopped.',
    { cause },
  );
}
