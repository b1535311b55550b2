/** The code transforms of a proxy that is to be stored: whether they may and can run. */
import type { Caller } from '../../rules/caller.ts';
import type { Refused } from '../../rules/operation.ts';
import type { ResponseTransform } from '../../transforms/definitions.ts';
import {
  type CodeAttempt,
  type CodeTools,
  refusalOfRights,
  refusalWhereOff,
  requireRunnable,
} from '../code/check.ts';
import type { ProxyDefinition } from './definition.ts';
import { transformsOf } from './transforms.ts';

/**
 * Code acts with the rights of the proxy's application, or of its own runtime.
 * @throws VaultError `unprocessable` for code that cannot be run.
 */
export async function refusalOfCode(
  tools: CodeTools,
  caller: Caller,
  { definition, ...attempt }: CodeAttempt & { readonly definition: ProxyDefinition },
): Promise<Refused | undefined> {
  const { application_id } = definition;
  const coded = codeOf(definition);
  if (coded.length === 0) return undefined;
  const isOff = refusalWhereOff(tools, caller, attempt);
  if (isOff) return isOff;
  for (const { code, runtime, path } of coded) {
    const refused = refusalOfRights(tools, caller, { ...attempt, application_id, runtime });
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
