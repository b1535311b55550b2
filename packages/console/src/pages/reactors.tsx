/** Reactors: code that runs in the vault, with an editor, a trial run, logs, and earlier versions. */
import {
  etagOf,
  type Reactor,
  type ReactorLog,
  type ReactorPatch,
  type ReactorVersion,
} from '@strongroom/client';
import { useState } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog } from '../core/dialogs.ts';
import { useDraft } from '../core/drafts.ts';
import { useLoad, usePages } from '../core/load.ts';
import { nameOfApplication } from '../core/names.ts';
import { hrefOf, navigate } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import {
  Area,
  Badge,
  Button,
  ErrorNote,
  Id,
  Section,
  TextField,
  Time,
  useAction,
} from '../ui/basics.tsx';
import { CodeEditor } from '../ui/code-editor.tsx';
import { DestroyDialog, FormDialog } from '../ui/dialog.tsx';
import { ListPage, Page } from '../ui/page.tsx';
import { ReasonField } from '../ui/reason.tsx';
import { useSaving } from '../ui/saving.tsx';
import { Table } from '../ui/table.tsx';

const firstCode = `module.exports = async function (event) {
  const { args } = event.req;
  return { res: { body: { greeting: 'Hello ' + args.name } } };
};
`;

const nodeRuntime = { image: 'node22' };

export function ReactorsPage() {
  const reactors = usePages<Reactor>('reactors', {
    list: (from) => vaultFor('reactor:read').reactors.list(from),
  });
  return (
    <ListPage
      texts={t.reactors}
      sample={{
        path: '/reactors',
        typescript: 'for await (const one of vault.reactors.list()) console.log(one.name);',
        cli: 'npx strongroom reactor list',
      }}
      pages={reactors}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => hrefOf(`/reactors/${id}`)}
      columns={[
        { head: t.applications.name, cell: ({ name }) => name },
        { head: t.keys.state, cell: ({ state }) => <Badge>{state}</Badge> },
        {
          head: t.token.modified,
          cell: (one) => <Time at={one.modified_at ?? one.created_at} />,
        },
      ]}
      creation={{
        permission: 'reactor:create',
        label: t.reactors.create,
        form: (close) => <NewReactor onClose={close} />,
      }}
    />
  );
}

function NewReactor({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  return (
    <FormDialog
      title={t.reactors.create}
      submit={t.newApplication.submit}
      isReady={name !== ''}
      onClose={onClose}
      onSubmit={async () => {
        const request = { name, code: firstCode, runtime: nodeRuntime };
        const { id } = await vaultFor('reactor:create').reactors.create(request);
        navigate(hrefOf(`/reactors/${id}`));
      }}
    >
      <TextField label={t.applications.name} value={name} onValue={setName} />
      <p class="hint">{t.reactors.newHint}</p>
    </FormDialog>
  );
}

export function ReactorPage({ id }: { id: string }) {
  const reactor = useLoad<Reactor>(id, () => vaultFor('reactor:read').reactors.get(id));
  const shown = reactor.data;
  return (
    <Page
      title={shown?.name ?? t.reactors.title}
      back={{ href: hrefOf('/reactors'), label: t.reactors.title }}
      badge={shown && <Badge>{shown.state}</Badge>}
      lead={<Id id={id} />}
      sample={{
        method: 'POST',
        path: `/reactors/${id}/react`,
        body: { args: { name: 'Ada' } },
        typescript: `const result = await vault.reactors.react('${id}', { args: { name: 'Ada' } });`,
        cli: `npx strongroom reactor call ${id} --args args.json`,
      }}
      of={reactor}
      actions={
        may('reactor:delete') && (
          <Button tone="danger" icon="trash" onClick={() => openDialog('delete')}>
            {t.delete}
          </Button>
        )
      }
    >
      {shown && <Editor reactor={shown} onSaved={reactor.set} />}
      {isDialogOpen('delete') && shown && (
        <DestroyDialog
          title={t.reactors.deleteTitle}
          text={t.reactors.deleteText}
          name={shown.name}
          onClose={() => closeDialog('delete')}
          onSubmit={async () => {
            await vaultFor('reactor:delete').reactors.delete(id);
            navigate(hrefOf('/reactors'));
          }}
        />
      )}
    </Page>
  );
}

interface EditorProps {
  readonly reactor: Reactor;
  readonly onSaved: (reactor: Reactor) => void;
}

function Editor({ reactor, onSaved }: EditorProps) {
  const { id } = reactor;
  const draft = useDraft(`code of ${id}`, reactor.code);
  /** Counts texts that replace what is in the editor. */
  const [round, setRound] = useState(0);
  const [args, setArgs] = useState('{ "name": "Ada" }');
  const showCode = (text: string) => {
    draft.set(text);
    setRound((one) => one + 1);
  };
  const saving = useSaving({
    draft,
    read: () => vaultFor('reactor:read').reactors.get(id),
    editedOf: (stored) => stored.code,
    write: async (code, { etag: ifMatch }) => {
      const patch = { code } as ReactorPatch;
      const changed = await vaultFor('reactor:update').reactors.update(
        id,
        patch,
        ifMatch === undefined ? {} : { ifMatch },
      );
      const saved = await vaultFor('reactor:read').reactors.get(id);
      onSaved(saved);
      setRound((one) => one + 1);
      // Somebody else may have saved in between.
      return etagOf(saved) === etagOf(changed) ? saved : undefined;
    },
    show: (code) => {
      onSaved({ ...reactor, code });
      setRound((one) => one + 1);
    },
    textOf: (code) => code,
  });
  return (
    <>
      <Section
        title={t.reactors.code}
        lead={t.reactors.codeLead}
        actions={
          may('reactor:update') && (
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
          <CodeEditor
            key={round}
            label={t.reactors.code}
            initial={draft.value}
            onChange={draft.set}
            argumentNames={() => namesIn(args)}
          />
          {saving.notice}
        </div>
      </Section>
      <TryReactor id={id} isSaved={!draft.isChanged} args={args} onArgs={setArgs} />
      <Versions reactor={reactor} onShow={showCode} />
    </>
  );
}

/** The members of the arguments, which the editor completes. */
function namesIn(args: string): readonly string[] {
  try {
    return Object.keys(JSON.parse(args));
  } catch {
    return [];
  }
}

interface VersionsProps {
  readonly reactor: Reactor;
  readonly onShow: (code: string) => void;
}

/** Earlier code goes into the editor, where it is seen, run, and saved like any other. */
function Versions({ reactor, onShow }: VersionsProps) {
  const versions = usePages<ReactorVersion>(`versions ${reactor.id} ${reactor.modified_at}`, {
    size: 10,
    list: ({ size, start }) =>
      vaultFor('reactor:read').reactors.versions(reactor.id, { size, ...(start && { start }) }),
    isNumbered: false,
  });
  if (versions.error === undefined && !versions.isLoading && versions.items.length === 0)
    return null;
  return (
    <Section title={t.reactors.versions} lead={t.reactors.versionsLead}>
      <ErrorNote error={versions.error} onRetry={versions.reload} />
      <Table
        label={t.reactors.versions}
        rows={versions.items}
        keyOf={({ id }) => id}
        isLoading={versions.isLoading}
        pages={versions}
        columns={[
          { head: t.reactors.until, cell: ({ replaced_at }) => <Time at={replaced_at} /> },
          {
            head: t.reactors.replacedBy,
            cell: ({ replaced_by }) => nameOfApplication(replaced_by),
            isMinor: true,
          },
          {
            head: t.reactors.lines,
            cell: ({ code }) => t.reactors.changed(...changedLines(code, reactor.code)),
          },
          {
            head: '',
            cell: ({ code }) => (
              <Button onClick={() => onShow(code)}>{t.reactors.showVersion}</Button>
            ),
            isNumber: true,
          },
        ]}
      />
    </Section>
  );
}

/** How many lines the version has that the code no longer has, and the other way round. */
function changedLines(version: string, code: string): readonly [gone: number, added: number] {
  const [before, now] = [version, code].map((text) => text.split('\n'));
  const missing = (from: readonly string[] = [], other: readonly string[] = []) => {
    const known = new Set(other);
    return from.filter((line) => !known.has(line)).length;
  };
  return [missing(before, now), missing(now, before)];
}

interface TryProps {
  readonly id: string;
  readonly isSaved: boolean;
  readonly args: string;
  readonly onArgs: (args: string) => void;
}

/** Runs the saved code, and shows its result and what it logged. */
function TryReactor({ id, isSaved, args, onArgs }: TryProps) {
  const [reason, setReason] = useState('');
  const [result, setResult] = useState<string | undefined>(undefined);
  const { isBusy, error, run } = useAction();
  const logs = useLoad<readonly ReactorLog[]>(`reactor logs ${id}`, () =>
    vaultFor('reactor:read').reactors.logs(id, { size: 10 }).toArray(10),
  );
  const react = async () => {
    setResult(undefined);
    try {
      const request = { args: JSON.parse(args) as Record<string, unknown> };
      const response = await vaultFor('reactor:invoke', { reason: reason.trim() }).reactors.react(
        id,
        request,
      );
      setResult(JSON.stringify(response, null, 2));
    } finally {
      logs.reload();
    }
  };
  return (
    <Section title={t.reactors.run} lead={isSaved ? t.reactors.runLead : t.reactors.unsaved}>
      <form
        class="panel-body"
        onSubmit={(event) => {
          event.preventDefault();
          void run(react);
        }}
      >
        <Area
          label={t.reactors.args}
          rows={3}
          value={args}
          onValue={onArgs}
          hint={t.reactors.argsHint}
        />
        <ReasonField hint={t.reason.whole} reason={reason} onReason={setReason} />
        <div class="actions">
          <Button type="submit" icon="play" isBusy={isBusy} disabled={reason.trim() === ''}>
            {t.reactors.runSubmit}
          </Button>
        </div>
        <ErrorNote error={error} />
        {result !== undefined && (
          <pre class="value-box" data-testid="result">
            {result}
          </pre>
        )}
        <h3>{t.reactors.logs}</h3>
        {(logs.data ?? []).length === 0 && <p class="muted">{t.reactors.noLogs}</p>}
        {(logs.data ?? []).map((call) => (
          <div key={call.request_id} class="rule">
            <div class="rule-head">
              <span>
                <Badge tone={call.outcome === 'failed' ? 'bad' : 'good'}>{call.outcome}</Badge>{' '}
                <code>{call.request_id.slice(0, 8)}</code>
              </span>
              <Time at={call.created_at} />
            </div>
            {call.lines.length > 0 && (
              <pre class="value-box">
                {call.lines.map(({ level, text }) => `${level}  ${text}`).join('\n')}
              </pre>
            )}
          </div>
        ))}
      </form>
    </Section>
  );
}
