/** The output of `strongroom logs verify` for people. */

import type { LogFinding } from '../../audit/finding.ts';
import type { Verification } from '../../audit/verify.ts';
import { counted, grouped } from '../terminal/progress.ts';
import { visible } from '../terminal/visible.ts';

const findingsShownMax = 20;

/** @param trustedKeys the keys that the caller named, or none. */
export function describeVerification(
  verification: Verification,
  trustedKeys: readonly string[],
): string {
  const { findings } = verification;
  const more = findings.length - findingsShownMax;
  const lines = [
    findings.length === 0 ? 'The log is intact.' : 'The log is NOT intact. The first bad entry:',
    ...findings.slice(0, findingsShownMax).map(describeFinding),
    ...(more > 0 ? [`  and ${grouped(more)} more`] : []),
    ...countsOf(verification),
    ...keysOf(verification, trustedKeys),
  ];
  return `${lines.join('\n')}\n`;
}

function describeFinding({ kind, message, tenant_id, stream_id }: LogFinding): string {
  const place = [
    tenant_id && `tenant ${visible(tenant_id)}`,
    stream_id && `stream ${visible(stream_id)}`,
  ];
  const where = place.filter((part) => part !== undefined).join(', ');
  return `  ${kind}: ${message}${where === '' ? '' : `\n    in ${where}`}`;
}

function countsOf(verification: Verification): string[] {
  const { entries, streams, tenants, checkpoints, removed, uncovered } = verification;
  return [
    `  ${counted(entries, 'entry')} in ${counted(streams, 'stream')} of ${counted(tenants, 'tenant')}`,
    `  ${counted(checkpoints, 'checkpoint')}; ${grouped(uncovered)} of the entries not yet covered by any`,
    ...(removed > 0 ? [`  ${counted(removed, 'entry')} removed by retention, as signed`] : []),
  ];
}

function keysOf({ publicKeys }: Verification, trustedKeys: readonly string[]): string[] {
  if (trustedKeys.length > 0) return [];
  const advice = 'no key was given: compare it with the one you have stored';
  return publicKeys.map((key) => `  signed by ${visible(key)} (${advice})`);
}
