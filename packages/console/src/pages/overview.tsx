/** One picture: what is stored, what callers do, who reveals values, what is refused, and how old keys and proofs are. */
import type { ActivityReport, LogEntry, TenantKeys } from '@strongroom/client';
import { bytes, fromNow, number } from '../core/format.ts';
import { useLoad } from '../core/load.ts';
import { nameOfApplication } from '../core/names.ts';
import { hrefOf, place, setQuery } from '../core/router.ts';
import { may, session, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Button, ErrorNote, Section, Time } from '../ui/basics.tsx';
import { EntryList } from '../ui/entries.tsx';
import { foundHref, isBroken, useVerification } from '../ui/intact.tsx';
import { Meter } from '../ui/meter.tsx';
import { Page } from '../ui/page.tsx';
import { Plot } from '../ui/plot.tsx';
import { readUsage } from './settings.tsx';

const periods = ['hour', 'day', 'month'] as const;
type Period = (typeof periods)[number];

/** The application that stands for all that are not counted apart. */
const otherApplications = '*';
const refusalsShown = 5;

export function OverviewPage() {
  const asked = place.value.query.get('period');
  const period = periods.find((one) => one === asked) ?? 'day';
  const usage = useLoad('overview usage', readUsage);
  const activity = useLoad<ActivityReport>(`activity ${period}`, () =>
    vaultFor('report:read').tenant.activity({ period }),
  );
  const refusals = useLoad<readonly LogEntry[]>(`refusals ${activity.data?.since}`, async () => {
    const since = activity.data?.since;
    if (!since || !may('log:read')) return [];
    const filter = { result: 'denied', start_date: since, size: refusalsShown } as const;
    return vaultFor('log:read').logs.list(filter).toArray(refusalsShown);
  });
  const keys = useLoad<TenantKeys | undefined>('overview keys', async () =>
    may('keys:rotate') ? vaultFor('keys:rotate').tenant.keys({ counts: 'none' }) : undefined,
  );
  const report = usage.data?.report;
  const dataKey = keys.data?.keys.find(
    ({ purpose, state }) => purpose === 'data' && state === 'active',
  );
  const { log, last_backup_at: backup } = activity.data ?? {};
  return (
    <Page
      title={t.overview.title}
      lead={t.overview.lead(session.value?.person.name ?? '')}
      sample={{
        path: `/tenants/self/reports/activity?period=${period}`,
        typescript: `console.log(await vault.tenant.activity({ period: '${period}' }));`,
        cli: 'npx strongroom doctor',
      }}
      actions={<PeriodTabs chosen={period} />}
    >
      <ErrorNote error={usage.error ?? activity.error} onRetry={activity.reload} />
      <div class="grid stats">
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
        <LogStat log={log} />
        <Stat
          name={t.overview.key}
          href={hrefOf('/keys')}
          value={dataKey && <Time at={dataKey.created_at} />}
        />
        <Stat
          name={t.overview.backup}
          href={undefined}
          value={activity.data && (backup ? <Time at={backup} /> : t.overview.noBackup)}
        />
      </div>
      <ActivityPlots report={activity.data} />
      <div class="grid wide">
        <Section title={t.overview.types}>
          <Bars
            rows={
              report &&
              Object.entries(report.token_report.metrics_by_type).map(([type, { count }]) => ({
                name: type,
                value: count,
                href: hrefOf('/tokens', { type }),
              }))
            }
            empty={t.overview.noTokens}
          />
        </Section>
        <Section title={t.overview.reveals}>
          <Bars
            rows={activity.data && byApplication(activity.data.revealed_by_application)}
            empty={t.overview.noReveals}
          />
        </Section>
        {may('log:read') && (
          <Section
            title={t.overview.refusals}
            actions={<Button href={hrefOf('/log', { result: 'denied' })}>{t.overview.all}</Button>}
          >
            {refusals.data && <EntryList entries={refusals.data} empty={t.overview.noRefusals} />}
          </Section>
        )}
      </div>
    </Page>
  );
}

function PeriodTabs({ chosen }: { chosen: Period }) {
  return (
    <div class="tabs" role="tablist" aria-label={t.overview.period}>
      {periods.map((one) => (
        <button
          key={one}
          type="button"
          role="tab"
          aria-selected={one === chosen}
          onClick={() => setQuery({ period: one })}
        >
          {t.overview.periods[one]}
        </button>
      ))}
    </div>
  );
}

/** Without the permission to read the log, nobody verifies it. */
function LogStat({ log }: { log: ActivityReport['log'] | undefined }) {
  const { data } = useVerification();
  const at = (time: string | null | undefined) =>
    time === undefined ? undefined : time === null ? t.overview.notSigned : <Time at={time} />;
  if (!may('log:read')) {
    const detail = log?.signed_at ? t.overview.signedAt(fromNow(log.signed_at)) : undefined;
    return (
      <Stat
        name={t.overview.signed}
        href={undefined}
        value={at(log?.signed_since)}
        detail={detail}
      />
    );
  }
  const until = data?.verified_until;
  const verified = until ? t.overview.verifiedUntil(fromNow(until)) : undefined;
  return (
    <Stat
      name={t.overview.intact}
      href={data && isBroken(data) ? foundHref() : hrefOf('/log')}
      value={at(data?.intact_since)}
      detail={data && isBroken(data) ? <span class="text-bad">{t.overview.broken}</span> : verified}
    />
  );
}

interface StatProps {
  readonly name: string;
  readonly href: string | undefined;
  readonly value: preact.ComponentChildren;
  readonly detail?: preact.ComponentChildren;
}

function Stat({ name, href, value, detail }: StatProps) {
  const content = (
    <>
      <span class="muted">{name}</span>
      <span class="value">{value ?? '–'}</span>
      {detail && <span class="muted">{detail}</span>}
    </>
  );
  if (href === undefined) return <div class="panel stat">{content}</div>;
  return (
    <a class="panel stat" href={href}>
      {content}
    </a>
  );
}

/** The frames are there before the figures, so that nothing moves when these come. */
function ActivityPlots({ report }: { report: ActivityReport | undefined }) {
  const points = report?.points ?? [];
  const times = points.map(({ at }) => Date.parse(at) / 1000);
  const total = (name: 'requests' | 'failed' | 'refused' | 'revealed') =>
    number(points.reduce((sum, point) => sum + point[name], 0));
  const slowest = Math.max(...points.map(({ latency_ms: { p95 } }) => p95 ?? 0));
  const latency =
    slowest > 0
      ? t.overview.latencyText(t.overview.milliseconds(number(slowest)))
      : t.overview.none;
  const requests = t.overview.total(total('requests'), total('failed'));
  const disclosed = t.overview.disclosed(total('revealed'), total('refused'));
  return (
    <>
      <Section title={t.overview.requests} lead={report ? requests : t.overview.requestsLead}>
        <Plot
          label={t.overview.requests}
          summary={requests}
          times={times}
          lines={[
            {
              name: t.overview.requests,
              color: '--accent',
              values: points.map((point) => point.requests),
            },
            { name: t.overview.failed, color: '--bad', values: points.map(({ failed }) => failed) },
          ]}
        />
      </Section>
      <div class="grid wide">
        <Section title={t.overview.disclosure} lead={report && disclosed}>
          <Plot
            label={t.overview.disclosure}
            summary={disclosed}
            times={times}
            lines={[
              {
                name: t.overview.revealed,
                color: '--warn',
                values: points.map(({ revealed }) => revealed),
              },
              {
                name: t.overview.refused,
                color: '--bad',
                values: points.map(({ refused }) => refused),
              },
            ]}
          />
        </Section>
        <Section title={t.overview.latency} lead={report && latency}>
          <Plot
            label={t.overview.latency}
            summary={latency}
            times={times}
            lines={[
              {
                name: t.overview.p95,
                color: '--accent',
                values: points.map(({ latency_ms: { p95 } }) => p95),
              },
              {
                name: t.overview.median,
                color: '--good',
                values: points.map(({ latency_ms: { median } }) => median),
              },
            ]}
          />
        </Section>
      </div>
    </>
  );
}

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly href: string;
}

function byApplication(revealed: Readonly<Record<string, number>>): readonly Bar[] {
  return Object.entries(revealed)
    .map(([id, value]) =>
      id === otherApplications
        ? { name: t.overview.others, value, href: hrefOf('/log', { shown: 'revealed' }) }
        : {
            name: nameOfApplication(id),
            value,
            href: hrefOf('/log', { shown: 'revealed', actor_id: id }),
          },
    )
    .sort((one, other) => other.value - one.value)
    .slice(0, 6);
}

/** @param rows undefined until they are known. */
function Bars({ rows, empty }: { rows: readonly Bar[] | undefined; empty: string }) {
  if (rows === undefined) return <p class="muted padded">…</p>;
  if (rows.length === 0) return <p class="muted padded">{empty}</p>;
  const max = Math.max(...rows.map(({ value }) => value));
  return (
    <ul class="bars">
      {rows.map(({ name, value, href }) => (
        <li key={href}>
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
