/** One token: what is shown of it, revealing it for a while, its metadata and its history. */
import type { LogEntry, Token } from '@strongroom/client';
import { useEffect, useState } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog } from '../core/dialogs.ts';
import { useLoad } from '../core/load.ts';
import { hrefOf, navigate } from '../core/router.ts';
import { may, shellWord, state, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Area, Badge, Button, ErrorNote, Facts, Id, Section, Time } from '../ui/basics.tsx';
import { DestroyDialog, FormDialog } from '../ui/dialog.tsx';
import { EntryList } from '../ui/entries.tsx';
import { Page } from '../ui/page.tsx';
import { ReasonField } from '../ui/reason.tsx';
import { useGuard } from '../ui/saving.tsx';
import { notify } from '../ui/toasts.tsx';
import { readPairs } from './new-token.tsx';

const revealedSeconds = 30;
const historyMax = 50;

export function TokenPage({ id }: { id: string }) {
  const token = useLoad<Token>(id, () => vaultFor('token:read').tokens.get(id));
  const history = useLoad<readonly LogEntry[]>(`history ${id}`, async () =>
    may('log:read')
      ? vaultFor('log:read')
          .logs.list({ entity_type: 'token', entity_id: id, size: historyMax })
          .toArray(historyMax)
      : [],
  );
  const [revealed, setRevealed] = useState<unknown>(undefined);
  const hide = () => setRevealed(undefined);
  const shown = token.data;
  return (
    <Page
      title={id}
      back={{ href: hrefOf('/tokens'), label: t.token.back }}
      badge={shown && <Badge>{shown.type}</Badge>}
      sample={{
        path: `/tokens/${encodeURIComponent(id)}`,
        typescript: `const token = await vault.tokens.get(${JSON.stringify(id)});`,
        cli: `npx strongroom token get ${shellWord(id)}`,
      }}
      of={token}
      actions={
        may('token:delete') && (
          <Button tone="danger" icon="trash" onClick={() => openDialog('delete')}>
            {t.delete}
          </Button>
        )
      }
    >
      {shown && (
        <div class="split">
          <div class="stack">
            <Section
              title={t.token.data}
              lead={revealed === undefined ? t.token.masked : t.token.revealed}
              actions={
                revealed === undefined ? (
                  <Button icon="eye" onClick={() => openDialog('reveal')}>
                    {t.token.reveal}
                  </Button>
                ) : (
                  <Button onClick={hide}>{t.token.hide}</Button>
                )
              }
            >
              <div class="panel-body">
                {revealed === undefined ? (
                  <div class="value-box">{textOf(shown.data) || t.tokens.noData}</div>
                ) : (
                  <Revealed value={revealed} onHide={hide} />
                )}
              </div>
            </Section>
            <Section
              title={t.token.history}
              lead={t.token.historyLead}
              actions={
                <Button href={hrefOf('/log', { entity_id: id, shown: 'revealed' })}>
                  {t.token.whoRevealed}
                </Button>
              }
            >
              <ErrorNote error={history.error} />
              {history.data && <EntryList entries={history.data} empty={t.token.noHistory} />}
            </Section>
          </div>
          <div class="stack">
            <Section title={t.token.details}>
              <Facts rows={factsOf(shown)} />
            </Section>
            <Section
              title={t.token.metadata}
              lead={t.token.metadataLead}
              actions={
                may('token:update') && (
                  <Button onClick={() => openDialog('metadata')}>{t.token.edit}</Button>
                )
              }
            >
              <Facts rows={Object.entries(shown.metadata ?? {})} />
              {Object.keys(shown.metadata ?? {}).length === 0 && (
                <p class="muted padded">{t.token.noMetadata}</p>
              )}
            </Section>
          </div>
        </div>
      )}
      {isDialogOpen('reveal') && shown && (
        <RevealDialog
          id={id}
          onClose={() => closeDialog('reveal')}
          onRevealed={(data) => {
            setRevealed(data);
            closeDialog('reveal');
            history.reload();
          }}
        />
      )}
      {isDialogOpen('metadata') && shown && (
        <MetadataDialog
          token={shown}
          onClose={() => closeDialog('metadata')}
          onSaved={() => {
            closeDialog('metadata');
            token.reload();
            history.reload();
          }}
        />
      )}
      {isDialogOpen('delete') && shown && (
        <DestroyDialog
          title={t.token.deleteTitle}
          text={t.token.deleteText}
          name={id}
          onClose={() => closeDialog('delete')}
          onSubmit={async () => {
            await vaultFor('token:delete').tokens.delete(id);
            notify({ text: t.token.deleted });
            navigate(hrefOf('/tokens'));
          }}
        />
      )}
    </Page>
  );
}

function textOf(data: unknown): string {
  if (data === null || data === undefined) return '';
  return typeof data === 'string' ? data : JSON.stringify(data, null, 2);
}

function factsOf(token: Token) {
  const texts = t.token;
  return [
    ['Id', <Id key="id" id={token.id} />],
    [texts.containers, <code key="containers">{token.containers?.join(' ')}</code>],
    [texts.fingerprint, token.fingerprint && <code key="print">{token.fingerprint}</code>],
    [
      texts.indexes,
      token.search_indexes && <code key="terms">{token.search_indexes.join(' ')}</code>,
    ],
    [texts.mask, token.mask !== undefined && <code key="mask">{textOf(token.mask)}</code>],
    [texts.created, <Time key="created" at={token.created_at} />],
    [texts.modified, token.modified_at && <Time key="modified" at={token.modified_at} />],
    [texts.expires, token.expires_at && <Time key="expires" at={token.expires_at} />],
    [texts.createdBy, token.created_by && <Id key="by" id={token.created_by} isShort />],
  ] as const;
}

/** The value leaves the page after a while, and as soon as nobody can look at it. */
function Revealed({ value, onHide }: { value: unknown; onHide: () => void }) {
  const [left, setLeft] = useState(revealedSeconds);
  useEffect(() => {
    const timer = setInterval(() => setLeft((seconds) => seconds - 1), 1000);
    const hideUnseen = () => {
      if (document.visibilityState === 'hidden') onHide();
    };
    document.addEventListener('visibilitychange', hideUnseen);
    window.addEventListener('pagehide', onHide);
    window.addEventListener('beforeprint', onHide);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', hideUnseen);
      window.removeEventListener('pagehide', onHide);
      window.removeEventListener('beforeprint', onHide);
    };
  }, []);
  const isCovered = state.value.kind !== 'signed in';
  useEffect(() => {
    if (left <= 0 || isCovered) onHide();
  }, [left, isCovered]);
  return (
    <>
      <div class="value-box revealed" data-testid="revealed">
        {textOf(value)}
      </div>
      <div class="timer" aria-hidden="true">
        <i style={{ width: `${(100 * left) / revealedSeconds}%` }} />
      </div>
      <p class="hint" role="timer">
        {t.token.hides(left)}
      </p>
    </>
  );
}

interface RevealProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onRevealed: (data: unknown) => void;
}

function RevealDialog({ id, onClose, onRevealed }: RevealProps) {
  const [reason, setReason] = useState('');
  return (
    <FormDialog
      title={t.token.reasonTitle}
      submit={t.token.reveal}
      isReady={reason.trim() !== ''}
      onClose={onClose}
      onSubmit={async () => {
        const token = await vaultFor('token:read', { reason: reason.trim() }).tokens.get(id);
        onRevealed(token.data);
      }}
    >
      <ReasonField hint={t.reason.hint} reason={reason} onReason={setReason} />
    </FormDialog>
  );
}

interface MetadataProps {
  readonly token: Token;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

function MetadataDialog({ token, onClose, onSaved }: MetadataProps) {
  const { id } = token;
  const before = metadataOf(token);
  const [text, setText] = useState(pairsIn(before));
  const guard = useGuard({
    read: () => vaultFor('token:read').tokens.get(id),
    editedOf: metadataOf,
    write: async (after, { value, etag: ifMatch }) => {
      const patch = { metadata: patchOf(value, after) };
      const saved = await vaultFor('token:update').tokens.update(
        id,
        patch,
        ifMatch === undefined ? {} : { ifMatch },
      );
      onSaved();
      return saved;
    },
    show: onSaved,
    textOf: pairsIn,
    onDone: onClose,
  });
  return (
    <>
      <FormDialog
        title={t.token.metadata}
        submit={t.save}
        onClose={onClose}
        onSubmit={() => guard.save(readPairs(text), before)}
      >
        <Area
          label={t.token.metadata}
          hint={t.newToken.metadataHint}
          value={text}
          onValue={setText}
        />
      </FormDialog>
      {guard.conflict}
    </>
  );
}

type Metadata = NonNullable<Token['metadata']>;

const metadataOf = ({ metadata }: Token): Metadata => metadata ?? {};

function pairsIn(metadata: Metadata): string {
  return Object.entries(metadata)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');
}

/** The metadata of a token becomes these, whatever it was. */
function patchOf(before: Metadata, after: Metadata): Record<string, string | null> {
  const gone = Object.keys(before).filter((name) => !(name in after));
  return { ...after, ...Object.fromEntries(gone.map((name) => [name, null])) };
}
