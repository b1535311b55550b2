/** One child process, from its start to its end: calls of one tenant, one after another. */
import { type ChildProcess, spawn } from 'node:child_process';
import { type Frame, FrameError, FrameReader, frame, frameKinds } from './frames.ts';
import type { Isolation } from './isolation.ts';
import * as limits from './limits.ts';
import { type ProcessorShare, ProcessorWatch } from './priority.ts';
import type { EndReason } from './sandbox.ts';

export interface ProcessCall {
  /** A `ChildCall` as JSON. */
  readonly payload: string;
  readonly modules: ReadonlyMap<string, string>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** Returns the reply to a request of the code. A rejection ends the process. */
  readonly onRequest: (payload: Buffer) => Promise<string>;
  /** False once the log is so large that the process must be killed. */
  readonly onLog: (payload: Buffer) => boolean;
  /** The code is idle until it gets a reply. */
  readonly onWaiting: () => void;
}

/** The bytes of a result have not been validated. */
export type ProcessEnd = { readonly result: Buffer } | { readonly ended: EndReason };

export interface CodeProcess {
  readonly pid: number | undefined;
  /** Resolves when a call may begin; rejects if the process ended before. */
  ready(): Promise<void>;
  /** Call it only when the process is ready. If it resolves without a result, the process has ended. */
  run(call: ProcessCall): Promise<ProcessEnd>;
  /** Gives memory back, before the next call. */
  rest(): void;
  /** Resolves when the process has ended. */
  kill(): Promise<void>;
  readonly isAlive: boolean;
  readonly calls: number;
  /** Whether the process sent any message during the last call: without one, the call had no effect. */
  readonly wasHeard: boolean;
}

const envelopeBytes = 1024;

/** What the child may send; the largest log line of the guest is 8,000 characters. */
const frameBytesMax = {
  [frameKinds.ready]: 0,
  [frameKinds.log]: 64 * 1024,
  [frameKinds.request]: limits.requestBytesMax + envelopeBytes,
  [frameKinds.result]: limits.resultBytesMax + envelopeBytes,
  [frameKinds.waiting]: 16,
};

/** A process that escaped its namespaces could keep the pipe open. */
const pipeMsMax = 250;

/** From a result to the next `ready`: the child drops the engine and creates another one. */
const settleMsMax = 1_000;

interface RunningCall {
  readonly call: ProcessCall;
  readonly resolve: (end: ProcessEnd) => void;
  readonly timer: NodeJS.Timeout;
  readonly onAbort: () => void;
}

interface ProcessStart {
  /** Of the tenant. */
  readonly share: ProcessorShare;
  /** Called once, when the process has ended. */
  readonly onEnd: () => void;
  /** The system refuses to lower the priority of the process. */
  readonly onPriorityRefused?: (() => void) | undefined;
}

/**
 * @throws the system's error for some failures to start a process; other failures appear as the end of the process.
 */
export function startCodeProcess({ words }: Isolation, starting: ProcessStart): CodeProcess {
  const [command = '', ...args] = words;
  const child = spawn(command, args, {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'ignore'],
    // In its own process group, so that the group can be killed and a terminal's Ctrl+C does not interrupt it.
    detached: true,
  });
  return new StartedProcess(child, starting);
}

class StartedProcess implements CodeProcess {
  readonly #child: ChildProcess;
  readonly #watch: ProcessorWatch;
  readonly #exited = Promise.withResolvers<void>();
  readonly #reader = new FrameReader(frameBytesMax);
  #ready = Promise.withResolvers<void>();
  #settling: NodeJS.Timeout;
  #running: RunningCall | undefined;
  #sentModules: ReadonlyMap<string, string> | undefined;
  #endReason: EndReason | undefined;
  isAlive = true;
  /** Replies that were written, to any call. */
  #replies = 0;
  /** How often the child said that it waits, in any call. */
  #waits = 0;
  calls = 0;
  wasHeard = false;

  constructor(child: ChildProcess, { share, onEnd, onPriorityRefused }: ProcessStart) {
    this.#child = child;
    this.#watch = new ProcessorWatch(child, share, onPriorityRefused);
    this.#settling = this.#killAfter(limits.startMsMax);
    this.#ready.promise.catch(() => undefined);
    let isOver = false;
    const end = () => {
      if (isOver) return;
      isOver = true;
      this.#end();
      onEnd();
    };
    child.on('error', end);
    // With namespaces, the `exit` event reports only the launcher; the pipe closes when the child itself ends.
    child.on('close', end);
    child.on('exit', () => setTimeout(end, pipeMsMax).unref());
    // A pipe breaks when the process ends, and the end is handled as such.
    child.stdin?.on('error', () => undefined);
    child.stdout?.on('error', () => undefined);
    child.stdout?.on('data', (chunk: Buffer) => this.#read(chunk));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  ready(): Promise<void> {
    return this.#ready.promise;
  }

  run(call: ProcessCall): Promise<ProcessEnd> {
    const { promise, resolve } = Promise.withResolvers<ProcessEnd>();
    this.calls += 1;
    this.wasHeard = false;
    this.#ready = Promise.withResolvers();
    this.#ready.promise.catch(() => undefined);
    const timer = setTimeout(() => this.#fail('timeout'), call.timeoutMs);
    const onAbort = () => this.#fail('stopped');
    this.#running = { call, resolve, timer, onAbort };
    this.#watch.begin();
    if (!this.isAlive) this.#finish({ ended: 'crashed' });
    else if (call.signal?.aborted) this.#fail('stopped');
    else {
      call.signal?.addEventListener('abort', onAbort);
      this.#send(call);
    }
    return promise;
  }

  #send({ modules, payload }: ProcessCall): void {
    if (modules !== this.#sentModules) {
      this.#sentModules = modules;
      this.#write(frame(frameKinds.modules, JSON.stringify(Object.fromEntries(modules))));
    }
    this.#write(frame(frameKinds.call, payload));
  }

  #write(bytes: Buffer): void {
    const { stdin } = this.#child;
    if (!stdin?.writable) return;
    stdin.write(bytes);
    if (stdin.writableLength > limits.unreadBytesMax) this.#fail('crashed');
  }

  rest(): void {
    this.#write(frame(frameKinds.rest, ''));
  }

  kill(): Promise<void> {
    this.#endReason ??= 'stopped';
    this.#killGroup();
    return this.#exited.promise;
  }

  #killAfter(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#killGroup(), ms);
  }

  /** Only the first reason counts. */
  #fail(reason: EndReason): void {
    this.#endReason ??= reason;
    this.#killGroup();
  }

  #killGroup(): void {
    const { pid, exitCode, signalCode } = this.#child;
    // Another process may have the same process id by now.
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    this.#watch.look();
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      this.#child.kill('SIGKILL');
    }
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.read(chunk, (frame) => this.#take(frame));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#fail(error.kind === frameKinds.result ? 'result too large' : 'crashed');
      this.#child.stdout?.destroy();
    }
  }

  #take({ kind, payload }: Frame): void {
    this.wasHeard = true;
    // The process is being killed, so the remaining data in its pipe is ignored.
    if (this.#endReason !== undefined) return;
    if (kind === frameKinds.ready && this.#running === undefined) {
      clearTimeout(this.#settling);
      this.#ready.resolve();
      return;
    }
    const running = this.#running;
    // A process that sends a message between calls, or skips a result, is no longer trusted.
    if (running === undefined || kind === frameKinds.ready) {
      this.#fail('crashed');
      return;
    }
    if (kind === frameKinds.result) this.#takeResult(payload);
    else if (kind === frameKinds.request) this.#takeRequest(running, payload);
    else if (kind === frameKinds.waiting) this.#takeWaiting(running, payload);
    else if (!running.call.onLog(payload)) this.#fail('crashed');
  }

  #takeResult(payload: Buffer): void {
    this.#settling = this.#killAfter(settleMsMax);
    this.#finish({ result: Buffer.from(payload) });
  }

  #takeRequest(running: RunningCall, payload: Buffer): void {
    running.call.onRequest(Buffer.from(payload)).then(
      (reply) => {
        if (this.#running !== running) return;
        this.#replies += 1;
        this.#write(frame(frameKinds.reply, reply));
      },
      () => {
        if (this.#running === running) this.#fail('crashed');
      },
    );
  }

  /**
   * A reply that was sent meanwhile cancels the wait. The child waits once for each reply, and once more in each call:
   * one that says so more often only keeps this thread busy.
   */
  #takeWaiting({ call }: RunningCall, payload: Buffer): void {
    this.#waits += 1;
    if (this.#waits > this.#replies + this.calls) {
      this.#fail('crashed');
      return;
    }
    if (Number(payload.toString('latin1')) === this.#replies) call.onWaiting();
  }

  #finish(end: ProcessEnd): void {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    clearTimeout(running.timer);
    this.#watch.end();
    running.call.signal?.removeEventListener('abort', running.onAbort);
    running.resolve(end);
  }

  #end(): void {
    this.isAlive = false;
    clearTimeout(this.#settling);
    this.#watch.close();
    this.#ready.reject(new Error('the process ended'));
    this.#finish({ ended: this.#endReason ?? 'crashed' });
    this.#exited.resolve();
  }
}
