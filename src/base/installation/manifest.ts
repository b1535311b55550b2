/** What the package says of itself. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const manifestPath = fileURLToPath(new URL('../../../package.json', import.meta.url));

/** The release; its number is in the package alone. */
export const { version } = JSON.parse(readFileSync(manifestPath, 'utf8')) as {
  readonly version: string;
};
