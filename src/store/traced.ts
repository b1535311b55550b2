/** A store whose commits are spans of the requests that their entries are about. */
import type { Tracing } from '../base/telemetry/tracing.ts';
import type { Store } from './store.ts';

const systems = { sqlite: 'sqlite', postgres: 'postgresql' } as const;

export function tracedStore(store: Store, tracing: Tracing): Store {
  const { underWay } = tracing;
  if (underWay === undefined) return store;
  const attributes = { 'db.system.name': systems[store.engine], 'db.operation.name': 'COMMIT' };
  return {
    ...store,
    commit: async (change) => {
      // A caller may be marked behind the trace id; see `markedAs`.
      const [traceId = ''] = change.entries[0].trace_id?.split(' ', 1) ?? [];
      const parent = underWay.get(traceId);
      if (parent === undefined) return store.commit(change);
      const begun = performance.now();
      let failed = true;
      try {
        const outcome = await store.commit(change);
        failed = false;
        return outcome;
      } finally {
        const span = { trace: tracing.child(parent), name: 'commit', kind: 'client' } as const;
        tracing.record({ ...span, attributes, failed, tookMs: performance.now() - begun });
      }
    },
  };
}
