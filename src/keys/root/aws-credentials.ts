/** Where the source `aws-kms` finds its credentials: the places that all clients of AWS share, in their order. */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Clock, type Instant, latestInstant, minute, parseInstant } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import { credentialOf, jsonOf, remoteUnavailable, requestRemote } from './remote.ts';
import type { ReadRootKeyVariable } from './root-key.ts';

/** Credentials of AWS. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string;
}

interface TemporaryCredentials extends AwsCredentials {
  readonly expiresAt: Instant;
}

export interface AwsPlace {
  /** Names the root key in errors. */
  readonly origin: string;
  readonly region: string;
  /** The variables of AWS, such as `AWS_PROFILE`. */
  readonly read: ReadRootKeyVariable;
  readonly clock: Clock;
}

/** A place of credentials; `undefined` where there are none. */
type Provider = (place: AwsPlace) => Promise<TemporaryCredentials | undefined>;

const providers: readonly Provider[] = [
  async ({ read }) =>
    lasting({
      accessKeyId: read('AWS_ACCESS_KEY_ID'),
      secretAccessKey: read('AWS_SECRET_ACCESS_KEY'),
      sessionToken: read('AWS_SESSION_TOKEN'),
    }),
  ofWebIdentity,
  async ({ read }) => {
    const profile = profileOf(read);
    return lasting({
      accessKeyId: profile['aws_access_key_id'],
      secretAccessKey: profile['aws_secret_access_key'],
      sessionToken: profile['aws_session_token'],
    });
  },
  ofInstance,
];

/** Temporary credentials are replaced this long before they expire. */
const replacedBeforeMs = 5 * minute;

/**
 * Returns the credentials, and new ones before temporary ones expire.
 * @throws VaultError `unavailable` where there are none.
 */
export function createAwsCredentials(place: AwsPlace): () => Promise<AwsCredentials> {
  let known: TemporaryCredentials | undefined;
  return async () => {
    if (known && place.clock.now() < known.expiresAt - replacedBeforeMs) return known;
    known = await find(place);
    return known;
  };
}

async function find(place: AwsPlace): Promise<TemporaryCredentials> {
  for (const provider of providers) {
    const found = await provider(place);
    if (found) return found;
  }
  throw remoteUnavailable(
    place.origin,
    'finds no credentials in the environment, a web identity, the shared file, or the instance',
  );
}

function lasting({
  accessKeyId,
  secretAccessKey,
  sessionToken,
}: {
  readonly [C in keyof AwsCredentials]-?: string | undefined;
}): TemporaryCredentials | undefined {
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== undefined && { sessionToken }),
    // The tool that sets temporary credentials also has to replace them, so they are read again.
    expiresAt: sessionToken === undefined ? latestInstant : parseInstant(0),
  };
}

/** Roles for service accounts, as in EKS: AssumeRoleWithWebIdentity of the Security Token Service. */
async function ofWebIdentity({
  origin,
  region,
  read,
}: AwsPlace): Promise<TemporaryCredentials | undefined> {
  const file = read('AWS_WEB_IDENTITY_TOKEN_FILE');
  const role = read('AWS_ROLE_ARN');
  if (file === undefined || role === undefined) return undefined;
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role,
    RoleSessionName: read('AWS_ROLE_SESSION_NAME') ?? 'strongroom',
    WebIdentityToken: credentialOf({ origin }, file),
  });
  const address = read('AWS_ENDPOINT_URL_STS') ?? `https://sts.${region}.amazonaws.com`;
  const { status, text } = await requestRemote(origin, address, { method: 'POST', body });
  // The response is XML, of which these four elements are all that is needed.
  const element = (name: string) => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1];
  const found = temporary({
    accessKeyId: element('AccessKeyId'),
    secretAccessKey: element('SecretAccessKey'),
    sessionToken: element('SessionToken'),
    expiration: element('Expiration'),
  });
  if (status === 200 && found) return found;
  throw remoteUnavailable(origin, `cannot assume its role by web identity (status ${status})`);
}

/** The Instance Metadata Service, version 2: a token first, with which no other host of the network can be asked. */
async function ofInstance({ origin, read }: AwsPlace): Promise<TemporaryCredentials | undefined> {
  if (read('AWS_EC2_METADATA_DISABLED')?.toLowerCase() === 'true') return undefined;
  const address = read('AWS_EC2_METADATA_SERVICE_ENDPOINT') ?? 'http://169.254.169.254';
  const request = async (path: string, init: RequestInit) => {
    const response = await requestRemote(origin, new URL(path, address), init);
    if (response.status === 200) return response;
    throw remoteUnavailable(origin, `gets status ${response.status} from the instance's metadata`);
  };
  const ttl = { 'x-aws-ec2-metadata-token-ttl-seconds': '300' };
  const token = await request('/latest/api/token', { method: 'PUT', headers: ttl });
  const headers = { 'x-aws-ec2-metadata-token': token.text };
  const roles = '/latest/meta-data/iam/security-credentials/';
  const role = (await request(roles, { headers })).text.trim();
  const found = jsonOf(await request(`${roles}${encodeURIComponent(role)}`, { headers }));
  return temporary({
    accessKeyId: found['AccessKeyId'],
    secretAccessKey: found['SecretAccessKey'],
    sessionToken: found['Token'],
    expiration: found['Expiration'],
  });
}

function temporary({
  accessKeyId,
  secretAccessKey,
  sessionToken,
  expiration,
}: Record<
  'accessKeyId' | 'secretAccessKey' | 'sessionToken' | 'expiration',
  JsonObject[string] | undefined
>): TemporaryCredentials | undefined {
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string') return undefined;
  if (typeof sessionToken !== 'string' || typeof expiration !== 'string') return undefined;
  const expiresAt = Date.parse(expiration);
  if (Number.isNaN(expiresAt)) return undefined;
  return { accessKeyId, secretAccessKey, sessionToken, expiresAt: parseInstant(expiresAt) };
}

/** The section of a profile in the shared file of credentials, an INI file. */
function profileOf(read: ReadRootKeyVariable): Readonly<Record<string, string>> {
  const file = read('AWS_SHARED_CREDENTIALS_FILE') ?? join(homedir(), '.aws', 'credentials');
  if (!existsSync(file)) return {};
  const wanted = read('AWS_PROFILE') ?? 'default';
  const values: Record<string, string> = {};
  let section = '';
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    section = /^\s*\[([^\]]+)\]/.exec(line)?.[1]?.trim() ?? section;
    const [, name, value] = /^\s*([a-z_]+)\s*=\s*(\S+)\s*$/.exec(line) ?? [];
    if (section === wanted && name !== undefined && value !== undefined) values[name] = value;
  }
  return values;
}
