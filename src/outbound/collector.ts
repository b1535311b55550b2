/** The operator's trace collector: batches of spans as JSON over HTTP (OTLP). */
import { onlyHost } from './allow-list.ts';
import { createOutbound } from './call.ts';
import { createForward, type ForwardOptions } from './forward.ts';

const timeoutMs = 5_000;
const responseBytesMax = 65_536;

/** @param endpoint without `/v1/traces`. The operator named the host, so it may be on the internal network. */
export function createCollector(
  endpoint: string,
  options: ForwardOptions,
): (batch: string) => Promise<void> {
  const url = new URL(`${endpoint}/v1/traces`);
  const outbound = createOutbound(createForward({ ...options, allow: onlyHost(url) }));
  return async (batch) => {
    const { status } = await outbound({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json' },
      body: batch,
      timeoutMs,
      responseBytesMax,
      redirectsMax: 0,
    });
    if (status < 200 || status > 299) throw new Error('the collector did not accept the spans');
  };
}
