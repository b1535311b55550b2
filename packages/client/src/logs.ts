/** The audit log. */
import type { RequestOptions } from './connection.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type {
  EntityType,
  ListLogsQuery,
  LogCheckpoint,
  LogEntry,
  LogVerification,
} from './wire.ts';

/**
 * The audit log, as `vault.logs`: who did what, and to what. It needs a management key.
 *
 * @example
 * ```ts
 * for await (const entry of admin.logs.list({ entity_type: 'token', shown: 'revealed' })) {
 *   console.log(entry.created_at, entry.actor_id, entry.message);
 * }
 * ```
 */
export class Logs extends Resource {
  /**
   * Log entries, newest first.
   *
   * @example
   * ```ts
   * const query = { entity_id: 'order-4711-card', shown: 'revealed' } as const;
   * for await (const { actor_id, created_at } of admin.logs.list(query)) {
   *   console.log(actor_id, created_at);
   * }
   * ```
   */
  list(query: ListLogsQuery = {}, options?: RequestOptions): List<LogEntry> {
    return this.pagesOf('listLogs', { query }, options);
  }

  /**
   * The kinds of things that entries are about.
   *
   * @example
   * ```ts
   * const types = await admin.logs.entityTypes();
   * ```
   */
  entityTypes(options?: RequestOptions): Promise<EntityType[]> {
    return this.call('listLogEntityTypes', {}, options);
  }

  /**
   * The newest signed checkpoint of the log. Store it where nobody who can write to the database can reach it;
   * `verifyCheckpoint` and `verifyLog` of `@strongroom/client/verify` use it without a vault.
   *
   * @example
   * ```ts
   * const checkpoint = await admin.logs.checkpoint();
   * console.log(JSON.stringify(checkpoint));
   * ```
   */
  checkpoint(options?: RequestOptions): Promise<LogCheckpoint> {
    return this.call('getLogCheckpoint', {}, options);
  }

  /**
   * Verifies, in the vault, what was signed since the last verification, up to some 20,000 entries. Repeat it while
   * `checkpoint` is not `newest_checkpoint`. Without trust in the vault, use `@strongroom/client/verify`.
   *
   * @example
   * ```ts
   * const { intact_since, verified_until, findings } = await admin.logs.verification();
   * console.log(intact_since, verified_until, findings.length);
   * ```
   */
  verification(options?: RequestOptions): Promise<LogVerification> {
    return this.call('verifyLog', {}, options);
  }
}
