/** What processes use, read from /proc: processor time and memory. */
import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ is 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

const sampleMs = 100;

/** Processor time of a process and all below it, in user and kernel mode. */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid);
  const own = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  const below =
    children === '' ? [] : children.split(' ').map((child) => cpuSeconds(Number(child)));
  return own + below.reduce((sum, one) => sum + one, 0);
}

/** Processor time of each thread of a process by itself, with its name; the first has the id of the process. */
export function threadCpuSeconds(pid: number): ThreadCpu[] {
  return readdirSync(`/proc/${pid}/task`).map((id) => {
    const place = `${pid}/task/${id}`;
    const name = readFileSync(`/proc/${place}/comm`, 'utf8').trim();
    const fields = statFields(place);
    return {
      id: Number(id),
      name,
      seconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
    };
  });
}

export interface ThreadCpu {
  readonly id: number;
  readonly name: string;
  readonly seconds: number;
}

/** Processor time of the children of this process that have ended. */
export function endedChildrenCpuSeconds(): number {
  const fields = statFields(process.pid);
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond;
}

/** Resident memory of one process. */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(match?.[1] ?? Number.NaN) * 1024;
}

export interface Watched {
  readonly pid: number;
  /** Processor time of a database server beside the process. */
  readonly databaseCpuSeconds?: () => number;
}

export interface Used {
  readonly cpuSeconds: number;
  readonly databaseCpuSeconds: number;
  /** Of the process, sampled while the work lasted. */
  readonly residentBytes: readonly number[];
}

/** What a server uses while the work lasts. */
export async function using<T>(
  { pid, databaseCpuSeconds = () => 0 }: Watched,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly used: Used }> {
  const residents: number[] = [];
  const sample = () => residents.push(residentBytes(pid));
  const before = { server: cpuSeconds(pid), database: databaseCpuSeconds() };
  const sampling = setInterval(sample, sampleMs);
  try {
    const result = await work();
    sample();
    const used = {
      cpuSeconds: cpuSeconds(pid) - before.server,
      databaseCpuSeconds: databaseCpuSeconds() - before.database,
      residentBytes: residents,
    };
    return { result, used };
  } finally {
    clearInterval(sampling);
  }
}

/** The fields after the command's name, which may itself contain spaces. */
function statFields(pid: number | string): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
