/** Custom elements, each with one frame of the vault. The page has the frame, and nothing of what is in it. */
import type { Channel, ChannelSetting } from './channel.ts';
import { type FieldsError, sorry } from './errors.ts';
import {
  type ElementOptions,
  type FromFrame,
  type Kind,
  kinds,
  type Neighbors,
  type State,
  textAttributes,
} from './protocol.ts';
import { neighborsOf } from './tab-order.ts';

/** A part of what an element holds, in place of a value in a body. */
export class ElementValue {
  readonly element: StrongroomElement;
  readonly part: string;

  constructor(element: StrongroomElement, part: string) {
    this.element = element;
    this.part = part;
  }
}

const prefix = '--strongroom-';
const themed = [
  ...['text-color', 'label-color', 'placeholder-color', 'background-color', 'border-color'],
  ...['border-width', 'border-radius', 'focus-color', 'error-color', 'font-family', 'font-size'],
  ...['font-weight', 'padding', 'gap'],
];

/** What elements need of the fields that they belong to. */
export interface ElementOwner {
  readonly locale: string;
  readonly ready: Promise<void>;
  open(setting: Pick<ChannelSetting, 'connect' | 'onMessage'>): Channel;
}

/** The fields that elements of the page's HTML belong to, and elements that were there before them. */
let ofPage: ElementOwner | undefined;
const waiting = new Set<StrongroomElement>();
/** Those that are in the page, with a frame. */
const mounted = new Set<StrongroomElement>();

export function adopt(fields: ElementOwner): void {
  ofPage ??= fields;
  for (const element of waiting) element.bind(fields);
  waiting.clear();
}

/** Those that wait for fields say that they do not come. */
export function refuse(error: FieldsError): void {
  for (const element of waiting) element.fail(error);
}

/** Elements that are put into the page from now on wait for the next fields. */
export function release(fields: ElementOwner): void {
  if (ofPage === fields) ofPage = undefined;
}

/** Resolves once the frames of these elements are ready. Rejects when one of them fails to load. */
export async function framesOf(elementIds: readonly string[]): Promise<void> {
  const asked = [...mounted].filter(({ elementId }) => elementIds.includes(elementId));
  await Promise.all(asked.map(({ frameReady }) => frameReady));
}

// Where there is no document, as on a server that renders the page, the module can still be imported.
const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);

export class StrongroomElement extends Base {
  static formAssociated = true;
  static observedAttributes = [
    ...['label', 'hide-label', 'placeholder', 'locale', 'required', 'disabled', 'format', 'accept'],
    ...['dir', 'style', 'class'],
  ];

  /** By which requests name it; a new one for each frame. */
  elementId = '';
  /** Its state without its value. */
  state: State = { empty: true, complete: false, valid: true };
  #fields: ElementOwner | undefined;
  #channel: Channel | undefined;
  /** That the frame knows. */
  #neighbors: Neighbors = {};

  get kind(): Kind {
    return this.localName.replace('strongroom-', '') as Kind;
  }

  /** Of a card or an expiration date. */
  readonly month = new ElementValue(this, 'month');
  readonly year = new ElementValue(this, 'year');
  /** Of a card: its number and its code alone. */
  readonly number = new ElementValue(this, 'number');
  readonly code = new ElementValue(this, 'code');
  /** Of a bank account. */
  readonly routing = new ElementValue(this, 'routing');
  readonly account = new ElementValue(this, 'account');
  /** Of a text with a mask. */
  readonly unformatted = new ElementValue(this, 'unformatted');

  connectedCallback(): void {
    const fields = this.#fields ?? ofPage;
    if (fields) this.bind(fields);
    else waiting.add(this);
    this.addEventListener('click', this.#focusInside);
  }

  /** A field that is moved or removed is empty afterwards: nothing of it is left. */
  disconnectedCallback(): void {
    waiting.delete(this);
    this.removeEventListener('click', this.#focusInside);
    this.#close();
  }

  attributeChangedCallback(): void {
    this.refresh();
  }

  /** @internal */
  bind(fields: ElementOwner): void {
    if (this.#fields !== fields) this.#close();
    this.#fields = fields;
    waiting.delete(this);
    if (!this.isConnected || this.#channel) return;
    this.elementId = crypto.randomUUID();
    const connect = { element: this.elementId, kind: this.kind, options: this.#options() };
    const channel = fields.open({ connect, onMessage: (message) => this.#hear(message) });
    this.#channel = channel;
    mounted.add(this);
    const { frame } = channel;
    for (const [name, value] of [
      ['display', 'block'],
      ['width', '100%'],
      ['height', '76px'],
      ['border', '0'],
      ['margin', '0'],
      ['color-scheme', 'inherit'],
    ] as const) {
      frame.style.setProperty(name, value, 'important');
    }
    if (getComputedStyle(this).display === 'inline') this.style.display = 'block';
    this.replaceChildren(frame);
    channel.ready.catch((error) => this.#failed(channel, error));
  }

  /** @internal */
  get frameReady(): Promise<void> | undefined {
    return this.#channel?.ready;
  }

  /** @internal */
  tellNeighbors(neighbors: Neighbors): void {
    const { previous, next } = this.#neighbors;
    if (previous === neighbors.previous && next === neighbors.next) return;
    this.#neighbors = neighbors;
    this.#channel?.send({ type: 'neighbors', ...neighbors });
  }

  /** Tells the frame what the page's styles and attributes are now. */
  refresh(): void {
    this.#channel?.send({ type: 'update', options: this.#options() });
  }

  override focus(): void {
    this.#channel?.frame.focus();
    this.#channel?.send({ type: 'focus' });
  }

  clear(): void {
    this.#channel?.send({ type: 'clear' });
  }

  /** Puts it into an element of the page, or into the one that the selector finds. */
  mount(target: string | Element): this {
    const parent = typeof target === 'string' ? document.querySelector(target) : target;
    if (!parent) throw new TypeError('There is no such element to mount a field in.');
    parent.replaceChildren(this);
    return this;
  }

  unmount(): void {
    this.remove();
  }

  /** Of a reveal: shows a value of a token, such as that at `data.number`; all of its data without a path. */
  async show({ token, path }: { readonly token: string; readonly path?: string }): Promise<void> {
    await this.#channel?.call({ operation: 'reveal.show', token, path });
  }

  /** Of a reveal: shows nothing any more. */
  async hide(): Promise<void> {
    await this.#channel?.call({ operation: 'reveal.hide' });
  }

  #close(): void {
    this.#channel?.close();
    this.#channel = undefined;
    this.#neighbors = {};
    mounted.delete(this);
    this.state = { empty: true, complete: false, valid: true };
    this.replaceChildren();
  }

  #focusInside = (): void => this.focus();

  #hear(message: FromFrame): void {
    if (message.type === 'height') {
      this.#channel?.frame.style.setProperty('height', `${message.pixels}px`, 'important');
      return;
    }
    if (message.type === 'title') {
      if (this.#channel) this.#channel.frame.title = message.title;
      return;
    }
    if (message.type === 'ready' || message.type === 'change') this.state = message.state;
    if (message.type === 'ready' || message.type === 'focus') tellNeighbors();
    this.#tell(message.type, 'state' in message ? message.state : undefined);
  }

  #failed(channel: Channel, error: FieldsError): void {
    if (this.#channel === channel && error.code !== 'field_removed') this.fail(error);
  }

  /** @internal */
  fail(error: FieldsError): void {
    const text = document.createElement('p');
    text.setAttribute('role', 'alert');
    const locale = this.getAttribute('locale') ?? this.#fields?.locale;
    text.textContent = locale === undefined ? error.customerMessage : sorry(locale);
    this.replaceChildren(text);
    const { code, message } = error;
    this.#tell('error', { code, message, customerMessage: text.textContent });
  }

  #tell(type: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #locale(): string {
    return this.getAttribute('locale') ?? this.#fields?.locale ?? 'en';
  }

  #options(): ElementOptions {
    const style = getComputedStyle(this);
    const theme: Record<string, string> = {};
    for (const name of themed) {
      const value = style.getPropertyValue(prefix + name).trim();
      if (value !== '') theme[name] = value;
    }
    const texts = textAttributes.map((name) => [name, this.getAttribute(name) ?? undefined]);
    return {
      ...Object.fromEntries(texts),
      locale: this.#locale(),
      hideLabel: this.hasAttribute('hide-label'),
      required: this.getAttribute('required') !== 'false',
      disabled: this.hasAttribute('disabled'),
      theme,
      colorScheme: style.colorScheme,
      direction: style.direction,
    };
  }
}

/** The page may have changed since: asked at each focus. */
function tellNeighbors(): void {
  for (const [element, neighbors] of neighborsOf(mounted)) element.tellNeighbors(neighbors);
}

/** Once for each page, however often the script is loaded. */
export function defineElements(): void {
  for (const kind of kinds) {
    const name = `strongroom-${kind}`;
    if (!customElements.get(name)) customElements.define(name, class extends StrongroomElement {});
  }
}
