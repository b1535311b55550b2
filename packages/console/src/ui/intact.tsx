/** Since when the log is intact, as the vault has verified it. */
import type { LogVerification } from '@strongroom/client';
import { useEffect } from 'preact/hooks';
import { type Loaded, useLoad } from '../core/load.ts';
import { hrefOf } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { messageOf, Time } from './basics.tsx';
import { Icon } from './icons.tsx';

/** The vault verifies a portion for each request: what is left of a long log follows. */
export function useVerification(): Loaded<LogVerification | undefined> {
  const loaded = useLoad<LogVerification | undefined>('verification', async () =>
    may('log:read') ? vaultFor('log:read').logs.verification() : undefined,
  );
  const { data, reload } = loaded;
  useEffect(() => {
    if (data && isBehind(data)) reload();
  }, [data]);
  return loaded;
}

export function isBehind({ checkpoint, newest_checkpoint }: LogVerification): boolean {
  return checkpoint !== newest_checkpoint;
}

/** True where something before was found not to be as it was written. */
export function isBroken({ intact_since, signed_since }: LogVerification): boolean {
  return intact_since !== signed_since;
}

export const foundHref = (): string => hrefOf('/log', { operation: 'verify', result: 'failed' });

export function Intact() {
  const { data, error } = useVerification();
  if (error !== undefined) return <span class="text-bad">{messageOf(error)}</span>;
  if (!data) return <span>{t.intact.going}</span>;
  const { intact_since: since, verified_until: until } = data;
  if (since === null || until === null) return <span>{t.intact.nothing}</span>;
  return (
    <span class={isBroken(data) ? 'text-bad' : 'text-good'}>
      <Icon name="shield" /> {t.intact.since} <Time at={since} />, {t.intact.until}{' '}
      <Time at={until} />
      {isBehind(data) ? ` ${t.intact.going}` : '.'}
      {isBroken(data) && (
        <>
          {' '}
          <a href={foundHref()}>{t.intact.broken}</a>
        </>
      )}
    </span>
  );
}
