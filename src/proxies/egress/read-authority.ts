/** The certificate authority that the programs of the calling application have to trust. */
import type { Clock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { egressAuthority } from '../../keys/egress-authority.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';

/** It is valid for the hosts of the application's policies as they are now. */
export function readAuthority({ clock }: { readonly clock: Clock }, caller: Caller): Decide {
  return async () => {
    const now = clock.now();
    const { tenant, application, egress = [] } = caller;
    const hosts = [
      ...new Set(egress.filter((one) => !one.tunnel && !one.plain).map(({ host }) => host)),
    ];
    // Without a host that it is valid for, it would be valid for all.
    if (hosts.length === 0) {
      throw new VaultError('conflict', {
        public: 'The application has no egress policy whose connections are opened.',
      });
    }
    const { certificate } = await egressAuthority(tenant.keyring, {
      hosts,
      tenant: tenant.id,
      now,
    });
    const fact = { entity: 'application', id: application, operation: 'authority' } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: { status: 200, body: { certificate, hosts } },
    };
  };
}
