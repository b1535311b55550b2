/** Pages of lists that are counted: by number, or from the cursor of an earlier page on. */
import { openCursor } from '../crypto/cursor.ts';
import { invalid } from '../lib/errors.ts';

/** The place in a list, as the query of that list has it. */
export type Position = readonly (string | number)[];

/** @throws VaultError `validation_failed` for what is no cursor of this list. */
export function positionOfCursor<P extends Position>(
  key: Parameters<typeof openCursor>[0],
  route: string,
  text: string | undefined,
): P | undefined {
  if (text === undefined) return undefined;
  const position = openCursor(key, route, text);
  if (position === undefined) throw invalid('start', 'must be the cursor of an earlier response');
  return position as unknown as P;
}

export interface OffsetPage {
  readonly total: number;
  /** From 1. */
  readonly page: number;
  readonly size: number;
  /** The cursor of the next one, where there is one. */
  readonly next: string | false | undefined;
}

/** As responses have it. */
export function paginationOf({ total, page, size, next }: OffsetPage): object {
  return {
    total_items: total,
    page_number: page,
    page_size: size,
    total_pages: size === 0 ? 0 : Math.ceil(total / size),
    ...(next && { next }),
  };
}
