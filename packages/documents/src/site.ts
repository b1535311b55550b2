/** What the pages of the documents do: search, and copy a block of code. Without it they can still be read. */
import MiniSearch from 'minisearch';
import { indexOptions, type Section } from './index-options.ts';

const resultsMax = 12;
const top = document.documentElement.dataset['top'] ?? '';
const input = document.querySelector<HTMLInputElement>('#search');
const results = document.querySelector<HTMLElement>('#results');
const count = document.querySelector<HTMLElement>('#count');

/** Read at the first use: most readers follow a link. */
let index: Promise<MiniSearch<Section>> | undefined;

async function readIndex(): Promise<MiniSearch<Section>> {
  const response = await fetch(`${top}search.json`);
  return MiniSearch.loadJSON<Section>(await response.text(), indexOptions);
}

async function search(query: string): Promise<void> {
  if (!results || !count) return;
  index ??= readIndex();
  const found = query.trim() === '' ? [] : (await index).search(query).slice(0, resultsMax);
  // The reader typed on while the index was on its way.
  if (query !== input?.value) return;
  results.replaceChildren(...found.map((one) => resultOf(one)));
  results.hidden = found.length === 0;
  count.textContent = query.trim() === '' ? '' : `${found.length || 'No'} results`;
}

function resultOf({ id, page, heading }: { id: string; page?: string; heading?: string }) {
  const link = document.createElement('a');
  link.href = top + id;
  const title = document.createElement('strong');
  title.textContent = heading ?? '';
  const place = document.createElement('span');
  place.textContent = page ?? '';
  link.append(title, place);
  const item = document.createElement('li');
  item.append(link);
  return item;
}

function close(): void {
  if (results) results.hidden = true;
}

/** Moves among the results by arrows. */
function move(by: number): void {
  const links = [...(results?.querySelectorAll('a') ?? [])];
  const at = links.indexOf(document.activeElement as HTMLAnchorElement) + by;
  if (at < 0) input?.focus();
  else links[Math.min(at, links.length - 1)]?.focus();
}

input?.addEventListener('input', () => void search(input.value));
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === '/' && !isTyping) {
    event.preventDefault();
    input?.focus();
  } else if (event.key === 'Escape') {
    close();
  } else if (
    /^Arrow(?:Down|Up)$/.test(event.key) &&
    (isTyping || results?.contains(event.target as Node))
  ) {
    event.preventDefault();
    move(event.key === 'ArrowDown' ? 1 : -1);
  } else if (event.key === 'Enter' && isTyping) {
    results?.querySelector('a')?.click();
  }
});
document.addEventListener('click', ({ target }) => {
  if (!(target instanceof Element) || !target.closest('.search')) close();
});
results?.addEventListener('click', close);

// The navigation is longer than a screen.
const pages = document.querySelector<HTMLElement>('.pages');
const here = pages?.querySelector<HTMLElement>('[aria-current]');
if (pages && here) pages.scrollTop = here.offsetTop - pages.clientHeight / 2;

for (const block of document.querySelectorAll('main pre')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code')?.textContent ?? '');
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2_000);
  });
  block.parentElement?.append(button);
}
