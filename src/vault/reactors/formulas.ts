/** Formulas, which held the code of reactors until February 2024. */
import { VaultError } from '../../lib/errors.ts';
import type { Decide } from '../../rules/operation.ts';

/** @throws VaultError `gone`, which says what takes their place. */
export function formulasRemoved(): Decide {
  throw new VaultError('gone', {
    public:
      'Reactor formulas are removed. Set the code of the formula as the attribute code of each reactor ' +
      'that used it, with PATCH /reactors/{id}.',
  });
}
