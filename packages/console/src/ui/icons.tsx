/** The icons of the console, drawn for it: lines of one width in a square of 16. */
const paths = {
  overview: 'M2.5 13.5h11M4.5 11V8M8 11V3.5M11.5 11V6',
  tokens: 'M2.5 4.5h11v7h-11zM2.5 7h11M5 9.5h2.5',
  applications: 'M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM11 9v4M9 11h4',
  proxies: 'M2.5 5h8.5M8.5 2.5 11 5 8.5 7.5M13.5 11H5M7.5 8.5 5 11l2.5 2.5',
  reactors: 'M6 4 2.5 8 6 12M10 4l3.5 4L10 12',
  webhooks: 'M8 2.5v4M8 2.5 5.5 5M8 2.5 10.5 5M3 9.5v4h10v-4M3 9.5h3l.7 1.5h2.6l.7-1.5h3',
  log: 'M3.5 2.5h9v11h-9zM6 5.5h4M6 8h4M6 10.5h2.5',
  keys: 'M10 9.5a3 3 0 1 0-2.9-2.2L2.5 12v1.5H4V12h1.5V10.5L7.7 8.8M10.7 5.8h.01',
  passkey:
    'M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM1.5 13.500c.200-2.400 1.900-3.500 4.500-3.500 1 0 1.900.200 2.600.500M11.500 8.500a1.800 1.800 0 1 1 1 1.600v3.400l-1-.9-1 .9v-3.600',
  people: 'M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM3 13.5c.300-2.5 2.3-3.5 5-3.5s4.7 1 5 3.5',
  settings: 'M2.5 5h6M11.5 5h2M10 6.5v-3M2.5 11h2M7.5 11h6M6 12.5v-3',
  problems: 'M8 2.5 14 13H2L8 2.5ZM8 6.5v3M8 11.2v.01',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3l3.2 3.2',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'M3 8.5 6.5 12 13 4.5',
  close: 'M4 4l8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  left: 'M10 4 6 8l4 4',
  right: 'M6 4l4 4-4 4',
  down: 'M4 6l4 4 4-4',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z',
  trash: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.500 9h6l.500-9',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v2.5h-2.5',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  code: 'M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5',
  sun: 'M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1',
  exit: 'M9.5 2.5h-6v11h6M7 8h7M11.5 5.5 14 8l-2.5 2.5',
  shield: 'M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4l5-2ZM5.8 8l1.6 1.6 2.8-3',
  play: 'M5 3.5 12 8l-7 4.5z',
  download: 'M8 2.5v7.5M5 7.5 8 10.5l3-3M3 13.5h10',
} as const;

export type IconName = keyof typeof paths;

/** Decoration: the text next to it says the same. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path
        d={paths[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.35"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect class="logo-ground" width="32" height="32" rx="8" />
      <path class="logo-bow" d="M10 14v-2.5a6 6 0 0 1 12 0V14" />
      <rect class="logo-body" x="7.5" y="13.5" width="17" height="12" rx="3" />
      <circle class="logo-ground" cx="16" cy="19.5" r="2.4" />
    </svg>
  );
}
