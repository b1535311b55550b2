/** Transforms of a proxy as a request gives them. */
import type { Findings } from '../../lib/findings.ts';
import type { Json } from '../../lib/json.ts';

/** No type of transform is known yet: every one is refused. */
export function parseTransforms(
  given: readonly Json[],
  { path, findings }: { readonly path: string; readonly findings: Findings },
): readonly Json[] {
  for (const index of given.keys()) findings.add(`${path}[${index}].type`, 'is not known');
  return given;
}
