/** The database that a restore left behind when it was interrupted: no server serves it. */

export class UnfinishedRestoreError extends Error {
  constructor() {
    super(
      'A restore into this place did not finish, so it is not served. Run strongroom restore DIR again: it removes ' +
        'what the interrupted one left.',
    );
    this.name = 'UnfinishedRestoreError';
  }
}

/**
 * What a PostgreSQL database says in place of the oldest server that works with it, until its restore has finished. No
 * release has this schema version, so servers of earlier releases refuse it too.
 */
export const restoringServer = 2_147_483_647;
