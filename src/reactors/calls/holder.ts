/** A reactor as the holder of the code that runs. */
import type { ReactorId } from '../../base/ids.ts';
import { openerOf } from '../../rules/openings.ts';
import { rowOf } from '../../rules/stored-resource.ts';
import { openReactor } from '../resource.ts';
import { type HolderOfCode, rightsIn } from '../runs/holder.ts';

export function reactorHolder(id: ReactorId): HolderOfCode {
  return {
    entity: 'reactor',
    id,
    lentNow: async (store, tenant) => {
      const row = await rowOf(store, 'reactors', { tenant, id });
      return rightsIn(openReactor(openerOf('load reactors', tenant), row).reveal());
    },
  };
}
