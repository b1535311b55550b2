/** The release; its number stands in the package alone. */
import { readFileSync } from 'node:fs';

export const { version } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { readonly version: string };
