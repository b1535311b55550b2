/** AWS as Moto, a Python program, plays it: for tests of the root key source `aws-kms`, where it is installed. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { AwsV4Signer } from 'aws4fetch';
import { nextLook } from './poll.ts';
import { freePort, type Lender } from './temporary.ts';

/** The path of its program; `moto_server` on the path unless given. */
const variable = 'TEST_MOTO_BIN';

const program = process.env[variable] ?? 'moto_server';

/** A reason to skip tests where it is not installed; false where it is. */
export const withoutMoto =
  spawnSync(program, ['--help']).status === 0
    ? false
    : `Moto was not found: pip install 'moto[server]', or name its moto_server in ${variable}`;

export const kmsRegion = 'eu-central-1';

/** Returns its address. */
export async function startMoto(t: Lender): Promise<string> {
  const port = String(await freePort());
  const server = spawn(program, ['-H', '127.0.0.1', '-p', port], { stdio: 'ignore' });
  t.after(async () => {
    server.kill('SIGKILL');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  });
  const address = `http://127.0.0.1:${port}`;
  while (!(await responds(address))) await nextLook();
  return address;
}

async function responds(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${address}/moto-api/data.json`);
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/** Makes a symmetric key. */
export async function newKmsKey(
  address: string,
): Promise<{ readonly keyId: string; readonly arn: string }> {
  const { KeyMetadata } = await callKms(address, 'CreateKey', {});
  const { KeyId, Arn } = KeyMetadata as Record<string, string>;
  return { keyId: String(KeyId), arn: String(Arn) };
}

/** One call of the KMS. Moto accepts all credentials. */
export async function callKms(
  url: string,
  action: string,
  input: object,
): Promise<Record<string, unknown>> {
  const signer = new AwsV4Signer({
    accessKeyId: 'test',
    secretAccessKey: 'test',
    url,
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.1',
      'x-amz-target': `TrentService.${action}`,
    },
    body: JSON.stringify(input),
    service: 'kms',
    region: kmsRegion,
  });
  const { headers, body } = await signer.sign();
  const response = await fetch(url, { method: 'POST', headers, body: body ?? null });
  const text = await response.text();
  return text === '' ? {} : JSON.parse(text);
}
