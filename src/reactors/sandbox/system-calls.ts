/**
 * The seccomp filter of a child process: the system calls that it may no longer make once it starts. The filter is a
 * classic BPF program (seccomp(2), struct sock_filter) that this file assembles for x86_64 and aarch64.
 *
 * It denies system calls that Node and the engine do not need, and that an attacker who controls the process would
 * use: other processes, sockets, namespaces, mounts, and the parts of the kernel in which most local exploits begin.
 */

/** The number on each architecture; `undefined` where there is no such call. */
type CallNumbers = readonly [x86: number | undefined, aarch64: number | undefined];

/** Newer calls have the same number on every architecture. */
const common = (number: number): CallNumbers => [number, number];
const x86Only = (number: number): CallNumbers => [number, undefined];

/** They fail with EPERM. */
export const deniedCalls: Readonly<Record<string, CallNumbers>> = {
  // The memory and the descriptors of other processes.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: common(440),
  process_mrelease: common(448),
  kcmp: [312, 272],
  pidfd_open: common(434),
  pidfd_getfd: common(438),
  // Signals and priorities, of other processes and its own.
  kill: [62, 129],
  tkill: [200, 130],
  tgkill: [234, 131],
  rt_sigqueueinfo: [129, 138],
  rt_tgsigqueueinfo: [297, 240],
  pidfd_send_signal: common(424),
  setpriority: [141, 140],
  sched_setaffinity: [203, 122],
  sched_setattr: [314, 274],
  sched_setparam: [142, 118],
  sched_setscheduler: [144, 119],
  ioprio_set: [251, 30],
  mbind: [237, 235],
  set_mempolicy: [238, 237],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  // New processes; `clone` has a rule of its own.
  fork: x86Only(57),
  vfork: x86Only(58),
  execveat: [322, 281],
  memfd_create: [319, 279],
  memfd_secret: common(447),
  // The network, including loopback, and descriptors from other processes.
  socket: [41, 198],
  socketpair: [53, 199],
  connect: [42, 203],
  bind: [49, 200],
  listen: [50, 201],
  accept: [43, 202],
  accept4: [288, 242],
  sendto: [44, 206],
  sendmsg: [46, 211],
  sendmmsg: [307, 269],
  recvmsg: [47, 212],
  recvmmsg: [299, 243],
  // Memory and messages shared between processes.
  shmget: [29, 194],
  shmat: [30, 196],
  msgget: [68, 186],
  semget: [64, 190],
  mq_open: [240, 180],
  // Namespaces and the file system.
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: common(428),
  move_mount: common(429),
  fsopen: common(430),
  fsconfig: common(431),
  fsmount: common(432),
  fspick: common(433),
  mount_setattr: common(442),
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  mknod: x86Only(133),
  mknodat: [259, 33],
  fanotify_init: [300, 262],
  // Other identities and capabilities.
  setuid: [105, 146],
  setgid: [106, 144],
  setreuid: [113, 145],
  setregid: [114, 143],
  setresuid: [117, 147],
  setresgid: [119, 149],
  setgroups: [116, 159],
  capset: [126, 91],
  // The parts of the kernel that exploits use most.
  io_uring_setup: common(425),
  io_uring_enter: common(426),
  io_uring_register: common(427),
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  personality: [135, 92],
  modify_ldt: x86Only(154),
  // The whole machine.
  iopl: x86Only(172),
  ioperm: x86Only(173),
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  quotactl: [179, 60],
  syslog: [103, 116],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
};

interface Architecture {
  /** AUDIT_ARCH_… of linux/audit.h. */
  readonly audit: number;
  readonly column: 0 | 1;
  readonly clone: number;
  readonly prlimit64: number;
  /** Of the call that installs a filter. */
  readonly seccomp: number;
}

const architectures: Readonly<Record<string, Architecture>> = {
  x64: { audit: 0xc000003e, column: 0, clone: 56, prlimit64: 302, seccomp: 317 },
  arm64: { audit: 0xc00000b7, column: 1, clone: 220, prlimit64: 261, seccomp: 277 },
};

const clone3 = 435;

/** Instructions of classic BPF: linux/bpf_common.h. */
const loadWord = 0x20;
const jumpIfEqual = 0x15;
const jumpIfAtLeast = 0x35;
const jumpIfAnyBit = 0x45;
const respond = 0x06;

/** Offsets in struct seccomp_data. Both architectures are little-endian, so the low half comes first. */
const callAt = 0;
const architectureAt = 4;
const firstArgumentAt = 16;

const allow = 0x7fff0000;
const killProcess = 0x80000000;
const failWith = (errno: number) => 0x00050000 + errno;
const eperm = failWith(1);
const enosys = failWith(38);

/** Calls of the 32-bit variant of x86_64 have this bit. */
const x32Bit = 0x40000000;

const cloneThread = 0x00010000;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const cloneNamespaces = 0x7e020000;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

const load = (offset: number): Instruction => [loadWord, 0, 0, offset];
const end = (value: number): Instruction => [respond, 0, 0, value];
/** Jumps over `skipped` instructions unless the call has this number. */
const unlessCall = (number: number, skipped: number): Instruction => [
  jumpIfEqual,
  0,
  skipped,
  number,
];

export interface SystemCallFilter {
  /** An array of struct sock_filter. */
  readonly program: Buffer;
  /** The number of seccomp(2) on this architecture. */
  readonly seccomp: number;
}

/** @returns the filter for an architecture as Node names it, or `undefined` where this file has none. */
export function systemCallFilter(name: string = process.arch): SystemCallFilter | undefined {
  const architecture = architectures[name];
  if (architecture === undefined) return undefined;
  return { program: assembled(instructionsFor(architecture)), seccomp: architecture.seccomp };
}

function instructionsFor({ audit, column, clone, prlimit64 }: Architecture): Instruction[] {
  const denied = Object.values(deniedCalls).flatMap((numbers) => numbers[column] ?? []);
  return [
    // A number means another call on another architecture.
    load(architectureAt),
    [jumpIfEqual, 1, 0, audit],
    end(killProcess),
    load(callAt),
    [jumpIfAtLeast, 0, 1, x32Bit],
    end(eperm),
    ...denied.flatMap((number) => [unlessCall(number, 1), end(eperm)]),
    // Its flags are in memory, which a filter cannot read. The C library falls back to `clone`.
    unlessCall(clone3, 1),
    end(enosys),
    // Only threads may be created: without other processes, nothing outlives this one.
    unlessCall(clone, 5),
    load(firstArgumentAt),
    [jumpIfAnyBit, 1, 0, cloneNamespaces],
    [jumpIfAnyBit, 1, 0, cloneThread],
    end(eperm),
    end(allow),
    // Only its own limits, which it cannot raise, not those of other processes.
    unlessCall(prlimit64, 3),
    load(firstArgumentAt),
    [jumpIfEqual, 1, 0, 0],
    end(eperm),
    end(allow),
  ];
}

function assembled(instructions: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(instructions.length * 8);
  for (const [at, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(ifTrue, at * 8 + 2);
    bytes.writeUInt8(ifFalse, at * 8 + 3);
    bytes.writeUInt32LE(value, at * 8 + 4);
  }
  return bytes;
}
