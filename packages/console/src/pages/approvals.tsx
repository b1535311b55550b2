/** Approvals: requests of programs that wait for a person, and what was decided within a day. */
import type { Approval, ApprovalToken, Token } from '@strongroom/client';
import { useEffect } from 'preact/hooks';
import { fromNow } from '../core/format.ts';
import { useLoad } from '../core/load.ts';
import { hrefOf } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Button, Empty, ErrorNote, Facts, Section, Time, useAction } from '../ui/basics.tsx';
import { Page } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import { notify } from '../ui/toasts.tsx';

/**
 * Each look is an entry of the log, so one that found nothing new is followed by a longer wait. The two events of a
 * return to the page make one look.
 */
const lookMs = { onReturn: 50, first: 3_000, most: 15_000 };

/** Looks again by itself; at once when the person returns, and soon after something changed. */
function useLooks(look: () => void, known: string): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const lookAfter = (ms: number, next: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (document.visibilityState === 'visible') look();
        lookAfter(next, Math.min(2 * next, lookMs.most));
      }, ms);
    };
    const onReturn = () => {
      if (document.visibilityState === 'visible') lookAfter(lookMs.onReturn, lookMs.first);
    };
    lookAfter(lookMs.first, 2 * lookMs.first);
    window.addEventListener('focus', onReturn);
    document.addEventListener('visibilitychange', onReturn);
    return () => {
      clearTimeout(timer);
      window.removeEventListener('focus', onReturn);
      document.removeEventListener('visibilitychange', onReturn);
    };
  }, [known]);
}

/** As many as wait in a tenant, and as many decisions again. */
const shownMax = 100;

export function ApprovalsPage() {
  const approvals = useLoad<readonly Approval[]>('approvals', () =>
    vaultFor('approval:read').approvals.list({ size: shownMax }).toArray(shownMax),
  );
  const all = approvals.data ?? [];
  useLooks(approvals.reload, all.map(({ id, status }) => `${id} ${status}`).join());
  const waiting = all.filter(({ status }) => status === 'waiting').toReversed();
  const decided = all.filter(({ status }) => status !== 'waiting');
  return (
    <Page
      title={t.approvals.title}
      lead={t.approvals.lead}
      sample={{
        path: '/approvals?status=waiting',
        typescript:
          "for await (const one of vault.approvals.list({ status: 'waiting' })) console.log(one.host);",
        cli: 'strongroom approvals list --status waiting',
      }}
      of={approvals}
      actions={
        <Button icon="refresh" onClick={approvals.reload} isBusy={approvals.isLoading}>
          {t.approvals.again}
        </Button>
      }
    >
      {approvals.data && waiting.length === 0 && (
        <Empty title={t.approvals.none}>{t.approvals.noneText}</Empty>
      )}
      {waiting.map((one) => (
        <WaitingRequest key={one.id} approval={one} onDecided={approvals.reload} />
      ))}
      {decided.length > 0 && <Decided approvals={decided} />}
    </Page>
  );
}

/** What could show the rest of a line in another order is written out. */
function plain(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`,
  );
}

interface WaitingProps {
  readonly approval: Approval;
  readonly onDecided: () => void;
}

function WaitingRequest({ approval: one, onDecided }: WaitingProps) {
  const { isBusy, error, run } = useAction();
  const decide = (text: string, act: () => Promise<unknown>) => () =>
    void run(async () => {
      await act();
      notify({ text });
      onDecided();
    });
  const approve = (scope: 'request' | 'host') =>
    decide(t.approvals.approved, () =>
      vaultFor('approval:decide').approvals.approve(one.id, { scope }),
    );
  const deny = decide(t.approvals.denied, () => vaultFor('approval:decide').approvals.deny(one.id));
  const actions = may('approval:decide') && (
    <>
      <Button tone="danger" isBusy={isBusy} onClick={deny}>
        {t.approvals.deny}
      </Button>
      {one.approval === 'first' && (
        <Button isBusy={isBusy} onClick={approve('host')}>
          {t.approvals.approveHost}
        </Button>
      )}
      <Button tone="primary" isBusy={isBusy} onClick={approve('request')}>
        {t.approvals.approveOnce}
      </Button>
    </>
  );
  const { type = t.approvals.unknownType, bytes = 0 } = one.content ?? {};
  return (
    <Section
      title={`${one.method} ${plain(one.host)}`}
      lead={t.approvals.wants(plain(one.application_name ?? one.application_id))}
      actions={actions}
    >
      <ErrorNote error={error} />
      <Facts
        rows={[
          [t.approvals.path, <code key="path">{plain(one.path)}</code>],
          [t.approvals.application, <ApplicationLink key="application" approval={one} />],
          [t.approvals.key, one.key_id && <code key="key">{one.key_id}</code>],
          [t.approvals.body, one.content && t.approvals.bytes(type, bytes)],
          [t.approvals.values, one.tokens.length === 0 && t.approvals.noValues],
          ...one.tokens.map(
            (token) =>
              [
                t.approvals.value(plain(token.place)),
                <SentValue key={`${token.id} ${token.place}`} token={token} />,
              ] as const,
          ),
          [t.approvals.why, t.approvals.reasons[one.approval]],
          [t.approvals.ends, fromNow(one.expires_at)],
        ]}
      />
    </Section>
  );
}

function ApplicationLink({ approval }: { readonly approval: Approval }) {
  const { application_id: id, application_name: name = id } = approval;
  return may('application:read') ? (
    <a href={hrefOf(`/applications/${id}`)}>{plain(name)}</a>
  ) : (
    <span>{plain(name)}</span>
  );
}

/** The token's id, and its value as the person's own role shows it. */
function SentValue({ token }: { readonly token: ApprovalToken }) {
  const { id, property } = token;
  const found = useLoad<Token | undefined>(`sent ${id}`, async () =>
    may('token:read') ? vaultFor('token:read').tokens.get(id) : undefined,
  );
  const data: unknown = found.data?.data;
  const value =
    property !== undefined && typeof data === 'object' && data !== null
      ? (data as Readonly<Record<string, unknown>>)[property]
      : data;
  const isShown = typeof value === 'string' || typeof value === 'number';
  return (
    <>
      <a href={hrefOf(`/tokens/${encodeURIComponent(id)}`)}>
        <code>{plain(property === undefined ? id : `${id} ${property}`)}</code>
      </a>
      {isShown && <span class="muted"> {plain(String(value))}</span>}
    </>
  );
}

function Decided({ approvals }: { readonly approvals: readonly Approval[] }) {
  return (
    <Section title={t.approvals.decided} lead={t.approvals.decidedLead}>
      <Table
        label={t.approvals.decided}
        rows={approvals}
        keyOf={({ id }) => id}
        columns={[
          {
            head: t.approvals.request,
            cell: (one) => <code>{`${one.method} ${plain(one.host)}${plain(one.path)}`}</code>,
          },
          {
            head: t.approvals.application,
            cell: (one) => <ApplicationLink approval={one} />,
            isMinor: true,
          },
          {
            head: t.approvals.decision,
            cell: ({ status, scope }) => (
              <Badge tone={status === 'approved' ? 'good' : 'bad'}>
                {scope === 'host' ? t.approvals.forHost : status}
              </Badge>
            ),
          },
          {
            head: t.approvals.by,
            cell: ({ person, decided_by }) => plain(person?.name ?? decided_by ?? ''),
          },
          { head: t.approvals.at, cell: (one) => <Time at={one.decided_at} />, isMinor: true },
        ]}
      />
    </Section>
  );
}
