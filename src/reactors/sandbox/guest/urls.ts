/** Features of URL and URLSearchParams that the engine lacks. */
import type { NamedExports } from './parts.ts';

export function urls(): NamedExports {
  const { URL: url, URLSearchParams: params } = globalThis;
  if (url === undefined || params === undefined) return {};

  type Linked = { search: string; readonly query: URLSearchParams };
  const links = new WeakMap<URL, Linked>();

  /** The parameters and the URL update each other. */
  function queryOf(owner: URL): URLSearchParams {
    const { search } = owner;
    const known = links.get(owner);
    if (known?.search === search) return known.query;
    const link: Linked = { search, query: new params(search) };
    links.set(owner, link);
    for (const name of ['append', 'delete', 'set', 'sort'] as const) {
      const change = link.query[name] as (...given: unknown[]) => void;
      const value = (...given: unknown[]) => {
        change.apply(link.query, given);
        owner.search = link.query.toString();
        link.search = owner.search;
      };
      Object.defineProperty(link.query, name, { value, configurable: true, writable: true });
    }
    return link.query;
  }

  Object.defineProperty(url.prototype, 'searchParams', {
    get(this: URL) {
      return queryOf(this);
    },
    enumerable: true,
    configurable: true,
  });

  url.canParse = (text, base) => {
    try {
      return new url(text, base).href !== '';
    } catch {
      return false;
    }
  };

  function textOf(record: object): string {
    const pairs = Object.entries(record);
    return pairs
      .map((pair) => pair.map((one) => encodeURIComponent(String(one))).join('='))
      .join('&');
  }

  /** The engine's constructor does not accept records. */
  const URLSearchParams = new Proxy(params, {
    construct(target, [given, ...rest], made) {
      const isRecord = typeof given === 'object' && given !== null && !(Symbol.iterator in given);
      return Reflect.construct(target, [isRecord ? textOf(given) : given, ...rest], made);
    },
  });
  return { URLSearchParams };
}
