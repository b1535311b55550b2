/** Commits are spans of the requests that their entries are about. */
import type { Tracing } from '../../base/telemetry/tracing.ts';
import type { Store } from '../store.ts';
import type { CommitStep } from './steps.ts';

const systems = { sqlite: 'sqlite', postgres: 'postgresql' } as const;

/** `undefined` where nothing is traced. */
export function commitSpans(
  { engine }: Pick<Store, 'engine'>,
  tracing: Tracing,
): CommitStep | undefined {
  const { underWay } = tracing;
  if (underWay === undefined) return undefined;
  const attributes = { 'db.system.name': systems[engine], 'db.operation.name': 'COMMIT' };
  return {
    conclude: ({ change, outcome, tookMs }) => {
      // A caller may be marked behind the trace id; see `markedAs`.
      const [traceId = ''] = change.entries[0].trace_id?.split(' ', 1) ?? [];
      const parent = underWay.get(traceId);
      if (parent === undefined) return;
      const span = { trace: tracing.child(parent), name: 'commit', kind: 'client' } as const;
      tracing.record({ ...span, attributes, failed: outcome === undefined, tookMs });
    },
  };
}
