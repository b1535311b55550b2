/** Egress: what programs hold in the place of values. */
import type { RequestOptions } from './connection.ts';
import { Resource } from './resource.ts';
import type {
  EgressAuthority,
  EgressExplanation,
  EgressQuestion,
  Placeholder,
  PlaceholderRequest,
} from './wire.ts';

/**
 * How a program uses values that it never sees, as `vault.egress`.
 *
 * @example
 * ```ts
 * const { id } = await admin.applications.create({
 *   name: 'agent',
 *   type: 'private',
 *   permissions: ['proxy:invoke'],
 *   egress: [{ host: 'api.example.com', containers: ['/pci/'], places: ['json:card.number'] }],
 * });
 * const { outcome } = await admin.egress.explain({
 *   application_id: id,
 *   method: 'POST',
 *   url: 'https://api.example.com/v1/charges',
 * });
 * ```
 */
export class Egress extends Resource {
  /**
   * Makes a placeholder for a value that the programs of the key's application may send. It needs a private key.
   *
   * @throws ValidationError for a token that no egress policy of the application has.
   * @example
   * ```ts
   * import { Strongroom } from '@strongroom/client';
   *
   * const { key } = await admin.applications.create({
   *   name: 'agent',
   *   type: 'private',
   *   permissions: ['proxy:invoke'],
   *   egress: [{ host: 'api.example.com', containers: ['/pci/'], places: ['json:card.number'] }],
   * });
   * const agent = new Strongroom({ url, apiKey: key ?? '' });
   * const { placeholder } = await agent.egress.placeholder({
   *   token_id: 'order-4711-card',
   *   property: 'number',
   * });
   * ```
   */
  placeholder(request: PlaceholderRequest, options?: RequestOptions): Promise<Placeholder> {
    return this.call('createPlaceholder', { body: request }, options);
  }

  /**
   * The certificate authority that programs of the key's application trust. It needs a private key.
   *
   * @example
   * ```ts
   * import { Strongroom } from '@strongroom/client';
   *
   * const { key } = await admin.applications.create({
   *   name: 'agent',
   *   type: 'private',
   *   permissions: ['proxy:invoke'],
   *   egress: [{ host: 'api.example.com' }],
   * });
   * const agent = new Strongroom({ url, apiKey: key ?? '' });
   * const { certificate } = await agent.egress.authority();
   * ```
   */
  authority(options?: RequestOptions): Promise<EgressAuthority> {
    return this.call('getEgressAuthority', {}, options);
  }

  /**
   * What would happen to a request of a program. Nothing is sent. It needs a management key.
   *
   * @example
   * ```ts
   * const { id } = await admin.applications.create({
   *   name: 'agent',
   *   type: 'private',
   *   permissions: ['proxy:invoke'],
   * });
   * const { outcome, reason } = await admin.egress.explain({
   *   application_id: id,
   *   method: 'GET',
   *   url: 'https://api.example.com/',
   * });
   * ```
   */
  explain(question: EgressQuestion, options?: RequestOptions): Promise<EgressExplanation> {
    return this.call('explainEgress', { body: question }, options);
  }
}
