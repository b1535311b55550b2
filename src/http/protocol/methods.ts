/** A known path with a method it does not have is a 405 that says which it has. */
import type { FastifyInstance } from 'fastify';
import { VaultError } from '../../lib/errors.ts';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

interface Known {
  /** Path pattern, for example `/tokens/:id`. */
  readonly path: string;
  readonly method: string;
}

export function refuseOtherMethods(app: FastifyInstance, known: readonly Known[]): void {
  for (const path of new Set(known.map((route) => route.path))) {
    // A token may be called `search`, so `/tokens/search` also takes what `/tokens/:id` takes.
    const allowed = known.filter((route) => covers(route.path, path)).map(({ method }) => method);
    const head = allowed.includes('GET') ? ['HEAD'] : [];
    const allow = [...new Set([...allowed, ...head])].sort().join(', ');
    app.route({
      method: methods.filter((method) => !allowed.includes(method)),
      url: path,
      // Before the body is read, which may have a type that no route supports.
      onRequest: async () => {
        throw new VaultError('method_not_allowed', {
          public: `This path supports ${allow}.`,
          headers: { allow },
        });
      },
      handler: () => undefined,
    });
  }
}

/** True when every path of `pattern` is one of `wider`, where `:name` matches any one segment. */
function covers(wider: string, pattern: string): boolean {
  const segments = pattern.split('/');
  const others = wider.split('/');
  if (others.length !== segments.length) return false;
  return others.every((other, at) => other.startsWith(':') || other === segments[at]);
}
