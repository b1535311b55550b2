/** One token that a request creates: checked, with its fingerprint and the ids it may get. */

import type { OpenedValue } from '../access/client-keys/open-encrypted.ts';
import type { Clock } from '../base/clock.ts';
import type { Container } from '../base/container.ts';
import { invalid, type VaultError } from '../base/errors.ts';
import { parseTokenId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { attemptAt } from '../base/validation-errors.ts';
import type { Evaluation } from '../expressions/evaluation/evaluation.ts';
import type { Caller } from '../rules/caller.ts';
import { openerFor } from '../rules/openings.ts';
import { decide } from '../rules/policy.ts';
import { lacksPermission } from '../rules/refusal.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import { type Contents, contentsOfRequest, type TokenRequest } from './contents/contents.ts';
import { evaluatedIn, undisclosedConversion, undisclosedPlacement } from './contents/disclosure.ts';
import { containersOf, recognizedIn } from './contents/recognized.ts';
import type { OpenedData } from './contents/sealed-row.ts';
import { drawTokenIds, type TokenIds } from './contents/token-id.ts';
import { parseTokenType, tokenTypes } from './contents/token-types.ts';
import {
  countGuesses,
  type Guess,
  type Guessing,
  guessOf,
  tooManyGuesses,
} from './guesses/guesses.ts';
import { containersOfIntent, dataForToken } from './intents/row.ts';

export interface RequestedToken {
  readonly request: TokenRequest;
  /** Its place in the body, for messages; empty when it is the body. */
  readonly path: string;
}

export interface PreparedToken {
  readonly path: string;
  readonly contents: Contents;
  /** Whether the response is an existing token with the same value, if there is one. */
  readonly deduplicates: boolean;
  readonly fingerprint: string | null;
  /** What the fingerprint is under the other keys that live, of which stored tokens may have one. */
  readonly otherFingerprints: readonly string[];
  /** The fingerprint under which a new deduplication target claims the value; see `Keyring.overlappedSecret`. */
  readonly claim: string | undefined;
  readonly ids: TokenIds;
  /** The response does not mention deduplication. */
  readonly isReticent?: true;
  /** The token intent that is converted. */
  readonly intent: Row<'token_intents'> | undefined;
  /** The value that a client encrypted, from which the token is made. */
  readonly opened: OpenedValue | undefined;
}

type FingerprintedPart = 'fingerprint' | 'otherFingerprints' | 'claim' | 'isReticent';

/** A token whose fingerprint no caller may learn before {@link admitTokens} has counted it. */
export interface UncountedToken extends Omit<PreparedToken, FingerprintedPart> {
  readonly guess: Guess | undefined;
  /** Its id is made of its data. */
  readonly hasOwnId: boolean;
}

export interface TokenPreparation {
  readonly clock: Clock;
  readonly random: Random;
  /** For the expressions of all tokens that are created together or not at all. */
  readonly evaluation: Evaluation;
}

export interface CheckedToken extends RequestedToken {
  readonly contents: Contents;
  /** The token intent that is converted. */
  readonly intent: Row<'token_intents'> | undefined;
  /** The value that a client encrypted, from which the token is made. */
  readonly opened: OpenedValue | undefined;
}

/** Where the data of a token comes from that its request does not bring in the clear. */
export interface DataSource {
  readonly intent?: Unproven<'token_intents'>;
  readonly opened?: OpenedValue;
}

/**
 * The first half, which compiles the expressions. To evaluate them is the other, so that callers may let
 * others in between the two.
 *
 * @throws VaultError `validation_failed` naming every attribute that is wrong below its path.
 */
export function checkToken(
  { clock }: TokenPreparation,
  caller: Caller,
  { request, path }: RequestedToken,
  { intent, opened }: DataSource = {},
): CheckedToken {
  return attemptAt(path, () => {
    const converted = intent && converting(caller, request, intent);
    const type = converted && { type: converted.row.type };
    const data = converted?.data ?? opened?.data;
    const whole = { ...request, ...type, ...(data && { data: data.reveal() }) };
    const contents = contentsOfRequest(whole, clock);
    return { request, path, contents, intent: converted?.row, opened };
  });
}

/**
 * @throws VaultError naming attributes below its path: `validation_failed` with every one that is wrong,
 * `forbidden` where expressions are evaluated over an intent that the caller may not reveal.
 */
export function prepareToken(
  { random, evaluation }: TokenPreparation,
  caller: Caller,
  { request, path, contents, intent, opened }: CheckedToken,
): UncountedToken {
  return attemptAt(path, () => {
    if (intent ?? opened) {
      const place = { container: contents.container, homes: homesOf({ contents, intent, opened }) };
      const refusal = refusalOfForeign(caller, request, place);
      if (refusal) throw refusal;
    }
    const evaluated = { contents, evaluation };
    const deduplicates = deduplicatesTokens(caller, request.deduplicate_token);
    const disclosed = intent?.fingerprint;
    const guess =
      deduplicates || fingerprintsTokens(caller, request.fingerprint_expression)
        ? guessOf(caller, evaluated, { request, disclosed })
        : undefined;
    const ids = drawTokenIds(request.id ?? undefined, evaluated, random);
    const hasOwnId = /\{[{%]/.test(request.id ?? '');
    return { path, contents, deduplicates, guess, ids, hasOwnId, intent, opened };
  });
}

/**
 * The tokens as they may be created. A token that exceeds the limit of guesses is created without a
 * fingerprint, so that nothing reveals whether its value is stored already. If its id is made of its data, whose
 * conflict would reveal that, `too_many_requests` takes its place.
 */
export async function admitTokens(
  guessing: Guessing,
  caller: Caller,
  all: readonly UncountedToken[],
): Promise<readonly (PreparedToken | VaultError)[]> {
  const guesses = all.flatMap(({ guess }) => guess ?? []);
  const counting = countGuesses(guessing, caller, guesses);
  if (counting) await counting;
  return all.map((token) => {
    const { guess, hasOwnId } = token;
    if (guess === undefined) return { ...token, ...unfingerprinted };
    const { learned, others, claim } = guess;
    if (learned !== null) {
      return { ...token, fingerprint: learned, otherFingerprints: others, claim };
    }
    if (hasOwnId) return tooManyGuesses('created with an id that is made of them');
    return { ...token, ...unfingerprinted, deduplicates: false, isReticent: true as const };
  });
}

const unfingerprinted = { fingerprint: null, otherFingerprints: [], claim: undefined };

/** The target of a token whose value its caller does not send in the clear. */
export interface ForeignPlace {
  readonly container: Container;
  /** The containers whose rules decide about the value, if a client encrypted it. */
  readonly homes: readonly Container[];
}

/**
 * Why the caller may not make the token of a value that it does not bring itself in the clear: it may not
 * create there, would see more of it there, or defines how a value is shown that it may not see.
 */
export function refusalOfForeign(
  caller: Caller,
  request: TokenRequest,
  { container, homes }: ForeignPlace,
): VaultError | undefined {
  const { policy } = caller;
  const place = { id: parseTokenId(request.id ?? ''), container };
  if (!decide(policy, 'token:create', place)) return lacksPermission('token:create');
  return (
    undisclosedPlacement(caller, place, homes) ?? undisclosedConversion(policy, place, request)
  );
}

/** An intent made from an encrypted value is decided like that value. */
function homesOf({
  contents: { type, data },
  intent,
  opened,
}: Pick<PreparedToken, 'contents' | 'intent' | 'opened'>): readonly Container[] {
  if (intent) return intent.client_key_id === null ? [] : containersOfIntent(intent);
  return opened ? containersOf(type, recognizedIn(data)) : [];
}

/** True where the value was brought by another request, or by another party. */
export function isForeign({ intent, opened }: Pick<PreparedToken, 'intent' | 'opened'>): boolean {
  return intent !== undefined || opened !== undefined;
}

/** The intent whose value the request takes over, as if it had sent it. */
function converting(
  caller: Caller,
  request: TokenRequest,
  intent: Unproven<'token_intents'>,
): OpenedData<Row<'token_intents'>> {
  if ((request.type ?? undefined) !== undefined || (request.data ?? undefined) !== undefined) {
    throw invalid('token_intent_id', 'cannot be combined with type and data');
  }
  const isTested = evaluatedIn(request).length > 0;
  return dataForToken(openerFor(caller, 'token:create', isTested), intent);
}

/** The request decides; if it does not, the tenant's setting does. */
export function deduplicatesTokens(caller: Caller, requested: boolean | null | undefined): boolean {
  return requested ?? caller.tenant.settings.deduplicate_tokens === 'true';
}

/** An expression is an order for a fingerprint, also that of the type. */
export function fingerprintsTokens(caller: Caller, expression: string | null | undefined): boolean {
  return typeof expression === 'string' || caller.tenant.settings.fingerprint_tokens === 'true';
}

type FingerprintedToken = Pick<Row<'tokens'>, 'type' | 'fingerprint' | 'fingerprint_expression'>;

/**
 * Equal in two tokens to deduplication: one expression gave both the same fingerprint. The creator of a
 * token chooses its expression, which may be constant, and so can give it the fingerprint of any value.
 */
export function equalityOf(token: FingerprintedToken): string | undefined {
  const type = parseTokenType(token.type);
  if (token.fingerprint === null || type === undefined) return undefined;
  return `${token.fingerprint} ${token.fingerprint_expression ?? tokenTypes[type].fingerprint}`;
}

/** The same of a token that is to be created; `undefined` where it is not to be deduplicated. */
export function equalityWanted(prepared: PreparedToken): string | undefined {
  return prepared.deduplicates ? equalityOf(fingerprintedAs(prepared)) : undefined;
}

function fingerprintedAs({ contents, fingerprint }: PreparedToken): FingerprintedToken {
  const fingerprint_expression = contents.fingerprintExpression ?? null;
  return { type: contents.type, fingerprint, fingerprint_expression };
}
