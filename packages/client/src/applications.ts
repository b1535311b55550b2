/** Applications, their keys and their access. */
import type { RequestOptions } from './connection.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type {
  AccessExplanation,
  AccessQuestion,
  Application,
  ApplicationKey,
  ApplicationRequest,
  ApplicationTemplate,
  ApplicationUpdate,
  ListApplicationsQuery,
  ListKeysQuery,
  ListPermissionsQuery,
  Permission,
} from './wire.ts';

/**
 * Keys of applications, as `vault.applications.keys`.
 *
 * @example
 * ```ts
 * const { id } = await admin.applications.create({
 *   name: 'Checkout',
 *   type: 'private',
 *   permissions: ['token:create'],
 * });
 * const { key } = await admin.applications.keys.create(id); // read it now: no later response has it
 * ```
 */
export class ApplicationKeys extends Resource {
  /**
   * Creates another key. Existing keys are not changed. Its `key` is in this response and in no later one.
   *
   * @example
   * ```ts
   * const { id } = await admin.applications.create({
   *   name: 'Checkout',
   *   type: 'private',
   *   permissions: ['token:create'],
   * });
   * const { key } = await admin.applications.keys.create(id);
   * ```
   */
  create(applicationId: string, options?: RequestOptions): Promise<ApplicationKey> {
    return this.call('createKey', { params: { id: applicationId } }, options);
  }

  /**
   * The keys of an application, without their text.
   *
   * @example
   * ```ts
   * const { id } = await admin.applications.create({
   *   name: 'Checkout',
   *   type: 'private',
   *   permissions: ['token:create'],
   * });
   * for (const key of await admin.applications.keys.list(id)) console.log(key.id, key.last_used_at);
   * ```
   */
  list(
    applicationId: string,
    query: ListKeysQuery = {},
    options?: RequestOptions,
  ): Promise<ApplicationKey[]> {
    return this.call('listKeys', { params: { id: applicationId }, query }, options);
  }

  /**
   * A key, without its text.
   *
   * @example
   * ```ts
   * const { id, keys } = await admin.applications.create({
   *   name: 'Checkout',
   *   type: 'private',
   *   permissions: ['token:create'],
   * });
   * const key = await admin.applications.keys.get(id, keys[0]?.id ?? '');
   * ```
   */
  get(applicationId: string, keyId: string, options?: RequestOptions): Promise<ApplicationKey> {
    return this.call('getKey', { params: { id: applicationId, keyId } }, options);
  }

  /**
   * Deletes a key. The vault refuses it from then on.
   *
   * @example
   * ```ts
   * const { id, keys } = await admin.applications.create({
   *   name: 'Checkout',
   *   type: 'private',
   *   permissions: ['token:create'],
   * });
   * await admin.applications.keys.create(id);
   * await admin.applications.keys.delete(id, keys[0]?.id ?? '');
   * ```
   */
  delete(applicationId: string, keyId: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteKey', { params: { id: applicationId, keyId } }, options);
  }
}

/**
 * Applications, as `vault.applications`: programs that use the vault, each with its keys and rights. All but
 * `current` need a management key.
 *
 * @example
 * ```ts
 * const application = await admin.applications.create({
 *   name: 'Checkout',
 *   type: 'private',
 *   rules: [{ priority: 1, container: '/', permissions: ['token:create'], transform: 'mask' }],
 * });
 * const { key } = application; // read it now: no later response has it
 * ```
 */
export class Applications extends Resource {
  /** The keys of applications. */
  readonly keys: ApplicationKeys = new ApplicationKeys(this.connection);

  /**
   * Creates an application and its first key, which is in this response and in no later one.
   *
   * @example
   * ```ts
   * const { id, key } = await admin.applications.create({
   *   name: 'Support desk',
   *   type: 'private',
   *   rules: [{ priority: 1, container: '/pci/', permissions: ['token:read'], transform: 'mask' }],
   * });
   * ```
   */
  create(request: ApplicationRequest, options?: RequestOptions): Promise<Application> {
    return this.call('createApplication', { body: request }, options);
  }

  /**
   * Reads an application.
   *
   * @example
   * ```ts
   * const { id } = await admin.applications.create({
   *   name: 'Checkout',
   *   type: 'private',
   *   permissions: ['token:create'],
   * });
   * const application = await admin.applications.get(id);
   * ```
   */
  get(id: string, options?: RequestOptions): Promise<Application> {
    return this.call('getApplication', { params: { id } }, options);
  }

  /**
   * The application of the key of this client. Any key may ask.
   *
   * @example
   * ```ts
   * const { name, type, rules } = await vault.applications.current();
   * ```
   */
  current(options?: RequestOptions): Promise<Application> {
    return this.call('getOwnApplication', {}, options);
  }

  /**
   * Replaces the name, the permissions and the rules. What is absent is taken away.
   *
   * @example
   * ```ts
   * const { id, rules } = await admin.applications.create({
   *   name: 'Checkout',
   *   type: 'private',
   *   permissions: ['token:create'],
   * });
   * await admin.applications.update(id, { name: 'Checkout', permissions: ['token-intent:create'] });
   * ```
   */
  update(id: string, update: ApplicationUpdate, options?: RequestOptions): Promise<Application> {
    return this.call('updateApplication', { params: { id }, body: update }, options);
  }

  /**
   * Deletes an application and its keys.
   *
   * @example
   * ```ts
   * const { id } = await admin.applications.create({
   *   name: 'Checkout',
   *   type: 'private',
   *   permissions: ['token:create'],
   * });
   * await admin.applications.delete(id);
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteApplication', { params: { id } }, options);
  }

  /**
   * Applications, newest first.
   *
   * @example
   * ```ts
   * for await (const { name, type } of admin.applications.list()) console.log(name, type);
   * ```
   */
  list(query: ListApplicationsQuery = {}, options?: RequestOptions): List<Application> {
    return this.pagesOf('listApplications', { query }, options);
  }

  /**
   * Says what an application may do with a token or in a container, and which rule decides it.
   *
   * @example
   * ```ts
   * const { id } = await admin.applications.create({
   *   name: 'Checkout',
   *   type: 'private',
   *   permissions: ['token:create'],
   * });
   * const { allowed, reason } = await admin.applications.explain({
   *   application_id: id,
   *   permission: 'token:read',
   *   container: '/pci/high/',
   * });
   * ```
   */
  explain(question: AccessQuestion, options?: RequestOptions): Promise<AccessExplanation> {
    return this.call('explainAccess', { body: question }, options);
  }

  /**
   * The permissions that there are.
   *
   * @example
   * ```ts
   * const permissions = await admin.applications.permissions({ application_type: 'private' });
   * ```
   */
  permissions(query: ListPermissionsQuery = {}, options?: RequestOptions): Promise<Permission[]> {
    return this.call('listPermissions', { query }, options);
  }

  /**
   * Applications to begin with.
   *
   * @example
   * ```ts
   * const [template] = await admin.applications.templates();
   * ```
   */
  templates(options?: RequestOptions): Promise<ApplicationTemplate[]> {
    return this.call('listApplicationTemplates', {}, options);
  }
}
