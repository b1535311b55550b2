/** What a kept answer about tokens may still say once a card code or a whole token is gone. */
import type { Instant } from '../lib/clock.ts';
import type { Row } from '../store/tables.ts';
import type { Reply, ReplyBody } from './perform.ts';
import { hasExpired } from './token-contents.ts';
import { type TokenBody, withoutContents } from './view.ts';

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
  const at = endsOf(tokens.map(({ row }) => row));
  if (at.length === 0) return {};
  const viewThen = (instant: Instant) =>
    tokens.map(({ row, viewAt }) =>
      hasExpired(row, instant) ? withoutContents(viewAt(instant)) : viewAt(instant),
    );
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
