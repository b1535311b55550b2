/** Watching use, as one step of every commit: what exceeds a budget is refused, what is unusual raises an alert. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { Metrics } from '../../base/telemetry/metrics.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { CommitStep } from '../../store/commit/steps.ts';
import type { Store } from '../../store/store.ts';
import type { ActivityCounter } from '../activity/counting.ts';
import { createApplicationFacts } from './application-facts.ts';
import { type WatchEntry, watchBins, watchRefusals, watchReveals } from './counted-use.ts';
import { limitingEgress } from './egress-budget.ts';
import { watchHoneyTokens } from './honey-tokens.ts';
import { watchAddresses } from './new-addresses.ts';
import { createRaise, type RaiseAlert } from './raise.ts';

export interface WatchTools {
  /** Without this step. */
  readonly store: Store;
  readonly tenants: Pick<Tenants, 'find' | 'known'>;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'alert'>;
  readonly log: Pick<Log, 'error'>;
  readonly activity: Pick<ActivityCounter, 'entry'>;
}

export function createWatch(tools: WatchTools): CommitStep {
  const facts = createApplicationFacts(tools);
  const raise = createRaise(tools);
  const limiting = limitingEgress({ store: tools.store, facts, raise });
  const watchers: readonly WatchEntry[] = [
    watchHoneyTokens(tools, raise),
    watchAddresses({ ...tools, facts }, raise),
    watchRefusals(tools, raise),
    watchReveals(tools, raise),
    watchBins(tools, raise),
    watchExports(raise),
    watchLogFindings(raise),
  ];
  return {
    ...(limiting.prepare && { prepare: limiting.prepare }),
    conclude: (ended) => {
      limiting.conclude?.(ended);
      const { change, outcome } = ended;
      if (outcome === undefined || outcome.conflict !== undefined) return;
      for (const entry of change.entries) {
        tools.activity.entry(entry);
        for (const watch of watchers) watch(entry)?.catch(ignore);
      }
    },
  };
}

/** A look that failed is missed. It is no reason to fail a request, which is over. */
const ignore = () => undefined;

function watchExports(raise: RaiseAlert): WatchEntry {
  return (entry) => {
    const { entity_type, operation, result, actor_type, actor_id, source } = entry;
    if (entity_type !== 'token' || operation !== 'export' || result !== 'success') return undefined;
    const id = source?.key_id ?? actor_id;
    if (actor_type !== 'operator' && id !== null) raise('export', entry, { id, detail: 'tokens' });
    return undefined;
  };
}

/** A verification of the log says in its entry that it has found something. */
function watchLogFindings(raise: RaiseAlert): WatchEntry {
  return (entry) => {
    const { entity_type, entity_id, operation, result } = entry;
    if (entity_type !== 'log_checkpoint' || operation !== 'verify') return undefined;
    const alert = { id: entity_id, detail: `before checkpoint ${entity_id}` };
    if (result === 'failed') raise('altered_log', entry, alert);
    return undefined;
  };
}
