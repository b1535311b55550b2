/** The methods with which proxies are called, and what the description of the interface says of each. */

export const callPath = '/proxy';

/** One path stands for all below it: what follows is the destination's. */
export const callMethods = {
  GET: 'Send a GET request to the destination of a proxy',
  HEAD: 'Send a HEAD request to the destination of a proxy',
  POST: 'Send a POST request to the destination of a proxy, with values of tokens where it refers to them',
  PUT: 'Send a PUT request to the destination of a proxy, with values of tokens where it refers to them',
  PATCH:
    'Send a PATCH request to the destination of a proxy, with values of tokens where it refers to them',
  DELETE: 'Send a DELETE request to the destination of a proxy',
  OPTIONS:
    'Send an OPTIONS request to the destination of a proxy, unless it is a preflight of a browser',
} as const;

export type CallMethod = keyof typeof callMethods;

export function isCallMethod(method: string): method is CallMethod {
  return Object.hasOwn(callMethods, method);
}

/** As limits name the routes that they are for. */
export const calls = Object.keys(callMethods).map((method) => ({ method, path: callPath }));
