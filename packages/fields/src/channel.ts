/** One frame of the vault, and the port over which the page speaks with it. */
import { FieldsError } from './errors.ts';
import {
  type Connect,
  type FrameRequest,
  type FromFrame,
  type Hello,
  type ToFrame,
  versions,
} from './protocol.ts';

/** After which a frame that has not come counts as missing. */
export const frameMsMax = 10_000;

export interface ChannelSetting {
  readonly vault: string;
  readonly key: string;
  /** Of errors for the customer. */
  readonly locale: string;
  readonly connect: Pick<Connect, 'element' | 'kind' | 'options'>;
  readonly timeoutMs: number;
  /** Before which the frame becomes nothing: it has to find the one that calls the vault. */
  readonly after: Promise<void>;
  readonly onMessage: (message: FromFrame) => void;
  /** Why it does not come. */
  readonly diagnose: () => Promise<FieldsError>;
}

export interface Channel {
  readonly frame: HTMLIFrameElement;
  /** Rejects with a `FieldsError` where the frame does not come. */
  readonly ready: Promise<void>;
  send(message: ToFrame): void;
  call(request: FrameRequest): Promise<unknown>;
  /** Nothing of the frame is left. */
  close(): void;
}

interface Call {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: FieldsError) => void;
}

export function openChannel(setting: ChannelSetting): Channel {
  const { vault, key, locale, connect, timeoutMs, after, onMessage, diagnose } = setting;
  const frame = document.createElement('iframe');
  frame.src = `${vault}/fields/v1/frame/${encodeURIComponent(key)}`;
  frame.title = `Secure field: ${connect.kind.replace(/-/g, ' ')}`;
  frame.allow = 'clipboard-write';
  // Neither may it lead the page elsewhere, nor open windows.
  frame.setAttribute('sandbox', 'allow-scripts allow-same-origin allow-forms');
  const calls = new Map<number, Call>();
  const { port1: port, port2 } = new MessageChannel();
  let count = 0;
  let settle: (error?: FieldsError) => void = () => undefined;
  const ready = new Promise<void>((resolve, reject) => {
    settle = (error) => (error ? reject(error) : resolve());
  });
  // Whoever waits for it hears of it; for others there is an event.
  ready.catch(() => undefined);
  const timer = setTimeout(() => void diagnose().then(settle), timeoutMs);

  const hear = ({ source, origin, data }: MessageEvent<Partial<Hello> | null>) => {
    if (source !== frame.contentWindow || origin !== vault) return;
    if (data?.strongroom !== 'hello' || !Array.isArray(data.versions)) return;
    removeEventListener('message', hear);
    const version = versions.find((one) => data.versions?.includes(one));
    if (version === undefined) {
      clearTimeout(timer);
      const message =
        'The vault knows no version of this script. Load its loader, or update the package.';
      settle(new FieldsError({ code: 'version_unsupported', message }, locale));
      return;
    }
    const message: Connect = { strongroom: 'connect', version, ...connect };
    after.then(() => frame.contentWindow?.postMessage(message, vault, [port2]), settle);
  };
  addEventListener('message', hear);

  port.onmessage = ({ data }: MessageEvent<FromFrame>) => {
    if (data.type === 'ready') {
      clearTimeout(timer);
      settle();
    }
    if (data.type === 'reply') take(data.call)?.resolve(data.result);
    else if (data.type === 'refusal')
      take(data.call)?.reject(new FieldsError(data.problem, locale));
    else onMessage(data);
  };

  function take(call: number): Call | undefined {
    const found = calls.get(call);
    calls.delete(call);
    return found;
  }

  const goneError = () =>
    new FieldsError(
      { code: 'field_removed', message: 'The field was removed from the page.' },
      locale,
    );

  return {
    frame,
    ready,
    send: (message) => port.postMessage(message),
    call: async (request) => {
      await ready;
      // A page that replaced its body took the frame away.
      if (!frame.isConnected) throw goneError();
      count += 1;
      const call = count;
      return new Promise((resolve, reject) => {
        calls.set(call, { resolve, reject });
        port.postMessage({ type: 'call', call, request } satisfies ToFrame);
      });
    },
    close: () => {
      clearTimeout(timer);
      removeEventListener('message', hear);
      port.close();
      frame.remove();
      const gone = goneError();
      for (const { reject } of calls.values()) reject(gone);
      calls.clear();
      settle(gone);
    },
  };
}
