/** What needs somebody's attention in the tenant, with where to mend it; and how to examine the whole vault. */
import type {
  Application,
  Delivery,
  LogEntry,
  Proxy as ProxyDefinition,
  TenantKeys,
  Webhook,
} from '@strongroom/client';
import { number } from '../core/format.ts';
import { useLoad } from '../core/load.ts';
import { hrefOf } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Button, Code, Empty, ErrorNote, Page, Section } from '../ui/basics.tsx';
import { CopyAs, samplesOf } from '../ui/copy-as.tsx';
import { quotaText, readUsage } from './settings.tsx';

interface Problem {
  readonly tone: 'bad' | 'warn';
  readonly title: string;
  readonly text: string;
  readonly href: string;
}

/** Each asks one question, of what the person may read. */
type Check = readonly [permission: string, find: () => Promise<readonly Problem[]>];

const day = 86_400_000;
const nearlyFull = 0.8;
const keyAgeDays = 365;
const certificateDays = 30;
const unusedDays = 90;
const shown = 100;

const checks: readonly Check[] = [
  [
    'log:read',
    async () => {
      const { logs } = vaultFor('log:read');
      const since = new Date(Date.now() - 30 * day).toISOString();
      const denied = await logs
        .list({ result: 'denied', start_date: since, size: shown })
        .toArray(shown);
      const altered = denied.filter(({ message }: LogEntry) =>
        message.includes('altered outside the vault'),
      );
      return altered.map((entry) => ({
        tone: 'bad' as const,
        title: t.problems.altered,
        text: `${entry.entity_type} ${entry.entity_id}`,
        href: hrefOf('/log', { entity_type: entry.entity_type, entity_id: entry.entity_id }),
      }));
    },
  ],
  [
    'webhook:read',
    async () => {
      const { webhooks } = vaultFor('webhook:read');
      const all = await webhooks.list().toArray();
      const found = await Promise.all(all.map((one) => failuresOf(one)));
      return found.flat();
    },
  ],
  [
    'keys:rotate',
    async () => {
      const { keys }: TenantKeys = await vaultFor('keys:rotate').tenant.keys();
      const old = keys.filter(
        ({ state, created_at }) =>
          state === 'active' && Date.now() - Date.parse(created_at) > keyAgeDays * day,
      );
      return old.map(({ purpose, version }) => ({
        tone: 'warn' as const,
        title: t.problems.oldKey,
        text: t.problems.oldKeyText(purpose, version),
        href: hrefOf('/keys'),
      }));
    },
  ],
  [
    'application:read',
    async () => {
      const all = await vaultFor('application:read')
        .applications.list({ size: 100 })
        .toArray(shown);
      return all.flatMap((one: Application) =>
        one.keys
          .filter(
            (key) => Date.now() - Date.parse(key.last_used_at ?? key.created_at) > unusedDays * day,
          )
          .map((key) => ({
            tone: 'warn' as const,
            title: t.problems.unusedKey,
            text: `${one.name}, ${key.id}`,
            href: hrefOf(`/applications/${one.id}`),
          })),
      );
    },
  ],
  [
    'proxy:read',
    async () => {
      const all = await vaultFor('proxy:read').proxies.list({ size: 100 }).toArray(shown);
      return all
        .filter(
          ({ client_certificate: one }: ProxyDefinition) =>
            one && Date.parse(one.expires_at) - Date.now() < certificateDays * day,
        )
        .map(({ id, name }: ProxyDefinition) => ({
          tone: 'warn' as const,
          title: t.problems.certificate,
          text: name,
          href: hrefOf(`/proxies/${id}`),
        }));
    },
  ],
  [
    'tenant:read',
    async () => {
      const { quotas } = await vaultFor('tenant:read').tenant.get();
      const { counts } = await readUsage();
      return Object.entries(counts)
        .filter(([name, used]) => used > nearlyFull * (quotas[name] ?? Number.POSITIVE_INFINITY))
        .map(([name, used]) => ({
          tone: 'warn' as const,
          title: t.problems.quota,
          text: `${name}: ${t.settings.of(quotaText(name, used), quotaText(name, quotas[name] ?? 0))}`,
          href: hrefOf('/settings'),
        }));
    },
  ],
];

async function failuresOf({ id, name, status }: Webhook): Promise<readonly Problem[]> {
  const href = hrefOf(`/webhooks/${id}`);
  if (status === 'disabled') {
    return [{ tone: 'bad', title: t.problems.disabled, text: name, href }];
  }
  const list = vaultFor('webhook:read').webhooks.deliveries(id, { size: shown });
  const failed = (await list.toArray(shown)).filter(({ state }: Delivery) => state === 'failed');
  if (failed.length === 0) return [];
  const text = `${name}: ${number(failed.length)}`;
  return [{ tone: 'warn', title: t.problems.failed, text, href: `${href}?state=failed` }];
}

export function ProblemsPage() {
  const problems = useLoad<readonly Problem[]>('problems', async () => {
    const open = checks.filter(([permission]) => may(permission));
    return (await Promise.all(open.map(([, find]) => find()))).flat();
  });
  return (
    <Page
      title={t.problems.title}
      lead={t.problems.lead}
      actions={
        <>
          <CopyAs
            samples={() =>
              samplesOf({
                path: '/readyz',
                typescript: 'const { version } = await vault.check();',
                cli: 'npx strongroom doctor --json',
              })
            }
          />
          <Button icon="refresh" onClick={problems.reload} isBusy={problems.isLoading}>
            {t.problems.again}
          </Button>
        </>
      }
    >
      <ErrorNote error={problems.error} onRetry={problems.reload} />
      {problems.data?.length === 0 && <Empty title={t.problems.none}>{t.problems.noneText}</Empty>}
      {problems.data && problems.data.length > 0 && (
        <ul class="problems panel">
          {problems.data.map((one, at) => (
            <li key={at}>
              <Badge tone={one.tone}>{t.problems.tones[one.tone]}</Badge>
              <span>
                <a href={one.href}>{one.title}</a>
                <br />
                <span class="muted">{one.text}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
      <Section title={t.problems.doctor} lead={t.problems.doctorText}>
        <div class="panel-body">
          <Code text="npx strongroom doctor" />
        </div>
      </Section>
    </Page>
  );
}
