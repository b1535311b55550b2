/** What a request attempts, as far as its route shows. */
import type { AttemptedOperation } from './log-entries.ts';

export interface AttemptedRoute {
  readonly permission: string;
  readonly method: string;
  readonly path: string;
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'update',
  DELETE: 'delete',
};

/** By its permission, else by method and path. */
export function attemptOf({
  permission,
  method,
  path,
}: AttemptedRoute): Omit<AttemptedOperation, 'id'> {
  const [noun = '', verb] = /^[a-z-]+(?::[a-z-]+)+$/.test(permission)
    ? permission.split(/:(?=[^:]*$)/)
    : path.split('/').slice(1);
  const operation = verb && /^[a-z]+$/.test(verb) ? verb : (verbs[method] ?? 'read');
  return { entity: noun.replaceAll(/[-:]/g, '_').replace(/s$/, ''), operation };
}
