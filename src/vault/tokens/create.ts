/** Creating a token, or finding the one that already holds the same value. */
import assert from 'node:assert/strict';
import type { Caller } from '../../rules/caller.ts';
import type { Decide } from '../../rules/operation.ts';
import type { TokenRequest } from '../../values/contents.ts';
import { createTokens, type TokenWriting } from './create-many.ts';
import { deduplicatesTokens } from './prepare.ts';
import { changedToken } from './reply-expiry.ts';

/** From the decision `validation_failed`, and `conflict` when the id is taken. */
export function createToken(tools: TokenWriting, caller: Caller, request: TokenRequest): Decide {
  return createTokens(tools, caller, {
    requests: [{ request, path: '' }],
    replyFor: ([created], now) => {
      assert(created !== undefined, 'one request makes one token');
      const { row, viewAt } = created;
      return {
        status: 201,
        location: `/tokens/${encodeURIComponent(row.token_id)}`,
        body: viewAt(now),
        ...changedToken(created),
      };
    },
  });
}

/**
 * Where every create of one value changes the token that the first one made, they wait for one
 * another; otherwise each would have to decide again for every other.
 */
export function serialKeyOfCreation(caller: Caller, request: TokenRequest): string | undefined {
  const { id, settings } = caller.tenant;
  if (settings.token_deduplication_behavior !== 'update_existing') return undefined;
  if (!deduplicatesTokens(caller, request.deduplicate_token)) return undefined;
  return `${id} ${request.type} ${JSON.stringify(request.data)}`;
}
