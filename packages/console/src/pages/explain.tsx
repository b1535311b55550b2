/** Trying a rule before it is live: what a key of the application would see of a token, before and after the change. */
import type { AccessExplanation, AccessQuestion, Application } from '@strongroom/client';
import { useEffect, useState } from 'preact/hooks';
import { place, setQuery } from '../core/router.ts';
import { vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import {
  Badge,
  type BadgeTone,
  Button,
  ErrorNote,
  Section,
  Select,
  TextField,
  useAction,
} from '../ui/basics.tsx';
import { type Access, rulePermissions } from './rules.tsx';

interface ExplainProps {
  readonly application: Application;
  /** What is not saved yet. */
  readonly draft: Access | undefined;
}

interface Explained {
  readonly before: AccessExplanation;
  readonly after: AccessExplanation | undefined;
}

export function Explain({ application, draft }: ExplainProps) {
  const asked = place.value.query;
  const [about, setAbout] = useState(asked.get('explain') ?? '');
  const [permission, setPermission] = useState<(typeof rulePermissions)[number]>(
    rulePermissions.find((one) => one === asked.get('permission')) ?? 'token:read',
  );
  const [explained, setExplained] = useState<Explained | undefined>(undefined);
  const { isBusy, error, run } = useAction();
  const hasQuestion = application.type !== 'management' && about !== '';
  useEffect(() => {
    if (hasQuestion) void run(ask);
  }, []);
  if (application.type === 'management') return null;
  async function ask() {
    const vault = vaultFor('application:read');
    const where = about.startsWith('/') ? { container: about } : { token_id: about };
    const question = { application_id: application.id, permission, ...where };
    const [before, after] = await Promise.all([
      vault.applications.explain(question),
      draft && vault.applications.explain({ ...question, ...draft } as unknown as AccessQuestion),
    ]);
    setExplained({ before, after });
    setQuery({ explain: about, permission });
  }
  return (
    <Section title={t.explain.title} lead={t.explain.lead}>
      <form
        class="panel-body"
        onSubmit={(event) => {
          event.preventDefault();
          void run(ask);
        }}
      >
        <div class="pair">
          <TextField
            label={t.explain.about}
            hint={t.explain.aboutHint}
            value={about}
            onValue={setAbout}
            placeholder="/pci/high/"
          />
          <Select
            label={t.explain.permission}
            value={permission}
            options={rulePermissions.map((one) => [one, one])}
            onValue={setPermission}
          />
        </div>
        <div class="actions">
          <Button type="submit" icon="eye" isBusy={isBusy} disabled={about.trim() === ''}>
            {t.explain.submit}
          </Button>
        </div>
        <ErrorNote error={error} />
        {explained && (
          <div class="compare" data-testid="explained">
            <Explanation title={t.explain.before} explanation={explained.before} />
            {explained.after ? (
              <Explanation title={t.explain.after} explanation={explained.after} />
            ) : (
              <div>
                <h3>{t.explain.after}</h3>
                <p class="muted">{t.explain.unchanged}</p>
              </div>
            )}
          </div>
        )}
      </form>
    </Section>
  );
}

const tones: Readonly<Record<AccessExplanation['shown'], BadgeTone>> = {
  plaintext: 'warn',
  masked: 'good',
  nothing: 'neutral',
};

function Explanation({ title, explanation }: { title: string; explanation: AccessExplanation }) {
  const { allowed, shown, reason, rules } = explanation;
  return (
    <div>
      <h3>{title}</h3>
      <span class="badges">
        <Badge tone={allowed ? 'good' : 'bad'}>
          {allowed ? t.explain.allowed : t.explain.denied}
        </Badge>
        <Badge tone={tones[shown]}>{t.explain.shown[shown]}</Badge>
      </span>
      <p>{reason}</p>
      <ol class="verdicts">
        {rules.map((rule, at) => (
          <li key={at} class={rule.verdict === 'decides' ? 'decides' : undefined}>
            <span>
              {rule.priority} <code>{rule.container ?? ''}</code> {rule.description}
            </span>
            <span class="muted">{t.explain.verdicts[rule.verdict]}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}
