/** Routes for probes: alive, ready, and there at all. */
import { type Clock, second } from '../../lib/clock.ts';
import { ExpiringMap } from '../../lib/expiring-map.ts';
import type { Store } from '../../store/store.ts';
import type { OpenRoute } from '../protocol/route.ts';

/** How long a verdict is given again: a probe writes to the disk, and anybody may ask. */
const verdictMs = second;

/**
 * A vault whose disk is nearly full reads and deletes, so it stays ready: without it nobody could do either.
 * `undefined` where the storage cannot be used.
 */
type Readiness = 'ready' | 'ready, creates refused' | undefined;

export function healthRoutes({ store, clock }: { store: Store; clock: Clock }): OpenRoute[] {
  const verdicts = new ExpiringMap<'ready', Promise<Readiness>>({
    clock,
    ageMsMax: verdictMs,
    entriesMax: 1,
  });
  const ready = (): Promise<Readiness> => {
    const known = verdicts.get('ready');
    if (known) return known;
    const verdict = store.ping().then(
      ({ isShort }) => (isShort ? 'ready, creates refused' : 'ready'),
      () => undefined,
    );
    verdicts.set('ready', verdict);
    return verdict;
  };
  return [
    { path: '/ping', summary: 'Return 200', handle: async () => ({ status: 200 }) },
    {
      path: '/healthz',
      summary: 'Check that the process runs',
      handle: async () => ({ status: 200, body: { status: 'alive' } }),
    },
    {
      path: '/readyz',
      summary: 'Check that the vault can read and write its storage',
      handle: async () => {
        const status = await ready();
        return status
          ? { status: 200, body: { status } }
          : { status: 503, body: { status: 'storage unavailable' } };
      },
    },
  ];
}
