/** A reactor as the holder of the code that runs. */
import type { ReactorId } from '../../lib/ids.ts';
import { openerOf } from '../../rules/openings.ts';
import { type HolderOfCode, rightsIn } from '../code-runs/holder.ts';
import { openReactor, reactorOf } from '../reactors/resource.ts';

export function reactorHolder(id: ReactorId): HolderOfCode {
  return {
    entity: 'reactor',
    id,
    lentNow: async (store, tenant) => {
      const row = await reactorOf(store, tenant.id, id);
      return rightsIn(openReactor(openerOf('load reactors', tenant), row).reveal());
    },
  };
}
