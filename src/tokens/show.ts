/** Showing stored tokens: what a caller sees of each, and the entries in the log for what it sees. */

import type { Instant } from '../base/clock.ts';
import { createPause } from '../base/pauses.ts';
import type { Evaluation } from '../expressions/evaluation/evaluation.ts';
import type { Caller } from '../rules/caller.ts';
import { openerFor } from '../rules/openings.ts';
import { decide } from '../rules/policy.ts';
import type { ShownToken, TokenBody } from '../rules/reply.ts';
import type { Through } from '../store/log-chain/disclosure.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Unproven } from '../store/stored-row.ts';
import { readEntry } from './contents/read-entry.ts';
import { sealedData } from './contents/sealed-row.ts';
import { shownAs, viewToken } from './contents/view.ts';
import type { TokenReading } from './read.ts';

export interface TokensToShow {
  readonly rows: readonly Unproven<'tokens'>[];
  readonly permission: 'token:read' | 'token:search';
  readonly now: Instant;
  readonly through: Through;
  /** For each token: one for them all, unless there is no end to them. */
  readonly evaluationFor: () => Evaluation;
}

export interface DisclosedTokens {
  readonly bodies: readonly TokenBody[];
  readonly shown: readonly ShownToken[];
  /** One for each token whose data is shown, masked or not: an auditor needs to know which callers saw a token. */
  readonly reads: readonly LogEntry[];
}

/** Tokens as the caller may see them. One on which it does not hold the permission is left out. */
export async function showTokens(
  { onMaskFailure }: TokenReading,
  caller: Caller,
  { rows, permission, through, now, evaluationFor }: TokensToShow,
): Promise<DisclosedTokens> {
  const granted = rows.flatMap((found) => {
    const subject = { id: found.token_id, container: found.container };
    const grant = decide(caller.policy, permission, subject);
    return grant ? { found, grant } : [];
  });
  const pause = createPause();
  const bodies: TokenBody[] = [];
  const shown: ShownToken[] = [];
  const reads: LogEntry[] = [];
  for (const { found, grant } of granted) {
    await pause();
    const sealed = sealedData(openerFor(caller, grant), found, now);
    const { row, body } = viewToken({
      ...{ sealed, grant, onMaskFailure },
      evaluation: evaluationFor(),
    });
    bodies.push(body);
    shown.push({ row, grant });
    const disclosure = { shown: shownAs(grant, sealed), through };
    if (disclosure.shown === 'redacted') continue;
    reads.push(readEntry(caller, now, { row, disclosure, body }));
  }
  return { bodies, reads, shown };
}
