/** Tokens: the list, the search, and a new one. */
import type { ListTokensQuery, Token } from '@strongroom/client';
import { useEffect, useState } from 'preact/hooks';
import { oneLine } from '../core/format.ts';
import { usePages } from '../core/load.ts';
import { place, setFilter } from '../core/router.ts';
import { shellWord, vaultFor } from '../core/session.ts';
import { tokenTypes } from '../core/token-types.ts';
import { t } from '../texts.ts';
import { Badge, Pick, Time } from '../ui/basics.tsx';
import type { RequestSample } from '../ui/copy-as.tsx';
import { Icon } from '../ui/icons.tsx';
import { ListPage } from '../ui/page.tsx';
import { tokenHref } from '../ui/palette.tsx';
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
  // What is searched for may be part of a value, so it is nowhere but in this page.
  const [typed, setTyped] = useState('');
  const [text, setText] = useState('');
  useEffect(() => {
    if (typed.trim() === text) return undefined;
    const timer = setTimeout(() => {
      setText(typed.trim());
      setFilter({});
    }, searchWaitMs);
    return () => clearTimeout(timer);
  }, [typed]);
  const filter = {
    ...(type && { type }),
    ...(container && { container }),
  } as ListTokensQuery;
  const terms = [
    text && queryOf(text),
    type && `type:${type}`,
    container && `container:"${container}"`,
  ].filter(Boolean);
  const tokens = usePages<Token>(`${text}|${type}|${container}`, {
    list: ({ size, start, page }) => {
      const from = { size, ...(start && { start }) };
      return text === ''
        ? vaultFor('token:read').tokens.list({ ...filter, ...from, ...(page && { page }) })
        : vaultFor('token:search').tokens.search({ query: terms.join(' AND '), ...from });
    },
    isNumbered: text === '',
  });
  return (
    <ListPage
      texts={t.tokens}
      sample={sampleOf(type, container)}
      pages={tokens}
      filters={
        <>
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
            onValue={(chosen) => setFilter({ type: chosen })}
          />
          <input
            class="pick"
            type="text"
            aria-label={t.tokens.container}
            placeholder="/pci/"
            value={container}
            onChange={(event) => setFilter({ container: event.currentTarget.value })}
          />
        </>
      }
      nothing={text !== '' || type !== '' || container !== '' ? t.tokens.nothing : undefined}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => tokenHref(id)}
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
      creation={{
        permission: 'token:create',
        label: t.tokens.create,
        form: (close) => <NewToken onClose={close} onCreated={tokens.reload} />,
      }}
    />
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

function sampleOf(type: string, container: string): RequestSample {
  const filter = { ...(type && { type }), ...(container && { container }) };
  const search = new URLSearchParams(filter).toString();
  return {
    path: `/v2/tokens${search && `?${search}`}`,
    typescript: `for await (const token of vault.tokens.list(${JSON.stringify(filter)})) console.log(token.id);`,
    cli: `npx strongroom token list${type && ` --type ${type}`}${container && ` --container ${shellWord(container)}`}`,
  };
}
