/** Reactors: code of yours that runs in the vault. */
import type { RequestOptions } from './connection.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type {
  AsyncReactResponse,
  ListReactorLogsQuery,
  ListReactorsQuery,
  ListReactorVersionsQuery,
  Reactor,
  ReactorLog,
  ReactorPatch,
  ReactorRequest,
  ReactorVersion,
  ReactRequest,
  ReactResponse,
} from './wire.ts';

/**
 * Reactors, as `vault.reactors`. Management keys manage them, and private keys call them.
 *
 * @example
 * ```ts
 * const { id } = await admin.reactors.create({
 *   name: 'Last four',
 *   code: 'module.exports = async (req) => ({ raw: { last4: req.args.number.slice(-4) } });',
 * });
 * const { raw } = await vault.reactors.react(id, {
 *   args: { number: "{{ order-4711-card | json: '$.number' }}" },
 * });
 * ```
 */
export class Reactors extends Resource {
  /**
   * Creates a reactor.
   *
   * @throws ApiError with the status 422 for code that cannot be run.
   * @example
   * ```ts
   * const { id } = await admin.reactors.create({
   *   name: 'Echo',
   *   code: 'module.exports = async (req) => ({ raw: req.args });',
   * });
   * ```
   */
  create(request: ReactorRequest, options?: RequestOptions): Promise<Reactor> {
    return this.call('createReactor', { body: request }, options);
  }

  /**
   * Calls a reactor: expressions in its arguments become values, and `raw` or `body` is what its code returned.
   *
   * @throws ApiError where the code raises an error; its `problem` has what the code said.
   * @example
   * ```ts
   * const code = 'module.exports = async (req) => ({ raw: { n: req.args.n + 1 } });';
   * const { id } = await admin.reactors.create({ name: 'Count', code });
   * const { raw } = await vault.reactors.react(id, { args: { n: 1 } });
   * ```
   */
  react(id: string, request: ReactRequest = {}, options?: RequestOptions): Promise<ReactResponse> {
    return this.call('react', { params: { id }, body: request }, options);
  }

  /**
   * Calls a reactor without waiting for its result, which `result` reads within 24 hours.
   *
   * @example
   * ```ts
   * const code = 'module.exports = async (req) => ({ raw: { n: req.args.n + 1 } });';
   * const { id } = await admin.reactors.create({ name: 'Count', code });
   * const { asyncReactorRequestId } = await vault.reactors.reactAsync(id, { args: { n: 1 } });
   * ```
   */
  reactAsync(
    id: string,
    request: ReactRequest = {},
    options?: RequestOptions,
  ): Promise<AsyncReactResponse> {
    return this.call('reactAsync', { params: { id }, body: request }, options);
  }

  /**
   * The result of an asynchronous call, or what its code raised.
   *
   * @throws NotFoundError until it is there, and again after 24 hours.
   * @example
   * ```ts
   * const code = 'module.exports = async () => ({ raw: { done: true } });';
   * const { id } = await admin.reactors.create({ name: 'Later', code });
   * const { asyncReactorRequestId } = await vault.reactors.reactAsync(id);
   * const result = await vault.reactors.result(id, asyncReactorRequestId).catch(() => undefined);
   * ```
   */
  result(id: string, requestId: string, options?: RequestOptions): Promise<ReactResponse> {
    return this.call('getReactorResult', { params: { id, requestId } }, options);
  }

  /**
   * What the code of a reactor logged, newest call first. The `text` of a line is hidden from inspection, because code
   * may write values there.
   *
   * @example
   * ```ts
   * const code = 'module.exports = async () => ({ raw: {} });';
   * const { id } = await admin.reactors.create({ name: 'Quiet', code });
   * for await (const { outcome, lines } of admin.reactors.logs(id)) console.log(outcome, lines);
   * ```
   */
  logs(id: string, query: ListReactorLogsQuery = {}, options?: RequestOptions): List<ReactorLog> {
    return this.pagesOf('listReactorLogs', { params: { id }, query }, options);
  }

  /**
   * The code that a reactor had before, newest first. To go back, update the reactor with it.
   *
   * @example
   * ```ts
   * const code = 'module.exports = async () => ({ raw: {} });';
   * const { id } = await admin.reactors.create({ name: 'Changing', code });
   * for await (const { code, replaced_at } of admin.reactors.versions(id)) console.log(replaced_at, code);
   * ```
   */
  versions(
    id: string,
    query: ListReactorVersionsQuery = {},
    options?: RequestOptions,
  ): List<ReactorVersion> {
    return this.pagesOf('listReactorVersions', { params: { id }, query }, options);
  }

  /**
   * Reads a reactor.
   *
   * @example
   * ```ts
   * const code = 'module.exports = async () => ({ raw: {} });';
   * const { id } = await admin.reactors.create({ name: 'Quiet', code });
   * const reactor = await admin.reactors.get(id);
   * ```
   */
  get(id: string, options?: RequestOptions): Promise<Reactor> {
    return this.call('getReactor', { params: { id } }, options);
  }

  /**
   * Changes a reactor by JSON merge patch: members that are absent stay, and null removes.
   *
   * @example
   * ```ts
   * const code = 'module.exports = async () => ({ raw: {} });';
   * const { id } = await admin.reactors.create({ name: 'Quiet', code });
   * await admin.reactors.update(id, { allowed_hosts: ['api.psp.example.com'] });
   * ```
   */
  update(id: string, patch: ReactorPatch, options?: RequestOptions): Promise<object> {
    return this.call('updateReactor', { params: { id }, body: patch }, options);
  }

  /**
   * Replaces a reactor. What is absent takes its default.
   *
   * @example
   * ```ts
   * const code = 'module.exports = async () => ({ raw: {} });';
   * const { id } = await admin.reactors.create({ name: 'Quiet', code });
   * await admin.reactors.replace(id, { name: 'Silent', code });
   * ```
   */
  replace(id: string, request: ReactorRequest, options?: RequestOptions): Promise<Reactor> {
    return this.call('replaceReactor', { params: { id }, body: request }, options);
  }

  /**
   * Deletes a reactor, with its waiting calls, their results and logs.
   *
   * @example
   * ```ts
   * const code = 'module.exports = async () => ({ raw: {} });';
   * const { id } = await admin.reactors.create({ name: 'Quiet', code });
   * await admin.reactors.delete(id);
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteReactor', { params: { id } }, options);
  }

  /**
   * Reactors, newest first.
   *
   * @example
   * ```ts
   * for await (const { name, state } of admin.reactors.list()) console.log(name, state);
   * ```
   */
  list(query: ListReactorsQuery = {}, options?: RequestOptions): List<Reactor> {
    return this.pagesOf('listReactors', { query }, options);
  }
}
