/** Tokens: the list, the search, and a new one. */
import type { ListTokensQuery, Token } from '@strongroom/client';
import { useEffect, useState } from 'preact/hooks';
import { oneLine } from '../core/format.ts';
import { usePages } from '../core/load.ts';
import { place, setQuery } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { tokenTypes } from '../core/token-types.ts';
import { t } from '../texts.ts';
import { Badge, Button, Empty, ErrorNote, Page, Pick, Time } from '../ui/basics.tsx';
import { CopyAs, samplesOf } from '../ui/copy-as.tsx';
import { Icon } from '../ui/icons.tsx';
import { tokenHref } from '../ui/palette.tsx';
import { Table } from '../ui/table.tsx';
import { NewToken } from './new-token.tsx';

const searchWaitMs = 250;

/** Typed text alone is looked for in search indexes; with a colon it is a query already. */
function queryOf(text: string): string {
  if (/^(?:data|metadata\.\S+|container|type|fingerprint|id):/.test(text)) return text;
  return `data:"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

export function TokensPage() {
  const { query } = place.value;
  const type = query.get('type') ?? '';
  const container = query.get('container') ?? '';
  const isCreating = query.get('new') === 'token';
  // What is searched for may be part of a value, so it is nowhere but in this page.
  const [typed, setTyped] = useState('');
  const [text, setText] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setText(typed.trim()), searchWaitMs);
    return () => clearTimeout(timer);
  }, [typed]);
  const filter = {
    ...(type && { type }),
    ...(container && { container }),
    size: 50,
  } as ListTokensQuery;
  const terms = [
    text && queryOf(text),
    type && `type:${type}`,
    container && `container:"${container}"`,
  ].filter(Boolean);
  const tokens = usePages<Token>(`${text}|${type}|${container}`, () =>
    text === ''
      ? vaultFor('token:read').tokens.list(filter)
      : vaultFor('token:search').tokens.search({ query: terms.join(' AND '), size: 50 }),
  );
  const isEmpty = !tokens.isLoading && tokens.items.length === 0 && tokens.error === undefined;
  const isFiltered = text !== '' || type !== '' || container !== '';
  const create = may('token:create') && (
    <Button tone="primary" icon="plus" onClick={() => setQuery({ new: 'token' })}>
      {t.tokens.create}
    </Button>
  );
  return (
    <Page
      title={t.tokens.title}
      lead={t.tokens.lead}
      actions={
        <>
          <CopyAs samples={() => listSamples(type, container)} />
          {create}
        </>
      }
    >
      <div class="filters">
        <div class="search">
          <Icon name="search" />
          <input
            type="search"
            aria-label={t.tokens.search}
            placeholder={t.tokens.search}
            title={t.tokens.searchHint}
            autocomplete="off"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </div>
        <Pick
          label={t.tokens.type}
          value={type}
          options={[['', t.tokens.anyType], ...tokenTypes.map((one) => [one, one] as const)]}
          onValue={(chosen) => setQuery({ type: chosen })}
        />
        <input
          class="pick"
          type="text"
          aria-label={t.tokens.container}
          placeholder="/pci/"
          value={container}
          onChange={(event) => setQuery({ container: event.currentTarget.value })}
        />
      </div>
      <ErrorNote error={tokens.error} onRetry={tokens.reload} />
      {isEmpty && !isFiltered && (
        <Empty title={t.tokens.empty.title} command={t.tokens.empty.command} action={create}>
          {t.tokens.empty.text}
        </Empty>
      )}
      {isEmpty && isFiltered && (
        <Empty title={t.tokens.nothing.title}>{t.tokens.nothing.text}</Empty>
      )}
      {!isEmpty && tokens.error === undefined && (
        <Table
          label={t.tokens.title}
          rows={tokens.items}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => tokenHref(id)}
          isLoading={tokens.isLoading}
          more={{ hasMore: tokens.hasMore, onMore: tokens.more }}
          columns={[
            { head: t.tokens.id, cell: ({ id }) => id },
            { head: t.tokens.type, cell: (token) => <Badge>{token.type}</Badge>, isMinor: true },
            { head: t.tokens.shown, cell: (token) => <Shown token={token} /> },
            {
              head: t.tokens.container,
              cell: ({ containers = [] }) => <code>{containers.join(' ')}</code>,
              isMinor: true,
            },
            {
              head: t.tokens.created,
              cell: (token) => <Time at={token.created_at} />,
              isMinor: true,
            },
          ]}
        />
      )}
      {isCreating && (
        <NewToken
          onClose={() => setQuery({ new: undefined })}
          onCreated={() => {
            tokens.reload();
          }}
        />
      )}
    </Page>
  );
}

/** The masked number of a card or an account, or whatever else is shown of the data. */
function Shown({ token }: { token: Token }) {
  const data = token.data as Readonly<Record<string, unknown>> | string | null | undefined;
  const number =
    typeof data === 'object' && data !== null
      ? (data['number'] ?? data['account_number'])
      : undefined;
  const text = oneLine(number ?? data);
  if (text === '') return <span class="muted">{t.tokens.noData}</span>;
  return <code>{text.length > 60 ? `${text.slice(0, 60)}…` : text}</code>;
}

function listSamples(type: string, container: string) {
  const filter = { ...(type && { type }), ...(container && { container }) };
  const search = new URLSearchParams(filter).toString();
  return samplesOf({
    path: `/v2/tokens${search && `?${search}`}`,
    typescript: `for await (const token of vault.tokens.list(${JSON.stringify(filter)})) console.log(token.id);`,
    cli: 'npx strongroom export tokens.jsonl',
  });
}
