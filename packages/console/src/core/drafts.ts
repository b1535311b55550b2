/** What was typed and not saved: it stays while the console is open, wherever the person goes in it. */
import { signal } from '@preact/signals';

interface KeptDraft {
  readonly value: unknown;
  /** As it was stored when the editing began. */
  readonly base: unknown;
}

const drafts = signal<ReadonlyMap<string, KeptDraft>>(new Map());

export interface Draft<T> {
  readonly value: T;
  readonly base: T;
  readonly isChanged: boolean;
  readonly set: (next: T) => void;
  /** Once it is saved, or given up. */
  readonly clear: () => void;
}

export const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

/** @param name of what is edited. */
export function useDraft<T>(name: string, stored: T): Draft<T> {
  const kept = drafts.value.get(name);
  const value = (kept ? kept.value : stored) as T;
  const base = (kept ? kept.base : stored) as T;
  const put = (next: KeptDraft | undefined) => {
    const all = new Map(drafts.value);
    if (next) all.set(name, next);
    else all.delete(name);
    drafts.value = all;
  };
  return {
    value,
    base,
    isChanged: !isSame(value, base),
    set: (next) => put(isSame(next, base) ? undefined : { value: next, base }),
    clear: () => put(undefined),
  };
}

/** They belong to the person who signed out. */
export function forgetDrafts(): void {
  drafts.value = new Map();
}

// The browser asks before the page is left with changes that were not saved.
window.addEventListener('beforeunload', (event) => {
  if (drafts.value.size > 0) event.preventDefault();
});
