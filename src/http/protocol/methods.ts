/** A known path with an unknown method is rejected with 405, which names the allowed methods. */
import { VaultError } from '../../base/errors.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** Under this method the transport looks up a path that it does not find under the method of a request. */
export const anyOtherMethod = 'TRACE';

/** Paths whose last segment callers choose: a token may have the id `search`. */
const namedByCallers: readonly string[] = ['/tokens/:id'];

interface Known {
  /** Path pattern, for example `/tokens/:id`. */
  readonly path: string;
  readonly methods: readonly string[];
}

export interface RefusedMethods {
  readonly path: string;
  readonly methods: readonly ((typeof methods)[number] | typeof anyOtherMethod)[];
  readonly refusal: VaultError;
}

/**
 * For each path what refuses the methods that no route of it has, before a body is read, whatever its type. One place
 * does for all of them; only a method under which the path would be found as another one needs its own.
 */
export function otherMethods(known: readonly Known[]): RefusedMethods[] {
  const refusable = [...Map.groupBy(known, ({ path }) => path)].map(([path, routes]) => {
    const own = routes.flatMap(methodsIn);
    // Methods that `/tokens/:id` accepts for this path are left to that route.
    const taken = known.filter((route) => isNameIn(route.path, path)).flatMap(methodsIn);
    const elsewhere = known.filter((route) => overlap(route.path, path)).flatMap(methodsIn);
    return { path, own, methods: without(elsewhere, [...own, ...taken]), taken };
  });
  return refusable.map(({ path, own, taken }) => {
    // Also what another path refuses in a place of its own, and would refuse for this one.
    const confusable = refusable.filter((other) => overlap(other.path, path)).flatMap(methodsIn);
    const allow = [...new Set(own)].sort().join(', ');
    return {
      path,
      methods: [
        ...methods.filter((method) => without(confusable, [...own, ...taken]).includes(method)),
        anyOtherMethod,
      ],
      refusal: new VaultError('method_not_allowed', {
        public: `This path supports ${allow}.`,
        headers: { allow },
      }),
    };
  });
}

function methodsIn({ methods }: Pick<Known, 'methods'>): readonly string[] {
  return methods;
}

function without(some: readonly string[], others: readonly string[]): readonly string[] {
  return some.filter((one) => !others.includes(one));
}

/** Whether some address fits both patterns. */
function overlap(one: string, other: string): boolean {
  const segments = one.split('/');
  const others = other.split('/');
  return (
    segments.length === others.length &&
    segments.every((segment, index) => {
      const opposite = others[index] ?? '';
      return segment === opposite || segment.startsWith(':') || opposite.startsWith(':');
    })
  );
}

/** True if the path could name a resource whose creator chose its id. */
function isNameIn(pattern: string, path: string): boolean {
  if (!namedByCallers.includes(pattern)) return false;
  const folder = pattern.slice(0, pattern.lastIndexOf('/'));
  return path !== pattern && path.slice(0, path.lastIndexOf('/')) === folder;
}
