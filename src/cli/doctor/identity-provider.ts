/** The identity provider: reached, and the one that the operator named. */
import { createCalls, discover, whyRefused } from '../../access/people/identity-provider.ts';
import type { Config } from '../../runtime/config/config.ts';
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
