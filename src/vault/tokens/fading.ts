/** What a kept answer about tokens may still say once a card code or a whole token is gone. */
import type { Instant } from '../../lib/clock.ts';
import type { Row } from '../../store/tables.ts';
import type { Grant } from '../access/access.ts';
import type { Reply, ReplyBody, ShownToken } from '../perform.ts';
import { hasExpired } from './contents.ts';
import { type TokenBody, withoutContents } from './view.ts';

/** As many as one token can have: the end of its card code, and its own. */
const instantsMax = 2;

/** A token that was made or changed, as the answer tells of it. */
interface ToldToken {
  readonly row: Row<'tokens'>;
  readonly grant: Grant | undefined;
  readonly viewAt: (instant: Instant) => TokenBody;
}

/** For the answer of a request that changed a token, which is its body. Spread into the reply. */
export function fadingToken(token: ToldToken): Pick<Reply, 'fading' | 'tokens'> {
  return fadingTokens([token], ([body]) => body ?? null);
}

/** The same for an answer made of several tokens. */
export function fadingTokens(
  shown: readonly ToldToken[],
  bodyOf: (views: readonly TokenBody[]) => ReplyBody,
): Pick<Reply, 'fading' | 'tokens'> {
  const tokens = { shown, bodyOf };
  const at = [...new Set(endsOf(shown))].toSorted((a, b) => a - b);
  const [first, last] = [at[0], at.at(-1)];
  if (first === undefined || last === undefined) return { tokens };
  const viewThen = (instant: Instant) =>
    shown.map(({ row, viewAt }) =>
      hasExpired(row, instant) ? withoutContents(viewAt(instant)) : viewAt(instant),
    );
  // Views of many tokens at many times would be many; then all that will go goes with the first.
  const fading =
    at.length > instantsMax
      ? { at: [first], bodyAt: () => bodyOf(viewThen(last)) }
      : { at, bodyAt: (instant: Instant) => bodyOf(viewThen(instant)) };
  return { tokens, fading };
}

/** For the answer of a request that only read tokens. */
export function fadingReads(shown: readonly ShownToken[]): Pick<Reply, 'fading' | 'tokens'> {
  const at = endsOf(shown);
  return { tokens: { shown }, ...(at.length > 0 && { fading: { at } }) };
}

function endsOf(shown: readonly ShownToken[]): Instant[] {
  return shown.flatMap(({ row }) =>
    [row.code_expires_at, row.expires_at].filter((at) => at !== null),
  );
}
