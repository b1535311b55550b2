/** The identity provider with which people sign in to the console (OpenID Connect). */
import { mayBePlain, type ProviderConfig } from '../../access/people/identity-provider.ts';
import { readAll, wrongVariable } from './problems.ts';
import { readText } from './values.ts';
import type { ReadVariable, VariableName } from './variables.ts';

const others: readonly VariableName[] = [
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET_FILE',
  'OIDC_NAME',
  'OIDC_ROLES',
  'OIDC_SCOPES',
];

/**
 * @returns `undefined` where no issuer is named.
 * @throws ConfigError
 */
export function readIdentityProvider(
  read: ReadVariable,
  readPublicUrl: () => string | undefined,
): ProviderConfig | undefined {
  if (read('OIDC_ISSUER') === undefined) {
    const lone = others.find((name) => read(name) !== undefined);
    if (lone === undefined) return undefined;
    throw wrongVariable(`STRONGROOM_${lone}`, 'needs STRONGROOM_OIDC_ISSUER');
  }
  const { console: consoleUrl, ...config } = readAll({
    issuer: () => readIssuer(read),
    clientId: () => required(read, 'OIDC_CLIENT_ID'),
    clientSecret: () => readSecret(read('OIDC_CLIENT_SECRET_FILE')),
    name: () => readName(read),
    scopes: () => readScopes(read('OIDC_SCOPES') ?? 'profile email'),
    // People with no role cannot sign in.
    roles: () => required(read, 'OIDC_ROLES'),
    console: () => consoleUrlIn(readPublicUrl()),
  });
  const { roles: _file, ...provider } = config;
  return { ...provider, consoleUrl, redirectUri: `${consoleUrl}/oidc` };
}

function required(read: ReadVariable, name: VariableName): string {
  const text = read(name);
  if (text !== undefined) return text;
  throw wrongVariable(`STRONGROOM_${name}`, 'is required with STRONGROOM_OIDC_ISSUER');
}

function readIssuer(read: ReadVariable): string {
  const text = read('OIDC_ISSUER') ?? '';
  const url = URL.parse(text);
  const isPlain = url && !url.username && !url.password && !/[?#]/.test(text);
  if (isPlain && (url.protocol === 'https:' || mayBePlain(url))) return text;
  throw wrongVariable(
    'STRONGROOM_OIDC_ISSUER',
    'must be a URL such as https://login.example.com, without user, query or fragment; http only at loopback',
  );
}

function readSecret(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  const variable = 'STRONGROOM_OIDC_CLIENT_SECRET_FILE';
  const secret = readText(variable, file).trim();
  if (secret !== '') return secret;
  throw wrongVariable(variable, 'names an empty file');
}

/** As the button of the sign-in page has it. */
function readName(read: ReadVariable): string {
  const name =
    read('OIDC_NAME') ?? URL.parse(read('OIDC_ISSUER') ?? '')?.hostname ?? 'OpenID Connect';
  if (/^[^\p{C}]{1,40}$/u.test(name) && name.trim() === name) return name;
  throw wrongVariable('STRONGROOM_OIDC_NAME', 'must be a line of 1 to 40 characters');
}

/** The tokens of RFC 6749, section 3.3. */
function readScopes(text: string): readonly string[] {
  const scopes = text.split(' ').filter((scope) => scope !== '' && scope !== 'openid');
  if (scopes.every((scope) => /^[!#-[\]-~]+$/.test(scope))) return [...new Set(scopes)];
  throw wrongVariable('STRONGROOM_OIDC_SCOPES', 'must be scopes such as "profile email groups"');
}

function consoleUrlIn(publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return `${publicUrl}/console`;
  throw wrongVariable(
    'STRONGROOM_PUBLIC_URL',
    'is required with STRONGROOM_OIDC_ISSUER, which sends people back there',
  );
}
