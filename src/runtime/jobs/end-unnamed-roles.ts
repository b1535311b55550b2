/** Ending what people have by the operator's rules, once no rule names it any more. */
import { endUnnamedRoles } from '../../access/people/identities.ts';
import type { RoleRule } from '../../access/people/mapped-roles.ts';
import { minute } from '../../base/clock.ts';
import type { JobTools } from './batches.ts';
import type { Job } from './runner.ts';

/** A sign-in that was under way when the rules changed may have followed the earlier ones. */
const everyMs = minute;

export function endingUnnamedRoles(tools: JobTools, rules: () => readonly RoleRule[]): Job {
  const run = () => endUnnamedRoles(tools, rules());
  return { name: 'end roles that no rule names', everyMs, run };
}
