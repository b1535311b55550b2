/** Random policies for tests over HTTP, from few containers so that rules and tokens meet often. */
import type { Transform } from '../../src/rules/policy.ts';
import type { PolicyWords } from './access-model.ts';
import type { Below } from './random.ts';

/** Nested, beginning alike, and in several cases. */
export const containers = ['/', '/a/', '/A/b/', '/a/B/', '/a/b/c/', '/a/bb/', '/ab/', '/z/'];

export const transforms: readonly Transform[] = ['redact', 'mask', 'reveal'];

/** Begins like none of them, and holds no token. */
export const elsewhere = '/elsewhere/';

export interface RandomPolicy {
  readonly type: 'public' | 'private';
  readonly words: PolicyWords;
}

const held = {
  public: ['token:create', 'token:update'],
  private: [
    'token:create',
    'token:read',
    'token:update',
    'token:search',
    'token:delete',
    'token:use',
    'proxy:invoke',
    'reactor:invoke',
  ],
};

/** One rule, for a caller whose requests have an outcome that is known. */
export function rulesFor(rule: {
  readonly permissions?: readonly string[];
  readonly container: string;
  readonly transform?: Transform;
}): PolicyWords {
  const every = { permissions: held.private, transform: 'reveal' } as const;
  return { permissions: [], rules: [{ priority: 1, ...every, ...rule }] };
}

export function pick<T>(below: Below, from: readonly T[]): T {
  return from[below(from.length)] as T;
}

export function randomPolicy(below: Below): RandomPolicy {
  const type = below(5) === 0 ? 'public' : 'private';
  const some = (chances: number) => held[type].filter(() => below(chances) > 0);
  const priorities = Array.from({ length: 6 }, (_, index) => index + 1).toSorted(
    () => below(3) - 1,
  );
  const rules = Array.from({ length: below(6) }, (_, index) => ({
    priority: priorities[index] ?? index + 1,
    container: pick(below, containers),
    permissions: atLeastOne(some(3), held[type][below(2)]),
    transform: pick(below, transforms),
  }));
  const permissions = below(4) === 0 || rules.length === 0 ? some(2) : [];
  return {
    type,
    words: { permissions: atLeastOne(permissions, rules[0] ? undefined : 'token:create'), rules },
  };
}

function atLeastOne(some: string[], otherwise: string | undefined): string[] {
  return some.length === 0 && otherwise !== undefined ? [otherwise] : some;
}
