/** Loading: what a page shows while the vault is asked, when it has responded, and when it has not. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { goToQuery, place, setQuery } from './router.ts';
import { returns } from './session.ts';

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Asks again; what was there stays until the response. */
  readonly reload: () => void;
  /** Puts what is known already in place, such as the response to a change. */
  readonly set: (data: T) => void;
}

/** @param key names what is loaded; with another one it is loaded again. */
export function useLoad<T>(key: string, load: () => Promise<T>): Loaded<T> {
  const [shown, setShown] = useState<{ key: string; data?: T; error?: unknown }>({ key });
  const [isLoading, setLoading] = useState(true);
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    let isCurrent = true;
    setLoading(true);
    const ask = async () => latest.current();
    ask()
      .then(
        (data) => isCurrent && setShown({ key, data }),
        (error: unknown) =>
          isCurrent &&
          setShown((before) => ({ ...(before.key === key ? before : { key }), error })),
      )
      .finally(() => isCurrent && setLoading(false));
    return () => {
      isCurrent = false;
    };
  }, [key, round]);
  const reload = useCallback(() => setRound((one) => one + 1), []);
  const hasFailed = shown.key === key && shown.error !== undefined;
  const back = returns.value;
  useEffect(() => {
    if (back > 0 && hasFailed) reload();
  }, [back]);
  const set = useCallback((data: T) => setShown({ key, data }), [key]);
  const current = shown.key === key ? shown : { key };
  return {
    data: current.data,
    error: current.error,
    isLoading: isLoading || shown.key !== key,
    reload,
    set,
  };
}

export interface Pages<T> {
  /** Of the page alone: what was on others is not kept. */
  readonly items: readonly T[];
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly reload: () => void;
  /** From 1 on. */
  readonly page: number;
  /** How many items come before those of the page. */
  readonly before: number;
  readonly total: number | undefined;
  readonly hasMore: boolean;
  readonly go: (page: number) => void;
}

interface SomePage<T> {
  readonly pagination: { readonly next?: string; readonly total_items?: number };
  readonly data: readonly T[];
}

interface PagesOptions<T> {
  /** At most so many items are on a page. */
  readonly size?: number;
  readonly list: (from: {
    readonly size: number;
    readonly start?: string;
    readonly page?: number;
  }) => {
    pages(): AsyncGenerator<SomePage<T>>;
  };
  /** False for a list that the vault gives by cursors alone: without one, it is walked from the beginning. */
  readonly isNumbered?: boolean;
}

/** A list of any length, of which one page is read, shown, and kept. The number of the page is in the address. */
export function usePages<T>(
  key: string,
  { size = 50, list, isNumbered = true }: PagesOptions<T>,
): Pages<T> {
  const page = Math.max(1, Number.parseInt(place.value.query.get('page') ?? '', 10) || 1);
  // A page is found by the cursor of the one before it in no time, however long the list is.
  const cursors = useRef({ key, of: new Map<number, string>() });
  if (cursors.current.key !== key) cursors.current = { key, of: new Map() };
  const known = cursors.current.of;
  const loaded = useLoad(`${key} ${page}`, async () => {
    const start = known.get(page);
    const isWalked = start === undefined && !isNumbered;
    const found = list({
      size,
      ...(start !== undefined && { start }),
      ...(start === undefined && isNumbered && page > 1 && { page }),
    }).pages();
    for (let skipped = 1; isWalked && skipped < page; skipped++) await found.next();
    const { value } = await found.next();
    const shown: SomePage<T> = value ?? { data: [], pagination: {} };
    if (shown.pagination.next !== undefined) known.set(page + 1, shown.pagination.next);
    return { key, page, shown };
  });
  // Another page of the same list takes the place of this one once it is there.
  const last = useRef(loaded.data);
  if (loaded.data) last.current = loaded.data;
  const current = last.current?.key === key ? last.current : undefined;
  const { data = [], pagination } = current?.shown ?? {};
  const isPast = loaded.data !== undefined && data.length === 0 && page > 1;
  const go = (to: number) => goToQuery({ page: to > 1 ? String(to) : undefined });
  useEffect(() => {
    if (isPast) setQuery({ page: undefined });
  }, [isPast]);
  return {
    items: data,
    error: loaded.error,
    isLoading: loaded.isLoading || isPast,
    reload: loaded.reload,
    page: current?.page ?? page,
    before: ((current?.page ?? page) - 1) * size,
    total: pagination?.total_items,
    hasMore: pagination?.next !== undefined,
    go,
  };
}
