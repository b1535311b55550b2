/** Card fields of a Strongroom vault: what is typed into them reaches the vault, and never the page. */
import { type Channel, type ChannelSetting, frameMsMax, openChannel } from './channel.ts';
import { adopt, defineElements, framesOf, refuse, release, StrongroomElement } from './elements.ts';
import { FieldsError, pageLocale } from './errors.ts';
import { flawOfKey } from './keys.ts';
import type { FrameRequest, Kind, ProxyTarget } from './protocol.ts';
import { type BodyWithFields, placesIn } from './values.ts';

export type { ElementValue } from './elements.ts';
export type { Kind, State } from './protocol.ts';
export type { BodyWithFields } from './values.ts';
export { FieldsError, StrongroomElement };

export interface FieldsOptions {
  /** The key of a public application that lists the origin of this page. */
  readonly key: string;
  /** The origin of the vault; the loader knows the one that it was loaded from. */
  readonly vault?: string | undefined;
  /** The key of a session that was created with the same key; it calls in place of it. */
  readonly session?: string | undefined;
  /** Such as `de`; otherwise the language of the page. */
  readonly locale?: string | undefined;
  /** After which a frame that has not come is an error; 10 s unless given. */
  readonly timeoutMs?: number | undefined;
}

export interface RequestOptions {
  /** A UUID, or at least 22 characters. Retries with it have one effect. */
  readonly idempotencyKey?: string | undefined;
}

export interface ProxyRequest extends ProxyTarget {
  readonly body?: BodyWithFields;
}

export interface ProxyResponse {
  readonly status: number;
  readonly body: unknown;
}

/** A response of the vault, in which every value of a field is null. */
// biome-ignore lint/suspicious/noExplicitAny: its attributes are those of the API
export type Response = any;

/**
 * Its event `error` has a {@link FieldsError} as its detail: for each promise that rejects, and where the vault cannot
 * be called. Elements have an event of their own.
 */
export class Fields extends EventTarget {
  readonly vault: string;
  readonly key: string;
  readonly locale: string;
  readonly timeoutMs: number;
  readonly #controller: Channel;

  /** @throws FieldsError `key_secret` for a key that must not be in a page, `key_invalid` for what is no key. */
  constructor({ key, vault, session, locale, timeoutMs = frameMsMax }: FieldsOptions) {
    super();
    const flaw = flawOfKey(key);
    if (flaw) {
      const error = new FieldsError(flaw, locale);
      refuse(error);
      throw error;
    }
    if (vault === undefined) {
      throw new FieldsError({
        code: 'vault_missing',
        message: 'Give the origin of the vault as "vault".',
      });
    }
    this.vault = new URL(vault).origin;
    this.key = key;
    this.locale = locale ?? pageLocale();
    this.timeoutMs = timeoutMs;
    this.#controller = openChannel({
      ...this.#channelSetting(),
      connect: { element: '', kind: 'controller', options: { locale: this.locale } },
      after: Promise.resolve(),
      onMessage: () => undefined,
    });
    const { frame } = this.#controller;
    frame.title = 'Secure connection to the vault';
    frame.tabIndex = -1;
    frame.setAttribute('aria-hidden', 'true');
    frame.style.cssText = 'position:absolute;width:0;height:0;border:0;visibility:hidden';
    (document.body ?? document.documentElement).append(frame);
    this.ready.catch((error: FieldsError) => {
      if (error.code === 'field_removed') return;
      // A page that does not hear of it shows the reason in the console at least.
      if (this.#tell(error)) reportError(error);
    });
    // Refused, it is an event.
    if (session !== undefined) this.useSession(session).catch(() => undefined);
    defineElements();
    adopt(this);
  }

  override addEventListener(
    type: 'error',
    listener: (event: CustomEvent<FieldsError>) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  override addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  override addEventListener(
    type: string,
    listener: unknown,
    options?: boolean | AddEventListenerOptions,
  ): void {
    super.addEventListener(type, listener as EventListener, options);
  }

  readonly tokens = {
    /** Creates a token. Fields go into `data`. */
    create: (body: BodyWithFields, options: RequestOptions = {}): Promise<Response> =>
      this.#call({ operation: 'tokens.create', ...placesIn(body), ...options }),
    /** Replaces what the body names in the data of a token. */
    update: (
      token: string,
      body: BodyWithFields,
      options: RequestOptions = {},
    ): Promise<Response> =>
      this.#call({ operation: 'tokens.update', token, ...placesIn(body), ...options }),
  };

  readonly tokenIntents = {
    create: (body: BodyWithFields, options: RequestOptions = {}): Promise<Response> =>
      this.#call({ operation: 'tokenIntents.create', ...placesIn(body), ...options }),
  };

  readonly sessions = {
    /** Your server authorizes the nonce. The key of the session stays in the vault's frames, for `reveal` elements. */
    create: (): Promise<{ readonly nonce: string; readonly expires_at: string }> =>
      this.#call({ operation: 'sessions.create' }) as Promise<never>,
  };

  tokenize(body: BodyWithFields, options: RequestOptions = {}): Promise<Response> {
    return this.#call({ operation: 'tokenize', ...placesIn(body), ...options });
  }

  /** Sends a body with values of fields through a proxy that requires a key. */
  proxy({ body, ...target }: ProxyRequest): Promise<ProxyResponse> {
    const filled = body === undefined ? { body: undefined, places: [] } : placesIn(body);
    return this.#call({ operation: 'proxy', ...target, ...filled }) as Promise<never>;
  }

  /** Calls with the key of a session from now on. Rejects where another key created the session. */
  async useSession(key: string | undefined): Promise<void> {
    await this.#call({ operation: 'session', key });
  }

  /** An element of these fields, to be put into the page. Attributes are those of its HTML. */
  create(kind: Kind, attributes: Readonly<Record<string, string>> = {}): StrongroomElement {
    const element = document.createElement(`strongroom-${kind}`) as StrongroomElement;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.bind(this);
    return element;
  }

  /** Resolves once the vault can be called. */
  get ready(): Promise<void> {
    return this.#controller.ready;
  }

  /** Removes the frame that calls the vault; elements stay until they are removed. */
  close(): void {
    release(this);
    this.#controller.close();
  }

  /** @internal */
  open(setting: Pick<ChannelSetting, 'connect' | 'onMessage'>): Channel {
    return openChannel({ ...this.#channelSetting(), ...setting, after: this.ready });
  }

  async #call(request: FrameRequest): Promise<unknown> {
    try {
      // A customer with a slow connection may be quicker than the last of the frames.
      if ('places' in request) await framesOf(request.places.map(({ element }) => element));
      return await this.#controller.call(request);
    } catch (error) {
      this.#tell(error as FieldsError);
      throw error;
    }
  }

  /** False where a listener prevented the default. */
  #tell(error: FieldsError): boolean {
    return this.dispatchEvent(new CustomEvent('error', { detail: error, cancelable: true }));
  }

  #channelSetting(): Pick<ChannelSetting, 'vault' | 'key' | 'locale' | 'timeoutMs' | 'diagnose'> {
    const { vault, key, locale, timeoutMs } = this;
    return { vault, key, locale, timeoutMs, diagnose: () => this.#diagnose() };
  }

  /** Why no frame came: asked of the vault, as a frame would. */
  async #diagnose(): Promise<FieldsError> {
    const because = (code: string, message: string) =>
      new FieldsError({ code, message }, this.locale);
    if (!navigator.onLine) return because('offline', 'The browser is offline.');
    let response: globalThis.Response;
    try {
      response = await fetch(`${this.vault}/applications/key`, {
        headers: { 'SVC-API-KEY': this.key },
      });
    } catch {
      return because(
        'vault_unreachable',
        `${this.vault} does not respond, or the page must not call it.`,
      );
    }
    if (response.status === 401) return because('key_invalid', 'The vault does not know this key.');
    if (response.status === 403) {
      return because(
        'origin_not_listed',
        `The application does not list ${location.origin} in origins.`,
      );
    }
    const { origins } = (await response.json().catch(() => ({}))) as { origins?: unknown };
    return response.ok && origins === undefined
      ? because('origin_not_listed', 'The application lists no origins; fields need them.')
      : because(
          'frame_blocked',
          'The frame was blocked: by frame-src of the page, or by an extension.',
        );
  }
}
