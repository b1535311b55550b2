/**
 * Makes a release: the package, a bill of its materials (CycloneDX), checksums of both, and a signature of these.
 *
 *   npx node scripts/release.ts DIRECTORY --key FILE
 *
 * The key is a private key in PEM that you made, such as `openssl genpkey -algorithm ed25519`. Anyone verifies with
 * its public half: `openssl pkeyutl -verify -rawin -pubin -inkey release.pub -in SHA256SUMS -sigfile SHA256SUMS.sig`.
 */
import { execFileSync } from 'node:child_process';
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

const root = join(import.meta.dirname, '..');
const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

interface Release {
  /** Where the files go; it must be empty, or not exist. */
  readonly directory: string;
  readonly key: KeyObject;
}

/** @returns the names of the files. */
export function makeRelease({ directory, key }: Release): readonly string[] {
  if (existsSync(directory) && readdirSync(directory).length > 0) {
    throw new Error(`${directory} is not empty`);
  }
  mkdirSync(directory, { recursive: true });
  const npm = (...words: string[]) =>
    execFileSync('npm', words, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 });
  npm('pack', '--pack-destination', directory);
  const materials = `${name}-${version}.cdx.json`;
  const bill = JSON.parse(npm('sbom', '--sbom-format=cyclonedx', '--package-lock-only'));
  writeFileSync(join(directory, materials), `${JSON.stringify(installedOf(bill), null, 2)}\n`);
  const files = readdirSync(directory).sort();
  const sums = files.map((file) => `${sha256Of(join(directory, file))}  ${file}\n`).join('');
  writeFileSync(join(directory, 'SHA256SUMS'), sums);
  writeFileSync(join(directory, 'SHA256SUMS.sig'), signature(sums, key));
  return [...files, 'SHA256SUMS', 'SHA256SUMS.sig'];
}

interface Bill {
  readonly components: readonly {
    readonly 'bom-ref': string;
    readonly scope?: string | undefined;
    readonly properties?: readonly object[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/**
 * What an installation brings, by the lock file. With `--omit=dev`, npm 11 leaves out what development packages need
 * too, and it takes a package for one of them if any copy of its version is.
 */
function installedOf({ components, dependencies, ...bill }: Bill): Bill {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const installed = new Map([[`${name}@${version}`, 'required']]);
  for (const [path, one] of Object.entries<LockedPackage>(packages)) {
    const [, called] = /^node_modules\/(?:.*\/node_modules\/)?(.+)$/.exec(path) ?? [];
    if (!called || one.dev || one.devOptional) continue;
    installed.set(`${called}@${one.version}`, one.optional ? 'optional' : 'required');
  }
  return {
    ...bill,
    components: components
      .filter((one) => installed.has(one['bom-ref']))
      .map((one) => ({ ...one, scope: installed.get(one['bom-ref']), properties: [] })),
    dependencies: dependencies
      .filter(({ ref }) => installed.has(ref))
      .map(({ ref, dependsOn }) => ({
        ref,
        dependsOn: dependsOn.filter((on) => installed.has(on)),
      })),
  };
}

interface LockedPackage {
  readonly version: string;
  readonly optional?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

/** Verified at once: a key that cannot do that would be found out by those who download. */
function signature(text: string, key: KeyObject): Buffer {
  const algorithm = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  const signed = sign(algorithm, Buffer.from(text), key);
  if (!verify(algorithm, Buffer.from(text), createPublicKey(key), signed)) {
    throw new Error('the key does not verify what it signed');
  }
  return signed;
}

function sha256Of(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { key: { type: 'string' } },
  });
  const [directory] = positionals;
  if (directory === undefined || values.key === undefined) {
    process.stderr.write(`usage: ${basename(import.meta.filename)} DIRECTORY --key FILE\n`);
    process.exit(2);
  }
  for (const file of makeRelease({ directory, key: createPrivateKey(readFileSync(values.key)) })) {
    process.stdout.write(`${join(directory, file)}\n`);
  }
}
