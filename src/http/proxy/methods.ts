/** The path and the methods with which proxies are called. */

/** Covers all paths below it: the rest of the path belongs to the destination. */
export const callPath = '/proxy';

export const callMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

export type CallMethod = (typeof callMethods)[number];

export function isCallMethod(method: string): method is CallMethod {
  return (callMethods as readonly string[]).includes(method);
}

/** As limits name the routes that they are for. */
export const calls = callMethods.map((method) => ({ method, path: callPath }));
