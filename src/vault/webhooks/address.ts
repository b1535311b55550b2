/** The address of a webhook: what is wrong with it, as far as it can be seen without asking anybody. */
import { isIP } from 'node:net';
import { type AllowList, hostAndPort } from '../../outbound/allow-list.ts';

const lengthMax = 1_000;

/** Names of the machine itself, and of networks that nobody outside can see. */
const privateNames = /(?:^|\.)(?:localhost|local|internal|home\.arpa)\.?$/i;

/**
 * What is wrong with an address; `undefined` for a valid one. The operator's own hosts may have any name.
 * What a public name leads to is looked at whenever something is sent.
 */
export function flawOfAddress(text: string, allowed: AllowList): string | undefined {
  if (text.length > lengthMax) return `must have at most ${lengthMax} characters`;
  // Of spaces, control characters and backslashes parsers make different things.
  const isPlain = /^https:\/\/[^\s\p{Cc}\\]+$/iu.test(text) && text.isWellFormed();
  const url = isPlain ? URL.parse(text) : null;
  if (url === null || url.hostname === '') return 'must be an https URL';
  // An empty user name leaves no trace in what is parsed, and more slashes than two are taken for two.
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/+[^/?#]*@/.test(text)) {
    return 'must not have a user name or password';
  }
  if (text.includes('#')) return 'must not have a fragment';
  if (allowed.has(hostAndPort(url))) return undefined;
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) {
    return 'must have a host name, not an IP address';
  }
  if (privateNames.test(url.hostname)) return 'must not name a host of a private network';
  return undefined;
}
