/** The address: which page is shown in which state. Every state has an address, and none holds a value. */
import { signal } from '@preact/signals';

const base = '/console';

export interface Place {
  /** Below the console, such as `/tokens/order-4711`. */
  readonly path: string;
  readonly query: URLSearchParams;
}

function currentPlace(): Place {
  const path = location.pathname.slice(base.length).replace(/\/+$/, '');
  return { path: path === '' ? '/' : path, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>(currentPlace());

export type Query = Readonly<Record<string, string | undefined>>;

/** @param path below the console; each segment is encoded by the caller. */
export function hrefOf(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  const text = search.toString();
  return `${base}${path === '/' ? '' : path}${text === '' ? '' : `?${text}`}`;
}

/** The way back from where a dialog leads is the page that it was opened on. */
export function navigate(href: string, { replace = hasDialog() } = {}): void {
  if (replace) history.replaceState(null, '', href);
  else history.pushState(null, '', href);
  place.value = currentPlace();
  window.scrollTo(0, 0);
}

function hrefWith(query: Query): string {
  return hrefOf(place.value.path, { ...Object.fromEntries(place.value.query), ...query });
}

const hasDialog = () => ['dialog', 'over'].some((name) => place.value.query.has(name));

/** The same page with other parameters; those that are empty are left out. */
export function setQuery(query: Query): void {
  history.replaceState(history.state, '', hrefWith(query));
  place.value = currentPlace();
}

/** The same, and the browser's way back leads to how it was. */
export function goToQuery(query: Query): void {
  navigate(hrefWith(query), { replace: false });
}

/** The same for what opens over the page, which stays where it is. */
export function openQuery(query: Query, opened: string): void {
  history.pushState({ opened }, '', hrefWith(query));
  place.value = currentPlace();
}

/** Other filters: what they leave is shown from its first page on. */
export function setFilter(query: Query): void {
  setQuery({ ...query, page: undefined });
}

window.addEventListener('popstate', () => {
  place.value = currentPlace();
});

/** Links within the console change the page without loading it again. */
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest('a');
  if (link?.target !== '' || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(base) || link.hasAttribute('download')) return;
  event.preventDefault();
  navigate(link.pathname + link.search, { replace: false });
});
