/** The JSON of a list that is written item by item. */
import type { Caller } from '../../rules/caller.ts';
import type { WrittenList } from '../../rules/reply.ts';

export interface ListToWrite {
  readonly list: WrittenList;
  readonly caller: () => Promise<Caller>;
  /** A whole page as JSON, by the schema of the route. */
  readonly serialize: (page: { readonly pagination: object; readonly data: object[] }) => string;
}

/** Of the JSON of a page: what comes after its items. */
const end = ']}';

/**
 * The JSON of the page, part by part; the first part holds the first item. Parts are bytes, which
 * wait for a slow reader outside of the heap; their items are not retained.
 */
export async function* textOfList(writing: ListToWrite): AsyncGenerator<Buffer> {
  const { list, caller, serialize } = writing;
  const { pagination, items } = list;
  const head = serialize({ pagination, data: [] }).slice(0, -end.length);
  const partOf = async (item: (typeof items)[number], before: string) => {
    const shown = await item(caller);
    if (shown === undefined) return undefined;
    const text = serialize({ pagination, data: [shown] }).slice(head.length, -end.length);
    return Buffer.from(before + text);
  };
  let before = head;
  for (const item of items) {
    const part = await partOf(item, before);
    if (part === undefined) continue;
    before = ',';
    yield part;
  }
  yield Buffer.from(before === head ? head + end : end);
}
