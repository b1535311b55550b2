/** A room for the tenant's code: what goes in, what comes out, and what it may ask for meanwhile. */

export interface Sandbox {
  /** Never rejects: whatever the code does is a result. */
  run(call: SandboxCall): Promise<SandboxResult>;
  /**
   * What is wrong with code, or `undefined`. It is evaluated for that, within the same limits as a call, in processes
   * that no call uses. Where all of them are busy it is not evaluated, and nothing is found wrong.
   */
  check(code: CodeToCheck): Promise<CodeProblem | undefined>;
  /** Ends all processes; calls under way end as `stopped`. */
  close(): Promise<void>;
  state(): SandboxState;
}

/** From strong to weak. Which one is used is found before the first call, and never changes. */
export type IsolationName = 'namespaces and user' | 'namespaces' | 'user' | 'limits' | 'none';

/** `node-bt` calls the function with a request, `node22` with an event, which has a logger. */
export type CodeContract = 'node-bt' | 'node22';

export interface SandboxCall {
  /** Calls of one tenant share processes with nobody else's. */
  readonly tenant: string;
  /** For whom it runs within the tenant, from a large group to one of it; those of one level take turns. */
  readonly parties?: readonly string[];
  readonly code: string;
  readonly contract: CodeContract;
  /** JSON of what the function gets besides what the sandbox adds: `args` or `req`, `configuration`, and so on. */
  readonly input: object;
  /** With `true` the function gets `bt` and `vault`, whose methods ask `serve`; otherwise both are null. */
  readonly bt: boolean;
  /** Until the result is there, from when a process takes the call; what overstays is killed. */
  readonly timeoutMs: number;
  /** The operator's: name to CommonJS source. */
  readonly modules: ReadonlyMap<string, string>;
  /**
   * Serves what code asks for; JSON in, JSON out. A `VaultError` reaches the code as an error with its
   * public text, status and `errors`; of any other the code learns nothing.
   */
  readonly serve: (request: ServeRequest, signal: AbortSignal) => Promise<unknown>;
  /** Ends the call as `stopped`. */
  readonly signal?: AbortSignal;
}

export type ServeRequest =
  | { readonly operation: 'fetch'; readonly input: FetchInput }
  | { readonly operation: BtOperation; readonly input: BtInput };

export type BtOperation =
  | 'bt.tokens.retrieve'
  | 'bt.tokens.create'
  | 'bt.tokens.update'
  | 'bt.tokens.delete'
  | 'bt.tokenize'
  | 'bt.detokenize';

export interface BtInput {
  /** Of retrieve, update and delete. */
  readonly id?: string;
  /** Of create, update, tokenize and detokenize: whatever JSON the code gave. */
  readonly body?: unknown;
}

/** Checked in shape by the parent; whether the destination is allowed is up to `serve`. */
export interface FetchInput {
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Base64. */
  readonly body?: string;
}

/** What `serve` gives for `fetch`. */
export interface FetchOutput {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Base64. */
  readonly body: string;
}

export type SandboxResult =
  | { readonly kind: 'returned'; readonly value: unknown; readonly log: readonly CodeLogLine[] }
  | { readonly kind: 'threw'; readonly error: CodeError; readonly log: readonly CodeLogLine[] }
  | { readonly kind: 'ended'; readonly reason: EndReason; readonly log: readonly CodeLogLine[] };

/**
 * With `tenant busy` and `pool full` the call had no turn in time, with `no process` none could be started; the
 * code did not run then.
 */
export type EndReason =
  | 'timeout'
  | 'memory'
  | 'crashed'
  | 'input too large'
  | 'result too large'
  | 'result not JSON'
  | 'tenant busy'
  | 'pool full'
  | 'no process'
  | 'stopped';

export type CodeLogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface CodeLogLine {
  readonly level: CodeLogLevel;
  /** Milliseconds since the epoch, by the parent's clock. */
  readonly at: number;
  readonly text: string;
}

export type CodeErrorName =
  | 'BadRequestError'
  | 'InvalidReactorConfigurationError'
  | 'AuthenticationError'
  | 'InvalidPaymentMethodError'
  | 'AuthorizationError'
  | 'InvalidReactorFormulaError'
  | 'RateLimitError'
  | 'ReactorRuntimeError'
  | 'ServiceUnavailableError'
  | 'CustomHttpResponseError'
  /** Anything else that was thrown. */
  | 'other';

export interface CodeError {
  readonly name: CodeErrorName;
  readonly status: number;
  readonly detail: string;
  /** What the code said, by property. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  /** Of `CustomHttpResponseError` alone. */
  readonly response?: CustomResponse;
}

export interface CustomResponse {
  /** 100 to 599. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface CodeToCheck {
  readonly tenant: string;
  readonly code: string;
  readonly modules: ReadonlyMap<string, string>;
}

/** The message says what the author can do about it, and may quote the name of a module. */
export interface CodeProblem {
  readonly kind:
    | 'too long'
    | 'does not compile'
    | 'exports no function'
    | 'module'
    | 'fails'
    | 'stopped';
  readonly message: string;
}

export interface SandboxState {
  /** How processes are kept apart here. */
  readonly isolation: IsolationName;
  readonly processes: number;
  readonly running: number;
  readonly waiting: number;
}
