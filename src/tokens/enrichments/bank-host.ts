/** The operator's own verification service, called over HTTP, with expressions for both directions. */

import { type Clock, second } from '../../base/clock.ts';
import type { Json } from '../../base/json.ts';
import { createGrowingPause } from '../../base/pauses.ts';
import { type Random, randomBelow } from '../../base/random.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import { compileExpression, evaluateExpression } from '../../expressions/expression.ts';
import { compileTemplate, evaluateTemplate } from '../../expressions/template.ts';
import { createBreaker } from '../../outbound/breaker.ts';
import type { Outbound, OutboundResponse } from '../../outbound/call.ts';
import { isUnreachable, OutboundError } from '../../outbound/error.ts';
import type { BankHostConfig } from './bank-host-config.ts';
import {
  type AccountVerdict,
  type Inquiry,
  parseBankStatus,
  type VerifyAccount,
} from './bank-verification.ts';

export interface BankHostTools {
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly random: Random;
  readonly pause: (milliseconds: number) => Promise<unknown>;
}

export const responseBytesMax = 65_536;
const redirectsMax = 3;
/** Before the second attempt and those after it; up to as much again is added by chance. */
const failurePauses = { firstMs: 100, maxMs: 10 * second };
/** How long a caller should wait after a failure that may be over at once. */
const retryAfterMs = 1000;

/** Responses without information about the account: timeouts, too many requests, and the service's own faults. */
const saysNothing = (status: number) => status === 408 || status === 429 || status >= 500;

type AskedAccount = Pick<Inquiry, 'account' | 'trace'>;

export function createBankHost(
  { outbound, clock, random, pause }: BankHostTools,
  { url, headers, request: body, answer, timeoutMs, attemptsMax }: BankHostConfig,
): VerifyAccount {
  const breaker = createBreaker(clock);
  const template = compileTemplate(body, 'request');
  const expression = compileExpression(answer, 'answer');

  function ask({ account, trace }: AskedAccount, deadline: number): Promise<OutboundResponse> {
    const { routingNumber: routing_number, accountNumber, country: country_code } = account;
    const scope = { routing_number, country_code, account_number: accountNumber.reveal() };
    return outbound({
      method: 'POST',
      url: new URL(url),
      headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
      body: JSON.stringify(evaluateTemplate(template, scope) ?? null),
      timeoutMs: Math.max(1, deadline - clock.now()),
      responseBytesMax,
      redirectsMax,
      trace,
    });
  }

  /** The status, or the reason why there is none and whether another attempt may succeed. */
  async function attempt(asked: AskedAccount, deadline: number) {
    try {
      const received = await ask(asked, deadline);
      const { status } = received;
      if (saysNothing(status)) return { failure: `it returned ${status}`, again: true };
      const value = evaluateExpression(expression, { status, body: jsonOf(received.body) });
      const verdict = parseBankStatus(value);
      if (verdict !== undefined) return { status: verdict };
      return { failure: `its response, ${status}, maps to none of the statuses`, again: false };
    } catch (error) {
      if (error instanceof ExpressionError) return { failure: error.message, again: false };
      if (!(error instanceof OutboundError)) throw error;
      return { failure: error.message, again: isUnreachable(error) };
    }
  }

  async function request(asked: AskedAccount): Promise<AccountVerdict> {
    const deadline = clock.now() + timeoutMs;
    const failurePause = createGrowingPause(failurePauses);
    for (let attempts = 1; ; attempts += 1) {
      const result = await attempt(asked, deadline);
      if (result.status !== undefined) {
        breaker.succeeded();
        return { status: result.status };
      }
      const backoff = failurePause.next();
      const wait = backoff + randomBelow(random, backoff);
      if (!result.again || attempts === attemptsMax || clock.now() + wait >= deadline) {
        breaker.failed();
        return { failure: result.failure, retryAfterMs };
      }
      await pause(wait);
    }
  }

  return async (asked) => {
    const waitMs = breaker.admit();
    if (waitMs > 0) return { failure: 'it failed too often recently', retryAfterMs: waitMs };
    return { request: () => request(asked) };
  };
}

/** A body that is not JSON is ignored; the expression sees null. */
function jsonOf(body: Buffer): Json {
  try {
    return JSON.parse(body.toString('utf8')) as Json;
  } catch {
    return null;
  }
}
