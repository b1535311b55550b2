/** The files that browsers load from this vault, each in memory once. */
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path/posix';
import { VaultError } from '../base/errors.ts';
import { builtDirectory, sourceModule } from '../base/installation/entry-points.ts';
import { FixedBody } from '../http/protocol/fixed-body.ts';
import { type BuiltFile, builtFile, type ListedFile, manifestName } from './built-file.ts';

/** The characters of a digest that a path has: 128 bits. */
const digestCharacters = 22;

const mediaTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

export interface BrowserFile extends ListedFile {
  /** Where it is served; it has a digest, so what is there never changes. */
  readonly path: string;
  readonly mediaType: string;
  /** HTML that loads the file, and refuses any other contents. A script runs once the page is parsed. */
  readonly element: string;
  readonly body: FixedBody;
}

export interface BrowserFiles {
  /** @param name such as `fields/loader.js`. @throws Error if no bundle has it. */
  named(name: string): BrowserFile;
  /** By the path with the digest. */
  at(path: string): BrowserFile | undefined;
  /** In the order of their names. */
  readonly all: readonly BrowserFile[];
}

/** @throws VaultError `unavailable` where the files cannot be built or read. */
export type OpenBrowserFiles = () => Promise<BrowserFiles>;

export interface BrowserFilesSource {
  /** Where a build is; without one, the files are built now. */
  readonly directory: URL | undefined;
  readonly build: () => Promise<readonly BuiltFile[]>;
}

/** Reads or builds the files at the first use, so that no start waits for them. */
export function createBrowserFiles({
  directory = builtDirectory('browser'),
  build = buildFromSources,
}: Partial<BrowserFilesSource> = {}): OpenBrowserFiles {
  let opened: Promise<BrowserFiles> | undefined;
  return () => {
    const built = () => (directory ? readBuild(directory) : build());
    opened ??= built().then(browserFilesOf, (cause: unknown) => {
      opened = undefined;
      throw new VaultError('unavailable', {
        public: 'The files for browsers cannot be read.',
        internal: 'the files for browsers cannot be built or read',
        cause,
      });
    });
    return opened;
  };
}

function browserFilesOf(built: readonly BuiltFile[]): BrowserFiles {
  const all = built.map(browserFileOf).sort((a, b) => (a.name < b.name ? -1 : 1));
  const byName = new Map(all.map((file) => [file.name, file]));
  const byPath = new Map(all.map((file) => [file.path, file]));
  return {
    all,
    at: (path) => byPath.get(path),
    named: (name) => {
      const file = byName.get(name);
      if (file) return file;
      throw new Error(`no bundle has ${name}`);
    },
  };
}

function browserFileOf({ name, integrity, contents }: BuiltFile): BrowserFile {
  const extension = extname(name);
  const digest = Buffer.from(integrity.slice('sha384-'.length), 'base64').toString('base64url');
  const path = `/assets/${name.slice(0, -extension.length)}-${digest.slice(0, digestCharacters)}${extension}`;
  const mediaType = mediaTypes[extension];
  if (mediaType === undefined) throw new Error(`${name} has no media type`);
  const check = `integrity="${integrity}" crossorigin="anonymous"`;
  const element =
    extension === '.css'
      ? `<link rel="stylesheet" href="${path}" ${check}>`
      : `<script src="${path}" ${check} defer></script>`;
  return { name, integrity, path, mediaType, element, body: new FixedBody(contents, digest) };
}

/** A clone runs its sources, and has the bundler among its development dependencies. */
async function buildFromSources(): Promise<readonly BuiltFile[]> {
  const { buildBrowserFiles } = (await import(sourceModule('scripts/browser-files.ts'))) as {
    readonly buildBrowserFiles: () => Promise<{ readonly files: readonly BuiltFile[] }>;
  };
  return (await buildBrowserFiles()).files;
}

async function readBuild(directory: URL): Promise<readonly BuiltFile[]> {
  const text = await readFile(new URL(manifestName, directory), 'utf8');
  const listed = JSON.parse(text) as readonly ListedFile[];
  return Promise.all(
    listed.map(async ({ name, integrity }) => {
      const file = builtFile(name, await readFile(new URL(name, directory)));
      if (file.integrity !== integrity) throw new Error(`${name} is not as it was built`);
      return file;
    }),
  );
}
