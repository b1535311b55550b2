/** The reference model of access: the documented rules word by word, sharing no code with the vault. */
import type { WireRule } from '../../src/rules/access-rules.ts';
import type { Condition, Transform } from '../../src/rules/policy.ts';

/** What a caller sends: the model reads it as it stands, the vault after parsing. */
export interface PolicyWords {
  readonly permissions: readonly string[];
  readonly rules: readonly WireRule[];
}

export interface ModelToken {
  readonly id: string | undefined;
  readonly container: string;
}

export const impliedTransforms: Readonly<Record<string, Transform>> = {
  'token:create': 'mask',
  'token:update': 'mask',
  'token:read': 'mask',
  'token:search': 'mask',
  'token:delete': 'redact',
  'token:use': 'reveal',
  'proxy:invoke': 'reveal',
  'reactor:invoke': 'reveal',
};

/** The transform of the permission on the token; `undefined` where it is not held. */
export function transformOf(
  words: PolicyWords,
  permission: string,
  token: ModelToken,
): Transform | undefined {
  let best: WireRule | undefined;
  for (const rule of words.rules) {
    if (!rule.permissions.includes(permission) || !applies(rule, token)) continue;
    if (best === undefined || rule.priority < best.priority) best = rule;
  }
  if (best !== undefined) return best.transform;
  return words.permissions.includes(permission) ? impliedTransforms[permission] : undefined;
}

function applies(rule: WireRule, token: ModelToken): boolean {
  if (rule.container != null) return isAncestorOrEqual(rule.container, token.container);
  return (rule.conditions ?? []).every((condition) => isTrue(condition, token));
}

function isAncestorOrEqual(outer: string, inner: string): boolean {
  const [outerNames, innerNames] = [segments(outer), segments(inner)];
  return outerNames.every((name, index) => name === innerNames[index]);
}

function segments(path: string): string[] {
  return path.toLowerCase().split('/').filter(Boolean);
}

function isTrue({ attribute, operator, value }: Condition, token: ModelToken): boolean {
  if (attribute === 'container') {
    if (operator === 'starts_with') return isAncestorOrEqual(value, token.container);
    return token.container.toLowerCase() === value.toLowerCase();
  }
  if (token.id === undefined) return false;
  return operator === 'equals' ? token.id === value : token.id.indexOf(value) === 0;
}

/** From nothing to everything. */
export function sightOf(transform: Transform | undefined): number {
  return [undefined, 'redact', 'mask', 'reveal'].indexOf(transform);
}

export interface Prediction {
  readonly allowed: boolean;
  /** What a 403 has to name. */
  readonly names: readonly string[];
  /** Under which the response shows the token; `undefined` where it shows none of its contents. */
  readonly sight: Transform | undefined;
}

const refused = (...names: string[]): Prediction => ({ allowed: false, names, sight: undefined });

/** What may be computed from a value, and shown or compared afterwards. */
const expressions = ['id', 'mask', 'fingerprint_expression', 'search_indexes'];

export interface ModelUpdate {
  readonly token: ModelToken;
  readonly patch: Readonly<Record<string, unknown>>;
  /** True when the patch brings the whole value. */
  readonly brings: boolean;
}

/** `PATCH /tokens/{id}`, also where it moves the token. */
export function predictUpdate(
  words: PolicyWords,
  { token, patch, brings }: ModelUpdate,
): Prediction {
  const [to = token.container] = (patch['containers'] ?? []) as string[];
  const places = [token, { ...token, container: to }] as const;
  const [before, after] = places.map((place) => transformOf(words, 'token:read', place));
  const seeing = ['token:read', 'token:search', 'token:use', 'proxy:invoke', 'reactor:invoke'];
  const gained = seeing.find((permission) => {
    const [here, there] = places.map((place) => sightOf(transformOf(words, permission, place)));
    return (there ?? 0) > (here ?? 0);
  });
  if (places.some((place) => transformOf(words, 'token:update', place) === undefined)) {
    return refused('token:update');
  }
  const changed = Object.keys(patch).filter((name) => expressions.includes(name));
  if (changed.length > 0 && !brings && before !== 'reveal')
    return refused(...changed, 'token:read');
  if (gained !== undefined) return refused('containers', gained);
  return { allowed: true, names: [], sight: after };
}

/** `POST /tokens` with `token_intent_id`, whose value somebody else brought. */
export function predictConversion(
  words: PolicyWords,
  request: Readonly<Record<string, unknown>>,
): Prediction {
  const [container = '/'] = request['containers'] as string[];
  const place = { id: undefined, container };
  const read = transformOf(words, 'token:read', place);
  if (transformOf(words, 'token:create', place) === undefined) return refused('token:create');
  const evaluated = expressions.filter((name) => isExpression(name, request[name]));
  if (evaluated.length > 0 && read !== 'reveal') return refused(...evaluated, 'token:read');
  return { allowed: true, names: [], sight: read };
}

function isExpression(name: string, value: unknown): boolean {
  if (value === undefined) return false;
  const looksAtData = JSON.stringify(value).includes('{{');
  return name === 'id' || name === 'mask' ? looksAtData : true;
}

/** What the response to a creation says of the token that already holds the same value. */
export function predictDeduplication(
  words: PolicyWords,
  { requested, existing }: { readonly requested: string; readonly existing: ModelToken },
): Prediction & { readonly holdsAnything: boolean } {
  const here = { id: undefined, container: requested };
  const holdsAnything = Object.keys(impliedTransforms).some(
    (permission) => transformOf(words, permission, existing) !== undefined,
  );
  const sight = transformOf(words, 'token:read', existing);
  const allowed = transformOf(words, 'token:create', here) !== undefined;
  return { allowed, names: allowed ? [] : ['token:create'], sight, holdsAnything };
}

/** The status of a line of `POST /tokens/bulk` whose id a token has that the caller itself made. */
export function predictRepetition(
  words: PolicyWords,
  { token, sameValue }: { readonly token: ModelToken; readonly sameValue: boolean },
): 200 | 403 | 409 {
  if (transformOf(words, 'token:create', token) === undefined) return 403;
  return sameValue && transformOf(words, 'token:read', token) === 'reveal' ? 200 : 409;
}

/** A call of a proxy with the token in it, to a host that an administrator chose or that the caller names. */
export function predictSending(
  words: PolicyWords,
  { token, described }: { readonly token: ModelToken; readonly described: boolean },
): Prediction {
  const serving = described ? ['proxy:invoke'] : ['proxy:invoke', 'token:use'];
  if (!serving.some((permission) => isHeld(words, permission))) return refused('proxy:invoke');
  const covers = (permission: string) => transformOf(words, permission, token) !== undefined;
  if (!serving.some(covers)) return refused('proxy:invoke', token.id ?? '');
  return { allowed: true, names: [], sight: undefined };
}

/** A call of a reactor, with the token in what its code is given, or with none. */
export function predictReacting(words: PolicyWords, token: ModelToken | undefined): Prediction {
  const serving = ['reactor:invoke', 'token:use'];
  if (!serving.some((permission) => isHeld(words, permission))) return refused('reactor:invoke');
  const covers = (permission: string) =>
    token === undefined || transformOf(words, permission, token) !== undefined;
  if (!serving.some(covers)) return refused('reactor:invoke', token?.id ?? '');
  return { allowed: true, names: [], sight: 'reveal' };
}

/** By some rule, or plainly. */
function isHeld({ permissions, rules }: PolicyWords, permission: string): boolean {
  return (
    permissions.includes(permission) || rules.some((rule) => rule.permissions.includes(permission))
  );
}
