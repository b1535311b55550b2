/** `strongroom keys pause` and `strongroom keys resume`: rotations of tenants' keys. */
import { openRotations } from '../../access/key-rotations/open-rotations.ts';
import { restoreRotation } from '../../access/key-rotations/restore-row.ts';
import { pauseRotations } from '../../access/key-rotations/rotation.ts';
import { perform } from '../../rules/operation.ts';
import { type Command, jsonFlag, print } from '../terminal/command.ts';
import { withVault } from '../terminal/operator.ts';
import { counted } from '../terminal/progress.ts';
import { operatorsOf, someTenantFlag } from './tenants.ts';

function pausing(isPaused: boolean): Command {
  const [verb, done] = isPaused ? ['Pause', 'Paused'] : ['Resume', 'Resumed'];
  return {
    summary: `${verb} the rotations of tenants' keys that are under way. Servers follow within seconds.`,
    flags: { tenant: someTenantFlag, json: jsonFlag },
    examples: ['', '--tenant acme'],
    run: (flags, terminal) =>
      withVault(terminal, async (vault) => {
        const operators = await operatorsOf(vault, flags);
        // An attacker may have removed the rows of rotations that the keyrings say are under way.
        if (!isPaused) for (const { tenant } of operators) await restoreRotation(vault, tenant.id);
        const open = new Set((await openRotations(vault)).open.map((row) => row.tenant_id));
        const concerned = operators.filter(({ tenant }) => open.has(tenant.id));
        for (const actor of concerned) {
          await perform({ store: vault.store, actor }, pauseRotations(vault, actor, isPaused));
        }
        print(terminal, flags, {
          json: { tenants: concerned.map(({ tenant }) => tenant.id) },
          line:
            concerned.length === 0
              ? 'No rotation of keys is under way.'
              : `${done} the rotations of keys of ${counted(concerned.length, 'tenant')}.`,
        });
        return 0;
      }),
  };
}

export const keysPause = pausing(true);
export const keysResume = pausing(false);
