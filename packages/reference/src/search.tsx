/** Finds operations, attributes, errors, filters and chapters by their words. */
import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Description, nameIn, type Operation, type Schema } from './document.ts';
import { Method } from './operation.tsx';
import { chapters, tagAnchor } from './place.ts';

interface Entry {
  readonly anchor: string;
  readonly title: string;
  /** What kind of thing it is, or where it is. */
  readonly note: string;
  readonly method?: string;
  /** In lower case: what is searched besides the title. */
  readonly words: string;
}

export function entriesOf(
  description: Description,
  operations: readonly Operation[],
): readonly Entry[] {
  const facts = description['x-reference'];
  return [
    ...Object.entries(chapters).map(([anchor, title]) => ({
      anchor,
      title,
      note: 'Guide',
      words: '',
    })),
    ...description.tags.map(({ name, description: text }) => ({
      anchor: tagAnchor(name),
      title: name,
      note: 'Resource',
      words: text.toLowerCase(),
    })),
    ...operations.map((one) => ({
      anchor: one.operationId,
      title: one.summary,
      note: one.path,
      method: one.method,
      words:
        `${one.operationId} ${one.path} ${attributesOf(one, description).join(' ')}`.toLowerCase(),
    })),
    ...Object.entries(facts.problems).map(([code, { status, cause }]) => ({
      anchor: `problem-${code}`,
      title: code,
      note: `Error ${status}`,
      words: `${status} ${cause}`.toLowerCase(),
    })),
    ...facts.permissions.map(({ name, description: text }) => ({
      anchor: `permission-${name}`,
      title: name,
      note: 'Permission',
      words: text.toLowerCase(),
    })),
    ...facts.quotas.map(({ name, meaning }) => ({
      anchor: `quota-${name}`,
      title: name,
      note: 'Quota',
      words: meaning.toLowerCase(),
    })),
    ...facts.settings.map(({ name }) => ({
      anchor: `setting-${name}`,
      title: name,
      note: 'Setting',
      words: '',
    })),
    ...facts.tokenTypes.map(({ name }) => ({
      anchor: `type-${name}`,
      title: name,
      note: 'Token type',
      words: '',
    })),
    ...facts.filters.map(({ name, meaning }) => ({
      anchor: `filter-${name}`,
      title: name,
      note: 'Filter',
      words: meaning.toLowerCase(),
    })),
  ];
}

/** The names of everything that an operation takes. */
function attributesOf(operation: Operation, { components }: Description): readonly string[] {
  const names = new Set(operation.parametersInPlace.map(({ name }) => name));
  const seen = new Set<string>();
  const visit = (schema: Schema): void => {
    if (schema.$ref !== undefined) {
      const name = nameIn(schema.$ref);
      if (seen.has(name)) return;
      seen.add(name);
      visit(components.schemas[name] ?? {});
    }
    for (const [name, one] of Object.entries(schema.properties ?? {})) {
      names.add(name);
      visit(one);
    }
    for (const one of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) visit(one);
    if (schema.items) visit(schema.items);
    if (schema.contentSchema) visit(schema.contentSchema);
  };
  for (const { schema } of Object.values(operation.requestBody?.content ?? {})) visit(schema);
  return [...names];
}

const foundMax = 30;

/** The best first: the title begins with the words, has them, or something else has them. */
export function findEntries(entries: readonly Entry[], query: string): readonly Entry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const rank = ({ title, note, words: rest }: Entry): number => {
    const name = title.toLowerCase();
    const all = `${name} ${note.toLowerCase()} ${rest}`;
    if (!words.every((word) => all.includes(word))) return 0;
    if (name.startsWith(words.join(' '))) return 4;
    if (words.every((word) => name.includes(word))) return 3;
    return words.every((word) => `${name} ${note.toLowerCase()}`.includes(word)) ? 2 : 1;
  };
  return entries
    .map((entry) => ({ entry, rank: rank(entry) }))
    .filter((one) => one.rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, foundMax)
    .map(({ entry }) => entry);
}

interface SearchProps {
  readonly entries: readonly Entry[];
  readonly onClose: () => void;
}

export function Search({ entries, onClose }: SearchProps): JSX.Element {
  const [query, setQuery] = useState('');
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const found = useMemo(() => findEntries(entries, query), [entries, query]);
  // Before the next key arrives: it belongs to the query.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const open = (entry: Entry | undefined) => {
    if (!entry) return;
    location.hash = entry.anchor;
    onClose();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter') open(found[chosen]);
    else if (step === undefined || found.length === 0) return;
    else setChosen((chosen + step + found.length) % found.length);
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the escape key closes a dialog by itself
    <dialog
      ref={dialog}
      class="search"
      aria-label="Search"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <input
        type="text"
        placeholder="Search operations, attributes, errors, filters"
        aria-label="Search the reference"
        role="combobox"
        aria-expanded={found.length > 0}
        aria-controls="found"
        aria-activedescendant={found.length > 0 ? `found-${chosen}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={query}
        onInput={({ currentTarget }) => {
          setQuery(currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="found" role="listbox" aria-label="Found">
        {found.map((entry, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the focus and the keys
          <div
            id={`found-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === chosen}
            class="found"
            ref={(element) => {
              if (at === chosen) element?.scrollIntoView({ block: 'nearest' });
            }}
            onClick={() => open(entry)}
          >
            <span>{entry.title}</span>
            <span class="note">
              {entry.method && <Method method={entry.method} />} {entry.note}
            </span>
          </div>
        ))}
      </div>
      {query !== '' && found.length === 0 && (
        <p class="nothing" role="status">
          Nothing has all of these words.
        </p>
      )}
    </dialog>
  );
}
