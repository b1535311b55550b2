/** ⌘K: finds pages, and anything by its id or name. */
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
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

export const isPaletteOpen = signal(false);

const pageEntries: readonly PageEntry[] = pages;
const foundPerKind = 6;
const waitMs = 120;

type Finder = readonly [permission: string, find: (text: string) => Promise<readonly Found[]>];

/** Whatever of it the person may read. A failure of one of them hides nothing of the others. */
const finders: readonly Finder[] = [
  [
    'token:read',
    async (text) => {
      const { id } = await vaultFor('token:read').tokens.get(text);
      return [{ name: id, kind: t.palette.token, href: tokenHref(id), icon: 'tokens' }];
    },
  ],
  [
    'application:read',
    (text) =>
      named('application:read', text, {
        kind: t.palette.application,
        path: '/applications',
        icon: 'applications',
        list: async (vault) => vault.applications.list({ size: 100 }).toArray(100),
      }),
  ],
  [
    'proxy:read',
    (text) =>
      named('proxy:read', text, {
        kind: t.palette.proxy,
        path: '/proxies',
        icon: 'proxies',
        list: async (vault) => vault.proxies.list({ size: 100 }).toArray(100),
      }),
  ],
  [
    'reactor:read',
    (text) =>
      named('reactor:read', text, {
        kind: t.palette.reactor,
        path: '/reactors',
        icon: 'reactors',
        list: async (vault) => vault.reactors.list({ size: 100 }).toArray(100),
      }),
  ],
  [
    'webhook:read',
    (text) =>
      named('webhook:read', text, {
        kind: t.palette.webhook,
        path: '/webhooks',
        icon: 'webhooks',
        list: async (vault) => vault.webhooks.list().toArray(100),
      }),
  ],
  [
    'person:read',
    (text) =>
      named('person:read', text, {
        kind: t.palette.person,
        path: '/people',
        icon: 'people',
        list: async (vault) => vault.people.list().toArray(100),
      }),
  ],
];

export const tokenHref = (id: string): string => hrefOf(`/tokens/${encodeURIComponent(id)}`);

interface NamedList {
  readonly kind: string;
  readonly path: string;
  readonly icon: IconName;
  readonly list: (
    vault: ReturnType<typeof vaultFor>,
  ) => Promise<readonly { readonly id: string; readonly name: string }[]>;
}

async function named(
  permission: string,
  text: string,
  { kind, path, icon, list }: NamedList,
): Promise<readonly Found[]> {
  const all = await list(vaultFor(permission));
  const wanted = text.toLowerCase();
  return all
    .filter(({ id, name }) => name.toLowerCase().includes(wanted) || id.startsWith(wanted))
    .slice(0, foundPerKind)
    .map(({ id, name }) => ({ name, kind, icon, href: hrefOf(`${path}/${id}`) }));
}

function pagesWith(text: string): readonly Found[] {
  return pageEntries
    .filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
    .map(({ name, path, icon }) => ({ name, icon, kind: t.palette.page, href: hrefOf(path) }));
}

export function Palette() {
  const [text, setText] = useState('');
  const [found, setFound] = useState<readonly Found[]>([]);
  const [at, setAt] = useState(0);
  const [isLooking, setLooking] = useState(false);
  useEffect(() => {
    setFound([]);
    setLooking(false);
    if (text.trim().length < 2) return undefined;
    let isCurrent = true;
    setLooking(true);
    const timer = setTimeout(() => {
      const looks = finders
        .filter(([permission]) => may(permission))
        .map(async ([, find]) => {
          const more = await find(text.trim());
          if (isCurrent) setFound((known) => [...known, ...more]);
        });
      void Promise.allSettled(looks).then(() => isCurrent && setLooking(false));
    }, waitMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text]);
  const all = [...pagesWith(text.trim()), ...found];
  const chosen = Math.min(at, Math.max(all.length - 1, 0));
  const close = () => {
    isPaletteOpen.value = false;
  };
  const open = (one: Found | undefined) => {
    if (!one) return;
    close();
    navigate(one.href);
  };
  return (
    <Dialog title={t.palette.title} onClose={close}>
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
