/** The settings of the tenant, and how much of each quota is used. */
import type { Tenant, UsageReport } from '@strongroom/client';
import { useDraft } from '../core/drafts.ts';
import { bytes, duration, number } from '../core/format.ts';
import { useLoad } from '../core/load.ts';
import { forTenant, may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Button, Facts, Id, Section, Select, TextField, Time } from '../ui/basics.tsx';
import { Meter } from '../ui/meter.tsx';
import { Page } from '../ui/page.tsx';
import { useSaving } from '../ui/saving.tsx';

interface Usage {
  readonly report: UsageReport | undefined;
  readonly counts: Readonly<Record<string, number>>;
}

/** What is counted of each limit that the page can read. */
export async function readUsage(): Promise<Usage> {
  const count = async (permission: string, read: () => Promise<number>) =>
    may(permission) ? read() : undefined;
  const [report, applications, proxies, reactors, webhooks] = await Promise.all([
    may('report:read') ? vaultFor('report:read').tenant.usage() : undefined,
    count('application:read', () =>
      total(vaultFor('application:read').applications.list({ size: 1 })),
    ),
    count('proxy:read', () => total(vaultFor('proxy:read').proxies.list({ size: 1 }))),
    count('reactor:read', () => total(vaultFor('reactor:read').reactors.list({ size: 1 }))),
    count(
      'webhook:read',
      async () => (await vaultFor('webhook:read').webhooks.list().toArray()).length,
    ),
  ]);
  const counts = {
    ...(applications !== undefined && { application_limit: applications }),
    ...(proxies !== undefined && { proxy_limit: proxies }),
    ...(reactors !== undefined && { reactor_limit: reactors }),
    ...(webhooks !== undefined && { webhook_limit: webhooks }),
    ...(report?.storage && { token_storage: report.storage.stored_bytes }),
  };
  return { report, counts };
}

interface CountedList {
  pages(): AsyncGenerator<{ readonly pagination: { readonly total_items?: number } }>;
}

async function total(list: CountedList): Promise<number> {
  const { value } = await list.pages().next();
  return (value as { pagination: { total_items?: number } }).pagination.total_items ?? 0;
}

const durations = new Set([
  'alert_backup_age',
  'alert_export_lag',
  'cvc_retention',
  'token_intent_retention',
  'log_retention',
]);
const sizes = new Set(['token_storage', 'public_application_storage', 'reactor_storage_limit']);
/** The largest value stands for no limit. */
const unlimited = 1_125_899_906_842_624;

export function quotaText(name: string, value: number): string {
  if (durations.has(name)) return value === 0 ? '0 seconds' : duration(value);
  if (value >= unlimited) return t.settings.unlimited;
  return sizes.has(name) ? bytes(value) : number(value);
}

export function SettingsPage() {
  const tenant = useLoad<Tenant>('tenant', () => vaultFor('tenant:read').tenant.get());
  const usage = useLoad<Usage>('usage', readUsage);
  const shown = tenant.data;
  return (
    <Page
      title={t.settings.title}
      lead={t.settings.lead}
      sample={{
        path: '/tenants/self',
        typescript: 'const tenant = await vault.tenant.get();',
        cli: 'npx strongroom tenant quota --tenant default',
      }}
      of={tenant}
    >
      {shown && (
        <>
          <Section title={t.settings.tenant}>
            <Facts
              rows={[
                ['Id', <Id key="id" id={shown.id} />],
                [t.applications.type, <Badge key="type">{shown.type}</Badge>],
                [t.applications.created, <Time key="at" at={shown.created_at} />],
              ]}
            />
          </Section>
          <Settings tenant={shown} onSaved={tenant.set} />
          <Section title={t.settings.quotas} lead={forTenant(t.settings.quotasLead)}>
            <Facts
              rows={Object.entries(shown.quotas).map(([name, limit]) => {
                const used = usage.data?.counts[name];
                return [
                  name,
                  used === undefined || limit >= unlimited ? (
                    <span key={name}>
                      {quotaText(name, limit)}
                      {used !== undefined && (
                        <span class="muted"> · {t.settings.used(quotaText(name, used))}</span>
                      )}
                    </span>
                  ) : (
                    <Meter
                      key={name}
                      label={t.settings.of(quotaText(name, used), quotaText(name, limit))}
                      value={used}
                      max={Math.max(limit, 1)}
                    />
                  ),
                ] as const;
              })}
            />
          </Section>
        </>
      )}
    </Page>
  );
}

/** `proxy_destinations` as people write it. */
function labelOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

interface SettingsProps {
  readonly tenant: Tenant;
  readonly onSaved: (tenant: Tenant) => void;
}

interface EditedSettings {
  readonly name: string;
  readonly settings: Readonly<Record<string, string>>;
}

const editedOf = ({ name, settings }: Tenant): EditedSettings => ({ name, settings });

function Settings({ tenant, onSaved }: SettingsProps) {
  const draft = useDraft('settings', editedOf(tenant));
  const { name, settings } = draft.value;
  const saving = useSaving({
    draft,
    read: () => vaultFor('tenant:read').tenant.get(),
    editedOf,
    write: async (update, { etag: ifMatch }) => {
      const saved = await vaultFor('tenant:update').tenant.update(
        update,
        ifMatch === undefined ? {} : { ifMatch },
      );
      onSaved(saved);
      return saved;
    },
    show: (edited) => onSaved({ ...tenant, ...edited }),
    textOf: (edited) => JSON.stringify(edited, null, 2),
  });
  return (
    <Section
      title={t.settings.settings}
      actions={
        may('tenant:update') && (
          <Button
            tone="primary"
            disabled={!draft.isChanged}
            isBusy={saving.isBusy}
            onClick={saving.save}
          >
            {t.save}
          </Button>
        )
      }
    >
      <div class="panel-body">
        <TextField
          label={t.applications.name}
          value={name}
          onValue={(next) => draft.set({ name: next, settings })}
        />
        {Object.entries(settings).map(([one, value]) => {
          const field = {
            label: labelOf(one),
            value,
            onValue: (next: string) => draft.set({ name, settings: { ...settings, [one]: next } }),
          };
          const choices = t.settings.choices[one] ?? t.settings.booleans;
          return value in choices ? (
            <Select key={one} {...field} options={Object.entries(choices)} />
          ) : (
            <TextField key={one} {...field} hint={t.settings.hints[one]} />
          );
        })}
        {saving.notice}
      </div>
    </Section>
  );
}
