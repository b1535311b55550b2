/** A log with a past, and every way in which one of its lines can be altered. */
import { clientsOf } from './client.ts';
import { linesOfLog } from './logs.ts';
import type { TestTenant } from './tenant.ts';

/** What a tenant's log, checkpoints and receipts are after some tokens were stored, read and deleted. */
export async function historyOf(tenant: TestTenant) {
  const { vault, admin } = await clientsOf(tenant);
  const first = await admin.logs.checkpoint();
  for (let count = 0; count < 6; count += 1) {
    await vault.tokens.create({ id: `token-${count}`, type: 'token', data: `value ${count}` });
    await vault.tokens.get(`token-${count}`);
  }
  // A vault signs at most one each second.
  tenant.vault.clock.advance(2_000);
  await vault.tokens.delete('token-0');
  await vault.tokens.delete('token-1');
  const checkpoint = await admin.logs.checkpoint();
  const receipt = await vault.tokens.erasure('token-0');
  const other = await vault.tokens.erasure('token-1');
  const log = await linesOfLog(tenant.vault, tenant.id);
  return { tenant, first, checkpoint, receipt, other, log, publicKeys: checkpoint.public_keys };
}

export interface Alteration {
  readonly place: string;
  readonly altered: string;
  /** The vault also takes lines that a collector gathered, which have no beginning. */
  readonly isCollected: boolean;
  /** Nothing but the chain speaks for what is newer than the last checkpoint. */
  readonly isNewest: boolean;
  /** The line says where the log begins or ends. */
  readonly isFrame: boolean;
}

export function* alterationsOf(
  log: string,
  checkpoint: { readonly statement: string },
): Generator<Alteration> {
  const lines = log.trimEnd().split('\n');
  const heads: [string, number][] = JSON.parse(checkpoint.statement).heads;
  const covered = new Map(heads.map(([stream, seq]) => [stream, seq]));
  for (const [at, line] of lines.entries()) {
    const { kind, seq, stream_id } = JSON.parse(line) as Line;
    const next = lines[at + 1];
    const isEntry = kind === 'entry';
    const variants: Record<string, string[] | undefined> = {
      repeated: [...lines.slice(0, at), line, ...lines.slice(at)],
      'with an addition': lines.with(at, line.replace(/\}$/, ',"more":1}')),
      'with a space': lines.with(at, line.replace(':', ': ')),
      removed: lines.filter((_, index) => index !== at),
      // Streams may be mixed: the order is that of each.
      moved:
        next && JSON.parse(next).kind === kind && JSON.parse(next).stream_id === stream_id
          ? lines.with(at, next).with(at + 1, line)
          : undefined,
      edited: isEntry
        ? lines.with(at, line.replace(/"operation":"\w+"/, '"operation":"x"'))
        : undefined,
      'with another time': isEntry
        ? lines.with(at, line.replace(/"created_at":1/, '"created_at":2'))
        : undefined,
      'with another statement':
        kind === 'checkpoint' ? lines.with(at, line.replace(/heads/, 'Heads')) : undefined,
      'cut off here': lines.slice(0, at),
    };
    for (const [name, variant] of Object.entries(variants)) {
      if (variant === undefined) continue;
      const isLast = seq > (covered.get(stream_id) ?? 0) && seq === lastSeq(lines, stream_id);
      yield {
        place: `line ${at + 1} (${kind}) ${name}`,
        altered: `${variant.join('\n')}\n`,
        isCollected: kind === 'begin' && name === 'removed',
        isNewest: isEntry && name === 'removed' && isLast,
        isFrame: kind === 'begin' || kind === 'end',
      };
    }
  }
}

interface Line {
  readonly kind: string;
  readonly seq: number;
  readonly stream_id: string;
}

function lastSeq(lines: readonly string[], stream: string): number {
  const parsed = lines.map((line) => JSON.parse(line) as Line);
  const own = parsed.filter(({ stream_id }) => stream_id === stream);
  return Math.max(...own.map(({ seq }) => seq));
}
