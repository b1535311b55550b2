/** The editor of code, which is loaded only where code is edited. */
import { autocompletion, type CompletionSource } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { javascript, javascriptLanguage } from '@codemirror/lang-javascript';
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

export interface EditorOptions {
  readonly parent: HTMLElement;
  readonly text: string;
  readonly label: string;
  readonly isDark: boolean;
  readonly onChange: (text: string) => void;
  readonly argumentNames: () => readonly string[];
}

/** With what the code is called: `event` with the image node22, and `req` with node-bt. */
const calledWith = [
  ['configuration', 'Record<string, string>', 'Texts of the reactor, by name.'],
  ['bt', 'Vault | null', 'Tokens, with the rights of the application of the reactor.'],
  ['bt.tokens.retrieve', '(id: string) => Promise<Token>', 'The token as the application sees it.'],
  ['bt.tokens.create', '(request: TokenRequest) => Promise<Token>', 'A new token.'],
  ['bt.tokens.update', '(id: string, patch: TokenPatch) => Promise<Token>', 'The changed token.'],
  ['bt.tokens.delete', '(id: string) => Promise<void>', 'Deletes the token.'],
  ['bt.tokenize', '(body: unknown) => Promise<unknown>', 'The body with tokens for its values.'],
  ['bt.detokenize', '(body: unknown) => Promise<unknown>', 'The body with values for references.'],
] as const;

/** Everything else that the code can use, by name, with its type. */
const offered = [
  ['module.exports', '(event) => Promise<Result>', 'The function that the vault calls.'],
  ['event.req.args', 'Arguments', 'What the caller sent, with values for references.'],
  ['event.logger.info', '(...values: unknown[]) => void', 'A line of the log below.'],
  ['req.args', 'Arguments', 'What the caller sent, with values for references.'],
  ...['event', 'req'].flatMap((name) =>
    calledWith.map(([path, type, info]) => [`${name}.${path}`, type, info] as const),
  ),
  [
    'fetch',
    '(url: string, init?: RequestInit) => Promise<Response>',
    'Only https, to allowed hosts.',
  ],
  ['console.log', '(...values: unknown[]) => void', 'A line of the log below.'],
  [
    'require',
    '(name: string) => Module',
    'buffer, crypto, querystring, url, uuid, strongroom/errors.',
  ],
] as const;

const path = /[\w$]+(?:\.[\w$]*)*/;

/** Names that continue what is typed, and those of the arguments with which the code was last tried. */
function completing(argumentNames: () => readonly string[]): CompletionSource {
  return (context) => {
    const typed = context.matchBefore(path);
    if (!typed && !context.explicit) return null;
    const own = argumentNames().flatMap((name) =>
      ['event.req.args', 'req.args', 'args'].map(
        (at) => [`${at}.${name}`, 'argument', ''] as const,
      ),
    );
    const options = [...offered, ...own].map(([label, detail, info]) => ({
      label,
      detail,
      type: 'property',
      ...(info && { info }),
    }));
    return { from: typed?.from ?? context.pos, options, validFor: /^[\w$.]*$/ };
  };
}

/** The styles of the editor are adopted by its own root: the page allows no style elements. */
export function openEditor(options: EditorOptions): EditorView {
  const { parent, text, label, isDark, onChange, argumentNames } = options;
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' });
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      history(),
      indentOnInput(),
      bracketMatching(),
      javascript(),
      javascriptLanguage.data.of({ autocomplete: completing(argumentNames) }),
      autocompletion({ icons: false }),
      syntaxHighlighting(isDark ? darkStyle : lightStyle),
      keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
      // No part of a line is out of sight on a phone.
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
      EditorView.theme(theme, { dark: isDark }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange(update.state.doc.toString());
      }),
    ],
  });
  return new EditorView({ state, parent: root as unknown as HTMLElement, root });
}

const theme = {
  '&': { color: 'var(--text)', backgroundColor: 'var(--raised)', fontSize: '13px' },
  '.cm-scroller': { minHeight: '260px' },
  '.cm-content': { fontFamily: 'var(--mono)', padding: '10px 0' },
  '.cm-gutters': {
    backgroundColor: 'var(--ground)',
    color: 'var(--muted)',
    border: '0',
    borderRight: '1px solid var(--line)',
  },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  // The frame around it shows the focus.
  '&.cm-focused': { outline: 'none' },
  '.cm-tooltip': {
    backgroundColor: 'var(--panel)',
    color: 'var(--text)',
    border: '1px solid var(--line-strong)',
    borderRadius: '6px',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '4px 10px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    background: 'var(--accent)',
    color: 'var(--accent-text)',
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-completionDetail': { fontStyle: 'normal', opacity: '0.75', marginLeft: '12px' },
  '.cm-tooltip.cm-completionInfo': { padding: '6px 10px', maxWidth: '320px' },
};

const lightStyle = styleOf({
  keyword: '#7a2fb8',
  string: '#17693f',
  number: '#9a4a00',
  name: '#2f50d8',
});
const darkStyle = styleOf({
  keyword: '#c9a2ff',
  string: '#6fd6a0',
  number: '#f0bd63',
  name: '#8fa5ff',
});

interface Colors {
  readonly keyword: string;
  readonly string: string;
  readonly number: string;
  readonly name: string;
}

function styleOf({ keyword, string, number, name }: Colors): HighlightStyle {
  return HighlightStyle.define([
    { tag: tags.keyword, color: keyword },
    { tag: [tags.string, tags.regexp], color: string },
    { tag: [tags.number, tags.bool, tags.null], color: number },
    { tag: [tags.function(tags.variableName), tags.propertyName], color: name },
    { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
  ]);
}

/** Where the page finds it once the script has run. */
Object.assign(globalThis, { strongroomEditor: { openEditor } });
