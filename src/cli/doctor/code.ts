/** How code of tenants is kept apart on this machine, which a vault finds out at its first call. */
import type { Config } from '../../config.ts';
import { openSandbox } from '../../sandbox/open.ts';
import type { IsolationName } from '../../sandbox/sandbox.ts';
import { type Finding, reporter } from './finding.ts';

/** What each way keeps code in with, besides the engine in WebAssembly and Node's permission model. */
const layers: Readonly<Record<IsolationName, string>> = {
  'namespaces and user': 'namespaces, another user, and an empty root',
  namespaces: 'namespaces and an empty root',
  user: 'another user and limits, but no namespaces',
  limits: 'limits, but no namespaces',
  none: 'no namespaces and no limits',
};

const advice =
  'On Linux, install util-linux and permit user namespaces: kernel.unprivileged_userns_clone=1, ' +
  'kernel.apparmor_restrict_unprivileged_userns=0, no RestrictNamespaces in the unit of systemd, in a container ' +
  'a seccomp profile that permits them. If no tenant has code, set STRONGROOM_REACTORS=off.';

export async function checkCode({ reactors }: Config): Promise<readonly Finding[]> {
  const { ok, warning, problem } = reporter('code');
  if (!reactors.isOn) return [ok('STRONGROOM_REACTORS=off: no code of tenants runs')];
  const sandbox = openSandbox();
  try {
    const result = await sandbox.run({
      tenant: 'doctor',
      code: 'module.exports = () => null',
      contract: 'node-bt',
      input: {},
      bt: false,
      timeoutMs: 10_000,
      modules: new Map(),
      serve: async () => null,
    });
    const { isolation } = sandbox.state();
    if (result.kind !== 'returned' || isolation === undefined) {
      return [problem('code of tenants cannot be run here', advice)];
    }
    const text = `code of tenants runs in processes with ${layers[isolation]}`;
    return [isolation.startsWith('namespaces') ? ok(text) : warning(text, advice)];
  } finally {
    await sandbox.close();
  }
}
