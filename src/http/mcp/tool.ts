/** What a tool for agents is, and what it may do. */
import type { TSchema } from 'typebox';
import type { Caller } from '../../rules/caller.ts';
import type { WholeRoute } from '../protocol/route.ts';
import type { SentResponse, ToolRequest } from './tool-request.ts';

/** The parts of a request for a declared operation. */
export interface OperationInput {
  readonly params?: object;
  readonly query?: object;
  readonly body?: object;
}

/** Of one call. There is no way to the vault but these. */
export interface ToolTools {
  /**
   * Performs a declared operation, which admits, counts, and validates as if it had been requested. What it shows of
   * data is masked, whatever the rules of the caller reveal.
   * @returns its body, by its schema.
   */
  readonly perform: (route: WholeRoute, input: OperationInput) => Promise<unknown>;
  /** The same for an operation that opens no value, and needs a permission to send one. */
  readonly performUnopened: (route: WholeRoute, input: OperationInput) => Promise<unknown>;
  /** Sends a request as the forward proxy would. */
  readonly send: (request: ToolRequest) => Promise<SentResponse>;
  readonly caller: Pick<Caller, 'egress' | 'key'>;
}

export interface AgentTool {
  readonly name: string;
  /** For the model that chooses among them. */
  readonly description: string;
  /** Of an object. */
  readonly input: TSchema;
  readonly run: (tools: ToolTools, input: never) => Promise<object>;
}
