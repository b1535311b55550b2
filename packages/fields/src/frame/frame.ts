/** The script of a frame: it says hello, and becomes what a listed page asks for over a port of their own. */
import {
  type Connect,
  type ElementOptions,
  type FromFrame,
  type Hello,
  type ToFrame,
  versions,
} from '../protocol.ts';
import { createController, problemOf } from './controller.ts';
import { createField, type FieldFrame } from './field.ts';
import { createFileField } from './file.ts';
import { createReveal } from './reveal.ts';
import { applyTheme } from './theme.ts';
import { wordsIn } from './words.ts';

const { documentElement: root } = document;
/** Written by the vault into the page; the origins that the application lists. */
const listed = new RegExp(root.dataset['origins'] ?? '(?!)');

function applyLook({ locale, theme, colorScheme, direction }: ElementOptions): void {
  const { language } = wordsIn(locale);
  root.lang = language;
  root.dir = direction === 'rtl' || language === 'ar' ? 'rtl' : 'ltr';
  root.style.colorScheme = /^(?:light|dark|light dark)$/.test(colorScheme ?? '')
    ? (colorScheme ?? '')
    : 'light';
  applyTheme(root, theme);
}

function connect({ element, kind, options }: Connect, port: MessagePort): void {
  const tell = (message: FromFrame) => port.postMessage(message);
  applyLook(options);
  if (kind === 'controller') {
    listen(port, { handle: createController().handle, look: () => options });
    tell({ type: 'ready', state: { empty: true, complete: false, valid: true } });
    return;
  }
  let height = 0;
  const measure = () => {
    const pixels = Math.ceil(document.body.getBoundingClientRect().height);
    if (pixels === height) return;
    height = pixels;
    tell({ type: 'height', pixels });
  };
  new ResizeObserver(measure).observe(document.body);
  // What is in a field is not dragged out of it into the page.
  addEventListener('dragstart', (event) => event.preventDefault());
  let current = options;
  const setting = { element, kind, options, tell };
  const reveal = kind === 'reveal' ? createReveal(setting) : undefined;
  const field = reveal ?? (kind === 'file' ? createFileField(setting) : createField(setting));
  /** Screen readers name a frame by its title, which is to be in the language of the field. */
  const entitle = () => {
    const labels = [...document.querySelectorAll('.line > label')].map((one) => one.textContent);
    const name = current.label || wordsIn(current.locale).of('value');
    document.title = labels.join(', ') || name;
    tell({ type: 'title', title: document.title });
  };
  const update = (changed: ElementOptions) => {
    current = changed;
    applyLook(changed);
    field.update(changed);
    entitle();
  };
  listen(port, { field: { ...field, update }, handle: reveal?.handle, look: () => current });
  entitle();
  measure();
}

interface Serving {
  readonly field?: FieldFrame;
  readonly handle: ReturnType<typeof createController>['handle'] | undefined;
  readonly look: () => ElementOptions;
}

function listen(port: MessagePort, { field, handle, look }: Serving): void {
  port.onmessage = ({ data }: MessageEvent<ToFrame>) => {
    if (data.type === 'focus') field?.focus();
    else if (data.type === 'clear') field?.clear();
    else if (data.type === 'neighbors') field?.meet?.(data);
    else if (data.type === 'update') field?.update(data.options);
    else if (data.type === 'call' && handle) {
      const { call, request } = data;
      const reply = (message: FromFrame) => port.postMessage(message);
      handle(request).then(
        (result) => reply({ type: 'reply', call, result }),
        (error) =>
          reply({ type: 'refusal', call, problem: problemOf(error, wordsIn(look().locale)) }),
      );
    }
  };
}

/** True once: what a frame is does not change. */
let isConnected = false;

addEventListener('message', ({ data, origin, source, ports }: MessageEvent<Partial<Connect>>) => {
  const [port] = ports;
  if (isConnected || source !== parent || !listed.test(origin) || !port) return;
  if (data?.strongroom !== 'connect' || !versions.includes(data.version ?? 0)) return;
  isConnected = true;
  connect(data as Connect, port);
});

// A frame that is not in a frame has nothing to say.
if (parent !== window) {
  const hello: Hello = { strongroom: 'hello', versions };
  parent.postMessage(hello, '*');
}
