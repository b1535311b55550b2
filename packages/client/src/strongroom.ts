/** The client of a Strongroom vault. */

import { Applications } from './applications.ts';
import { Approvals } from './approvals.ts';
import { Connection, type RequestOptions, type StrongroomOptions } from './connection.ts';
import { Egress } from './egress.ts';
import { Enrichments } from './enrichments.ts';
import { Logs } from './logs.ts';
import { People } from './people.ts';
import { Proxies } from './proxies.ts';
import { ProxyCalls } from './proxy-calls.ts';
import { Reactors } from './reactors.ts';
import { Sessions } from './sessions.ts';
import { EncryptionKeys, OwnTenant } from './tenant.ts';
import { TokenIntents } from './token-intents.ts';
import { Tokens } from './tokens.ts';
import { Webhooks } from './webhooks.ts';
import type { Application } from './wire.ts';

/**
 * A client of one vault, with one key.
 *
 * @example
 * ```ts
 * import { Strongroom } from '@strongroom/client';
 *
 * const vault = new Strongroom({ url, apiKey });
 * const token = await vault.tokens.create({
 *   type: 'card',
 *   data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 },
 * });
 * console.log(token.id);
 * ```
 */
export class Strongroom {
  readonly #connection: Connection;
  /** Values, and what stands for them. */
  readonly tokens: Tokens;
  /** Validated data that is not yet a token. */
  readonly tokenIntents: TokenIntents;
  /** Programs that use the vault, their keys and rights. */
  readonly applications: Applications;
  /** Keys for some minutes. */
  readonly sessions: Sessions;
  /** Who uses the console. */
  readonly people: People;
  /** Where requests go, and what is done to them. */
  readonly proxies: Proxies;
  /** Calls of proxies. */
  readonly proxy: ProxyCalls;
  /** What programs hold in the place of values. */
  readonly egress: Egress;
  /** What people decide about requests of programs. */
  readonly approvals: Approvals;
  /** Code that runs in the vault. */
  readonly reactors: Reactors;
  /** Addresses that the vault calls when something happens. */
  readonly webhooks: Webhooks;
  /** The audit log. */
  readonly logs: Logs;
  /** What is known about a bank account or a card. */
  readonly enrichments: Enrichments;
  /** Keys by which clients encrypt what only the vault can decrypt. */
  readonly encryptionKeys: EncryptionKeys;
  /** The tenant of the key. */
  readonly tenant: OwnTenant;

  /** @throws ConfigurationError for an address or a key that cannot be one. */
  constructor(options: StrongroomOptions) {
    const connection = new Connection(options);
    this.#connection = connection;
    this.tokens = new Tokens(connection);
    this.tokenIntents = new TokenIntents(connection);
    this.applications = new Applications(connection);
    this.sessions = new Sessions(connection);
    this.people = new People(connection);
    this.proxies = new Proxies(connection);
    this.proxy = new ProxyCalls(connection);
    this.egress = new Egress(connection);
    this.approvals = new Approvals(connection);
    this.reactors = new Reactors(connection);
    this.webhooks = new Webhooks(connection);
    this.logs = new Logs(connection);
    this.enrichments = new Enrichments(connection);
    this.encryptionKeys = new EncryptionKeys(connection);
    this.tenant = new OwnTenant(connection);
  }

  /**
   * Replaces the values in any JSON with tokens. Each string, number and boolean becomes a token of the type `token`,
   * and its id takes its place; an object with `type` and `data` is a create request.
   *
   * @example
   * ```ts
   * const stored = await vault.tokenize<{ first_name: string }>({ first_name: 'Ada' });
   * console.log(stored.first_name); // the id of a token
   * ```
   */
  tokenize<Result = unknown>(body: unknown, options?: RequestOptions): Promise<Result> {
    return this.#connection.call('tokenize', { body }, options) as Promise<Result>;
  }

  /**
   * Replaces references to tokens in any JSON with their data, as far as the key may see it.
   *
   * @example
   * ```ts
   * const { number } = await vault.detokenize<{ number: string }>({
   *   number: "{{ order-4711-card | json: '$.number' }}",
   * });
   * ```
   */
  detokenize<Result = unknown>(body: unknown, options?: RequestOptions): Promise<Result> {
    return this.#connection.call('detokenize', { body }, options) as Promise<Result>;
  }

  /**
   * Checks the options: that a vault responds at `url`, that its interface is the one of this client, and that it knows
   * the key. Gives the version of the vault and the application of the key.
   *
   * @throws ConnectionError, NotAVaultError, VersionError, or AuthenticationError, whose messages say what to change.
   * @example
   * ```ts
   * const { version, application } = await vault.check();
   * console.log(`Strongroom ${version}, as ${application.name}`);
   * ```
   */
  async check(options?: RequestOptions): Promise<{ version: string; application: Application }> {
    const version = await this.#connection.version(options);
    this.#connection.requireVersion(version);
    const application = await this.#connection.call('getOwnApplication', {}, options);
    return { version, application };
  }
}
