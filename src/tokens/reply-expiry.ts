/** What a stored response about tokens may still show once a card code or a whole token has expired. */
import type { Instant } from '../base/clock.ts';
import type { Grant } from '../rules/policy.ts';
import type { Reply, ReplyBody, ShownToken, TokenBody } from '../rules/reply.ts';
import type { Row } from '../store/tables.ts';
import { hasExpired } from './contents/contents.ts';
import { withoutContents } from './contents/view.ts';

/** As many as one token can have: the end of its card code, and its own. */
const instantsMax = 2;

/** A token that was created or changed, as the response shows it. */
interface ChangedToken {
  readonly row: Row<'tokens'>;
  readonly grant: Grant | undefined;
  readonly viewAt: (instant: Instant) => TokenBody;
}

/** For the response of a request that changed a token, which is its body. Spread into the reply. */
export function changedToken(token: ChangedToken): Pick<Reply, 'expiry' | 'tokens'> {
  return changedTokens([token], ([body]) => body ?? null);
}

/** The same for a response made of several tokens. */
export function changedTokens(
  shown: readonly ChangedToken[],
  bodyOf: (views: readonly TokenBody[]) => ReplyBody,
): Pick<Reply, 'expiry' | 'tokens'> {
  const tokens = { shown, bodyOf };
  const at = [...new Set(endsOf(shown))].toSorted((a, b) => a - b);
  const [first, last] = [at[0], at.at(-1)];
  if (first === undefined || last === undefined) return { tokens };
  const viewThen = (instant: Instant) =>
    shown.map(({ row, viewAt }) =>
      hasExpired(row, instant) ? withoutContents(viewAt(instant)) : viewAt(instant),
    );
  // Views of many tokens at many times would be many; then all that will go goes with the first.
  const expiry =
    at.length > instantsMax
      ? { at: [first], bodyAt: () => bodyOf(viewThen(last)) }
      : { at, bodyAt: (instant: Instant) => bodyOf(viewThen(instant)) };
  return { tokens, expiry };
}

/** For the response of a request that only read tokens. */
export function readTokens(shown: readonly ShownToken[]): Pick<Reply, 'expiry' | 'tokens'> {
  const at = endsOf(shown);
  return { tokens: { shown }, ...(at.length > 0 && { expiry: { at } }) };
}

function endsOf(shown: readonly ShownToken[]): Instant[] {
  return shown.flatMap(({ row }) =>
    [row.code_expires_at, row.expires_at].filter((at) => at !== null),
  );
}
