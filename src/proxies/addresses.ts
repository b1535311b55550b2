/** The base URL of a proxy, and the paths that it allows. */
import { isIP } from 'node:net';
import type { ValidationErrors } from '../base/validation-errors.ts';

const destinationLengthMax = 400;
export const pathsMax = 100;
export const pathLengthMax = 400;

/** A pattern for the path of a URL, which contains neither spaces nor a query. */
const pathForm = /^(?:\/|\*)[!-~]*$/;

/** Returns the base URL as the client wrote it. */
export function readDestination(text: string, errors: ValidationErrors): string {
  const flaw = flawOfDestination(text);
  if (flaw !== undefined) errors.add('destination_url', flaw);
  return text;
}

/** The problem with a base URL; `undefined` for a valid one. */
export function flawOfDestination(text: string): string | undefined {
  if (text.length > destinationLengthMax) {
    return `must have at most ${destinationLengthMax} characters`;
  }
  // Parsers disagree on spaces, control characters, and backslashes.
  const isPlain = /^https:\/\/[^\s\p{Cc}\\]+$/iu.test(text) && text.isWellFormed();
  const url = isPlain ? URL.parse(text) : null;
  if (url === null || url.hostname === '') return 'must be an https URL';
  if (/[?#]/.test(text)) return 'must not have a query or a fragment';
  if (/^[^/]*\/\/[^/]*@/.test(text)) return 'must not have a user name or password';
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) {
    return 'must have a host name, not an IP address';
  }
  return undefined;
}

export function readPaths(
  given: readonly string[] | null,
  errors: ValidationErrors,
): readonly string[] | null {
  if (given === null) return null;
  if (given.length === 0 || given.length > pathsMax) {
    errors.add('allowed_paths', `must contain 1 to ${pathsMax} paths`);
  }
  for (const [index, path] of given.slice(0, pathsMax).entries()) {
    if (path.length <= pathLengthMax && pathForm.test(path) && !/[?#\\]/.test(path)) continue;
    errors.add(
      `allowed_paths[${index}]`,
      `must be a path of at most ${pathLengthMax} characters that begins with / or *`,
    );
  }
  return given;
}
