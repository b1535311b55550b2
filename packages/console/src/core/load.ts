/** Loading: what a page shows while the vault is asked, when it has responded, and when it has not. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
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
  return { data: current.data, error: current.error, isLoading, reload, set };
}

export interface Pages<T> {
  readonly items: readonly T[];
  readonly total: number | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly hasMore: boolean;
  readonly more: () => void;
  readonly reload: () => void;
}

interface SomePage<T> {
  readonly pagination: { readonly next?: string; readonly total_items?: number };
  readonly data: readonly T[];
}

/** A list of any length, a page at a time. */
export function usePages<T>(
  key: string,
  list: () => { pages(): AsyncGenerator<SomePage<T>> },
): Pages<T> {
  const pages = useRef<AsyncGenerator<SomePage<T>> | undefined>(undefined);
  const first = useLoad(key, async () => {
    pages.current = list().pages();
    const { value } = await pages.current.next();
    return value as SomePage<T>;
  });
  const [later, setLater] = useState<{ first?: SomePage<T>; pages: readonly SomePage<T>[] }>({
    pages: [],
  });
  const [isMore, setMore] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const shown = first.data;
  const following = shown !== undefined && later.first === shown ? later.pages : [];
  const all = shown ? [shown, ...following] : [];
  const more = async () => {
    setMore(true);
    try {
      const next = await pages.current?.next();
      if (next && !next.done && shown)
        setLater({ first: shown, pages: [...following, next.value] });
    } catch (failure) {
      setError(failure);
    } finally {
      setMore(false);
    }
  };
  return {
    items: all.flatMap(({ data }) => data),
    total: shown?.pagination.total_items,
    error: first.error ?? error,
    isLoading: first.isLoading || isMore,
    hasMore: all.at(-1)?.pagination.next !== undefined,
    more: () => void more(),
    reload: first.reload,
  };
}
