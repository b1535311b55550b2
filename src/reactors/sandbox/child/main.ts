/**
 * The process in which tenants' code runs, one call after another. It has no environment, no network, and no files
 * except its own. While code runs, it reads and writes the channel synchronously, without an event loop.
 */
import { pooledRandom } from '../../../base/random.ts';
import { type Frame, type FrameKind, frame, frameHeaderBytes, frameKinds } from '../frames.ts';
import * as limits from '../limits.ts';
import type { ChildCall, ChildResult, GuestCall, GuestReply } from '../messages.ts';
import { readFully, writeFully } from './channel.ts';
import { compute } from './crypto.ts';
import { type Engine, EngineError, type EngineImage } from './engine.ts';
import { prelude } from './prelude.ts';
import { openQuickJsWasi } from './quickjs-wasi.ts';
import { bytesOfText, textOfBytes, textWithOptions } from './texts.ts';

/** A refusal that the code can read; of any other error the code sees only the message. */
class ChildRefusal extends Error {}

const randomBytes = pooledRandom();
/** After a call that used this much memory, starting a new process is cheaper than keeping this one. */
const engineBytesKeptMax = 24 * 1024 * 1024;

class CallLoop {
  readonly #image: EngineImage;
  #modules: Readonly<Record<string, string>> = {};
  #requests = 0;
  /** Requests of the current call. */
  #pending = new Set<number>();
  #isDone = true;

  constructor(image: EngineImage) {
    this.#image = image;
  }

  async run(): Promise<void> {
    for (;;) {
      // Starts the engine before the call arrives, so that the call does not wait for it.
      const engine = await this.#image.start((operation, text) => this.#respond(operation, text));
      send(frameKinds.ready, '');
      this.#serve(engine);
      const isLarge = engine.memoryBytes() > engineBytesKeptMax;
      engine.end();
      if (isLarge) return;
    }
  }

  #serve(engine: Engine): void {
    let next = receive();
    for (; next.kind !== frameKinds.call; next = receive()) {
      if (next.kind === frameKinds.modules) this.#modules = JSON.parse(next.payload.toString());
      if (next.kind === frameKinds.rest) globalThis.gc?.();
    }
    this.#pending = new Set();
    this.#isDone = false;
    const call = JSON.parse(next.payload.toString()) as ChildCall;
    deadline = Date.now() + call.timeoutMs + graceMs;
    try {
      engine.enter('call', this.#guestCall(call));
      while (!this.#isDone) this.#goOn(engine);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#finish({ ended: error.reason });
    }
  }

  #guestCall(call: ChildCall): string {
    const moduleNames = Object.keys(this.#modules);
    return JSON.stringify({ ...call, moduleNames } satisfies GuestCall);
  }

  #goOn(engine: Engine): void {
    if (this.#pending.size === 0) {
      this.#finish({ ended: 'never settles' });
      return;
    }
    send(frameKinds.waiting, String(repliesRead));
    const { kind, payload } = receive();
    if (kind !== frameKinds.reply) return;
    const text = payload.toString();
    // Replies to requests of an earlier call may still arrive.
    if (this.#pending.delete((JSON.parse(text) as GuestReply).id)) engine.enter('reply', text);
  }

  #finish(result: ChildResult): void {
    if (this.#isDone) return;
    this.#isDone = true;
    send(frameKinds.result, JSON.stringify(result));
  }

  #respond(operation: string, text: string | undefined): string {
    try {
      if (text === undefined && operation === 'done') {
        this.#finish({ ended: 'result too large' });
        return '+';
      }
      if (text === undefined) {
        const most = `at most ${limits.hostTextLengthMax} characters or bytes in base64 at a time`;
        throw new ChildRefusal(`the host takes ${most}`);
      }
      return `+${this.#perform(operation, text)}`;
    } catch (error) {
      const { name, message } = error as Error;
      return `-${JSON.stringify({ name: error instanceof ChildRefusal ? 'Error' : name, message })}`;
    }
  }

  #perform(operation: string, text: string): string {
    const at = operation.indexOf(':');
    const detail = operation.slice(at + 1);
    switch (at === -1 ? operation : operation.slice(0, at)) {
      case 'encode':
        return bytesOfText(text, detail).toString('base64');
      case 'decode':
        return textOfBytes(text, detail);
      case 'text':
        return textWithOptions(text, detail);
      case 'random':
        return random(Number(text));
      case 'crypto':
        return compute(text);
      case 'module':
        return this.#moduleOf(text);
      case 'log':
        return this.#log(detail, text);
      case 'request':
        return this.#request(text);
      case 'done':
        return this.#done(text);
      default:
        throw new ChildRefusal('unknown operation');
    }
  }

  #moduleOf(name: string): string {
    const source = Object.hasOwn(this.#modules, name) ? this.#modules[name] : undefined;
    if (source === undefined) throw new ChildRefusal('there is no such module');
    return source;
  }

  #log(level: string, text: string): string {
    if (!this.#isDone) send(frameKinds.log, JSON.stringify({ level, text }));
    return '';
  }

  #request(text: string): string {
    if (this.#isDone) throw new ChildRefusal('the call has ended');
    if (this.#pending.size >= limits.pendingRequestsMax) {
      throw new ChildRefusal(`at most ${limits.pendingRequestsMax} requests at one time`);
    }
    this.#requests += 1;
    const id = this.#requests;
    const payload = `{"id":${id},"request":${text}}`;
    if (Buffer.byteLength(payload) > limits.requestBytesMax)
      throw new ChildRefusal('the request is too large');
    this.#pending.add(id);
    send(frameKinds.request, payload);
    return String(id);
  }

  #done(text: string): string {
    if (this.#isDone) return '';
    const isLarge = Buffer.byteLength(text) > limits.resultBytesMax;
    if (isLarge) this.#finish({ ended: 'result too large' });
    else {
      this.#isDone = true;
      send(frameKinds.result, text);
    }
    return '';
  }
}

function random(size: number): string {
  if (!(size >= 0 && size <= limits.randomBytesMax)) {
    throw new ChildRefusal(`at most ${limits.randomBytesMax} random bytes at a time`);
  }
  return randomBytes(size).toString('base64');
}

function send(kind: FrameKind, payload: string): void {
  writeFully(frame(kind, payload));
}

/** The pipe ends when the parent has ended or has closed it. */
function receive(): Frame {
  const header = readFully(frameHeaderBytes) ?? process.exit(0);
  const payload = readFully(header.readUInt32LE(0)) ?? process.exit(0);
  const kind = header.readUInt8(4);
  if (kind === frameKinds.reply) repliesRead += 1;
  return { kind, payload };
}

let repliesRead = 0;

/**
 * The child ends itself, because a parent that was killed cannot do so. The engine polls between some instructions.
 */
const graceMs = 2_000;
let deadline = Number.POSITIVE_INFINITY;

const image = await openQuickJsWasi({
  prelude,
  memoryBytesMax: limits.engineBytesMax,
  stackBytesMax: limits.engineStackBytesMax,
  textLengthMax: limits.hostTextLengthMax,
  mustStop: () => Date.now() > deadline,
});
// All files have been read.
process.permission?.drop?.('fs.read');
await new CallLoop(image).run();
