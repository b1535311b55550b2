/** Routes for probes: alive, ready, and there at all. */
import { type Clock, second } from '../../lib/clock.ts';
import { ExpiringMap } from '../../lib/expiring-map.ts';
import type { Store } from '../../store/store.ts';
import type { OpenRoute } from '../protocol/route.ts';

/** How long a verdict is given again: a probe writes to the disk, and anybody may ask. */
const verdictMs = second;

export function healthRoutes({ store, clock }: { store: Store; clock: Clock }): OpenRoute[] {
  const verdicts = new ExpiringMap<'ready', Promise<boolean>>({
    clock,
    ageMsMax: verdictMs,
    entriesMax: 1,
  });
  const ready = (): Promise<boolean> => {
    const known = verdicts.get('ready');
    if (known) return known;
    const verdict = store.ping().then(
      () => true,
      () => false,
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
      handle: async () =>
        (await ready())
          ? { status: 200, body: { status: 'ready' } }
          : { status: 503, body: { status: 'storage unavailable' } },
    },
  ];
}
