/** The tenant of the key: its settings, its keys, and how much it uses. */
import type { RequestOptions } from './connection.ts';
import { Resource } from './resource.ts';
import type {
  ActivityReport,
  EncryptionKey,
  EncryptionKeyRequest,
  GetActivityQuery,
  KeyRotation,
  KeyRotationRequest,
  ListTenantKeysQuery,
  ProblemReport,
  Tenant,
  TenantKeys,
  TenantUpdate,
  UsageReport,
} from './wire.ts';

/**
 * Keys by which clients encrypt what only the vault can decrypt, as `vault.encryptionKeys`. They need a management key.
 *
 * @example
 * ```ts
 * const { id, public_key_pem } = await admin.encryptionKeys.create();
 * ```
 */
export class EncryptionKeys extends Resource {
  /**
   * Creates a key. Its public half is in this response and in no later one.
   *
   * @example
   * ```ts
   * const { public_key_pem } = await admin.encryptionKeys.create({ algorithm: 'RSA-OAEP-256' });
   * ```
   */
  create(request: EncryptionKeyRequest = {}, options?: RequestOptions): Promise<EncryptionKey> {
    return this.call('createEncryptionKey', { body: request }, options);
  }

  /**
   * Reads a key, without its public half.
   *
   * @example
   * ```ts
   * const { id } = await admin.encryptionKeys.create();
   * const { expires_at } = await admin.encryptionKeys.get(id);
   * ```
   */
  get(id: string, options?: RequestOptions): Promise<EncryptionKey> {
    return this.call('getEncryptionKey', { params: { id } }, options);
  }

  /**
   * All keys, newest first.
   *
   * @example
   * ```ts
   * for (const { id, expires_at } of await admin.encryptionKeys.list()) console.log(id, expires_at);
   * ```
   */
  list(options?: RequestOptions): Promise<EncryptionKey[]> {
    return this.call('listEncryptionKeys', {}, options);
  }

  /**
   * Deletes a key. What was encrypted for it cannot be read any more.
   *
   * @example
   * ```ts
   * const { id } = await admin.encryptionKeys.create();
   * await admin.encryptionKeys.delete(id);
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteEncryptionKey', { params: { id } }, options);
  }
}

/**
 * The tenant of the key, as `vault.tenant`. It needs a management key.
 *
 * @example
 * ```ts
 * const { name, type, quotas } = await admin.tenant.get();
 * ```
 */
export class OwnTenant extends Resource {
  /**
   * Reads the tenant.
   *
   * @example
   * ```ts
   * const { name, settings } = await admin.tenant.get();
   * ```
   */
  get(options?: RequestOptions): Promise<Tenant> {
    return this.call('getTenant', {}, options);
  }

  /**
   * Replaces the name and the settings.
   *
   * @example
   * ```ts
   * const { settings } = await admin.tenant.get();
   * await admin.tenant.update({ name: 'Acme', settings });
   * ```
   */
  update(update: TenantUpdate, options?: RequestOptions): Promise<Tenant> {
    return this.call('updateTenant', { body: update }, options);
  }

  /**
   * Deletes the tenant with everything in it. There is no way back.
   *
   * @example
   * ```ts
   * await admin.tenant.delete();
   * ```
   */
  delete(options?: RequestOptions): Promise<void> {
    return this.call('deleteTenant', {}, options);
  }

  /**
   * How many tokens and bytes the tenant has.
   *
   * @example
   * ```ts
   * const { token_report } = await admin.tenant.usage();
   * console.log(token_report.total_tokens);
   * ```
   */
  usage(options?: RequestOptions): Promise<UsageReport> {
    return this.call('getUsage', {}, options);
  }

  /**
   * What the callers of the tenant did in an hour, a day, or a month: a day unless given.
   *
   * @example
   * ```ts
   * const { points } = await admin.tenant.activity({ period: 'hour' });
   * console.log(points.map(({ at, requests }) => [at, requests]));
   * ```
   */
  activity(query: GetActivityQuery = {}, options?: RequestOptions): Promise<ActivityReport> {
    return this.call('getActivity', { query }, options);
  }

  /**
   * What needs attention in the tenant, the worst first.
   *
   * @example
   * ```ts
   * for (const { message, advice } of (await admin.tenant.problems()).problems) console.log(message, advice);
   * ```
   */
  problems(options?: RequestOptions): Promise<ProblemReport> {
    return this.call('getProblems', {}, options);
  }

  /**
   * The versions of the keys of the tenant, and how many rows are under each, unless it is asked for no counts.
   *
   * @example
   * ```ts
   * const { keys } = await admin.tenant.keys({ counts: 'none' });
   * ```
   */
  keys(query: ListTenantKeysQuery = {}, options?: RequestOptions): Promise<TenantKeys> {
    return this.call('listTenantKeys', { query }, options);
  }

  /**
   * Replaces a key of the tenant, and seals all rows again while requests go on.
   *
   * @throws ConflictError while a rotation of the same purpose is under way.
   * @example
   * ```ts
   * const { state } = await admin.tenant.rotateKey({ purpose: 'data' });
   * ```
   */
  rotateKey(request: KeyRotationRequest, options?: RequestOptions): Promise<KeyRotation> {
    return this.call('rotateTenantKey', { body: request }, options);
  }

  /**
   * The latest rotation of each purpose, the oldest first.
   *
   * @example
   * ```ts
   * const rotations = await admin.tenant.keyRotations();
   * ```
   */
  keyRotations(options?: RequestOptions): Promise<KeyRotation[]> {
    return this.call('listTenantKeyRotations', {}, options);
  }

  /**
   * Pauses the rotations that are under way, and gives the latest of each purpose.
   *
   * @example
   * ```ts
   * await admin.tenant.pauseKeyRotations();
   * ```
   */
  pauseKeyRotations(options?: RequestOptions): Promise<KeyRotation[]> {
    return this.call('pauseTenantKeyRotations', {}, options);
  }

  /**
   * Continues the rotations that are paused, and gives the latest of each purpose.
   *
   * @example
   * ```ts
   * await admin.tenant.resumeKeyRotations();
   * ```
   */
  resumeKeyRotations(options?: RequestOptions): Promise<KeyRotation[]> {
    return this.call('resumeTenantKeyRotations', {}, options);
  }

  /**
   * Destroys a version of a key that no row is under.
   *
   * @throws ConflictError for the active version, and for one with rows.
   * @example
   * ```ts
   * await admin.tenant.destroyKey('data', 1).catch((error) => console.log(error.message));
   * ```
   */
  destroyKey(purpose: string, version: number, options?: RequestOptions): Promise<void> {
    const params = { purpose, version: String(version) };
    return this.call('destroyTenantKey', { params }, options);
  }
}
