/** What needs somebody's attention in the tenant, with where to mend it; and how to examine the whole vault. */
import type { ProblemReport, TenantProblem } from '@strongroom/client';
import { useLoad } from '../core/load.ts';
import { hrefOf } from '../core/router.ts';
import { vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Button, Code, Empty, Section } from '../ui/basics.tsx';
import { foundHref } from '../ui/intact.tsx';
import { Page } from '../ui/page.tsx';

/** The page on which a problem is fixed. */
function placeOf({ kind, entity_type, entity_id }: TenantProblem): string {
  const id = encodeURIComponent(entity_id);
  switch (kind) {
    case 'altered_row':
      return hrefOf('/log', { entity_type, entity_id });
    case 'altered_log':
      return foundHref();
    case 'unverified_log':
      return hrefOf('/log');
    case 'webhook':
      return hrefOf(`/webhooks/${id}`);
    case 'deliveries':
      return hrefOf(`/webhooks/${id}`, { state: 'failed' });
    case 'certificate':
      return hrefOf(`/proxies/${id}`);
    case 'unused_key':
      return hrefOf(`/applications/${id}`);
    case 'quota':
      return hrefOf('/settings');
    default:
      return hrefOf('/keys');
  }
}

export function ProblemsPage() {
  const report = useLoad<ProblemReport>('problems', () =>
    vaultFor('report:read').tenant.problems(),
  );
  const { problems, not_checked: notChecked } = report.data ?? {};
  return (
    <Page
      title={t.problems.title}
      lead={t.problems.lead}
      sample={{
        path: '/tenants/self/reports/problems',
        typescript: 'console.log((await vault.tenant.problems()).problems);',
        cli: 'npx strongroom doctor --json',
      }}
      of={report}
      actions={
        <Button icon="refresh" onClick={report.reload} isBusy={report.isLoading}>
          {t.problems.again}
        </Button>
      }
    >
      {problems?.length === 0 && <Empty title={t.problems.none}>{t.problems.noneText}</Empty>}
      {problems && problems.length > 0 && (
        <ul class="problems panel">
          {problems.map((one) => (
            <li key={`${one.kind} ${one.entity_id} ${one.message}`}>
              <Badge tone={one.severity === 'problem' ? 'bad' : 'warn'}>
                {t.problems.severities[one.severity]}
              </Badge>
              <span>
                <a href={placeOf(one)}>{one.message}</a>
                <br />
                <span class="muted">{one.advice}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
      {notChecked && notChecked.length > 0 && (
        <p class="muted">{t.problems.notChecked(notChecked)}</p>
      )}
      <Section title={t.problems.doctor} lead={t.problems.doctorText}>
        <div class="panel-body">
          <Code text="npx strongroom doctor" />
        </div>
      </Section>
    </Page>
  );
}
