/** The path and the methods with which proxies are called. */

/** It stands for all paths below it: what follows is the destination's. */
export const callPath = '/proxy';

export const callMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

export type CallMethod = (typeof callMethods)[number];

export function isCallMethod(method: string): method is CallMethod {
  return (callMethods as readonly string[]).includes(method);
}

/** As limits name the routes that they are for. */
export const calls = callMethods.map((method) => ({ method, path: callPath }));
