/** What a kept answer about tokens may still say once a card code or a whole token is gone. */
import type { Instant } from '../lib/clock.ts';
import type { Row } from '../store/tables.ts';
import type { Reply, ReplyBody } from './perform.ts';
import { hasExpired } from './token-contents.ts';
import { type TokenBody, withoutContents } from './view.ts';

/** As many as one token can have: the end of its card code, and its own. */
const instantsMax = 2;

type Mortal = Pick<Row<'tokens'>, 'expires_at' | 'code_expires_at'>;

/**
 * For the answer of a request that changed a token: the same view of it as it will be then.
 * Spread into the reply.
 */
export function fadingToken(
  row: Row<'tokens'>,
  viewAt: (instant: Instant) => TokenBody,
): Pick<Reply, 'fading'> {
  return fadingTokens([{ row, viewAt }], ([body]) => body ?? null);
}

/** The same for an answer made of several tokens. */
export function fadingTokens(
  tokens: readonly { row: Row<'tokens'>; viewAt: (instant: Instant) => TokenBody }[],
  bodyOf: (views: readonly TokenBody[]) => ReplyBody,
): Pick<Reply, 'fading'> {
  const at = [...new Set(endsOf(tokens.map(({ row }) => row)))].toSorted((a, b) => a - b);
  const [first, last] = [at[0], at.at(-1)];
  if (first === undefined || last === undefined) return {};
  const viewThen = (instant: Instant) =>
    tokens.map(({ row, viewAt }) =>
      hasExpired(row, instant) ? withoutContents(viewAt(instant)) : viewAt(instant),
    );
  // Views of many tokens at many times would be many; then all that will go goes with the first.
  if (at.length > instantsMax)
    return { fading: { at: [first], bodyAt: () => bodyOf(viewThen(last)) } };
  return { fading: { at, bodyAt: (instant) => bodyOf(viewThen(instant)) } };
}

/** For the answer of a request that only read tokens. */
export function fadingReads(rows: readonly Mortal[]): Pick<Reply, 'fading'> {
  const at = endsOf(rows);
  return at.length === 0 ? {} : { fading: { at } };
}

function endsOf(rows: readonly Mortal[]): Instant[] {
  return rows.flatMap(({ expires_at, code_expires_at }) =>
    [code_expires_at, expires_at].filter((at) => at !== null),
  );
}
