/**
 * What a database says of a copy that is made of it while servers run, and of the end of that: its vault was moved
 * elsewhere, no server serves it any more, and nothing can be written to it.
 */
import { VaultError } from '../base/errors.ts';

/** The table in which the source of a copy says so. */
export const outgoingCopy = 'outgoing_copy';
/** The tables of its journal, and the triggers and functions that write it, begin like these. */
export const journalPrefix = 'changed_';
export const notePrefix = 'note_changed_';
/** The triggers and functions that refuse writes begin like this. */
export const refusalPrefix = 'refuse_';

/** In the row of a tenant: another vault serves it for good. The latest time that a date can have. */
export const awayForGood = 8_640_000_000_000_000;

/**
 * What a database says in place of the oldest server that works with it, once its vault was moved. No release has this
 * schema version, so servers of earlier releases refuse it too.
 */
export const movedServer = 2_147_483_646;
/** The same until the new place is open: meanwhile neither place serves the vault. */
export const movingServer = 2_147_483_645;

/** The error codes of PostgreSQL of a write to a database, and of one to a tenant, that was moved. */
export const movedCode = 'SR503';
export const movedTenantCode = 'SR504';

/** The messages of these errors on both engines. */
export const movedTexts = {
  tenant: 'the tenant was moved to another vault',
  opened: 'the vault was moved to another place',
  unopened:
    'the vault was moved to another place, which is not open yet: unless "strongroom database copy" is running, run ' +
    'the same command again',
} as const;

export class MovedVaultError extends Error {
  override readonly name = 'MovedVaultError';

  constructor({ isOpened }: { readonly isOpened: boolean }) {
    super(
      'The vault in this database was moved to another place by strongroom database copy --live, so it is not served ' +
        (isOpened
          ? 'here. Start a server on its new place.'
          : 'here. That command has not opened the new place yet, so the vault is served nowhere. Unless it is ' +
            'running, run the same command again: it only opens the new place.'),
    );
  }
}

/** @returns the message of a write that was refused because the vault was moved, of another error `undefined`. */
export function movedTextIn(message: string): string | undefined {
  return Object.values(movedTexts).find((text) => text === message);
}

const publicTexts: Readonly<Record<string, string>> = {
  [movedTexts.tenant]: 'The tenant moves, or has moved, to another vault.',
  [movedTexts.opened]: 'The vault was moved to another place.',
  [movedTexts.unopened]: 'The vault was moved to another place, which is not open yet.',
};

/** The failure of every request to a server whose database, or to a tenant that was moved. */
export function moved(text: string, cause?: unknown): VaultError {
  return new VaultError('unavailable', {
    public: `${publicTexts[text] ?? ''} Nothing was done; try again there.`,
    internal: text,
    headers: { 'retry-after': '5' },
    cause,
  });
}
