/** A vault that pushes its log to a collector of the test. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Lender, temporaryDirectory } from './temporary.ts';

/** The configuration of a vault that pushes there. */
export function pushingTo(t: Lender, url: string, authority: { readonly cert: string }) {
  const file = join(temporaryDirectory(t), 'authority.pem');
  writeFileSync(file, authority.cert);
  return { STRONGROOM_LOG_EXPORT: url, STRONGROOM_OUTBOUND_CA: file };
}
