/** Checks a proxy before it is stored: whether it may lend its rights, and whether its code may and can run. */

import {
  type CodeAttempt,
  type CodeTools,
  refusalOfRights,
  refusalWhereOff,
  requireRunnable,
} from '../reactors/code/check.ts';
import type { Caller } from '../rules/caller.ts';
import type { Refused } from '../rules/operation.ts';
import type { ProxyDefinition } from './definition.ts';
import type { ResponseTransform } from './transforms/definitions.ts';
import { transformsOf } from './transforms.ts';

/**
 * Calls without a key use the rights of the proxy's application. Code uses the same rights, or those of its own
 * runtime. Therefore the application is checked even if there is no code.
 * @throws VaultError `unprocessable` for code that cannot run.
 */
export async function refusalOfLending(
  tools: CodeTools,
  caller: Caller,
  { definition, ...attempt }: CodeAttempt & { readonly definition: ProxyDefinition },
): Promise<Refused | undefined> {
  const { application_id } = definition;
  const own = { application_id, runtime: { permissions: [] } };
  const unlent = refusalOfRights(tools, caller, { ...attempt, ...own });
  if (unlent) return unlent;
  const coded = codeOf(definition);
  if (coded.length === 0) return undefined;
  const isOff = refusalWhereOff(tools, caller, attempt);
  if (isOff) return isOff;
  for (const { code, runtime, path } of coded) {
    const refused = refusalOfRights(tools, caller, {
      ...attempt,
      application_id,
      runtime,
    });
    if (refused) return refused;
    const paths = { path: `${path}.code`, runtimePath: `${path}.options.runtime` };
    await requireRunnable(tools.code, caller.tenant, { code, runtime, ...paths });
  }
  return undefined;
}

function codeOf({ request_transforms, response_transforms }: ProxyDefinition) {
  const { request, response } = transformsOf({
    requestTransforms: request_transforms,
    responseTransforms: response_transforms,
  });
  const sides = { request_transforms: request, response_transforms: response };
  return Object.entries<readonly ResponseTransform[]>(sides).flatMap(([side, list]) =>
    list.flatMap((one, index) =>
      one.type === 'code'
        ? [{ code: one.code, runtime: one.runtime, path: `${side}[${index}]` }]
        : [],
    ),
  );
}
