/** The interface of the sandbox for tenants' code: its input, its output, and the requests that it may make. */

export interface Sandbox {
  /** Never rejects: every outcome of the code is a result. */
  run(call: SandboxCall): Promise<SandboxResult>;
  /**
   * Returns the problem of the code, or `undefined`. Evaluates the code within the limits of a call, in processes
   * that no call uses. If all of them are busy, the code is not evaluated, and no problem is reported.
   */
  check(code: CodeToCheck): Promise<CodeProblem | undefined>;
  /** Ends all processes; running calls end as `stopped`. */
  close(): Promise<void>;
  state(): SandboxState;
}

/** From strong to weak. The isolation is determined before the first call, and never changes. */
export type IsolationName = 'namespaces and user' | 'namespaces' | 'user' | 'limits' | 'none';

/** `node-bt` calls the function with a request, `node22` with an event, which has a logger. */
export type CodeContract = 'node-bt' | 'node22';

export interface SandboxCall {
  /** Only calls of the same tenant share a process. */
  readonly tenant: string;
  /** The parties within the tenant, from a large group to one of its members; parties of one level take turns. */
  readonly parties?: readonly string[];
  readonly code: string;
  readonly contract: CodeContract;
  /** The input as JSON, in addition to what the sandbox adds: `args` or `req`, `configuration`, and so on. */
  readonly input: object;
  /** If `true`, the function gets `bt` and `vault`, whose methods call `serve`; otherwise both are null. */
  readonly bt: boolean;
  /** The time from when a process takes the call until the result; the process of a slower call is killed. */
  readonly timeoutMs: number;
  /** The operator's modules, from name to CommonJS source. */
  readonly modules: ReadonlyMap<string, string>;
  /**
   * Serves requests of the code; JSON in, JSON out. A `VaultError` reaches the code as an error with its public text,
   * status, and `errors`. For any other error, the code gets no details.
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
  /** For retrieve, update, and delete. */
  readonly id?: string;
  /** For create, update, tokenize, and detokenize: any JSON that the code passes. */
  readonly body?: unknown;
}

/** The parent has checked the shape; `serve` decides whether the destination is allowed. */
export interface FetchInput {
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Base64. */
  readonly body?: string;
}

/** The result of `serve` for `fetch`. */
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
 * With `tenant busy` and `pool full` the call did not get its turn in time, with `no process` none could be started.
 * In these cases the code did not run.
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
  /** The code threw any other value. */
  | 'other';

export interface CodeError {
  readonly name: CodeErrorName;
  readonly status: number;
  readonly detail: string;
  /** Details that the code provides, by property. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  /** Where the code says that it was thrown; for its author alone. */
  readonly place?: CodePlace;
  /** Only for `CustomHttpResponseError`. */
  readonly response?: CustomResponse;
}

/** Both count from 1. */
export interface CodePlace {
  readonly line: number;
  readonly column: number;
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

/** The message helps the author to fix the problem, and may quote the name of a module. */
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
  /** The isolation of processes on this machine. */
  readonly isolation: IsolationName;
  readonly processes: number;
  readonly running: number;
  readonly waiting: number;
}
