/** The audit log: filters, one entry explained, its verification in the browser, and an export. */
import type { ListLogsQuery, LogCheckpoint, LogEntry } from '@strongroom/client';
import type { LogReport } from '@strongroom/client/verify';
import { verifyLog } from '@strongroom/client/verify';
import { useState } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog, subjectOf } from '../core/dialogs.ts';
import { fullTime, shortId } from '../core/format.ts';
import { useLoad, usePages } from '../core/load.ts';
import { hrefOf, place, setFilter } from '../core/router.ts';
import { forTenant, session, shellWord, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Button, ErrorNote, Facts, Field, Id, Pick, Time, useAction } from '../ui/basics.tsx';
import type { RequestSample } from '../ui/copy-as.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { Mark, whoOf } from '../ui/entries.tsx';
import { Intact } from '../ui/intact.tsx';
import { ListPage } from '../ui/page.tsx';

const filterNames = [
  'entity_type',
  'entity_id',
  'actor_id',
  'key_id',
  'address',
  'operation',
  'result',
  'shown',
  'container',
  'start_date',
  'end_date',
] as const;
type FilterName = (typeof filterNames)[number];
const exportedMax = 10_000;

export function LogPage() {
  const { query } = place.value;
  const filter = Object.fromEntries(
    filterNames.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])),
  ) as ListLogsQuery;
  const key = JSON.stringify(filter);
  const entries = usePages<LogEntry>(`log ${key}`, {
    list: (from) => vaultFor('log:read').logs.list({ ...filter, ...from }),
  });
  const chosen = subjectOf('entry');
  const { isBusy, error, run } = useAction();
  const text = (name: FilterName, placeholder: string, isWide = false) => (
    <input
      class={isWide ? 'pick grows' : 'pick'}
      type="search"
      aria-label={t.log.filters[name]}
      placeholder={placeholder}
      autocomplete="off"
      spellcheck={false}
      value={query.get(name) ?? ''}
      onChange={(event) => setFilter({ [name]: event.currentTarget.value.trim() })}
    />
  );
  const pick = (name: FilterName, values: readonly string[]) => (
    <Pick
      label={t.log.filters[name]}
      value={query.get(name) ?? ''}
      options={[['', t.log.any[name] ?? ''], ...values.map((one) => [one, one] as const)]}
      onValue={(value) => setFilter({ [name]: value })}
    />
  );
  return (
    <ListPage
      texts={{
        ...t.log,
        lead: (
          <>
            {t.log.lead} <Intact />
          </>
        ),
      }}
      sample={sampleOf(filter)}
      pages={entries}
      actions={
        <>
          <Button icon="shield" onClick={() => openDialog('verify')}>
            {t.log.verify}
          </Button>
          <Button icon="download" isBusy={isBusy} onClick={() => void run(() => download(filter))}>
            {t.log.export}
          </Button>
        </>
      }
      filters={
        <>
          {text('entity_id', t.log.filters.entity_id, true)}
          {pick('entity_type', [
            'token',
            'application',
            'application_key',
            'person',
            'console_session',
            'proxy',
            'reactor',
            'webhook',
            'session',
            'tenant',
            'keyring',
            'log',
          ])}
          {pick('shown', ['revealed', 'masked', 'redacted'])}
          {pick('result', ['success', 'denied', 'failed'])}
          {text('operation', t.log.filters.operation)}
          {text('actor_id', t.log.filters.actor_id)}
          {text('address', t.log.filters.address)}
          {text('start_date', `${t.log.filters.start_date} 2026-01-31`)}
          {text('end_date', `${t.log.filters.end_date} 2026-02-28`)}
          {key !== '{}' && (
            <a class="link" href={hrefOf('/log')}>
              {t.log.clear}
            </a>
          )}
        </>
      }
      keyOf={(entry) => nameOf(entry) + entry.message}
      columns={[
        {
          head: t.log.what,
          cell: (entry) => (
            <>
              <button
                type="button"
                class="link strong"
                onClick={() => openDialog('entry', nameOf(entry))}
              >
                {entry.message}
              </button>{' '}
              <Mark entry={entry} />
            </>
          ),
        },
        { head: t.log.who, cell: (entry) => whoOf(entry) },
        { head: t.log.about, cell: (entry) => <About entry={entry} />, isMinor: true },
        { head: t.log.when, cell: ({ created_at }) => <Time at={created_at} /> },
      ]}
    >
      <ErrorNote error={error} />
      {chosen !== undefined && <Entry key={chosen} name={chosen} listed={entries.items} />}
      {isDialogOpen('verify') && <Verify onClose={() => closeDialog('verify')} />}
    </ListPage>
  );
}

/** The pages of what entries are about. */
const pathsOf: Readonly<Record<string, string>> = {
  token: '/tokens',
  application: '/applications',
  proxy: '/proxies',
  reactor: '/reactors',
  webhook: '/webhooks',
  person: '/people',
};

function About({ entry: { entity_type, entity_id } }: { entry: LogEntry }) {
  // An entry about a list names the tenant.
  const isOne = entity_id !== '*' && entity_id !== session.value?.tenant.id;
  if (!isOne) return <span class="muted">{t.log.wholeTenant}</span>;
  const path = pathsOf[entity_type];
  const shown = entity_type === 'token' ? entity_id : shortId(entity_id);
  if (path === undefined) return <code>{shown}</code>;
  return <a href={hrefOf(`${path}/${encodeURIComponent(entity_id)}`)}>{shown}</a>;
}

/** In the address. Without the message, which may say what somebody typed. */
function nameOf({
  created_at,
  entity_type,
  operation,
  entity_id,
  trace_id = '',
}: LogEntry): string {
  return [created_at, entity_type, operation, entity_id, trace_id].join(' ');
}

/** Of one type in one millisecond. */
const entriesAtOnceMax = 1000;

async function entryNamed(name: string): Promise<LogEntry | undefined> {
  const [at = '', entity_type = ''] = name.split(' ');
  const next = new Date(Date.parse(at) + 1).toISOString();
  const query = { entity_type, start_date: at, end_date: next, size: 100 };
  const found = await vaultFor('log:read').logs.list(query).toArray(entriesAtOnceMax);
  return found.find((entry) => nameOf(entry) === name);
}

interface EntryProps {
  readonly name: string;
  /** Those that the page shows: a link may lead to one that is not among them. */
  readonly listed: readonly LogEntry[];
}

/** One entry in words, with everything that it says. */
function Entry({ name, listed }: EntryProps) {
  const found = useLoad<LogEntry | undefined>(
    name,
    async () => listed.find((entry) => nameOf(entry) === name) ?? entryNamed(name),
  );
  const entry = found.data;
  return (
    <Dialog title={entry?.message ?? t.log.entry} onClose={() => closeDialog('entry')} isWide>
      <ErrorNote error={found.error} onRetry={found.reload} />
      {entry === undefined && found.error === undefined && (
        <p class="muted padded">{found.isLoading ? t.palette.looking : t.log.noEntry}</p>
      )}
      {entry && <EntryFacts entry={entry} />}
    </Dialog>
  );
}

function EntryFacts({ entry }: { entry: LogEntry }) {
  const { entity_type, entity_id, actor_id, key_id } = entry;
  return (
    <>
      <p class="padded">
        {t.log.explain(whoOf(entry), entry.operation, entity_type, entry.result)}
      </p>
      <Facts
        rows={[
          [t.log.when, fullTime(entry.created_at)],
          [t.log.who, whoOf(entry)],
          [t.log.filters.actor_id, actor_id && <Id id={actor_id} />],
          [t.log.filters.key_id, key_id && <Id id={key_id} />],
          [t.log.person, entry.person_id && <Id id={entry.person_id} />],
          [t.log.filters.entity_type, entity_type],
          [t.log.filters.entity_id, <Id key="entity" id={entity_id} />],
          [t.log.filters.operation, entry.operation],
          [t.log.filters.result, entry.result],
          [t.log.filters.shown, entry.shown && <Mark key="mark" entry={entry} />],
          [t.log.through, entry.through],
          [t.log.filters.container, entry.container],
          [t.log.filters.address, entry.address],
          [t.log.client, entry.user_agent],
          [t.log.trace, entry.trace_id && <Id id={entry.trace_id} />],
        ]}
      />
      <div class="dialog-body">
        <div class="actions">
          <Button href={hrefOf('/log', { entity_type, entity_id })}>{t.log.sameEntity}</Button>
          {actor_id && <Button href={hrefOf('/log', { actor_id })}>{t.log.sameActor}</Button>}
        </div>
      </div>
    </>
  );
}

/** The export and the checkpoint stay in this page: nothing is sent. */
function Verify({ onClose }: { onClose: () => void }) {
  const [log, setLog] = useState<File | undefined>(undefined);
  const [kept, setKept] = useState<File | undefined>(undefined);
  const [report, setReport] = useState<LogReport | undefined>(undefined);
  const file = (label: string, hint: string, onFile: (file: File | undefined) => void) => (
    <Field label={label} hint={hint}>
      {(attributes) => (
        <input
          {...attributes}
          type="file"
          onChange={(event) => onFile(event.currentTarget.files?.[0])}
        />
      )}
    </Field>
  );
  return (
    <FormDialog
      title={t.verify.title}
      submit={t.verify.submit}
      isReady={log !== undefined}
      onClose={onClose}
      onSubmit={async () => {
        // What the vault has signed after the export is not in it.
        const { public_keys: publicKeys } = await vaultFor('log:read').logs.checkpoint();
        const checkpoints = kept ? checkpointsIn(await kept.text()) : [];
        setReport(await verifyLog((await log?.text()) ?? '', { publicKeys, checkpoints }));
      }}
    >
      <p>{forTenant(t.verify.text)}</p>
      {file(t.verify.log, t.verify.logHint, setLog)}
      {file(t.verify.kept, t.verify.keptHint, setKept)}
      {report && (
        <div class={`note ${report.intact ? 'good' : 'bad'}`} role="status">
          <p>
            {report.intact ? t.verify.intact(report.entries) : t.verify.altered}
            {report.findings.slice(0, 5).map(({ message, seq }) => (
              <span key={`${seq} ${message}`}>
                <br />
                {message}
              </span>
            ))}
          </p>
        </div>
      )}
    </FormDialog>
  );
}

/** One, or a line of each. @throws Error with a text for the person. */
function checkpointsIn(text: string): LogCheckpoint[] {
  for (const texts of [[text], text.trim().split('\n')]) {
    try {
      return texts.map((one) => JSON.parse(one));
    } catch {}
  }
  throw new Error(t.verify.noCheckpoint);
}

/** The entries that match, as lines of JSON. */
async function download(filter: ListLogsQuery): Promise<void> {
  const list = vaultFor('log:read').logs.list({ ...filter, size: 100 });
  const lines = (await list.toArray(exportedMax)).map((entry) => `${JSON.stringify(entry)}\n`);
  const url = URL.createObjectURL(new Blob(lines, { type: 'application/x-ndjson' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = 'log.jsonl';
  link.click();
  URL.revokeObjectURL(url);
}

function sampleOf(filter: ListLogsQuery): RequestSample {
  const search = new URLSearchParams(filter as Record<string, string>).toString();
  return {
    path: `/logs${search && `?${search}`}`,
    typescript: `for await (const entry of vault.logs.list(${JSON.stringify(filter)})) console.log(entry.message);`,
    cli: ['npx strongroom logs list --tenant default', ...optionsOf(filter)].join(' '),
  };
}

/** The filters as options of the command, two of which have names of their own. */
function optionsOf(filter: ListLogsQuery): readonly string[] {
  const names: Readonly<Record<string, string>> = { start_date: 'since', end_date: 'until' };
  return Object.entries(filter).map(
    ([name, value]) => `--${names[name] ?? name.replace('_', '-')} ${shellWord(String(value))}`,
  );
}
