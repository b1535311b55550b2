/** The variables of a program that sends its requests through the forward proxy of the vault. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { getCACertificates, rootCertificates } from 'node:tls';
import type { Environment } from '../../runtime/config/variables.ts';

/** The address of the proxy, with its password. Some programs read one spelling, some the other. */
const proxyVariables = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];
/** What would lead requests past it. */
const bypassVariables = ['NO_PROXY', 'no_proxy', 'ALL_PROXY', 'all_proxy'];
/** Replaces the roots that a program trusts. */
const rootsVariables = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'CURL_CA_BUNDLE'];
const nodeRoots = 'NODE_EXTRA_CA_CERTS';
const ownVariables = new Set([
  ...proxyVariables,
  ...bypassVariables,
  ...rootsVariables,
  nodeRoots,
  'NODE_USE_ENV_PROXY',
]);

/** Which authorities a program trusts. */
const trusts = new Set([...rootsVariables, nodeRoots]);

/**
 * Node's own agent of all requests looks at the variables of proxies; one that a library makes for itself, as SDKs do
 * to keep connections, does not without a setting. Libraries with agents of other kinds have settings of their own.
 */
const agentsModule = `'use strict';
for (const module of [require('node:http'), require('node:https')]) {
  const { Agent } = module;
  const made = (options) => new Agent({ proxyEnv: process.env, ...options });
  module.Agent = new Proxy(Agent, {
    apply: (_target, _self, [options]) => made(options),
    construct: (target, given, caller) =>
      caller === module.Agent ? made(given[0]) : Reflect.construct(target, given, caller),
  });
}
require('node:module').syncBuiltinESMExports();`;

const loopbackHosts = 'localhost,127.0.0.1,::1';

/** Whether no file may give a variable of this name. */
export function decidesWhereRequestsGo(name: string): boolean {
  return ownVariables.has(name) || name.startsWith('STRONGROOM_');
}

export interface AuthorityFiles {
  /** The authority of the tenant, and what Node trusts besides its own roots. */
  readonly extra: string;
  /** The same with the roots of the system. */
  readonly roots: string;
}

export interface AgentFolder {
  readonly path: string;
  /** A module for Node to load first. */
  readonly preload: string;
  /** Absent where no connection is opened. */
  readonly files: AuthorityFiles | undefined;
  remove(): void;
}

/** What the program needs of files, where only this user reads them, until they are removed. */
export function makeAgentFolder(certificate: string | undefined): AgentFolder {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-agent-'));
  const write = (name: string, certificates: readonly string[]) => {
    const file = join(folder, name);
    const text = [...new Set(certificates.map((one) => one.trim()))].join('\n');
    writeFileSync(file, `${text}\n`, { mode: 0o600, flag: 'wx' });
    return file;
  };
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const preload = write('agents.cjs', [agentsModule]);
    if (certificate === undefined) return { path: folder, preload, files: undefined, remove };
    const own = [certificate, ...getCACertificates('extra')];
    const ofSystem = getCACertificates('system');
    const roots = ofSystem.length > 0 ? ofSystem : rootCertificates;
    const files = {
      extra: write('authority.pem', own),
      roots: write('roots.pem', [...own, ...roots]),
    };
    return { path: folder, preload, files, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

export interface ProgramSettings {
  /** With the password. */
  readonly proxyUrl: string;
  readonly preload: string;
  /** Without them, the program trusts what it trusts. */
  readonly files: AuthorityFiles | undefined;
  readonly placeholders: Readonly<Record<string, string>>;
  readonly isLoopbackDirect: boolean;
}

/** The variables of this process, without what is the vault's, and with these settings. */
export function programEnvironment(
  environment: Environment,
  { proxyUrl, preload, files, placeholders, isLoopbackDirect }: ProgramSettings,
): Record<string, string | undefined> {
  const kept = Object.entries(environment).filter(
    ([name, value]) =>
      (!decidesWhereRequestsGo(name) || (!files && trusts.has(name))) && !isOwnCache(name, value),
  );
  const all = (names: readonly string[], value: string) => names.map((name) => [name, value]);
  return Object.fromEntries([
    ...kept,
    ...Object.entries(placeholders),
    ...all(proxyVariables, proxyUrl),
    ...(files ? [...all(rootsVariables, files.roots), [nodeRoots, files.extra]] : []),
    ['NODE_USE_ENV_PROXY', '1'],
    [
      'NODE_OPTIONS',
      [environment['NODE_OPTIONS'], `--require ${JSON.stringify(preload)}`].join(' ').trim(),
    ],
    ...(isLoopbackDirect ? all(['NO_PROXY', 'no_proxy'], loopbackHosts) : []),
  ]);
}

/** The compiled code of this command. A program that isn't trusted has no business there. */
function isOwnCache(name: string, value: string | undefined): boolean {
  return name === 'NODE_COMPILE_CACHE' && value?.endsWith(`.cache${sep}strongroom`) === true;
}
