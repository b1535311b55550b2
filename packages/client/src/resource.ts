/** What resources are made of: a connection, and lists over it. */
import type { Connection, Input, Reply, RequestOptions } from './connection.ts';
import { NotAVaultError } from './errors.ts';
import { List, type Page } from './list.ts';
import type { OperationId } from './wire.ts';

/** Operations whose response is a page. */
type ListId = {
  [Id in OperationId]: Reply<Id> extends Page<unknown> ? Id : never;
}[OperationId];

/** The things on the pages of an operation. */
type ItemOf<Id extends ListId> = Reply<Id> extends Page<infer Item> ? Item : never;

/** The common part of the resources of a vault. It shows nothing to an inspection. */
export class Resource {
  readonly #connection: Connection;

  /** Made by `Strongroom`. */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  protected get connection(): Connection {
    return this.#connection;
  }

  protected call<Id extends OperationId>(
    id: Id,
    input: Input<Id>,
    options?: RequestOptions,
  ): Promise<Reply<Id>> {
    return this.#connection.call(id, input, options);
  }

  /** @param place where the cursor belongs. */
  protected pagesOf<Id extends ListId>(
    id: Id,
    input: Input<Id>,
    options?: RequestOptions,
    place: 'query' | 'body' = 'query',
  ): List<ItemOf<Id>> {
    return new List(async (start) => {
      const { page: _, ...selection } = (input as Record<string, { page?: number }>)[place] ?? {};
      const next = start === undefined ? input : { ...input, [place]: { ...selection, start } };
      const reply: unknown = await this.call(id, next as Input<Id>, options);
      const page = reply as Page<ItemOf<Id>> | undefined;
      if (!Array.isArray(page?.data)) {
        throw new NotAVaultError(`${id} got no page. Check that the option url leads to a vault.`);
      }
      return page;
    });
  }
}
