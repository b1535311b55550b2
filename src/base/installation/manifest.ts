/** What the package manifest says. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const manifestPath = fileURLToPath(new URL('../../../package.json', import.meta.url));

/** The description of the API, which is published with the package. */
export const descriptionPath = fileURLToPath(
  new URL('../../../docs/openapi.json', import.meta.url),
);

/** The release; only the package manifest has its number. */
export const { version } = JSON.parse(readFileSync(manifestPath, 'utf8')) as {
  readonly version: string;
};
