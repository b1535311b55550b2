/** How wide the JSON may be that a caller brings. */
import { type Caller, isOfServer } from './caller.ts';

/**
 * Members that the lists and objects of a body, of a line or of what a client encrypted may have together: each costs
 * as much processor time as fifty bytes of text, to parse, to check and to free. What lies in browsers gets less than
 * what lies on servers.
 */
export const membersMax = { public: 10_000, private: 200_000 } as const;

/** By the kind of the caller's key; without a caller as for a public one. */
export function membersMaxOf(caller: Pick<Caller, 'kind' | 'anonymous'> | undefined): number {
  return caller && isOfServer(caller) ? membersMax.private : membersMax.public;
}

/** What is said of JSON that has more. */
export function membersForm(most: number): string {
  return `must have at most ${most.toLocaleString('en')} members in its lists and objects together`;
}
