/** What surrounds every page: navigation, the person, shortcuts, and the lost connection. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { closeOver, isOverOpen, openOver } from '../core/dialogs.ts';
import { type PageEntry, pages } from '../core/pages.ts';
import { hrefOf, navigate, place } from '../core/router.ts';
import { may, refresh, type Session, signOut, state } from '../core/session.ts';
import { setTheme, type Theme, theme } from '../core/theme.ts';
import { t } from '../texts.ts';
import { Badge, Button } from './basics.tsx';
import { Dialog } from './dialog.tsx';
import { Icon, Logo } from './icons.tsx';
import { Palette } from './palette.tsx';

const isMenuOpen = signal(false);
const pageEntries: readonly PageEntry[] = pages;

/** The second key after `g`. */
const jumps: Readonly<Record<string, string>> = {
  o: '/',
  t: '/tokens',
  a: '/applications',
  x: '/proxies',
  r: '/reactors',
  w: '/webhooks',
  l: '/log',
  k: '/keys',
  p: '/people',
  s: '/settings',
};

export function Shell({ session, children }: { session: Session; children: ComponentChildren }) {
  useShortcuts();
  const { path } = place.value;
  useEffect(() => {
    isMenuOpen.value = false;
  }, [path]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        {t.skip}
      </a>
      <header class="top">
        <Button
          icon="menu"
          tone="quiet"
          label={t.menu}
          onClick={() => {
            isMenuOpen.value = !isMenuOpen.value;
          }}
        />
        <Logo />
        <strong>{t.product}</strong>
      </header>
      <aside class={`side ${isMenuOpen.value ? 'open' : ''}`} aria-label={t.product}>
        <div class="brand">
          <Logo />
          <div>
            <strong>{session.tenant.name}</strong>
            <Badge tone={session.tenant.type === 'production' ? 'accent' : 'neutral'}>
              {session.tenant.type}
            </Badge>
          </div>
        </div>
        <button type="button" class="find" onClick={() => openOver('find')}>
          <Icon name="search" />
          <span>{t.find}</span>
          <kbd>{isMac ? '⌘K' : 'Ctrl K'}</kbd>
        </button>
        <nav aria-label={t.navigation}>
          {pageEntries.map((page) => (
            <a
              key={page.path}
              href={hrefOf(page.path)}
              aria-current={isWithin(path, page.path) ? 'page' : undefined}
              class={may(page.permission) ? undefined : 'out-of-reach'}
            >
              <Icon name={page.icon} />
              {page.name}
            </a>
          ))}
        </nav>
        <div class="person">
          <a href={hrefOf('/account')} title={t.account.title}>
            <strong>{session.person.name}</strong>
            <span class="muted">{session.applications.map(({ name }) => name).join(', ')}</span>
          </a>
          <ThemePicker />
          <Button icon="exit" tone="quiet" label={t.signOut} onClick={() => void signOut()} />
        </div>
      </aside>
      <main id="main" tabIndex={-1}>
        {state.value.kind === 'unreachable' && <Lost />}
        {children}
      </main>
      {isOverOpen('find') && <Palette />}
      {isOverOpen('shortcuts') && <Shortcuts />}
    </div>
  );
}

const isMac = /mac/i.test(navigator.platform);

function isWithin(path: string, page: string): boolean {
  return page === '/' ? path === '/' : path === page || path.startsWith(`${page}/`);
}

function ThemePicker() {
  const next: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };
  return (
    <Button
      icon="sun"
      tone="quiet"
      label={`${t.theme}: ${t.themes[theme.value]}`}
      onClick={() => setTheme(next[theme.value])}
    />
  );
}

/** Also in the editor of code, whose parts the event names only in its path. */
function isTyping(event: KeyboardEvent): boolean {
  const element = event.composedPath()[0] as HTMLElement | undefined;
  return element?.closest('input, textarea, select, [contenteditable], dialog') != null;
}

function useShortcuts(): void {
  useEffect(() => {
    let isJumping = false;
    const listen = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        openOver('find');
        return;
      }
      if (isTyping(event) || event.metaKey || event.ctrlKey || event.altKey) return;
      const jump = isJumping ? jumps[event.key] : undefined;
      isJumping = event.key === 'g';
      if (jump !== undefined) navigate(hrefOf(jump));
      else if (event.key === '?') openOver('shortcuts');
      else if (event.key === 'n' || event.key === 'p') {
        const keys = `main button[aria-keyshortcuts="${event.key}"]`;
        document.querySelector<HTMLButtonElement>(keys)?.click();
      } else if (event.key === '/') {
        const search = document.querySelector<HTMLInputElement>('main input[type=search]');
        if (search) event.preventDefault();
        search?.focus();
      }
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
}

function Shortcuts() {
  return (
    <Dialog title={t.shortcuts.title} onClose={() => closeOver('shortcuts')}>
      <dl class="shortcuts">
        {t.shortcuts.rows.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

/** Looks for the vault until it responds again. */
function useReturn(): void {
  useEffect(() => {
    const look = () => void refresh();
    const timer = setInterval(look, 2_000);
    window.addEventListener('focus', look);
    return () => {
      clearInterval(timer);
      window.removeEventListener('focus', look);
    };
  }, []);
}

/** Above the page, which stays as it is, while the vault cannot be reached. */
function Lost() {
  useReturn();
  return (
    <div class="note warn lost" role="alert">
      <Icon name="problems" />
      <p>
        <strong>{t.gate.unreachable}.</strong> {t.lost}
      </p>
      <Button tone="quiet" icon="refresh" onClick={() => void refresh()}>
        {t.retry}
      </Button>
    </div>
  );
}

/** In place of the first page, while the vault cannot be reached. */
export function Unreachable() {
  useReturn();
  return (
    <div class="gate" role="alert">
      <Logo size={40} />
      <h1>{t.gate.unreachable}</h1>
      <p>{t.gate.unreachableText}</p>
    </div>
  );
}
