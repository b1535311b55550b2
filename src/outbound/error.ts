/** How a call to somebody else's host fails. */

/** Each reason with its words. None of them holds a part of the request, of the response or of the URL. */
const reasons = {
  forbidden_url: 'the URL must be https, without a user name, and not on the port of the database',
  forbidden_address: 'the host has no public address and is not on the allow-list',
  forbidden_redirect: 'a redirect to another origin would send it the body',
  too_many_redirects: 'the host redirects too often',
  bad_redirect: 'the host redirects to an invalid URL',
  unreachable: 'the host cannot be reached, or closed the connection',
  timeout: 'the host took longer than the time limit',
  too_large: 'the response exceeds the size limit',
} as const;

export type OutboundFailure = keyof typeof reasons;

/** What the network below said, such as ENOTFOUND; no text of it holds anything but letters. */
const codeForm = /^[A-Z][A-Z0-9_]{1,60}$/;

export class OutboundError extends Error {
  readonly reason: OutboundFailure;

  constructor(reason: OutboundFailure, below?: unknown) {
    const code = below instanceof Error && 'code' in below ? String(below.code) : '';
    super(codeForm.test(code) ? `${reasons[reason]} (${code})` : reasons[reason]);
    this.name = 'OutboundError';
    this.reason = reason;
  }
}
