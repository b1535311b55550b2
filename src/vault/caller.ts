/** The caller: proof that a request was authenticated, and all that its rules may ask about it. */
import type { Brand } from '../lib/brand.ts';
import type { ApplicationId } from '../lib/ids.ts';
import type { Policy } from './access.ts';
import type { ApplicationKind } from './permissions.ts';
import type { Tenant } from './tenants.ts';

/** Where a request came from. */
export interface Origin {
  /** Network address of the peer. */
  readonly address: string;
  /** Correlates the request, its log entries and its reply. */
  readonly traceId: string;
  /** The header prefix the caller speaks, such as `SVC`; it selects the compatibility dialect. */
  readonly dialect: string;
}

/** Made only by `authenticate`. */
export type Caller = Brand<
  {
    readonly tenant: Tenant;
    readonly application: ApplicationId;
    readonly kind: ApplicationKind;
    readonly policy: Policy;
    readonly origin: Origin;
  },
  'Caller'
>;
