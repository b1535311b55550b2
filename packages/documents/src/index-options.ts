/** How the documents are searched: the same when the index is made and when it is read. */
import type { Options } from 'minisearch';

/** A part of a page, from one heading to the next. */
export interface Section {
  /** From the top of the site on, with its anchor. */
  readonly url: string;
  readonly page: string;
  readonly heading: string;
  readonly text: string;
}

export const indexOptions: Options<Section> = {
  idField: 'url',
  fields: ['heading', 'page', 'text'],
  storeFields: ['page', 'heading'],
  searchOptions: { prefix: true, fuzzy: 0.15, boost: { heading: 4, page: 2 }, combineWith: 'AND' },
};
