/** One picture: what is stored, who reveals it, what is refused, whether the log is signed, and how old keys are. */
import type { LogCheckpoint, LogEntry, TenantKeys } from '@strongroom/client';
import { bytes, number } from '../core/format.ts';
import { useLoad } from '../core/load.ts';
import { hrefOf, place, setQuery } from '../core/router.ts';
import { may, session, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Button, ErrorNote, Page, Section, Time } from '../ui/basics.tsx';
import { CopyAs, samplesOf } from '../ui/copy-as.tsx';
import { EntryList, whoOf } from '../ui/entries.tsx';
import { Meter } from '../ui/meter.tsx';
import { Plot } from '../ui/plot.tsx';
import { readUsage } from './settings.tsx';

const periods = {
  hour: { ms: 3_600_000, buckets: 30 },
  day: { ms: 86_400_000, buckets: 24 },
  month: { ms: 2_592_000_000, buckets: 30 },
} as const;
type Period = keyof typeof periods;

/** So many entries of each kind are read for the plots. */
const entriesMax = 1_000;

interface Activity {
  readonly revealed: readonly LogEntry[];
  readonly refused: readonly LogEntry[];
  readonly until: number;
}

async function readActivity(period: Period): Promise<Activity> {
  const until = Date.now();
  const start_date = new Date(until - periods[period].ms).toISOString();
  const { logs } = vaultFor('log:read');
  const [revealed, denied, failed] = await Promise.all([
    logs.list({ shown: 'revealed', start_date, size: 100 }).toArray(entriesMax),
    logs.list({ result: 'denied', start_date, size: 100 }).toArray(entriesMax),
    logs.list({ result: 'failed', start_date, size: 100 }).toArray(entriesMax),
  ]);
  return { revealed, refused: [...denied, ...failed], until };
}

export function OverviewPage() {
  const chosen = place.value.query.get('period') ?? 'day';
  const period: Period = Object.hasOwn(periods, chosen) ? (chosen as Period) : 'day';
  const usage = useLoad('overview usage', readUsage);
  const activity = useLoad<Activity>(`activity ${period}`, () => readActivity(period));
  const checkpoint = useLoad<LogCheckpoint>('checkpoint', () =>
    vaultFor('log:read').logs.checkpoint(),
  );
  const keys = useLoad<TenantKeys>('overview keys', () => vaultFor('keys:rotate').tenant.keys());
  const report = usage.data?.report;
  const dataKey = keys.data?.keys.find(
    ({ purpose, state }) => purpose === 'data' && state === 'active',
  );
  return (
    <Page
      title={t.overview.title}
      lead={t.overview.lead(session.value?.person.name ?? '')}
      actions={
        <CopyAs
          samples={() =>
            samplesOf({
              path: '/tenants/self/reports/usage',
              typescript: 'console.log(await vault.tenant.usage());',
              cli: 'npx strongroom doctor',
            })
          }
        />
      }
    >
      <ErrorNote error={usage.error} onRetry={usage.reload} />
      <div class="grid">
        <Stat
          name={t.overview.tokens}
          href={may('token:read') ? hrefOf('/tokens') : undefined}
          value={report && number(report.total_tokens)}
        />
        <Stat
          name={t.overview.storage}
          href={hrefOf('/settings')}
          value={report?.storage && bytes(report.storage.stored_bytes)}
        />
        <Stat
          name={t.overview.signed}
          href={hrefOf('/log')}
          value={checkpoint.data && <Time at={checkpoint.data.created_at} />}
        />
        <Stat
          name={t.overview.key}
          href={hrefOf('/keys')}
          value={dataKey && <Time at={dataKey.created_at} />}
        />
      </div>
      <Section
        title={t.overview.activity}
        lead={
          (activity.data?.revealed.length ?? 0) >= entriesMax
            ? t.overview.capped
            : t.overview.fromLog
        }
        actions={
          <div class="tabs" role="tablist" aria-label={t.overview.period}>
            {(Object.keys(periods) as Period[]).map((one) => (
              <button
                key={one}
                type="button"
                role="tab"
                aria-selected={one === period}
                onClick={() => setQuery({ period: one })}
              >
                {t.overview.periods[one]}
              </button>
            ))}
          </div>
        }
      >
        <ErrorNote error={activity.error} onRetry={activity.reload} />
        {activity.data && <ActivityPlot period={period} activity={activity.data} />}
      </Section>
      <div class="grid wide">
        <Section title={t.overview.types}>
          <Bars
            rows={Object.entries(report?.token_report.metrics_by_type ?? {}).map(
              ([type, { count }]) => ({
                name: type,
                value: count,
                href: hrefOf('/tokens', { type }),
              }),
            )}
            empty={t.overview.noTokens}
          />
        </Section>
        <Section title={t.overview.reveals}>
          <Bars rows={byWho(activity.data?.revealed ?? [])} empty={t.overview.noReveals} />
        </Section>
        <Section
          title={t.overview.refusals}
          actions={<Button href={hrefOf('/log', { result: 'denied' })}>{t.overview.all}</Button>}
        >
          <EntryList
            entries={(activity.data?.refused ?? []).slice(0, 5)}
            empty={t.overview.noRefusals}
          />
        </Section>
      </div>
    </Page>
  );
}

interface StatProps {
  readonly name: string;
  readonly href: string | undefined;
  readonly value: preact.ComponentChildren;
}

function Stat({ name, href, value }: StatProps) {
  const content = (
    <>
      <span class="muted">{name}</span>
      <span class="value">{value ?? '–'}</span>
    </>
  );
  if (href === undefined) return <div class="panel stat">{content}</div>;
  return (
    <a class="panel stat" href={href}>
      {content}
    </a>
  );
}

function ActivityPlot({ period, activity }: { period: Period; activity: Activity }) {
  const { ms, buckets } = periods[period];
  const width = ms / buckets;
  const first = activity.until - ms;
  const counted = (entries: readonly LogEntry[]) => {
    const counts = Array.from({ length: buckets }, () => 0);
    for (const { created_at } of entries) {
      const at = Math.floor((Date.parse(created_at) - first) / width);
      const place = Math.min(Math.max(at, 0), buckets - 1);
      counts[place] = (counts[place] ?? 0) + 1;
    }
    return counts;
  };
  const times = Array.from({ length: buckets }, (_, at) => (first + at * width) / 1000);
  return (
    <Plot
      label={t.overview.activity}
      times={times}
      lines={[
        { name: t.overview.revealed, color: '--accent', values: counted(activity.revealed) },
        { name: t.overview.refused, color: '--bad', values: counted(activity.refused) },
      ]}
    />
  );
}

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly href: string;
}

function byWho(entries: readonly LogEntry[]): readonly Bar[] {
  const counts = new Map<string, Bar>();
  for (const entry of entries) {
    const name = whoOf(entry);
    const href = hrefOf('/log', { shown: 'revealed', actor_id: entry.actor_id });
    counts.set(name, { name, href, value: (counts.get(name)?.value ?? 0) + 1 });
  }
  return [...counts.values()].sort((one, other) => other.value - one.value).slice(0, 6);
}

function Bars({ rows, empty }: { rows: readonly Bar[]; empty: string }) {
  if (rows.length === 0) return <p class="muted padded">{empty}</p>;
  const max = Math.max(...rows.map(({ value }) => value));
  return (
    <ul class="bars">
      {rows.map(({ name, value, href }) => (
        <li key={name}>
          <a href={href}>
            <span>{name}</span>
            <strong>{number(value)}</strong>
          </a>
          <Meter label={name} value={value} max={max} isBare />
        </li>
      ))}
    </ul>
  );
}
