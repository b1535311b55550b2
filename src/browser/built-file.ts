/** A file for browsers, as the bundler makes it, and its digest. */
import { integrityOf } from '../keys/digest.ts';

/** Lists the files of a build: an array of {@link ListedFile}. */
export const manifestName = 'manifest.json';

export interface ListedFile {
  /** Of its bundle and itself, such as `fields/loader.js`. */
  readonly name: string;
  /** SHA-384 as pages state it: `sha384-…`. */
  readonly integrity: string;
}

export interface BuiltFile extends ListedFile {
  readonly contents: Uint8Array;
}

export function builtFile(name: string, contents: Uint8Array): BuiltFile {
  return { name, integrity: integrityOf(contents), contents };
}
