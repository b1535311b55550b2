/** Egress policies: where the programs of an application may send requests, with which values. */
import type {
  Application,
  EgressExplanation,
  EgressLimit,
  EgressPolicy,
  EgressPolicyRequest,
} from '@strongroom/client';
import { useState } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog } from '../core/dialogs.ts';
import { useDraft } from '../core/drafts.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import {
  Area,
  Badge,
  Button,
  ErrorNote,
  Section,
  Select,
  TextField,
  useAction,
} from '../ui/basics.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { Table } from '../ui/table.tsx';
import { usePartGuard } from './application-part.ts';

const dialogName = 'egress';

const textOf = ({ egress }: Application): string => JSON.stringify(egress ?? [], null, 2);

function policiesIn(text: string): EgressPolicyRequest[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error(t.egress.notJson);
  }
  if (!Array.isArray(parsed)) throw new Error(t.egress.notJson);
  return parsed;
}

interface EgressProps {
  readonly application: Application;
  readonly onSaved: (application: Application) => void;
}

export function Egress({ application, onSaved }: EgressProps) {
  const draft = useDraft(`egress ${application.id}`, textOf(application));
  const { id } = application;
  const close = () => closeDialog(dialogName);
  const guard = usePartGuard<string>({
    application,
    onSaved,
    editedOf: textOf,
    changeOf: (text) => ({ egress: policiesIn(text) }),
    textOf: (text) => text,
    onDone: () => {
      draft.clear();
      close();
    },
  });
  if (application.type !== 'private') return null;
  const policies = application.egress ?? [];
  return (
    <Section
      title={t.egress.title}
      lead={draft.isChanged ? t.egress.unsaved : t.egress.lead}
      actions={
        may('application:update') && (
          <>
            {draft.isChanged && <Button onClick={draft.clear}>{t.application.discard}</Button>}
            <Button onClick={() => openDialog(dialogName)}>{t.egress.edit}</Button>
          </>
        )
      }
    >
      {policies.length === 0 ? (
        <p class="muted padded">{t.egress.none}</p>
      ) : (
        <Policies policies={policies} />
      )}
      {isDialogOpen(dialogName) && (
        <FormDialog
          title={t.egress.title}
          submit={t.save}
          isWide
          isReady={draft.isChanged}
          onClose={close}
          onSubmit={async () => {
            policiesIn(draft.value);
            await guard.save(draft.value, draft.base);
          }}
        >
          <Area
            label={t.egress.policies}
            hint={t.egress.hint}
            rows={12}
            value={draft.value}
            onValue={draft.set}
            placeholder={t.egress.sample}
          />
          <ExplainRequest id={id} draft={draft.isChanged ? draft.value : undefined} />
        </FormDialog>
      )}
      {guard.conflict}
    </Section>
  );
}

function Policies({ policies }: { policies: readonly EgressPolicy[] }) {
  return (
    <Table
      label={t.egress.title}
      rows={policies}
      keyOf={(one) => String(policies.indexOf(one))}
      columns={[
        {
          head: t.egress.host,
          cell: ({ host, port, plain, tunnel, websocket }) => (
            <>
              <code>{port === undefined ? host : `${host}:${port}`}</code>{' '}
              {plain && <Badge tone="warn">{t.egress.plain}</Badge>}
              {tunnel && <Badge tone="warn">{t.egress.tunnel}</Badge>}
              {websocket && <Badge tone="warn">{t.egress.websocket}</Badge>}
            </>
          ),
        },
        {
          head: t.egress.requests,
          cell: ({ methods, paths }) => (
            <>
              {methods?.join(', ') ?? t.egress.anyMethod} <code>{paths?.join(' ') ?? ''}</code>
            </>
          ),
        },
        {
          head: t.egress.values,
          cell: ({ tokens = [], containers = [], places = [] }) =>
            tokens.length + containers.length === 0 ? (
              <span class="muted">{t.egress.noValues}</span>
            ) : (
              <>
                <code>{[...containers, ...tokens].join(' ')}</code> {t.egress.in}{' '}
                <code>{places.join(' ')}</code>
              </>
            ),
        },
        {
          head: t.egress.limits,
          isMinor: true,
          cell: ({ calls, values, approval }) => (
            <>
              {[limitOf(t.egress.calls, calls), limitOf(t.egress.valueCount, values)]
                .filter(Boolean)
                .join(', ')}{' '}
              {approval && <Badge tone="accent">{t.egress.approvals[approval]}</Badge>}
            </>
          ),
        },
      ]}
    />
  );
}

function limitOf(noun: string, limit: EgressLimit | undefined): string {
  const { per_hour, per_day } = limit ?? {};
  return [
    per_hour !== undefined && `${per_hour} ${noun} ${t.egress.perHour}`,
    per_day !== undefined && `${per_day} ${noun} ${t.egress.perDay}`,
  ]
    .filter(Boolean)
    .join(', ');
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'WebSocket'] as const;

interface ExplainRequestProps {
  readonly id: string;
  /** What is not saved yet. */
  readonly draft: string | undefined;
}

interface ExplainedRequest {
  readonly before: EgressExplanation;
  readonly after: EgressExplanation | undefined;
}

/** What would happen to a request now, and after the change. Nothing is sent. */
function ExplainRequest({ id, draft }: ExplainRequestProps) {
  const [method, setMethod] = useState<(typeof methods)[number]>('POST');
  const [url, setUrl] = useState('');
  const [token, setToken] = useState('');
  const [position, setPosition] = useState('');
  const [explained, setExplained] = useState<ExplainedRequest | undefined>(undefined);
  const { isBusy, error, run } = useAction();
  const explain = async () => {
    const { egress } = vaultFor('application:read');
    const question = {
      application_id: id,
      url: url.trim(),
      ...(method === 'WebSocket' ? { method: 'GET' as const, websocket: true } : { method }),
      ...(token !== '' && { token_id: token.trim() }),
      ...(position !== '' && { place: position.trim() }),
    };
    const [before, after] = await Promise.all([
      egress.explain(question),
      draft === undefined ? undefined : egress.explain({ ...question, egress: policiesIn(draft) }),
    ]);
    setExplained({ before, after });
  };
  return (
    <fieldset class="spaced">
      <legend>{t.egress.explain}</legend>
      <p class="hint">{t.egress.explainHint}</p>
      <div class="pair">
        <Select
          label={t.proxies.method}
          value={method}
          options={methods.map((one) => [one, one])}
          onValue={setMethod}
        />
        <TextField
          label={t.egress.url}
          inputMode="url"
          placeholder="https://api.example.com/v1/charges"
          value={url}
          onValue={setUrl}
        />
      </div>
      <div class="pair">
        <TextField label={t.egress.token} value={token} onValue={setToken} />
        <TextField
          label={t.egress.place}
          placeholder="json:card.number"
          value={position}
          onValue={setPosition}
        />
      </div>
      <div class="actions">
        <Button
          icon="eye"
          isBusy={isBusy}
          disabled={url.trim() === ''}
          onClick={() => void run(explain)}
        >
          {t.explain.submit}
        </Button>
      </div>
      <ErrorNote error={error} />
      {explained && (
        <div class="compare" data-testid="egress-explained">
          <Outcome title={t.explain.before} explanation={explained.before} />
          {explained.after && <Outcome title={t.explain.after} explanation={explained.after} />}
        </div>
      )}
    </fieldset>
  );
}

function Outcome({ title, explanation }: { title: string; explanation: EgressExplanation }) {
  const { outcome, reason, value } = explanation;
  return (
    <div>
      <h3>{title}</h3>
      <span class="badges">
        <Badge tone={outcome === 'refused' ? 'bad' : 'good'}>{t.egress.outcomes[outcome]}</Badge>
        {value && (
          <Badge tone={value.sent ? 'warn' : 'neutral'}>
            {value.sent ? t.egress.valueSent : t.egress.valueNotSent}
          </Badge>
        )}
      </span>
      <p>{reason}</p>
      {value && <p>{value.reason}</p>}
    </div>
  );
}
