/** ⌘K: finds pages, and anything by its id or name. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { closeOver } from '../core/dialogs.ts';
import { type PageEntry, pages } from '../core/pages.ts';
import { hrefOf, navigate } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Dialog } from './dialog.tsx';
import { Icon, type IconName } from './icons.tsx';

interface Found {
  readonly name: string;
  readonly kind: string;
  readonly href: string;
  readonly icon: IconName;
}

interface NamedThing {
  readonly id: string;
  readonly name: string;
}

const pageEntries: readonly PageEntry[] = pages;
const foundPerKind = 6;
/** After the last key, so that a word is one search and not one for each letter. */
const waitMs = 250;
const isId = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

export const tokenHref = (id: string): string => hrefOf(`/tokens/${encodeURIComponent(id)}`);

/** Where the API looks for it: lists of what can be many take a name or an id, and send what they find. */
interface Searched {
  readonly permission: string;
  readonly kind: string;
  readonly path: string;
  readonly icon: IconName;
  readonly find: (text: string, whole: WholeLists) => Promise<readonly NamedThing[]>;
}

/** Lists that the vault keeps short and sends whole are read once, when the palette opens. */
type WholeLists = Map<string, Promise<readonly NamedThing[]>>;

const byNameOrId = (text: string) => ({
  size: foundPerKind,
  ...(isId(text) ? { id: [text] } : { name: `*${text}*` }),
});

async function among(
  text: string,
  all: readonly NamedThing[] | Promise<readonly NamedThing[]>,
): Promise<readonly NamedThing[]> {
  const wanted = text.toLowerCase();
  return (await all).filter(
    ({ id, name }) => name.toLowerCase().includes(wanted) || id.startsWith(wanted),
  );
}

function once(
  lists: WholeLists,
  name: string,
  load: () => Promise<readonly NamedThing[]>,
): Promise<readonly NamedThing[]> {
  const loading = lists.get(name) ?? load();
  lists.set(name, loading);
  loading.catch(() => lists.delete(name));
  return loading;
}

const searched: readonly Searched[] = [
  {
    permission: 'token:read',
    kind: t.palette.token,
    path: '/tokens',
    icon: 'tokens',
    find: async (text) => (await tokensOfId(text)).map(({ id }) => ({ id, name: id })),
  },
  {
    permission: 'application:read',
    kind: t.palette.application,
    path: '/applications',
    icon: 'applications',
    find: (text) =>
      vaultFor('application:read').applications.list(byNameOrId(text)).toArray(foundPerKind),
  },
  {
    permission: 'proxy:read',
    kind: t.palette.proxy,
    path: '/proxies',
    icon: 'proxies',
    find: (text) => vaultFor('proxy:read').proxies.list(byNameOrId(text)).toArray(foundPerKind),
  },
  {
    permission: 'reactor:read',
    kind: t.palette.reactor,
    path: '/reactors',
    icon: 'reactors',
    find: (text) => vaultFor('reactor:read').reactors.list(byNameOrId(text)).toArray(foundPerKind),
  },
  {
    permission: 'webhook:read',
    kind: t.palette.webhook,
    path: '/webhooks',
    icon: 'webhooks',
    find: (text, whole) =>
      among(
        text,
        once(whole, 'webhooks', () => vaultFor('webhook:read').webhooks.list().toArray(wholeMax)),
      ),
  },
  {
    permission: 'person:read',
    kind: t.palette.person,
    path: '/people',
    icon: 'people',
    find: (text, whole) =>
      among(
        text,
        once(whole, 'people', () => vaultFor('person:read').people.list().toArray(wholeMax)),
      ),
  },
];

/** More people than a tenant can have, and more webhooks. */
const wholeMax = 1000;

/** What is typed may be part of a value: where the role may search, it is in no address. */
function tokensOfId(text: string) {
  if (!may('token:search')) {
    return vaultFor('token:read')
      .tokens.list({ id: [text], size: 1 })
      .toArray(1);
  }
  const quoted = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  return vaultFor('token:search')
    .tokens.search({ query: `id:"${quoted}"`, size: 1 })
    .toArray(1);
}

function pagesWith(text: string): readonly Found[] {
  return pageEntries
    .filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
    .map(({ name, path, icon }) => ({ name, icon, kind: t.palette.page, href: hrefOf(path) }));
}

/** Also of what has no page: a key, a session, or what was deleted. */
function entriesAbout(id: string): readonly Found[] {
  if (!isId(id) || !may('log:read')) return [];
  const kind = pageEntries.find(({ path }) => path === '/log')?.name ?? '';
  const about = [
    [t.palette.entriesAbout, { entity_id: id }],
    [t.palette.entriesBy, { actor_id: id }],
    [t.palette.entriesOfKey, { key_id: id }],
  ] as const;
  return about.map(([name, query]) => ({ name, kind, href: hrefOf('/log', query), icon: 'log' }));
}

export function Palette() {
  const [text, setText] = useState('');
  const [found, setFound] = useState<readonly Found[]>([]);
  const [at, setAt] = useState(0);
  const [isLooking, setLooking] = useState(false);
  const whole = useRef<WholeLists>(new Map());
  const typed = text.trim();
  useEffect(() => {
    setFound([]);
    setLooking(false);
    if (typed.length < 2) return undefined;
    let isCurrent = true;
    setLooking(true);
    const timer = setTimeout(() => {
      // A failure of one of them hides nothing of the others.
      const looks = searched
        .filter(({ permission }) => may(permission))
        .map(async ({ kind, path, icon, find }) => {
          const more = (await find(typed, whole.current))
            .slice(0, foundPerKind)
            .map(({ id, name }) => ({
              ...{ name, kind, icon },
              href: hrefOf(`${path}/${encodeURIComponent(id)}`),
            }));
          if (isCurrent) setFound((known) => [...known, ...more]);
        });
      void Promise.allSettled(looks).then(() => isCurrent && setLooking(false));
    }, waitMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [typed]);
  const all = [...pagesWith(typed), ...found, ...entriesAbout(typed)];
  const chosen = Math.min(at, Math.max(all.length - 1, 0));
  const open = (one: Found | undefined) => {
    if (one) navigate(one.href);
  };
  return (
    <Dialog title={t.palette.title} onClose={() => closeOver('find')}>
      <div class="palette">
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-found"
          aria-activedescendant={all.length > 0 ? `found-${chosen}` : undefined}
          aria-label={t.palette.label}
          placeholder={t.palette.label}
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter') {
              event.preventDefault();
              open(all[chosen]);
            }
            const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
            if (step === 0) return;
            event.preventDefault();
            setAt((chosen + step + all.length) % Math.max(all.length, 1));
          }}
        />
        <div id="palette-found" class="found" role="listbox" aria-label={t.palette.found}>
          {all.map((one, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field above takes the keys
            <div
              key={one.href}
              id={`found-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === chosen}
              onClick={() => open(one)}
            >
              <Icon name={one.icon} />
              <span>{one.name}</span>
              <span class="muted">{one.kind}</span>
            </div>
          ))}
        </div>
        {all.length === 0 && (
          <p class="muted padded">{isLooking ? t.palette.looking : t.palette.nothing}</p>
        )}
      </div>
    </Dialog>
  );
}
