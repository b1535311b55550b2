/** Development packages that a test can do without: it skips, and says why. */

/** Its exports; `undefined` where the package is not installed. */
// biome-ignore lint/suspicious/noExplicitAny: without the package there are no types of it either
export async function installed(name: string): Promise<any> {
  try {
    return await import(name);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') {
      return undefined;
    }
    throw error;
  }
}

/** The reason to skip a test that needs these packages, or false. */
export function reasonWithout(packages: Readonly<Record<string, unknown>>): string | false {
  const absent = Object.keys(packages).filter((name) => packages[name] === undefined);
  return absent.length > 0 && `not installed: ${absent.join(', ')}`;
}
