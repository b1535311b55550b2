/** Sends a completed call after the code of the proxy has changed it, unless the code has made the response. */
import { VaultError } from '../../base/errors.ts';
import { type DecideOutcome, isEnded } from '../../rules/operation.ts';
import { transformsOf } from '../transforms.ts';
import { type CallOutcome, failedEntry, madeEntry } from './entries.ts';
import { madeResponse } from './made-response.ts';
import type { ProxyResponse } from './proxy-call.ts';
import { codeRequest, type TransformOutcome } from './run-code.ts';
import { type SendTools, type SentCall, send } from './send.ts';

/** A failure becomes part of the outcome, with its log entry. */
export async function sendCoded(
  tools: SendTools,
  sent: SentCall,
): Promise<DecideOutcome<ProxyResponse>> {
  const { call, written } = sent;
  const transform = transformsOf(call.proxy).request.find(({ type }) => type === 'code');
  if (transform?.type !== 'code') return send(tools, sent);
  const began = performance.now();
  const ended = (): CallOutcome => ({
    now: tools.clock.now(),
    milliseconds: Math.round(performance.now() - began),
  });
  let coded: TransformOutcome;
  try {
    coded = await codeRequest(tools, { call, transform }, written);
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    const entry = failedEntry(call, ended(), 'its code did not end as it should');
    return async () => ({ change: { entries: [entry] }, refusal: error });
  }
  if (coded.kind === 'response') {
    const { response } = coded;
    const entry = madeEntry(call, ended(), response.status);
    return async () => ({ change: { entries: [entry] }, reply: madeResponse(response, null) });
  }
  try {
    // The code received values of tokens.
    await call.stands();
  } catch (error) {
    if (!isEnded(error)) throw error;
    const entry = failedEntry(call, ended(), 'what it was made by ended while its code ran');
    return async () => ({ change: { entries: [entry] }, refusal: error });
  }
  const { headers, text } = coded.message;
  const content = text === undefined ? undefined : Buffer.from(text);
  return send(tools, {
    ...sent,
    written: { ...written, headers, body: { ...written.body, content, form: undefined } },
  });
}
