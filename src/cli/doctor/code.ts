/** Checks how code of tenants is isolated on this machine, as a vault does when it starts. */

import type { Isolation } from '../../reactors/sandbox/isolation.ts';
import { openSandbox } from '../../reactors/sandbox/open.ts';
import { canLowerPriority } from '../../reactors/sandbox/priority.ts';
import { findIsolation, IsolationError } from '../../reactors/sandbox/probe.ts';
import type { IsolationName } from '../../reactors/sandbox/sandbox.ts';
import type { Config } from '../../runtime/config/config.ts';
import { type Finding, reporter } from './finding.ts';

/** The means of isolation of each way, besides the engine in WebAssembly and Node's permission model. */
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

const noneAdvice =
  'This is what STRONGROOM_REACTOR_ISOLATION=none asks for. Unset it wherever tenants whom you do not trust have code.';

const { ok, warning, problem } = reporter('code');

export async function checkCode({ reactors }: Config): Promise<readonly Finding[]> {
  if (!reactors.isOn) return [ok('STRONGROOM_REACTORS=off: no code of tenants runs')];
  let isolation: Isolation | undefined;
  try {
    isolation = await findIsolation(reactors.isolation);
  } catch (error) {
    if (!(error instanceof IsolationError)) throw error;
    return [problem(`${error.message}.`, advice)];
  }
  if (isolation === undefined) {
    const text = 'no code of tenants runs: this machine permits no isolation of its processes';
    return [warning(text, `${advice} To run it without, set STRONGROOM_REACTOR_ISOLATION=none.`)];
  }
  if (!(await runs(isolation))) return [problem('code of tenants cannot be run here', advice)];
  return [shown(isolation), ...filterFindings(isolation), ...(await priorityFindings())];
}

async function runs(isolation: Isolation): Promise<boolean> {
  const sandbox = openSandbox(isolation);
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
    return result.kind === 'returned';
  } finally {
    await sandbox.close();
  }
}

function shown({ name }: Isolation): Finding {
  const text = `code of tenants runs in processes with ${layers[name]}`;
  if (name === 'none') return warning(text, noneAdvice);
  return name.startsWith('namespaces') ? ok(text) : warning(text, advice);
}

function filterFindings({ name, isFiltered }: Isolation): readonly Finding[] {
  if (name === 'none') return [];
  if (isFiltered) return [ok('a seccomp filter refuses the system calls that code does not need')];
  return [
    warning(
      'no seccomp filter is around processes with code of tenants',
      'Install Perl (/usr/bin/perl), which installs the filter. There is one for x86_64 and aarch64.',
    ),
  ];
}

async function priorityFindings(): Promise<readonly Finding[]> {
  if (process.platform !== 'linux') return [];
  if (await canLowerPriority()) {
    return [ok('processes with code of tenants can be given a lower priority')];
  }
  return [
    warning(
      'the system does not let the vault lower the priority of processes with code of tenants',
      'Permit the system call setpriority: in a unit of systemd SystemCallFilter=setpriority after the lines that ' +
        'deny @resources, in a container a seccomp profile that permits it.',
    ),
  ];
}
