/** The reference: the navigation, and the page that the reader chose. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks';
import { ChapterPage, TagPage } from './chapters.tsx';
import { type Description, type Operation, operationsOf } from './document.ts';
import { Method, OperationPage, useScroll } from './operation.tsx';
import { type Chapter, chapters, type Place, placeOf, tagAnchor } from './place.ts';
import { entriesOf, Search } from './search.tsx';
import { type Settings, SettingsContext } from './settings.ts';

interface AppProps {
  readonly description: Description;
  readonly url: string;
  readonly isServed: boolean;
}

export function App({ description, url, isServed }: AppProps): JSX.Element {
  const operations = useMemo(() => operationsOf(description), [description]);
  const entries = useMemo(() => entriesOf(description, operations), [description, operations]);
  const hash = useHash();
  const place = placeOf(hash, description.tags, operations);
  const [settings, setSettings] = useState<Settings>({ language: 'curl', key: '', ids: {} });
  const [isSearching, setIsSearching] = useState(false);
  const [isMenuOpen, setIsMenuOpen] = useState(false);
  useSlash(() => setIsSearching(true));
  useScroll('part' in place ? place.part && hash : undefined, hash);
  useTitle(titleOf(place));
  const access = {
    settings,
    url,
    isServed,
    keyHeader: description.components.securitySchemes.key.name,
    change: (part: Partial<Settings>) => setSettings((old) => ({ ...old, ...part })),
  };
  return (
    <SettingsContext.Provider value={access}>
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <header class="bar">
        <button
          type="button"
          class="menu"
          aria-expanded={isMenuOpen}
          aria-controls="navigation"
          onClick={() => setIsMenuOpen(!isMenuOpen)}
        >
          {isMenuOpen ? 'Close' : 'Menu'}
        </button>
        <a class="brand" href="#introduction">
          Strongroom <span>API reference</span>
        </a>
        <button type="button" class="find" onClick={() => setIsSearching(true)}>
          Search <kbd>/</kbd>
        </button>
      </header>
      <nav id="navigation" class={isMenuOpen ? 'open' : ''} aria-label="Reference">
        <Navigation
          description={description}
          operations={operations}
          place={place}
          onChoose={() => setIsMenuOpen(false)}
        />
      </nav>
      <main id="content" tabIndex={-1}>
        <Page place={place} description={description} operations={operations} />
      </main>
      {isSearching && <Search entries={entries} onClose={() => setIsSearching(false)} />}
    </SettingsContext.Provider>
  );
}

/** Not a link: the address keeps naming the page that is shown. */
function skip(): void {
  document.getElementById('content')?.focus();
}

interface PageProps {
  readonly place: Place;
  readonly description: Description;
  readonly operations: readonly Operation[];
}

function Page({ place, description, operations }: PageProps): JSX.Element {
  if (place.kind === 'operation') {
    return <OperationPage operation={place.operation} description={description} />;
  }
  if (place.kind === 'chapter') {
    return <ChapterPage chapter={place.chapter} description={description} />;
  }
  const { name, description: meaning } = place.tag;
  return (
    <TagPage
      name={name}
      meaning={meaning}
      operations={operations.filter(({ tag }) => tag === name)}
    />
  );
}

function Navigation({
  description,
  operations,
  place,
  onChoose,
}: PageProps & { readonly onChoose: () => void }): JSX.Element {
  const current = anchorOf(place);
  useEffect(() => {
    const chosen = document.querySelector('#navigation [aria-current]');
    chosen?.scrollIntoView({ block: 'nearest' });
  }, [current]);
  const item = (anchor: string, text: string, method?: string) => (
    <li>
      <a
        href={`#${anchor}`}
        aria-current={anchor === current ? 'page' : undefined}
        onClick={onChoose}
      >
        <span>{text}</span>
        {method && <Method method={method} />}
      </a>
    </li>
  );
  return (
    <>
      <ul>
        {(Object.keys(chapters) as Chapter[]).map((chapter) => item(chapter, chapters[chapter]))}
      </ul>
      {description.tags.map(({ name }) => (
        <details open={tagOf(place) === name}>
          <summary>{name}</summary>
          <ul>
            {item(tagAnchor(name), 'Overview')}
            {operations
              .filter(({ tag }) => tag === name)
              .map(({ operationId, summary, method }) => item(operationId, summary, method))}
          </ul>
        </details>
      ))}
    </>
  );
}

function anchorOf(place: Place): string {
  if (place.kind === 'operation') return place.operation.operationId;
  return place.kind === 'tag' ? tagAnchor(place.tag.name) : place.chapter;
}

function tagOf(place: Place): string | undefined {
  if (place.kind === 'operation') return place.operation.tag;
  return place.kind === 'tag' ? place.tag.name : undefined;
}

function titleOf(place: Place): string {
  if (place.kind === 'operation') return place.operation.summary;
  return place.kind === 'tag' ? place.tag.name : chapters[place.chapter];
}

/** The part of the address after `#`, which says what is shown. */
function useHash(): string {
  const read = () => decodeURIComponent(location.hash.slice(1));
  const [hash, setHash] = useState(read);
  useEffect(() => {
    const follow = () => setHash(read());
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return hash;
}

function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title}: Strongroom API reference`;
  }, [title]);
}

/** The key opens the search, except where the reader writes. */
function useSlash(open: () => void): void {
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const { target, key, ctrlKey, metaKey } = event;
      const isWriting =
        target instanceof Element && target.matches('input, textarea, [role=option]');
      if (!(key === '/' && !isWriting) && !(key === 'k' && (ctrlKey || metaKey))) return;
      event.preventDefault();
      open();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  });
}
