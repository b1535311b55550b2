/** A known path with a method it does not have is a 405 that says which it has. */
import { VaultError } from '../../lib/errors.ts';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

interface Known {
  /** Path pattern, for example `/tokens/:id`. */
  readonly path: string;
  readonly method: string;
}

export interface RefusedMethods {
  readonly path: string;
  readonly methods: readonly (typeof methods)[number][];
  readonly refusal: VaultError;
}

/** For each path the methods that no route of it has. They are refused before a body is read, whatever its type. */
export function otherMethods(known: readonly Known[]): RefusedMethods[] {
  return [...new Set(known.map((route) => route.path))].map((path) => {
    // A token may be called `search`, so `/tokens/search` also takes what `/tokens/:id` takes.
    const allowed = known.filter((route) => covers(route.path, path)).map(({ method }) => method);
    const head = allowed.includes('GET') ? ['HEAD'] : [];
    const allow = [...new Set([...allowed, ...head])].sort().join(', ');
    return {
      path,
      methods: methods.filter((method) => !allowed.includes(method)),
      refusal: new VaultError('method_not_allowed', {
        public: `This path supports ${allow}.`,
        headers: { allow },
      }),
    };
  });
}

/** True when every path of `pattern` is one of `wider`, where `:name` matches any one segment. */
function covers(wider: string, pattern: string): boolean {
  const segments = pattern.split('/');
  const others = wider.split('/');
  if (others.length !== segments.length) return false;
  return others.every((other, at) => other.startsWith(':') || other === segments[at]);
}
