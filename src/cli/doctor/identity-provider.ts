/** The identity provider: reached, and the one that the operator named. */

import { createCalls, discover, whyRefused } from '../../access/people/identity-provider.ts';
import type { RoleRule } from '../../access/people/mapped-roles.ts';
import { tenantMeant } from '../../access/tenants/handle.ts';
import { type ApplicationId, parseUuid } from '../../base/ids.ts';
import type { Config } from '../../runtime/config/config.ts';
import type { ReadOnlyStore } from '../../store/open/read-only.ts';
import { applicationCount } from '../../store/queries/applications.ts';
import { tenantNamed, tenantWithId } from '../../store/queries/tenants.ts';
import { type Finding, reporter } from './finding.ts';

const advice =
  'Check STRONGROOM_OIDC_ISSUER, the network, and STRONGROOM_OUTBOUND_CA. Nobody signs in with it meanwhile; ' +
  'strongroom person link lets you in.';

/** In its description, without which nobody can sign in. */
const needed = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;

export async function checkIdentityProvider({
  identityProvider,
  roleRules,
  console: isServed,
  outbound,
}: Config): Promise<readonly Finding[]> {
  const { ok, warning, problem } = reporter('sign-in');
  if (!identityProvider) return [];
  const findings: Finding[] = [];
  if (!isServed) {
    findings.push(warning('the console is off, so nobody signs in', 'Set STRONGROOM_CONSOLE=on.'));
  }
  if (roleRules.length === 0) {
    const text = 'the file of STRONGROOM_OIDC_ROLES gives nobody a role';
    findings.push(
      warning(text, 'Map a group of the provider to an application (docs/console.md).'),
    );
  }
  const issuer = new URL(identityProvider.issuer);
  try {
    const call = createCalls(issuer, { ...outbound, vaultName: 'doctor' });
    const found = await discover(issuer, identityProvider, call);
    const missing = needed.filter((name) => found[name] === undefined);
    if (missing.length === 0) return [...findings, ok('the identity provider can be reached')];
    const text = `the description of the identity provider has no ${missing.join(', ')}`;
    return [...findings, problem(text, advice)];
  } catch (error) {
    return [
      ...findings,
      problem(`the identity provider cannot be used: ${whyRefused(error)}`, advice),
    ];
  }
}

/** Rules that give nothing, because what they name is not there: nobody else would say so. */
export async function checkRoleRules(
  { roleRules }: Pick<Config, 'roleRules'>,
  store: ReadOnlyStore,
): Promise<readonly Finding[]> {
  const { warning } = reporter('sign-in');
  const flaws = await Promise.all(roleRules.map((rule) => flawOf(rule, store)));
  return flaws.flatMap((flaw, at) =>
    flaw === undefined
      ? []
      : [
          warning(
            `rule ${at + 1} of the file of STRONGROOM_OIDC_ROLES names ${flaw}`,
            'Correct the rule, and send SIGHUP to the vault.',
          ),
        ],
  );
}

async function flawOf(rule: RoleRule, store: ReadOnlyStore): Promise<string | undefined> {
  const tenant = tenantMeant(await store.select(tenantNamed(rule.tenant)), rule.tenant);
  if (tenant === 'ambiguous') return 'the id of one tenant and the name of another';
  const known = tenant === undefined ? [] : await store.select(tenantWithId(tenant));
  if (tenant === undefined || known.length === 0) return 'a tenant that does not exist';
  const id = parseUuid<ApplicationId>(rule.application);
  const ids = id === undefined ? [] : [id];
  const [found] = await store.select(applicationCount({ tenant, ids, kinds: undefined }));
  return found?.count ? undefined : 'an application that the tenant does not have';
}
