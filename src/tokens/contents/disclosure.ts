/**
 * Disclosure: no action of a caller makes the vault disclose more of a value than the caller's own
 * transform for `token:read` on that token. Every operation that could is decided here.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Container } from '../../base/container.ts';
import { VaultError } from '../../base/errors.ts';
import { isObject, type Json } from '../../base/json.ts';
import type { Caller } from '../../rules/caller.ts';
import { type Permission, permissions } from '../../rules/permissions.ts';
import {
  type AccessSubject,
  decide,
  type Grant,
  type Policy,
  showsAsMuch,
} from '../../rules/policy.ts';
import type { Shown } from '../../store/log-chain/disclosure.ts';
import type { Row } from '../../store/tables.ts';
import { type Contents, contentsOfRow, type TokenPatch, type TokenRequest } from './contents.ts';
import { type TokenType, type TokenTypeName, tokenTypes } from './token-types.ts';

/** The attributes whose expressions are evaluated over the value, and so may show any part of it. */
const definitions = ['mask', 'fingerprint_expression', 'search_indexes'] as const;

/** The grant under which the caller sees a token, whatever other permission it came with. */
export function readGrant(policy: Policy, subject: AccessSubject): Grant | undefined {
  return decide(policy, 'token:read', subject);
}

function mayReveal(policy: Policy, subject: AccessSubject): boolean {
  return readGrant(policy, subject)?.transform === 'reveal';
}

/** A 403 for a patch that defines how a value is shown that the request does not bring itself. */
export function undisclosedPatch(
  policy: Policy,
  subject: AccessSubject,
  { patch, type }: { readonly patch: TokenPatch; readonly type: string },
): VaultError | undefined {
  const readable = readGrant(policy, subject) !== undefined;
  const brought = bringsValue(type as TokenTypeName, patch.data);
  const defined = definitions.filter(
    (attribute) =>
      patch[attribute] !== undefined &&
      !(brought && (readable || attribute === 'mask' || !mayReadMetadata(patch[attribute]))),
  );
  if (defined.length === 0 || mayReveal(policy, subject)) return undefined;
  return lacksReveal(defined);
}

/**
 * How a patch has shown the token. A mask of its own over a value that it does not bring may show all of it, whatever
 * the transform is in the container to which the patch moves the token.
 */
export function shownByPatch(
  shown: Shown,
  { patch, type }: { readonly patch: TokenPatch; readonly type: string },
): Shown {
  const brought = bringsValue(type as TokenTypeName, patch.data);
  return shown === 'masked' && patch.mask !== undefined && !brought ? 'revealed' : shown;
}

/**
 * True if the outcome of a patch may depend on the value that is stored: by expressions of the caller's own, or by
 * those of the token over metadata that the caller chooses.
 */
export function testsValue(
  policy: Policy,
  subject: AccessSubject,
  { patch, type }: { readonly patch: TokenPatch; readonly type: string },
): boolean {
  return mayReveal(policy, subject) && !bringsValue(type as TokenTypeName, patch.data);
}

/**
 * Metadata stays when the value is replaced, and a fingerprint can reveal each character of it. An
 * expression may name it, or look up a computed name: `{{ [data] }}`. Masks see data alone.
 */
function mayReadMetadata(expressions: Json | readonly string[] | undefined): boolean {
  return [expressions].flat().some((text) => typeof text === 'string' && /metadata|\[/.test(text));
}

/** The attributes of a conversion with expressions of the caller's own over the value. */
export function evaluatedIn(request: TokenRequest): readonly string[] {
  return (['id', ...definitions] as const).filter(
    // A constant reveals nothing of the value, but as a fingerprint it makes the value equal to any other.
    (name) =>
      evaluates(request[name]) || (name === 'fingerprint_expression' && request[name] != null),
  );
}

/** A 403 for expressions of the caller's own over the value of a token intent. */
export function undisclosedConversion(
  policy: Policy,
  subject: AccessSubject,
  request: TokenRequest,
): VaultError | undefined {
  const evaluated = evaluatedIn(request);
  if (evaluated.length === 0 || mayReveal(policy, subject)) return undefined;
  return lacksReveal(evaluated);
}

/** A token, and whether it has a mask, a fingerprint expression or search indexes of its own. */
export interface DefinedToken extends Pick<Row<'tokens'>, 'token_id' | 'container'> {
  readonly defined: boolean;
}

export function definedToken(row: Row<'tokens'>): DefinedToken {
  const { token_id, container } = row;
  const defined = [row.mask, row.fingerprint_expression, row.search_indexes];
  return { token_id, container, defined: defined.some((one) => one !== null) };
}

/**
 * True if the value of an intent may be merged into a token. False if the caller, who may have made
 * the token, defined what is shown of it.
 */
export function mayTakeIntent(
  policy: Policy,
  { token_id: id, container, defined }: DefinedToken,
): boolean {
  return !defined || mayReveal(policy, { id, container });
}

/**
 * True if the value of a request may be merged into an equal token: if that shows no more of the value than
 * the request's own container and definitions would, or if its caller sees all of the token anyway. An attacker may
 * have created the token in a container that they can read, or with a mask, to catch later values.
 */
export function mayTakeData(policy: Policy, row: Row<'tokens'>, wanted: Contents): boolean {
  if (mayReveal(policy, { id: row.token_id, container: row.container })) return true;
  return isDeepStrictEqual(shownOf(contentsOfRow(row, null)), shownOf(wanted));
}

/** The attributes that decide which callers see a token, and how much of it. */
function shownOf({ container, mask, fingerprintExpression, searchIndexes }: Contents) {
  return [container, mask, fingerprintExpression, searchIndexes];
}

/**
 * A 403 for a move to where the caller would see, search or use more of the token than it does now. A
 * session moves for the application that authorized it, which could grant it the move without the
 * reading, and then read for itself.
 */
export function undisclosedMove(
  { policy, authorizer }: Pick<Caller, 'policy' | 'authorizer'>,
  from: AccessSubject,
  to: AccessSubject,
): VaultError | undefined {
  const takenIds = [
    { name: 'key', gained: gainedBy(policy, from, to) },
    {
      name: 'application that authorized the session',
      gained: authorizer && gainedBy(authorizer, from, to),
    },
  ];
  const holder = takenIds.find(({ gained }) => gained !== undefined);
  if (holder === undefined) return undefined;
  const { name, gained } = holder;
  const form = `must not be a container in which the ${name} sees more of the token through ${gained}`;
  return new VaultError('forbidden', {
    public: `The ${name} would see more of the token in its new container through ${gained}.`,
    errors: { containers: [form] },
  });
}

/**
 * A 403 for a token of data that a client encrypted, which its caller has not seen. It is decided as if the token
 * were created in each container whose rules decide about the data, and moved from there: otherwise the caller could
 * read everything that was ever encrypted, in a container of its own choice.
 * @param homes see `containersOf` in `recognized.ts`.
 */
export function undisclosedPlacement(
  caller: Pick<Caller, 'policy' | 'authorizer'>,
  place: AccessSubject,
  homes: readonly Container[],
): VaultError | undefined {
  for (const container of homes) {
    const home = { ...place, container };
    if (!decide(caller.policy, 'token:create', home)) {
      return new VaultError('forbidden', {
        public: `The key lacks the permission token:create in ${container}, whose rules decide about the data.`,
      });
    }
    const moved = container !== place.container && undisclosedMove(caller, home, place);
    if (moved) return moved;
  }
  return undefined;
}

/** The permission through which a move shows more of the token to a holder of the policy. */
function gainedBy(policy: Policy, from: AccessSubject, to: AccessSubject): Permission | undefined {
  return shownBy.find((permission) => {
    const after = decide(policy, permission, to);
    if (after === undefined) return false;
    const before = decide(policy, permission, from);
    return before === undefined || !showsAsMuch(before.transform, after.transform);
  });
}

/** Creating and updating show the values that the caller itself sent, or that reading shows. */
const shownBy = (Object.keys(permissions) as Permission[]).filter(
  (permission) =>
    permissions[permission].impliedTransform !== undefined &&
    permission !== 'token:create' &&
    permission !== 'token:update',
);

/**
 * True if no part of an earlier value can remain after the patch. Only the patch decides this:
 * the stored value must not influence the response.
 */
function bringsValue(type: TokenTypeName, data: Json | undefined): boolean {
  if (data === undefined || data === null) return false;
  if (!isObject(data)) return true;
  const { properties }: TokenType = tokenTypes[type];
  return properties?.every((property) => Object.hasOwn(data, property)) === true;
}

/** True of a definition or an id that has an expression, also where that is constant. */
function evaluates(attribute: Json | readonly string[] | undefined): boolean {
  return attribute !== undefined && /\{[{%]/.test(JSON.stringify(attribute));
}

function lacksReveal(attributes: readonly string[]): VaultError {
  const needed = 'the permission token:read with the transform reveal';
  return new VaultError('forbidden', {
    public: `The key lacks ${needed} here, which ${attributes.join(', ')} needs.`,
    errors: Object.fromEntries(attributes.map((name) => [name, [`needs ${needed}`]])),
  });
}
