/** What a proxy is, apart from its name and place in the database: checked settings, sealed as a whole. */
import type { ApplicationId } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';

export interface ProxyDefinition {
  readonly destination_url: string;
  readonly request_transforms: readonly Json[];
  readonly response_transforms: readonly Json[];
  /** Whose rules calls without a key act with. It may have been deleted since. */
  readonly application_id: ApplicationId | null;
  readonly configuration: Readonly<Record<string, string>>;
  readonly require_auth: boolean;
  readonly disable_detokenization: boolean;
  /** Whether calls without a key may send data that a client encrypted. */
  readonly allow_encrypted: boolean;
  /** Seconds. */
  readonly timeout: number;
  /** After `/proxy`, exact or with `*`; null allows all. */
  readonly allowed_paths: readonly string[] | null;
  /** In upper case; null allows all. */
  readonly allowed_methods: readonly ProxyMethod[] | null;
  /** PEM; both or neither. */
  readonly client_certificate: string | null;
  readonly client_key: string | null;
}

export const proxyMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
export type ProxyMethod = (typeof proxyMethods)[number];

/** A proxy as a request gives it. */
export interface ProxySettings {
  readonly name: string;
  readonly host: string | null;
  readonly definition: ProxyDefinition;
}
