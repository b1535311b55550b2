/** The database that a restore or a copy left behind when it was interrupted: no server serves it. */

export class UnfinishedRestoreError extends Error {
  constructor() {
    super(
      'A restore or a copy into this place did not finish, so it is not served. Run the same command again: ' +
        'strongroom restore DIR starts over, and strongroom database copy goes on where it stopped.',
    );
    this.name = 'UnfinishedRestoreError';
  }
}

/** The table in which a copy notes how far it is, until servers may start. */
export const incomingCopy = 'incoming_copy';

/**
 * What a PostgreSQL database says in place of the oldest server that works with it, until its restore or copy has
 * finished. No release has this schema version, so servers of earlier releases refuse it too.
 */
export const restoringServer = 2_147_483_647;
