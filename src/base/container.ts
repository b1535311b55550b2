/** Container paths: the hierarchy that access rules refer to. */
import type { Brand } from './brand.ts';

/** A lower-case path that begins and ends with `/`, for example `/pci/high/`; the root is `/`. */
export type Container = Brand<string, 'Container'>;

export const containerLengthMax = 400;
const containerDepthMax = 32;

export const rootContainer = '/' as Container;

/** Checked before the path is lowercased: lowercasing would turn the Kelvin sign into an ordinary `k`. */
export const containerPattern = /^\/(?:[A-Za-z0-9_-]+\/)*$/;

/** The form that {@link parseContainer} accepts, for messages to callers. */
export const containerForm =
  `must begin and end with "/", have segments of letters, digits, "-" and "_", at most ` +
  `${containerDepthMax} of them, and at most ${containerLengthMax} characters`;

/** Parses a container in any case; `undefined` if the string is not one. */
export function parseContainer(text: string): Container | undefined {
  if (text.length > containerLengthMax) return undefined;
  if (!containerPattern.test(text)) return undefined;
  const path = text.toLowerCase();
  if (path.split('/').length - 2 > containerDepthMax) return undefined;
  return path as Container;
}
